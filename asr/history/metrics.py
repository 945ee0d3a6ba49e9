"""A run as named numbers: what histories are made of.

``warm/5 s/total``, ``warm/5 s/fbank`` (also ``idle``, ``evicted``; ``first``: the first call of a
fresh process), ``cold/5 s/total`` (load and first call), ``load/import``, ``memory/peak``,
``size/network``, ``rtf_warm/5 s``. The bucket may be ``all``. All follow from a record's summary,
so that they outlive its samples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from asr.bench.record import TOTAL, Bench

#: Standard error of a median over the MAD and the root of n, for normal noise.
_MEDIAN_ERROR = 1.4826 * 1.2533


@dataclass(frozen=True, slots=True)
class Value:
    """One number of one run.

    Attributes:
        metric: name, as above.
        value: median, in `unit`.
        error: its standard error within the run as a share of it; 0 where the run cannot say.
        unit: ns, bytes or rtf.
    """

    metric: str
    value: float
    error: float
    unit: str


def values_of(run: Bench) -> list[Value]:
    """Every number of a run that is above zero: only they have a logarithm."""
    return [v for v in _values(run) if v.value > 0]


def _values(run: Bench) -> Iterator[Value]:
    rtf, stages = run.summary.get("rtf", {}), run.summary.get("stages", {})
    counts = {"warm": rtf.get("rtf_warm", {}), "cold": rtf.get("rtf_first", {})}
    for name, rows in rtf.items():
        for bucket, row in rows.items():
            error = (row["high"] - row["low"]) / 3.92 / row["median"] if row["median"] else 0.0
            yield Value(f"{name}/{bucket}", row["median"], error, "rtf")
            if name == "rtf_process":
                audio = [c.audio_s for c in run.clips if bucket in (c.bucket, "all")]
                mean_ns = 1e9 * row["median"] * sum(audio) / len(audio)
                yield Value(f"cold/{bucket}/{TOTAL}", mean_ns, error, "ns")
    for state, buckets in stages.items():
        name = "first" if state == "cold" else state
        for bucket, found in buckets.items():
            n = counts.get(state, {}).get(bucket, {}).get("n", 0)
            for stage, row in found.items():
                yield Value(f"{name}/{bucket}/{stage}", row["median_ns"], _error(row, n), "ns")
    for phase, row in run.summary.get("load", {}).items():
        n = counts["cold"].get("all", {}).get("n", 0)
        yield Value(f"load/{phase}", row["median_ns"], _error(row, n), "ns")
    yield Value("memory/peak", run.memory.peak_rss_bytes, 0.0, "bytes")
    yield Value("size/network", run.model.network_bytes, 0.0, "bytes")


def _error(row: dict[str, float], n: int) -> float:
    if not n or not row["median_ns"]:
        return 0.0
    return float(_MEDIAN_ERROR * row["mad_ns"] / n**0.5 / row["median_ns"])
