"""Metrics of pairs, weighed together: who is accused, who is confirmed, what stays open.

A metric has regressed when the signed-rank test says that its slowdown exceeds the margin, at an
error rate that all metrics of the verdict share (Holm), and when the confirming re-run says so
again. A lower bound above the margin is the same statement.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from asr.bench.stats import signed_rank
from asr.gate import statistics
from asr.gate.findings import Finding
from asr.gate.metrics import Metric

#: Error rate of the confirming re-run: it can only take an accusation back.
CONFIRMING = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """A metric of one comparison.

    Attributes:
        against: what the judged version was held against.
        metric: the pairs' numbers.
        again: those of the confirming re-run; None without one.
        margin: slowdown let pass, as a share.
    """

    against: str
    metric: Metric
    again: Metric | None
    margin: float

    @property
    def key(self) -> str:
        """Of this metric among all comparisons."""
        return f"{self.against} {self.metric.name}"

    @property
    def limit(self) -> float:
        """The margin on the scale of ``Metric.logs``."""
        return math.log1p(self.margin)


def accused(rows: Sequence[Measured], error_rate: float) -> set[str]:
    """Keys of what the first pairs accuse, before any confirmation."""
    chances = {row.key: signed_rank(row.metric.logs, row.limit) for row in rows}
    return statistics.holm(chances, error_rate)


def weigh(rows: Sequence[Measured], error_rate: float) -> list[Finding]:
    """One finding per row; all rows share the error rate."""
    slower = accused(rows, error_rate)
    faster = statistics.holm(
        {row.key: signed_rank([-x for x in row.metric.logs], row.limit) for row in rows},
        error_rate,
    )
    again = {
        row.key: signed_rank(row.again.logs, row.limit) if row.again else 1.0
        for row in rows
        if row.key in slower
    }
    confirmed = statistics.holm(again, CONFIRMING)
    findings = []
    for row in rows:
        finding = _finding(row, len(rows), error_rate)
        if row.key in confirmed:
            finding = replace(finding, outcome="regressed", confirmed=True)
        elif row.key in slower:
            note = "slower once, not confirmed" if row.again else "slower; no confirming re-run"
            finding = replace(finding, outcome="inconclusive", confirmed=False, note=note)
        elif row.key in faster:
            finding = replace(finding, outcome="improved")
        if finding.outcome == "inconclusive":
            found = statistics.estimate(row.metric.logs)
            more = statistics.pairs_to_settle(found, row.margin)
            finding = replace(finding, more_pairs=more)
        findings.append(finding)
    return findings


def _finding(row: Measured, metrics: int, rate: float) -> Finding:
    found = statistics.estimate(row.metric.logs)
    within = found.high <= row.limit
    return Finding(
        metric=row.metric.name,
        against=row.against,
        outcome="pass" if within else "inconclusive",
        unit=row.metric.unit,
        a=median(row.metric.a),
        b=median(row.metric.b),
        ratio=math.exp(found.centre),
        low=_finite(math.exp(found.low)),
        high=_finite(math.exp(found.high)) if math.isfinite(found.high) else None,
        margin=row.margin,
        pairs=found.n,
        detectable=_finite(statistics.detectable(found, row.margin, metrics, rate)),
    )


def _finite(value: float) -> float | None:
    return value if 0 < value < math.inf else None
