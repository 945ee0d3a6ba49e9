"""When did it become slower, by how much, and which stage did it?"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from asr.bench.record import TOTAL
from asr.history.index import Index, Point, differences, segments
from asr.history.potts import LEAST, fit, scale_of

#: Smaller steps are not told.
SMALLEST = 0.03
#: No run is trusted further than this share, however narrow its own interval.
_FLOOR = 0.003
#: What is looked at unless somebody asks for more: totals; their stages are named by attribution.
USUAL = ("warm/*/total", "cold/*/total", "load/total", "memory/peak", "size/network")
_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Step:
    """A change of level between two runs.

    Attributes:
        metric: name.
        line: what is measured, where.
        before: the last run of the old level.
        after: the first run of the new one.
        ratio: new level over old.
        low: lower 95 % bound of it.
        high: upper 95 % bound.
        runs: number of runs on both sides.
        level_before: median of the old level, in `unit`.
        level_after: of the new one.
        unit: ns, bytes or rtf.
        same_commit: whether both runs are of one commit: then the code did not do it.
        parts: stage or phase -> what it added, as a share of the old total; largest first.
    """

    metric: str
    line: str
    before: Point
    after: Point
    ratio: float
    low: float
    high: float
    runs: tuple[int, int]
    level_before: float
    level_after: float
    unit: str
    same_commit: bool
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def commits(self) -> str:
        """The range whose commits did it, as git writes it."""
        return f"{self.before.sha[:9] or '?'}..{self.after.sha[:9] or '?'}"


@dataclass(frozen=True, slots=True)
class Border:
    """Where the software or the model around the code changed; no level reaches across it.

    Attributes:
        line: what is measured, where.
        utc: of the first run of the new segment.
        run_id: of that run.
        changes: what changed, in words.
    """

    line: str
    utc: str
    run_id: str
    changes: list[str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a look at a history found.

    Attributes:
        steps: by line and metric, in order.
        borders: by line, in order.
        short: how many series have too few runs for a step.
        looked_at: how many series there are: a metric of one line and era each.
    """

    steps: list[Step]
    borders: list[Border]
    short: int
    looked_at: int


def look(index: Index, pattern: str | None = None, smallest: float = SMALLEST) -> Seen:
    """Find every step.

    Args:
        index: of the history.
        pattern: of metrics; None looks at ``USUAL`` in every length class.
        smallest: relative size that is told.
    """
    names = index.metrics(pattern) if pattern else usual(index)
    steps: list[Step] = []
    short = looked_at = 0
    for metric in names:
        for series in eras(index, metric):
            fitting = [p for p in series if not p.fit]
            looked_at += 1
            short += len(fitting) < 2 * LEAST
            found = _steps(metric, fitting, smallest)
            steps += [_attributed(index, step, fitting) for step in found]
    return Seen(steps, borders(index), short, looked_at)


def usual(index: Index) -> list[str]:
    """The metrics of ``USUAL``; ``all`` says nothing that no length class says."""
    names = dict.fromkeys(name for pattern in USUAL for name in index.metrics(pattern))
    return [name for name in names if "/all/" not in name]


def eras(index: Index, metric: str) -> list[list[Point]]:
    """The points of a metric, by line and era."""
    lines: dict[str, list[Point]] = {}
    for point in index.points(metric):
        lines.setdefault(point.line, []).append(point)
    return [era for points in lines.values() for era in segments(points)]


def borders(index: Index) -> list[Border]:
    """Where a new segment begins in each line."""
    seen: dict[str, dict[str, str]] = {}
    found = []
    for run in index.runs():
        line = seen.setdefault(run["line"], {})
        if run["era"] not in line and line:
            last = list(line.values())[-1]
            changes = differences(last, run["around"])
            found.append(Border(run["line"], run["utc"], run["run_id"], changes))
        line.setdefault(run["era"], run["around"])
    return found


def levels(points: Sequence[Point]) -> list[list[Point]]:
    """Cut the points of one era where their level changes; fewer than six are one level."""
    places = _places(points)
    return [
        list(points[a:b])
        for a, b in zip([0, *places], [*places, len(points)], strict=True)
        if b > a
    ]


def _places(points: Sequence[Point]) -> list[int]:
    if len(points) < 2:
        return []
    logs = np.log([p.value for p in points])
    least = max(scale_of(logs.tolist()), _FLOOR)
    return fit(logs.tolist(), [max(least, p.error) for p in points])


def _steps(metric: str, points: Sequence[Point], smallest: float) -> list[Step]:
    parts = levels(points)
    found = []
    for a, b in pairwise(parts):
        ratio, low, high = _ratio(a, b)
        # Both bounds on one side: what chance may do is no step.
        if max(ratio, 1 / ratio) - 1 < smallest or low <= 1 <= high:
            continue
        found.append(
            Step(
                metric=metric, line=a[-1].line, before=a[-1], after=b[0],
                ratio=ratio, low=low, high=high, runs=(len(a), len(b)),
                level_before=_level(a), level_after=_level(b), unit=a[-1].unit,
                same_commit=bool(a[-1].sha) and a[-1].sha == b[0].sha,
            )
        )  # fmt: skip
    return found


def _level(points: Sequence[Point]) -> float:
    return statistics.median(p.value for p in points)


def _ratio(a: Sequence[Point], b: Sequence[Point]) -> tuple[float, float, float]:
    """New level over old, with a bootstrap interval over the runs of both."""
    generator = np.random.default_rng(0)
    medians = []
    for side in (a, b):
        logs = np.log([p.value for p in side])
        picks = generator.integers(0, len(logs), (_DRAWS, len(logs)))
        medians.append((float(np.median(logs)), np.median(logs[picks], axis=1)))
    (old, old_draws), (new, new_draws) = medians
    low, high = np.quantile(new_draws - old_draws, [0.025, 0.975])
    return float(np.exp(new - old)), float(np.exp(low)), float(np.exp(high))


def _attributed(index: Index, step: Step, points: Sequence[Point]) -> Step:
    """The same step, with what each stage or phase added to the total."""
    head, _, last = step.metric.rpartition("/")
    kinds = {"warm", "idle", "evicted", "first", "load"}
    if last != TOTAL or head.partition("/")[0] not in kinds | {"cold"}:
        return step
    if head.startswith("cold"):  # load and first call together
        bucket = head.partition("/")[2]
        families = ["load/*", f"first/{bucket}/*"]
    else:
        families = [f"{head}/*"]
    sides = _sides(step, points)
    parts: dict[str, float] = {}
    for family in families:
        for name in index.metrics(family):
            stage = name.rpartition("/")[2]
            if stage == TOTAL:
                continue
            a, b = (_median_of(index, name, step.line, runs) for runs in sides)
            parts[stage] = parts.get(stage, 0.0) + (b - a) / step.level_before
    return replace(step, parts=dict(sorted(parts.items(), key=lambda row: -abs(row[1]))))


def _sides(step: Step, points: Sequence[Point]) -> tuple[set[str], set[str]]:
    ids = [p.run_id for p in points]
    at = ids.index(step.after.run_id)
    return set(ids[at - step.runs[0] : at]), set(ids[at : at + step.runs[1]])


def _median_of(index: Index, metric: str, line: str, runs: set[str]) -> float:
    values = [p.value for p in index.points(metric, line) if p.run_id in runs]
    return statistics.median(values) if values else 0.0
