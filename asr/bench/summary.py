"""From samples to what is said about them: the only way a ``summary`` comes about."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from asr.bench.record import BUCKETS, TOTAL, Change, Clip, Pair, Sample, Side
from asr.bench.stats import detectable, mad, p95, ratio_interval

#: Resamples; there are many intervals.
_DRAWS = 2_000

#: What each RTF adds up, from which state.
RTF_STATES = {"rtf_infer": "warm", "rtf_warm": "warm", "rtf_first": "cold", "rtf_process": "cold"}

#: What each RTF spans.
INCLUDES = {
    "rtf_infer": "the network's call alone, warm",
    "rtf_warm": "read to text, resident process, after warm-up",
    "rtf_first": "read to text, first call of a fresh process, without the load",
    "rtf_process": "start of a process to text: interpreter, imports, load, first call",
}


def summarise(clips: Sequence[Clip], samples: Sequence[Sample]) -> dict[str, Any]:
    """Sum up one run.

    Returns:
        ``rtf``: name -> bucket or ``all`` -> median, low, high, n. The value is the sum of the
        clips' medians over the sum of their seconds; low and high are its 95 % bootstrap interval.
        ``stages``: state -> bucket or ``all`` -> stage or ``total`` -> median_ns, mad_ns, p95_ns,
        share. Each is taken per clip, then averaged over the bucket's clips: what an average call
        of this bucket spends. ``share`` is the part of ``total``.
        ``load``: phase or ``total`` -> the same, over all cold processes.
    """
    states = dict.fromkeys(s.state for s in samples)
    return {
        "rtf": {
            name: rtf_rows(name, clips, samples)
            for name, state in RTF_STATES.items()
            if state in states
        },
        "stages": {state: _stage_rows(clips, samples, state) for state in states},
        "load": _load_rows([s.load_ns for s in samples if s.load_ns is not None]),
    }


def rtf_rows(name: str, clips: Sequence[Clip], samples: Sequence[Sample]) -> dict[str, Any]:
    """One RTF by bucket, and for ``all``."""
    values: dict[str, list[int]] = {}
    for sample in samples:
        if sample.state == RTF_STATES[name]:
            values.setdefault(sample.clip, []).append(_span_ns(name, sample))
    rows = {}
    for bucket, members in _by_bucket(clips, values):
        rows[bucket] = _rtf([values[c.id] for c in members], sum(c.audio_s for c in members))
    return rows


def _span_ns(name: str, sample: Sample) -> int:
    if name == "rtf_infer":
        return sample.stages_ns.get("infer", 0)
    if name == "rtf_process":
        return sum((sample.load_ns or {}).values()) + sample.wall_ns
    return sample.wall_ns


def _rtf(values: Sequence[Sequence[int]], audio_s: float) -> dict[str, float]:
    generator = np.random.default_rng(0)
    total, draws = 0.0, np.zeros(_DRAWS)
    for clip in values:
        sample = np.asarray(clip, np.float64)
        picks = generator.integers(0, len(sample), (_DRAWS, len(sample)))
        total += float(np.median(sample))
        draws += np.median(sample[picks], axis=1)
    low, high = np.quantile(draws, [0.025, 0.975])
    scale = 1e9 * audio_s
    return {
        "median": total / scale,
        "low": float(low) / scale,
        "high": float(high) / scale,
        "n": sum(map(len, values)),
    }


def _by_bucket(clips: Sequence[Clip], present: Iterable[str]) -> list[tuple[str, list[Clip]]]:
    """The clips that have samples, by bucket; all of them last."""
    known = set(present)
    there = [c for c in clips if c.id in known]
    groups: list[tuple[str, list[Clip]]] = [
        (bucket, [c for c in there if c.bucket == bucket]) for bucket in BUCKETS
    ]
    return [(bucket, members) for bucket, members in [*groups, ("all", there)] if members]


def _stage_rows(clips: Sequence[Clip], samples: Sequence[Sample], state: str) -> dict[str, Any]:
    calls: dict[str, list[dict[str, int]]] = {}
    for sample in samples:
        if sample.state == state:
            row = {**sample.stages_ns, TOTAL: sample.wall_ns}
            calls.setdefault(sample.clip, []).append(row)
    found = {}
    for bucket, members in _by_bucket(clips, calls):
        tables = [calls[c.id] for c in members]
        names = dict.fromkeys(name for rows in tables for row in rows for name in row)
        columns = {name: [[row.get(name, 0) for row in rows] for rows in tables] for name in names}
        found[bucket] = _spread_rows(columns)
    return found


def _load_rows(loads: Sequence[dict[str, int]]) -> dict[str, Any]:
    if not loads:
        return {}
    names = dict.fromkeys(name for row in loads for name in row)
    columns = {name: [[row.get(name, 0) for row in loads]] for name in names}
    return _spread_rows({**columns, TOTAL: [[sum(row.values()) for row in loads]]})


def _spread_rows(columns: dict[str, list[list[int]]]) -> dict[str, dict[str, float]]:
    """Statistics of each column; its value is a list of samples per clip."""
    total = statistics.fmean(statistics.median(clip) for clip in columns[TOTAL])
    rows = {}
    for name, clips in columns.items():
        median = statistics.fmean(statistics.median(clip) for clip in clips)
        rows[name] = {
            "median_ns": median,
            "mad_ns": statistics.fmean(mad(clip) for clip in clips),
            "p95_ns": statistics.fmean(p95(clip) for clip in clips),
            "share": median / total if total else 0.0,
        }
    return rows


def changes(pairs: Sequence[Pair]) -> list[Change]:
    """Sum up pairs of processes: each metric's ratio b / a, where both sides have it.

    Within a process a warm stage is the median of its calls. Ratios are taken within a pair and
    their median over the pairs, on logarithms, with a bootstrap interval.
    """
    found = []
    for metric, bucket, stage in metrics(pairs):
        a, b = values(pairs, metric, bucket, stage)
        ratio = ratio_interval(a, b, draws=_DRAWS)
        found.append(
            Change(
                metric=metric,
                bucket=bucket,
                stage=stage,
                ratio=ratio.median,
                low=ratio.low,
                high=ratio.high,
                n=ratio.n,
                mde=detectable(ratio.error),
                median_a=statistics.median(a),
                median_b=statistics.median(b),
                unit="bytes" if metric == "memory" else "ns",
            )
        )
    return found


def metrics(pairs: Sequence[Pair]) -> list[tuple[Any, Any, str | None]]:
    """Every (metric, bucket, stage) that all processes of both sides have, and above zero."""
    sides = [side for pair in pairs for side in (pair.a, pair.b)]
    found: list[tuple[Any, Any, str | None]] = []
    for bucket in (b for b in BUCKETS if any(p.bucket == b for p in pairs)):
        calls = [side.first for p in pairs if p.bucket == bucket for side in (p.a, p.b)]
        stages = _common([call.stages_ns for call in calls])
        for metric in ("warm", "first"):
            found += [(metric, bucket, stage) for stage in (None, *stages)]
        found.append(("cold", bucket, None))
    found += [("load", None, phase) for phase in (None, *_common([s.load_ns for s in sides]))]
    found.append(("memory", None, None))
    return [row for row in found if all(v > 0 for side in values(pairs, *row) for v in side)]


def _common(rows: Sequence[dict[str, int]]) -> list[str]:
    return [name for name in (rows[0] if rows else {}) if all(name in row for row in rows)]


def values(
    pairs: Sequence[Pair], metric: str, bucket: str | None = None, stage: str | None = None
) -> tuple[list[float], list[float]]:
    """The numbers behind a ratio: those of a and of b, one each per pair of this bucket.

    Args:
        pairs: of one comparison.
        metric: warm, cold, load, first or memory.
        bucket: None takes every pair.
        stage: of a call, or phase of the load; None is the total. 0 where a process has none.
    """
    chosen = [p for p in pairs if bucket is None or p.bucket == bucket]
    return (
        [_value(p.a, metric, stage) for p in chosen],
        [_value(p.b, metric, stage) for p in chosen],
    )


def _value(side: Side, metric: str, stage: str | None) -> float:
    if metric == "memory":
        return side.peak_rss_bytes
    if metric == "load":
        return sum(side.load_ns.values()) if stage is None else side.load_ns.get(stage, 0)
    if metric == "cold":
        return sum(side.load_ns.values()) + side.first.wall_ns
    calls = [side.first] if metric == "first" else side.warm
    if not calls:
        return 0.0
    return statistics.median(
        c.wall_ns if stage is None else c.stages_ns.get(stage, 0) for c in calls
    )
