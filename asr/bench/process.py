"""Fresh processes of ``asr transcribe``: spawned, timed to their exit, their JSON read."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.bench.child import Child, Ended
from asr.bench.installs import Install
from asr.bench.record import UNACCOUNTED, Call, Side
from asr.errors import (
    AsrError,
    AudioError,
    LayoutError,
    MissingToolError,
    SystemAccessError,
    TextChangedError,
    UsageError,
)

#: A process of ours that fails for a reason of the contract fails us for the same reason.
_ERRORS: dict[int, type[AsrError]] = {
    2: UsageError,
    3: AudioError,
    4: LayoutError,
    5: SystemAccessError,
    12: TextChangedError,
}


def run(install: Install, arguments: Sequence[str], cores: Sequence[int] | None = None) -> Ended:
    """Run ``asr ARGUMENTS`` of an install to its end, in its own environment.

    Raises:
        MissingToolError: the command cannot be started, or fails; with the last line it printed.
        AsrError: of the class that its exit code stands for.
    """
    with start(install, arguments, cores) as child:
        return child.end()


def start(
    install: Install,
    arguments: Sequence[str],
    cores: Sequence[int] | None = None,
    *,
    takes_turns: bool = False,
) -> Child:
    """Start it.

    Raises:
        MissingToolError: the command cannot be started.
    """
    return Child(
        install.line(*arguments),
        name=f"{install.label}: asr {arguments[0]}",
        cores=cores,
        environment=install.environment,
        errors_by_code=_ERRORS,
        takes_turns=takes_turns,
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What every process of a comparison is asked for, besides the clip.

    Attributes:
        model: folder or name; None takes each version's own default.
        threads: of the network.
        language: hint.
        itn: whether to ask for inverse text normalisation.
        optimize: whether a large network may be prepared for this CPU.
    """

    model: str | None
    threads: int
    language: str = "auto"
    itn: bool = False
    optimize: bool = True

    def arguments(self, clip: Path) -> list[str]:
        """The command line for a clip."""
        model = [] if self.model is None else ["--model", self.model]
        itn = ["--itn"] if self.itn else []
        plain = [] if self.optimize else ["--no-optimize"]
        return ["transcribe", str(clip), *model, "--threads", str(self.threads),
                "--language", self.language, *itn, *plain]  # fmt: skip


def timed(
    install: Install, wanted: Wanted, clip: Path, repeat: int, cores: Sequence[int] | None
) -> tuple[Side, str]:
    """One fresh process with ``--json --timings --repeat N``.

    Returns:
        its times, and the text it heard.

    Raises:
        MissingToolError: it fails, or says something else than timings.
    """
    return _read(install, run(install, [*wanted.arguments(clip), *_TIMED, str(repeat)], cores))


_TIMED = ("--json", "--timings", "--repeat")


def takes_turns(install: Install) -> bool:
    """Whether this version knows ``--in-turns``."""
    return b"--in-turns" in run(install, ["transcribe", "--help"]).out


def in_turns(
    installs: Sequence[Install],
    wanted: Wanted,
    clip: Path,
    repeat: int,
    cores: Sequence[int] | None,
) -> list[tuple[Side, str]]:
    """A fresh process each, their warm calls in turns: at any time only one of them works.

    What disturbs a machine lasts for seconds, a call of a small model for milliseconds: two calls
    that follow each other are disturbed alike, two processes that do are not.

    Returns:
        as ``timed``, in the order of the installs; weight preparation is not told apart.

    Raises:
        MissingToolError: one fails, or says something else than timings.
    """
    arguments = [*wanted.arguments(clip), *_TIMED, str(repeat), "--in-turns"]
    with ExitStack() as stack:
        children = []
        for install in installs:
            child = stack.enter_context(start(install, arguments, cores, takes_turns=True))
            child.end_turn()
            children.append(child)
        for number in range(1, repeat):
            for child in children if number % 2 else reversed(children):
                child.take_turn()
                child.end_turn()
        found = []
        for install, child in zip(installs, children, strict=True):
            child.take_turn()
            found.append(_read(install, child.end()))
        return found


def _read(install: Install, ended: Ended) -> tuple[Side, str]:
    """The times and the text that a process told."""
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
