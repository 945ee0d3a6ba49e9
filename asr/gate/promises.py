"""Absolute promises: what a class of machines is told it will get."""

from collections.abc import Sequence
from statistics import median

import numpy as np

from asr.bench.record import Bench, Pair, Pairs
from asr.gate.budget import PROMISES, Budget
from asr.gate.findings import Finding
from asr.gate.statistics import estimate

_MB = 1e6


def promises_kept(budget: Budget, pairs: Sequence[Pairs], record: Bench | None) -> list[Finding]:
    """Hold the judged version against the promises for this machine and model.

    A promise is kept when the upper 95 % bound of what was measured lies below it.

    Args:
        budget: the promises.
        pairs: comparisons; the judged version is their b.
        record: of the judged version alone; preferred where it has the value.
    """
    source = record or (pairs[0] if pairs else None)
    if source is None:
        return []
    model = source.model if isinstance(source, Bench) else source.b.model
    device = budget.device(source.machine.fields, model.name)
    if device is None:
        if not budget.devices:
            return []
        note = f"nothing is promised for {model.name} on {source.machine.fields.get('cpu')}"
        return [Finding("budget/*", "the budget", "not_comparable", note=note)]
    findings = []
    for name, limit in device.promises.items():
        value = _from_record(name, record) if record else None
        if value is None and pairs:
            value = _from_pairs(name, pairs[0])
        findings.append(_promise(name, limit, value, f"budget {device.name}"))
    return findings


def _promise(name: str, limit: float, value: float | None, against: str) -> Finding:
    unit = PROMISES[name.partition("/")[0]]
    metric = f"budget/{name}"
    if value is None:
        note = "not measured in this run"
        return Finding(metric, against, "not_comparable", unit=unit, limit=limit, note=note)
    return Finding(
        metric, against, "over_budget" if value > limit else "pass", unit=unit, b=value, limit=limit
    )


def _from_record(name: str, record: Bench) -> float | None:
    """The upper bound of a value; None when the record does not hold it."""
    base, _, bucket = name.partition("/")
    if PROMISES[base] == "rtf":
        row = record.summary.get("rtf", {}).get(base, {}).get(bucket or "all")
        return float(row["high"]) if row else None
    if base == "peak_rss_mb":
        return record.memory.peak_rss_bytes / _MB
    return record.model.network_bytes / _MB if base == "network_mb" else None


def _from_pairs(name: str, pairs: Pairs) -> float | None:
    base, _, bucket = name.partition("/")
    if PROMISES[base] == "rtf":
        return _rtf(base, bucket, pairs)
    if base == "peak_rss_mb":
        return pairs.memory["b"].peak_rss_bytes / _MB
    size = getattr(pairs.sizes["b"], base.replace("_mb", "_bytes"))
    return None if size is None else size / _MB


def _rtf(base: str, bucket: str, pairs: Pairs) -> float | None:
    """Upper bound of an RTF of b: a typical process of each clip, summed over the clips."""
    clips = [c for c in pairs.clips if not bucket or c.bucket == bucket]
    rows = [[_span_ns(base, p) for p in pairs.pairs if p.clip == clip.id] for clip in clips]
    if not rows or not all(rows) or min(min(row) for row in rows) <= 0:
        return None
    logs = [estimate(np.log(row).tolist()) for row in rows]
    if not all(np.isfinite(found.high) for found in logs):
        return None
    return float(sum(np.exp(found.high) for found in logs) / sum(1e9 * c.audio_s for c in clips))


def _span_ns(base: str, pair: Pair) -> float:
    side = pair.b
    if base == "rtf_first":
        return side.first.wall_ns
    if base == "rtf_process":
        return sum(side.load_ns.values()) + side.first.wall_ns
    if not side.warm:
        return 0.0
    if base == "rtf_infer":
        return median(call.stages_ns.get("infer", 0) for call in side.warm)
    return median(call.wall_ns for call in side.warm)
