"""From pairs of processes to the metrics a verdict is about."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from asr.bench.record import BUCKETS, TOTAL, Bucket, Call, Pair, Side

#: Of a process's warm calls, the share that is faster than the value taken for each stage. What
#: disturbs a call only ever adds time: among other processes this quantile spreads about half as
#: much from process to process as the median, ahead of them a fifth less (docs/gate-proof.md), and
#: it moves fully with whatever slows every call. What slows few calls it does not see.
QUIET = 0.10


@dataclass(frozen=True, slots=True)
class Metric:
    """One respect in which two versions differ, with its evidence.

    Attributes:
        name: ``warm/5 s/total``, ``warm/5 s/fbank``, ``cold/5 s/total``, ``load/import``,
            ``memory/peak``.
        kind: first word of the name, with ``stage`` in place of a warm stage's.
        a: one number per pair, of the base; nanoseconds or bytes.
        b: the same of the other.
    """

    name: str
    kind: str
    a: tuple[float, ...]
    b: tuple[float, ...]

    @property
    def logs(self) -> list[float]:
        """Natural logarithms of b / a, one per pair."""
        logs: list[float] = np.log(np.asarray(self.b) / np.asarray(self.a)).tolist()
        return logs

    @property
    def unit(self) -> str:
        """Of the numbers: ``ns`` or ``bytes``."""
        return "bytes" if self.kind == "memory" else "ns"


@dataclass(frozen=True, slots=True)
class Worth:
    """When a stage is large enough to be judged by itself.

    Attributes:
        share: of the whole call.
        ns: of one call; either suffices.
    """

    share: float
    ns: float


def quiet_ns(calls: Sequence[Call]) -> dict[str, float]:
    """Each stage of an undisturbed call, and their sum as ``total``.

    Stages are taken one by one: a disturbance hits one stage of a call and spares the others.
    """
    names = dict.fromkeys(name for call in calls for name in call.stages_ns)
    columns = np.array([[call.stages_ns.get(name, 0) for name in names] for call in calls])
    rows = dict(zip(names, np.quantile(columns, QUIET, axis=0).tolist(), strict=True))
    return {**rows, TOTAL: sum(rows.values())}


def metrics_of(pairs: Sequence[Pair], worth: Worth) -> list[Metric]:
    """Everything that pairs can say, in the order of buckets and of the contract's stages."""
    found = []
    for bucket in BUCKETS:
        chosen = [p for p in pairs if p.bucket == bucket]
        if not chosen:
            continue
        rows = _warm_rows(chosen)
        if rows:
            found += _warm_metrics(bucket, rows, worth)
        found.append(_metric(f"cold/{bucket}/total", "cold", chosen, _cold_ns))
    if pairs:
        found += _load_metrics(pairs, worth)
        longest = [p for p in pairs if p.bucket == max((q.bucket for q in pairs), key=_length)]
        found.append(_metric("memory/peak", "memory", longest, lambda s: s.peak_rss_bytes))
    return [m for m in found if min(*m.a, *m.b) > 0]


def parts_of(pairs: Sequence[Pair], bucket: str) -> dict[str, float]:
    """What each stage adds to a warm call of b, as a share of a's whole call; largest first.

    0.096 for fbank says that the call became 9.6 % longer because fbank did.
    """
    rows = _warm_rows([p for p in pairs if p.bucket == bucket])
    names = dict.fromkeys(name for pair in rows for side in pair for name in side)
    parts = {
        name: median((b.get(name, 0.0) - a.get(name, 0.0)) / a[TOTAL] for a, b in rows)
        for name in names
        if name != TOTAL
    }
    return dict(sorted(parts.items(), key=lambda row: -abs(row[1])))


def _warm_rows(pairs: Sequence[Pair]) -> list[tuple[dict[str, float], dict[str, float]]]:
    return [(quiet_ns(p.a.warm), quiet_ns(p.b.warm)) for p in pairs if p.a.warm and p.b.warm]


def _warm_metrics(
    bucket: str, rows: Sequence[tuple[dict[str, float], dict[str, float]]], worth: Worth
) -> list[Metric]:
    total_ns = median(a[TOTAL] for a, _ in rows)
    found = []
    for stage in (TOTAL, *(name for name in rows[0][0] if name != TOTAL)):
        a = tuple(row.get(stage, 0.0) for row, _ in rows)
        b = tuple(row.get(stage, 0.0) for _, row in rows)
        larger_ns = max(median(a), median(b))
        if larger_ns >= min(worth.ns, worth.share * total_ns):
            kind = "warm" if stage == TOTAL else "stage"
            found.append(Metric(f"warm/{bucket}/{stage}", kind, a, b))
    return found


def _load_metrics(pairs: Sequence[Pair], worth: Worth) -> list[Metric]:
    total_ns = median(sum(p.a.load_ns.values()) for p in pairs)
    found = []
    for phase in pairs[0].a.load_ns:

        def phase_ns(side: Side, phase: str = phase) -> float:
            return side.load_ns.get(phase, 0)

        metric = _metric(f"load/{phase}", "load", pairs, phase_ns)
        if max(median(metric.a), median(metric.b)) >= worth.share * total_ns:
            found.append(metric)
    return found


def _cold_ns(side: Side) -> float:
    return sum(side.load_ns.values()) + side.first.wall_ns


def _metric(name: str, kind: str, pairs: Sequence[Pair], value: Callable[[Side], float]) -> Metric:
    return Metric(name, kind, tuple(value(p.a) for p in pairs), tuple(value(p.b) for p in pairs))


def _length(bucket: Bucket) -> int:
    return BUCKETS.index(bucket)
