"""Fresh processes of ``asr transcribe``: spawned, timed to their exit, their JSON read."""

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.bench.installs import Install
from asr.bench.record import UNACCOUNTED, Call, Side
from asr.errors import MissingToolError


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended well.

    Attributes:
        process_ns: spawn to exit.
        cpu_ns: user and system time of all its threads.
        peak_rss_bytes: most memory it held.
        out: what it wrote to stdout.
    """

    process_ns: int
    cpu_ns: int
    peak_rss_bytes: int
    out: bytes


def run(install: Install, arguments: Sequence[str], cores: Sequence[int] | None = None) -> Ended:
    """Run ``asr ARGUMENTS`` of an install to its end.

    Args:
        install: whose command, in its own environment.
        arguments: of ``asr``.
        cores: those to stay on; None leaves it to the system.

    Raises:
        MissingToolError: the command cannot be started, or fails; with the last line it printed.
    """
    environment = {**os.environ, **install.environment}
    with tempfile.TemporaryFile() as errors, on(cores):
        start_ns = time.perf_counter_ns()
        try:
            process = subprocess.Popen(  # noqa: S603 - a command that the user named
                [str(install.command), *arguments], env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        except OSError as error:
            message = f"{install.command}: cannot be started: {error.strerror}"
            raise MissingToolError(message) from None
        assert process.stdout is not None  # noqa: S101 - Popen was told to pipe
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process_ns = time.perf_counter_ns() - start_ns
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        if process.returncode:
            errors.seek(0)
            last = (errors.read().decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
            raise MissingToolError(
                f"{install.label}: asr {arguments[0]} ended with {process.returncode}: {last}"
            )
    cpu_ns = round(1e9 * (usage.ru_utime + usage.ru_stime))
    return Ended(process_ns, cpu_ns, 1024 * usage.ru_maxrss, out)


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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What every process of a comparison is asked for, besides the clip.

    Attributes:
        model: folder or name; None takes each version's own default.
        threads: of the network.
        language: hint.
        itn: whether to ask for inverse text normalisation.
    """

    model: str | None
    threads: int
    language: str = "auto"
    itn: bool = False

    def arguments(self, clip: Path) -> list[str]:
        """The command line for a clip."""
        model = [] if self.model is None else ["--model", self.model]
        itn = ["--itn"] if self.itn else []
        return ["transcribe", str(clip), *model, "--threads", str(self.threads),
                "--language", self.language, *itn]  # fmt: skip


def timed(
    install: Install, wanted: Wanted, clip: Path, repeat: int, cores: Sequence[int] | None
) -> tuple[Side, str]:
    """One fresh process with ``--json --timings --repeat N``.

    Returns:
        its times, and the text it heard.

    Raises:
        MissingToolError: it fails, or says something else than timings.
    """
    extra = ["--json", "--timings", "--repeat", str(repeat)]
    ended = run(install, [*wanted.arguments(clip), *extra], cores)
    try:
        spoken = json.loads(ended.out)
        timings = spoken["timings"]
        side = Side(
            process_ns=ended.process_ns,
            cpu_ns=ended.cpu_ns,
            peak_rss_bytes=ended.peak_rss_bytes,
            load_ns={k: _ns(v) for k, v in timings["load"].items() if k != "total"},
            first=_call(timings["samples"][0]),
            warm=[_call(sample) for sample in timings["samples"][1:]],
        )
        return side, spoken["text"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise MissingToolError(
            f"{install.label}: expected the timings of asr transcribe --json --timings, found "
            f"{type(error).__name__}: {error}"
        ) from None


def _ns(ms: float) -> int:
    return round(1e6 * ms)


def _call(sample: dict[str, Any]) -> Call:
    """``write`` comes after the call's own wall time and is none of its stages."""
    stages = {name: _ns(ms) for name, ms in sample["stages"].items() if name != "write"}
    wall_ns = _ns(sample["wall"])
    return Call(wall_ns, {**stages, UNACCOUNTED: wall_ns - sum(stages.values())})
