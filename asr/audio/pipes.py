"""What cannot be sought in, pipes and bytes, -> a file in memory, as long as what arrived."""

import contextlib
import os
import select
import stat

from asr.audio.sniff import sniff as recognise
from asr.errors import AudioError, SystemAccessError, UsageError

_STEP = 1 << 18
#: So many bytes are waited for before something that is no sound is refused.
_HEAD = 64


def standard_input(name: str, *, sniff: bool) -> int:
    """Take standard input, binary.

    Args:
        name: what to call it.
        sniff: whether to refuse what has the first bytes of no sound.

    Returns:
        A descriptor of a regular file, to be closed.

    Raises:
        UsageError: it is a terminal.
        AudioError: it holds nothing, or no sound.
        SystemAccessError: it is closed, or cannot be read.
    """
    try:
        mode = os.fstat(0).st_mode
        terminal = os.isatty(0)
        whole = stat.S_ISREG(mode) and os.lseek(0, 0, os.SEEK_CUR) == 0
    except OSError as error:
        raise SystemAccessError(f"{name}: cannot read it: {error.strerror}") from None
    if terminal:
        raise UsageError(f"{name}: expected sound from a file or a pipe, found a terminal")
    return os.dup(0) if whole else drain(0, name, sniff=sniff)


def drain(descriptor: int, name: str, *, sniff: bool) -> int:
    """Read to the end into memory; what is no sound is refused at its first bytes.

    Args:
        descriptor: of a pipe, a socket or a device; stays open.
        name: what to call it.
        sniff: whether to refuse what has the first bytes of no sound.

    Returns:
        A descriptor of a regular file, to be closed.

    Raises:
        AudioError: it holds nothing, or no sound.
        SystemAccessError: it cannot be read, or memory is full.
    """
    held = _new()
    try:
        _fill(held, descriptor, name, sniff)
    except BaseException:
        os.close(held)
        raise
    return held


def hold(content: bytes) -> int:
    """Put bytes into a file in memory.

    Returns:
        A descriptor, to be closed.

    Raises:
        SystemAccessError: memory is full.
    """
    held = _new()
    try:
        _write(held, content, "bytes")
        os.lseek(held, 0, os.SEEK_SET)
    except BaseException:
        os.close(held)
        raise
    return held


def _fill(held: int, descriptor: int, name: str, sniff: bool) -> None:
    head = b""
    known = not sniff
    while data := _read(descriptor, name):
        _write(held, data, name)
        if not known:
            head += data[:_HEAD]
            known = len(head) >= _HEAD
            if known:
                _refuse_no_sound(head, name)
    if head and not known:
        _refuse_no_sound(head, name)
    if not os.lseek(held, 0, os.SEEK_CUR):
        raise AudioError(f"{name}: expected a sound file, found 0 bytes")
    os.lseek(held, 0, os.SEEK_SET)


def _refuse_no_sound(head: bytes, name: str) -> None:
    if not recognise(head):
        raise AudioError(
            f"{name}: expected a sound file (WAV, FLAC, Ogg, MP3 ...), could not decode what "
            f"begins with {head[:12]!r}; raw samples need a raw format"
        )


def _new() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("asr-sound")
    import tempfile  # pragma: no cover - not on Linux

    with tempfile.TemporaryFile() as file:  # pragma: no cover
        return os.dup(file.fileno())


def _write(descriptor: int, data: bytes, name: str) -> None:
    view = memoryview(data).cast("B")
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise SystemAccessError(f"{name}: cannot keep it: {error.strerror}") from None


def _read(descriptor: int, name: str) -> bytes:
    try:
        while True:
            if os.get_blocking(descriptor):
                return os.read(descriptor, _STEP)
            select.select([descriptor], [], [])
            with contextlib.suppress(BlockingIOError):
                return os.read(descriptor, _STEP)
    except OSError as error:
        raise SystemAccessError(f"{name}: cannot read it: {error.strerror}") from None
