"""The targets: what must hold at full size, on one thread, and whether it does."""

from dataclasses import dataclass

from contenders import RIVALS
from results import Result

from asr.bench.stats import Interval


@dataclass(frozen=True, slots=True)
class Target:
    """One promise.

    Attributes:
        what: for tables.
        peer: the contender it is about; empty for one about ours alone.
        row: key of the row.
        measure: of the row's samples.
        least: of peer / ours, by the lower bound; None where ``most`` is meant.
        most: of ours / peer, or of ours alone in the measure's own unit, by the upper bound.
    """

    what: str
    peer: str
    row: str
    measure: str
    least: float | None = None
    most: float | None = None


def _against(peer: str, warm: float, warm_30: float, cold: float, load: float, memory: float):  # noqa: ANN202
    return (
        Target("warm, 5.6 s", peer, "warm-5.6s-1t", "wall_ns", warm),
        Target("warm, 30 s", peer, "warm-30s-1t", "wall_ns", warm_30),
        Target("cold process to first text", peer, "fresh-5.6s-1t", "wall_ns", cold),
        Target("model load", peer, "fresh-5.6s-1t", "load_wall_ns", load),
        Target("peak memory, ours ÷ peer", peer, "fresh-5.6s-1t", "peak_bytes", most=memory),
    )


TARGETS = (
    *_against("sherpa-onnx", 2.2, 1.9, 3.0, 6.0, 0.85),
    *_against("funasr-onnx", 2.0, 1.8, 6.0, 6.0, 0.50),
    Target("CPU outside the network, warm 5.6 s", "", "outside-5.6s-1t", "cpu_ns", most=2.0e6),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A target and what was found; ``interval`` is None when its row was not measured."""

    target: Target
    interval: Interval | None

    @property
    def met(self) -> bool:
        """Whether the side of the interval that counts keeps the promise."""
        if self.interval is None:
            return False
        if self.target.least is not None:
            return self.interval.low >= self.target.least
        assert self.target.most is not None
        return self.interval.high <= self.target.most


def judge(result: Result, *, clock: str = "wall") -> list[Judged]:
    """Every target, found or not.

    Args:
        result: what was measured.
        clock: ``wall``, or ``cpu`` where others keep the machine busy.
    """
    return [Judged(t, _interval(result, t, clock)) for t in TARGETS]


def _interval(result: Result, target: Target, clock: str) -> Interval | None:
    measure = target.measure.replace("wall_ns", f"{clock}_ns")
    if not target.peer:
        found = [result.median(target.row, ours, measure) for ours in RIVALS.values()]
        return max((f for f in found if f), key=lambda f: f.high, default=None)
    ours = RIVALS[target.peer]
    if target.least is not None:
        return result.ratio(target.row, target.peer, ours, measure)
    return result.ratio(target.row, ours, target.peer, measure)


def exit_code(judged: list[Judged]) -> int:
    """0 all kept, 11 one is not, 14 one was not measured."""
    if any(j.interval is not None and not j.met for j in judged):
        return 11
    return 0 if all(j.met for j in judged) else 14
