"""What a run is asked for, and what follows from it before anything is measured."""

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run is asked for.

    Attributes:
        model: folder or name.
        threads: of the network; None takes what ``asr transcribe`` would.
        pin: cores to stay on; None leaves it to the system.
        warm_up: calls per clip before the first one counted.
        repeat: warm rounds; None goes on until ``half_width``.
        half_width: half of each bucket's 95 % interval, as a share, that is narrow enough.
        warm_s: seconds after which warm rounds end even so.
        cold: fresh processes per clip.
        others: idle and evicted calls per clip.
        idle_s: seconds without work before an idle call.
        language: hint.
        itn: whether to ask for inverse text normalisation.
        seed: of the order of clips.
        drop_page_cache: whether files are forgotten before each cold process.
        hyperfine: whether hyperfine measures too.
        label: the user's name for the run.
        optimize: whether a large network may be prepared for this CPU.
    """

    model: str
    threads: int | None = None
    pin: tuple[int, ...] | None = None
    warm_up: int = 3
    repeat: int | None = None
    half_width: float = 0.015
    warm_s: float = 40.0
    cold: int = 5
    others: int = 3
    idle_s: float = 2.0
    language: str = "auto"
    itn: bool = False
    seed: int = 0
    drop_page_cache: bool = False
    hyperfine: bool = False
    label: str | None = None
    optimize: bool = True

    def quick(self) -> "Plan":
        """The same in less time: fewer fresh processes, shorter rounds."""
        return replace(self, cold=2, others=1, idle_s=min(self.idle_s, 0.5), warm_s=6.0)


def threads_on(cores: Sequence[int] | None) -> int:
    """Threads that a process takes by itself when it stays on these cores."""
    from asr.engines.ort import default_threads

    return default_threads() if cores is None else min(default_threads(), len(cores))


def utc_now() -> str:
    """ISO 8601 with seconds."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
