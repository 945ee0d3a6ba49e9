"""Ctrl-C and SIGTERM: what is finished stays, nothing is left half written, no trace is shown."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any, NoReturn

    Handler = Callable[[int, FrameType | None], Any]

#: Whether this process is ours alone, so that it may end on the spot; the program says so.
is_program = False
#: The signal that came; 0 before. What fails after it failed because of it: some libraries turn an
#: interrupted import into an error of their own.
received = 0


class Ended(KeyboardInterrupt):
    """A signal wants an end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number


@contextmanager
def heeded() -> Iterator[None]:
    """Raise Ended on SIGINT and SIGTERM, unless the program that called us looks after them."""
    global received
    received = 0
    with _handled(_raise, (signal.default_int_handler, signal.SIG_DFL)):
        yield


@contextmanager
def at_once() -> Iterator[None]:
    """Leave on the spot: while libraries load there is nothing to keep, and much to confuse."""
    with _handled(_leave, (_raise,) if is_program else ()):
        yield


def raise_if_received() -> None:
    """End, rather than tell of an error that is none.

    Raises:
        Ended: a signal came before.
    """
    if received:
        raise Ended(received)


@contextmanager
def _handled(handler: Handler, instead_of: tuple[object, ...]) -> Iterator[None]:
    ours = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if (previous := signal.getsignal(number)) in instead_of:
                ours[number] = previous
                signal.signal(number, handler)
    try:
        yield
    finally:
        for number, previous in ours.items():
            signal.signal(number, previous)


def _raise(number: int, _: FrameType | None) -> NoReturn:
    global received
    received = number
    raise Ended(number)


def _leave(number: int, _: FrameType | None) -> NoReturn:
    os._exit(128 + number)
