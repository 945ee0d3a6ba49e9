"""Interleaved measurement: two contenders in separate processes, on the same core, ABBA."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from asr.bench.child import last_line, spawn
from asr.bench.stats import Interval, ratio_interval
from asr.errors import MissingToolError, TextChangedError

_WORKER = Path(__file__).with_name("worker.py")


@dataclass(frozen=True, slots=True)
class Contender:
    """Something to measure.

    Attributes:
        name: for tables.
        file: a Python file.
        function: of that file; gets the arguments, returns a callable without arguments.
        arguments: strings.
        python: the interpreter of the contender's own environment.
        environment: variables on top of ours; thread counts belong here.
    """

    name: str
    file: Path
    function: str
    arguments: tuple[str, ...] = ()
    python: str = sys.executable
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sample:
    """One run.

    Attributes:
        wall_ns: elapsed nanoseconds.
        cpu_ns: CPU nanoseconds of all threads.
        value: what the run returned, if a string.
    """

    wall_ns: int
    cpu_ns: int
    value: str


class Runner(Protocol):
    """Anything that can be measured once."""

    def run(self) -> Sample:
        """Run once."""
        ...


@dataclass(frozen=True, slots=True)
class Command:
    """A command, started anew for every run.

    Attributes:
        words: program and arguments.
        environment: variables on top of ours.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self) -> Sample:
        """Run to the end; raises as ``spawn``."""
        ended = spawn(self.words, name=" ".join(self.words), environment=self.environment)
        return Sample(ended.process_ns, ended.cpu_ns, "")


class Worker:
    """A process that runs one contender when asked; a context manager.

    Args:
        contender: what to run.
        cores: those to stay on; None leaves it to the system.

    Raises:
        MissingToolError: the contender could not be built, with the last line it printed.
    """

    def __init__(self, contender: Contender, cores: Sequence[int] | None = None) -> None:
        self._contender = contender
        where = "any" if cores is None else ",".join(map(str, cores))
        self._process = subprocess.Popen(  # noqa: S603 - our own worker
            [contender.python, str(_WORKER), where, str(contender.file), contender.function,
             *contender.arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **contender.environment},
        )  # fmt: skip
        if self._answer() != "ready\n":
            self._fail()

    def _answer(self) -> str:
        assert self._process.stdout is not None  # noqa: S101 - Popen was told to pipe
        return self._process.stdout.readline()

    def _fail(self) -> None:
        _, errors = self._process.communicate()
        name = self._contender.name
        raise MissingToolError(f"{name}: could not be measured: {last_line(errors)}")

    def run(self, *arguments: str) -> Sample:
        """Run once.

        Args:
            arguments: of the contender's callable.

        Raises:
            MissingToolError: the process died.
        """
        assert self._process.stdin is not None  # noqa: S101
        try:
            self._process.stdin.write(json.dumps(arguments) + "\n")
            self._process.stdin.flush()
            answer = self._answer()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self._fail()
        return Sample(**json.loads(answer))

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class Race:
    """Runs of two contenders, taken side by side.

    Attributes:
        a: samples of the base.
        b: samples of the other, as many.
    """

    a: tuple[Sample, ...]
    b: tuple[Sample, ...]

    def ratio(self, clock: str = "cpu_ns") -> Interval:
        """Median of b / a with its 95 % interval.

        Args:
            clock: ``cpu_ns`` or ``wall_ns``.
        """
        return ratio_interval(
            [getattr(s, clock) for s in self.a], [getattr(s, clock) for s in self.b]
        )


def abba(a: Runner, b: Runner, pairs: int, *, warm_up: int = 2) -> Race:
    """Measure pairs in the order a b, b a, a b ...: drift hits both alike.

    Args:
        a: the base.
        b: the other.
        pairs: how many.
        warm_up: runs of each thrown away first.

    Raises:
        TextChangedError: both returned a string and not the same one; what gives another answer
            is not in the race.
    """
    for _ in range(warm_up):
        first, second = a.run(), b.run()
        if first.value and second.value and first.value != second.value:
            raise TextChangedError(
                f"the contenders disagree: {first.value[:80]!r}, {second.value[:80]!r}"
            )
    samples_a, samples_b = [], []
    for pair in range(pairs):
        if pair % 2:
            samples_b.append(b.run())
            samples_a.append(a.run())
        else:
            samples_a.append(a.run())
            samples_b.append(b.run())
    return Race(tuple(samples_a), tuple(samples_b))


def race(contenders: Sequence[Contender], pairs: int, *, core: int | None = 0) -> dict[str, Race]:
    """Measure every contender against the first, two processes alive at a time.

    Args:
        contenders: the first is the base of all ratios.
        pairs: per contender.
        core: the core that all workers share in turn; None leaves it to the system.

    Returns:
        name -> pairs, for all but the first.
    """
    base, *others = contenders
    cores = None if core is None else (core,)
    found = {}
    for other in others:
        with Worker(base, cores) as a, Worker(other, cores) as b:
            found[other.name] = abba(a, b, pairs)
    return found
