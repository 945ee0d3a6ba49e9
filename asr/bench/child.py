"""A process that is measured from outside: its time, its memory, what it says, its turns."""

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from asr.errors import AsrError, MissingToolError


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended well.

    Attributes:
        process_ns: spawn to exit.
        cpu_ns: user and system time of all its threads.
        peak_rss_bytes: most memory it held, or the process that started it, if that held more
            (Linux counts from the fork on).
        out: what it wrote to stdout.
    """

    process_ns: int
    cpu_ns: int
    peak_rss_bytes: int
    out: bytes


class Child:
    """A process under way; as a context manager it is ended with its block at the latest.

    Args:
        command: program and arguments.
        name: for messages.
        cores: those to stay on; None leaves it to the system.
        environment: variables on top of ours.
        errors_by_code: what to raise for an exit code.
        takes_turns: whether it waits on stdin for its turns.

    Raises:
        MissingToolError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        name: str,
        cores: Sequence[int] | None = None,
        environment: Mapping[str, str] | None = None,
        errors_by_code: Mapping[int, type[AsrError]] | None = None,
        takes_turns: bool = False,
    ) -> None:
        self._name = name
        self._errors_by_code = errors_by_code or {}
        self._out = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with us
        self._start_ns = time.perf_counter_ns()
        try:
            with on(cores):
                self._process = subprocess.Popen(  # noqa: S603 - what the caller wants measured
                    command, env={**os.environ, **(environment or {})}, bufsize=0,
                    stdin=subprocess.PIPE if takes_turns else subprocess.DEVNULL,
                    stdout=subprocess.PIPE, stderr=self._errors,
                )  # fmt: skip
        except OSError as error:
            self._errors.close()
            message = f"{name}: {command[0]} cannot be started: {error.strerror}"
            raise MissingToolError(message) from None

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()

    def take_turn(self) -> None:
        """Have it go on from where it waits."""
        assert self._process.stdin is not None  # noqa: S101 - takes_turns
        with contextlib.suppress(BrokenPipeError):  # it has ended: ``end`` says why
            self._process.stdin.write(b"\n")

    def end_turn(self) -> None:
        """Wait until it has written a line; of one that ends without, ``end`` says why."""
        assert self._process.stdout is not None  # noqa: S101 - Popen was told to pipe
        while byte := self._process.stdout.read(1):
            self._out += byte
            if byte == b"\n":
                return

    def end(self) -> Ended:
        """Wait for its end.

        Raises:
            MissingToolError: it fails; with the last line it printed.
            AsrError: of the class that its exit code stands for.
        """
        process = self._process
        assert process.stdout is not None  # noqa: S101 - Popen was told to pipe
        self._out += process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process_ns = time.perf_counter_ns() - self._start_ns
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            self._errors.seek(0)
            last = last_line(self._errors.read().decode(errors="replace"))
            kind = self._errors_by_code.get(process.returncode, MissingToolError)
            raise kind(f"{self._name}: ended with {process.returncode}: {last}")
        cpu_ns = round(1e9 * (usage.ru_utime + usage.ru_stime))
        return Ended(process_ns, cpu_ns, 1024 * usage.ru_maxrss, self._out)


def spawn(
    command: Sequence[str],
    *,
    name: str,
    cores: Sequence[int] | None = None,
    environment: Mapping[str, str] | None = None,
) -> Ended:
    """Run a command to its end; arguments and errors of ``Child``."""
    with Child(command, name=name, cores=cores, environment=environment) as child:
        return child.end()


def last_line(text: str) -> str:
    """What a process that failed said last."""
    return (text.strip().splitlines() or ["it said nothing"])[-1]


@contextlib.contextmanager
def on(cores: Sequence[int] | None) -> Iterator[None]:
    """Be on these cores, so that a child starts there; afterwards where we were."""
    if cores is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
