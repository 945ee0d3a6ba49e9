"""What ``asr history`` prints."""

from __future__ import annotations

from asr.bench.report import table

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from asr.history.index import Index
    from asr.history.steps import Border, Seen, Step

_SCALES = {"ns": (1e6, "ms"), "bytes": (1e6, "MB"), "rtf": (1.0, "")}


def amount(value: float, unit: str) -> str:
    """``3.621 ms``."""
    scale, name = _SCALES[unit]
    return f"{value / scale:.4g} {name}".strip()


def percent(share: float) -> str:
    """``+5.1 %``."""
    return f"{100 * share:+.1f} %"


def series_text(index: Index, pattern: str) -> str:
    """A metric over time: a table per metric and line.

    Raises:
        UsageError: there is no such metric.
    """
    from asr.errors import UsageError

    parts = []
    for metric in index.metrics(pattern):
        lines: dict[str, list[list[str]]] = {}
        for p in index.points(metric):
            rows = lines.setdefault(
                p.line, [["utc", "run", "commit", "value", "+-", "segment", ""]]
            )
            error = f"{196 * p.error:.1f} %" if p.error else "-"
            rows.append([p.utc, p.run_id, p.sha[:9], amount(p.value, p.unit), error, p.era, p.fit])
        parts += [f"{metric}, line {line}\n{table(rows)}" for line, rows in lines.items()]
    if not parts:
        raise UsageError(f"{pattern}: expected a metric such as 'warm/5 s/total', found none")
    return "\n\n".join(parts)


def compared_text(index: Index, first: str, second: str, pattern: str | None) -> str:
    """Two runs side by side; ratios only where they may be compared."""
    from asr.history.index import differences
    from asr.history.steps import usual

    a, b = index.find(first), index.find(second)
    before, after = index.values(a["run_id"]), index.values(b["run_id"])
    same = a["era"] == b["era"]
    rows = [["metric", a["run_id"], b["run_id"], *(["b / a", "+-"] if same else [])]]
    for name in index.metrics(pattern) if pattern else usual(index):
        if name in before and name in after:
            old, new = before[name], after[name]
            ratio = []
            if same:
                error = (old.error**2 + new.error**2) ** 0.5
                ratio = [f"{new.value / old.value:.3f}", f"{196 * error:.1f} %" if error else "-"]
            rows.append([name, amount(old.value, old.unit), amount(new.value, new.unit), *ratio])
    if same:
        word = (
            "Two runs, not pairs: what the machine did between them is in the ratio too. "
            "For a verdict: asr bench --against"
        )
    else:
        why = differences(a["around"], b["around"]) or ["hardware, options or model's name"]
        word = f"Side by side only, not comparable: {'; '.join(why)}"
    told = [f"{run['run_id']}: {run['fit']}" for run in (a, b) if run["fit"]]
    return "\n".join([table(rows), "", *told, word])


def steps_text(seen: Seen) -> str:
    """Steps, what else changed, and how much was looked at."""
    rows = [["metric", "commits", "change", "95 %", "from", "to", "runs", "line"]]
    for step in seen.steps:
        low, high = (f"{100 * (x - 1):+.1f}" for x in (step.low, step.high))
        rows.append([
            step.metric, step.commits, percent(step.ratio - 1), f"{low} to {high} %",
            amount(step.level_before, step.unit), amount(step.level_after, step.unit),
            f"{step.runs[0]} + {step.runs[1]}", step.line,
        ])  # fmt: skip
    parts = [table(rows)] if seen.steps else []
    parts += ["\n".join(map(step_sentence, seen.steps))] if seen.steps else []
    parts += ["\n".join(map(border_sentence, seen.borders))] if seen.borders else []
    few = f"; {seen.short} of them have fewer than 6 runs, too few for a step" if seen.short else ""
    parts.append(f"{len(seen.steps)} steps in {seen.looked_at} series{few}")
    return "\n\n".join(parts)


def step_sentence(step: Step) -> str:
    """What a step is made of, in one line."""
    head = f"{step.metric} {step.commits} {percent(step.ratio - 1)}"
    if step.same_commit:
        return f"{head}: the same commit on both sides, not the code but the machine changed"
    total = abs(step.ratio - 1)
    large = [(s, p) for s, p in step.parts.items() if abs(p) >= max(0.005, 0.1 * total)]
    if not large:
        return head
    return f"{head}, of which " + ", ".join(f"{s} {percent(p)}" for s, p in large[:4])


def border_sentence(border: Border) -> str:
    """Where a new segment begins, and why."""
    return f"{border.utc} new segment in line {border.line}: {'; '.join(border.changes)}"
