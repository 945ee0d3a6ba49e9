"""How quiet the machine is: a fixed piece of work, timed again and again; stolen CPU time."""

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from asr.bench.record import Noise

#: A standard deviation above this share of the mean makes a run noisy; below the other it is quiet.
NOISY, QUIET = 0.10, 0.03
#: Time that a hypervisor took away, as shares of CPU time.
_STEAL_NOISY, _STEAL_QUIET = 0.05, 0.01


def probe_ns() -> int:
    """Time a loop over integers and a copy of 32 MB: about 0.1 s on a quiet machine."""
    source = np.zeros(4_000_000, np.int64)
    target = np.empty_like(source)
    start_ns = time.perf_counter_ns()
    total = 0
    for i in range(600_000):
        total += i
    for _ in range(4):
        np.copyto(target, source)
    return time.perf_counter_ns() - start_ns


@dataclass(slots=True)
class Listener:
    """Listens from its making on.

    Attributes:
        probes_ns: times of the fixed work.
        stat: where the kernel counts CPU time.
    """

    probes_ns: list[int] = field(default_factory=list)
    stat: Path = Path("/proc/stat")
    _start: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self._start = _steal_and_total(self.stat)
        self.probe()

    def probe(self) -> None:
        """Do the fixed work once: before, between and after what is measured."""
        self.probes_ns.append(probe_ns())

    def steal_share(self) -> float:
        """Part of all CPU time since the start that others got."""
        steal, total = _steal_and_total(self.stat)
        passed = total - self._start[1]
        return (steal - self._start[0]) / passed if passed > 0 else 0.0

    def verdict(self, spreads: Sequence[float]) -> Literal["quiet", "ok", "noisy"]:
        """One word for how far the numbers so far can be trusted; ``spreads`` as below."""
        middle = [statistics.median(spreads)] if spreads else []
        return classify([spread(self.probes_ns), *middle], self.steal_share())

    def finish(
        self, spreads: Sequence[float], *, switches: tuple[int, int] = (0, 0), repeated: bool
    ) -> Noise:
        """Judge.

        Args:
            spreads: standard deviation over mean of each clip's warm calls.
            switches: voluntary and involuntary context switches.
            repeated: whether a first attempt was thrown away.
        """
        self.probe()
        return Noise(
            probe_ns=list(self.probes_ns),
            probe_ratio=max(self.probes_ns) / min(self.probes_ns),
            steal_share=self.steal_share(),
            load_1min=os.getloadavg()[0],
            voluntary_switches=switches[0],
            involuntary_switches=switches[1],
            class_=self.verdict(spreads),
            repeated=repeated,
        )


def spread(values: Sequence[float]) -> float:
    """Standard deviation over mean; 0 for fewer than two values."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0


def classify(spreads: Sequence[float], steal_share: float) -> Literal["quiet", "ok", "noisy"]:
    """One word for how far the numbers can be trusted."""
    widest = max(spreads, default=0.0)
    if widest > NOISY or steal_share > _STEAL_NOISY:
        return "noisy"
    return "quiet" if widest < QUIET and steal_share < _STEAL_QUIET else "ok"


def _steal_and_total(stat: Path) -> tuple[int, int]:
    """Ticks stolen and ticks in all, over all cores; zeros where the kernel does not say."""
    try:
        numbers = [int(n) for n in stat.read_text(encoding="ascii").splitlines()[0].split()[1:]]
    except (OSError, IndexError, ValueError):
        return 0, 0
    return (numbers[7] if len(numbers) > 7 else 0), sum(numbers[:8])
