"""Measuring for a verdict: pairs until the noise allows one, then the confirming re-run."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from asr.bench import versus
from asr.bench.clips import WorkClip, Workload
from asr.bench.installs import Install
from asr.bench.record import Bucket, Pair, Pairs
from asr.gate import statistics
from asr.gate.budget import Margins
from asr.gate.findings import Comparison
from asr.gate.metrics import Metric, metrics_of
from asr.gate.priority import first_in_line
from asr.gate.verdict import measured_in
from asr.gate.weigh import accused

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much may be spent.

    Attributes:
        buckets: length classes that are measured.
        repeat: calls per process; the first is cold.
        pilot: pairs per clip that show the noise.
        most: pairs per clip that are never exceeded.
        max_s: per comparison; no pair is begun later, and a confirming re-run may last as long.
        pin: cores that all processes stay on.
        model: folder or name; None takes each version's own built-in one.
    """

    buckets: tuple[Bucket, ...]
    repeat: int
    pilot: int
    most: int
    max_s: float
    pin: tuple[int, ...] | None = None
    model: str | None = None


#: Few minutes: a short call, where fixed costs show, and one long enough for every stage.
QUICK = Effort(("1 s", "15 s"), repeat=20, pilot=14, most=30, max_s=80.0)
FULL = Effort(("1 s", "5 s", "15 s", "30 s", "long"), repeat=20, pilot=14, most=80, max_s=900.0)


@dataclass(frozen=True, slots=True)
class Side:
    """Something to be held against.

    Attributes:
        against: for people: ``parent 1a2b3c4``.
        install: ready to run; None when it could not be built.
        why: then, why not.
    """

    against: str
    install: Install | None
    why: str = ""


def compare_all(
    sides: Sequence[Side],
    judged: Install,
    workload: Workload,
    effort: Effort,
    margins: Margins,
    say: Say,
    *,
    start: versus.Start | None = None,
) -> list[Comparison]:
    """Measure against each side; measure once more what looks slower.

    All comparisons share one error rate, so nobody is accused before the last one is measured.

    Args:
        sides: to be held against.
        judged: what is judged.
        workload: whole; the effort chooses from it.
        effort: how much.
        margins: what is let pass, and what must be found.
        say: told what is going on.
        start: what runs one process; None runs a real one.

    Raises:
        MissingToolError: a process fails.
    """
    clips = tuple(c for c in workload.clips if c.bucket in effort.buckets) or workload.clips
    chosen = Workload(workload.name, clips)
    with first_in_line() as granted:
        say(
            "measuring ahead of other processes"
            if granted
            else "measuring among other processes: a busy machine needs more pairs"
        )
        comparisons = []
        for side in sides:
            pairs = None
            if side.install is not None:
                say(f"against {side.against}")
                run = _Run(side.install, judged, chosen, effort, say, start)
                pairs = run.enough(margins)
            comparisons.append(Comparison(side.against, pairs, side.why))
        return _confirm(comparisons, sides, judged, chosen, effort, margins, say, start)


def _confirm(
    comparisons: Sequence[Comparison],
    sides: Sequence[Side],
    judged: Install,
    workload: Workload,
    effort: Effort,
    margins: Margins,
    say: Say,
    start: versus.Start | None,
) -> list[Comparison]:
    rows = [row for c in comparisons if c.pairs for row in measured_in(c, margins)]
    keys = accused(rows, margins.error_rate)
    found = []
    for comparison, side in zip(comparisons, sides, strict=True):
        suspects = [r.metric for r in rows if r.key in keys and r.against == comparison.against]
        if suspects and comparison.pairs and side.install:
            names = ", ".join(m.name for m in suspects)
            say(f"slower than {side.against} so far: {names}; measured once more")
            clips = _clips_of(suspects, workload.clips)
            run = _Run(side.install, judged, Workload(workload.name, clips), effort, say, start)
            again = run.take(_rounds(comparison.pairs.pairs), math.inf)
            comparison = replace(comparison, pairs=replace(comparison.pairs, confirm=again.pairs))
        found.append(comparison)
    return found


def _clips_of(suspects: Sequence[Metric], clips: tuple[WorkClip, ...]) -> tuple[WorkClip, ...]:
    """The clips these metrics come from; load and memory come from all."""
    buckets = {m.name.split("/")[1] for m in suspects if m.kind in ("warm", "stage", "cold")}
    if any(m.kind in ("load", "memory") for m in suspects):
        return clips
    return tuple(c for c in clips if c.bucket in buckets)


def _rounds(pairs: Sequence[Pair]) -> int:
    return 1 + max(p.round for p in pairs)


@dataclass(frozen=True, slots=True)
class _Run:
    """Pairs of two installs."""

    a: Install
    b: Install
    workload: Workload
    effort: Effort
    say: Say
    start: versus.Start | None

    def take(self, pairs: int, max_s: float) -> Pairs:
        asked = versus.Asked(
            model=self.effort.model,
            threads=len(self.effort.pin) if self.effort.pin else None,
            pin=self.effort.pin,
            repeat=self.effort.repeat,
            pairs=pairs,
            max_s=max_s,
            confirm=False,
        )
        return versus.compare(self.a, self.b, self.workload, asked, _quiet, start=self.start)

    def enough(self, margins: Margins) -> Pairs:
        """A pilot; then what its noise says is needed, as far as time and effort go."""
        start_s = time.monotonic()
        found = self.take(self.effort.pilot, math.inf)
        left_s = self.effort.max_s - (time.monotonic() - start_s)
        wanted = min(self.effort.most, needed(metrics_of(found.pairs, margins.worth), margins))
        more = 2 * math.ceil((wanted - _rounds(found.pairs)) / 2)
        if more <= 0 or left_s <= 0:
            return found
        self.say(f"the noise asks for {wanted} pairs per clip")
        rest = self.take(more, left_s)
        moved = [replace(p, round=p.round + _rounds(found.pairs)) for p in rest.pairs]
        return replace(rest, pairs=[*found.pairs, *moved])


def _quiet(_: str) -> None:
    """Every pair would be a line."""


def needed(found: Sequence[Metric], margins: Margins) -> int:
    """Pairs with which the slowdowns that must be found would be, by the noise of these.

    Looks at the spread alone, never at the ratio: who measures until something shows finds it.
    """
    most = statistics.fewest_pairs(len(found), margins.error_rate)
    for metric in found:
        target = {"warm": margins.find_total, "stage": margins.find_stage}.get(metric.kind)
        if target is None:
            continue
        estimate = statistics.estimate(metric.logs)
        most = max(
            most,
            statistics.pairs_for(
                estimate, margins.of(metric.kind), target, len(found), margins.error_rate
            ),
        )
    return most
