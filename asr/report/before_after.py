"""Two versions side by side, as a section of a report."""

from collections.abc import Sequence

from asr.bench.record import TOTAL, Change, Pairs
from asr.report.blocks import Figure, Section, Table
from asr.report.charts import milliseconds


def section(pairs: Pairs, patches: Sequence[str]) -> Section:
    """Ratios, texts, and the patches between the two.

    Args:
        pairs: the record.
        patches: one line per commit.
    """
    wrong = [c.id for c in pairs.clips if not c.text_same]
    rounds = len({p.round for p in pairs.pairs})
    texts = f"OTHER texts: {', '.join(wrong)}." if wrong else "Both heard the same texts."
    blocks: list[str | Table | Figure] = [
        f"{pairs.a.label} before, {pairs.b.label} after; "
        f"{rounds} pairs of processes per clip, noise {pairs.noise.class_}. {texts}",
        Table(("metric", "before", "after", "after / before", "95 %", "pairs"),
              [_change(c) for c in pairs.summary if _matters(c, pairs)]),
    ]  # fmt: skip
    if patches:
        blocks += ["Patches between the two:", Table(("commit",), [[p] for p in patches])]
    return Section("Before and after", blocks)


def _matters(change: Change, pairs: Pairs) -> bool:
    """Totals of everything, and of warm calls the stages that are 2 % of it or more."""
    totals = {c.bucket: c.median_a for c in pairs.summary if (c.metric, c.stage) == ("warm", None)}
    is_stage = change.metric == "warm" and change.median_a >= 0.02 * totals[change.bucket]
    return change.stage is None or is_stage


def _change(change: Change) -> list[str]:
    name = "/".join(filter(None, (change.metric, change.bucket, change.stage or TOTAL)))
    medians = [milliseconds(v) if change.unit == "ns" else f"{v / 1e6:.1f} MB"
               for v in (change.median_a, change.median_b)]  # fmt: skip
    interval = f"{change.low:.3f} - {change.high:.3f}"
    return [name, *medians, f"{change.ratio:.3f}", interval, str(change.n)]
