"""The history of what a record measured, as sections of its report."""

from asr.bench.record import BUCKETS, Bench
from asr.history.index import Index, Point
from asr.history.steps import borders, eras, levels, look
from asr.report.blocks import Figure, Section, Table
from asr.report.charts import Dot, timeline


def sections(index: Index, run: Bench) -> list[Section]:
    """RTF over time with its levels, and every step of this machine, model and options."""
    line = next((r["line"] for r in index.runs() if r["run_id"] == run.run_id), None)
    if line is None:
        return [Section("Over time", ["The history does not hold this run: asr history add."])]
    why = {b.run_id: "; ".join(b.changes) for b in borders(index) if b.line == line}
    blocks: list[str | Table | Figure] = [
        "Runs in the order of their commits. A red line is a level: the median between two change "
        "points; dashed: something around the code changed, and nothing is compared across it. "
        "Grey runs do not count."
    ]
    for bucket in BUCKETS:
        points = index.points(f"rtf_warm/{bucket}", line)
        if points:
            picture = timeline(_dots(index, f"rtf_warm/{bucket}", line, points, why),
                               _name(points[0]), _name(points[-1]))  # fmt: skip
            blocks.append(Figure(picture, f"rtf_warm, clips of {bucket}, {len(points)} runs"))
    blocks += [f"{when}: {why[run_id]}" for when, run_id in _when(index) if run_id in why]
    steps = [s for s in look(index).steps if s.line == line]
    rows = [
        [s.metric, s.commits, f"{100 * (s.ratio - 1):+.1f} %",
         f"{100 * (s.low - 1):+.1f} to {100 * (s.high - 1):+.1f} %",
         "the machine" if s.same_commit else
         ", ".join(f"{stage} {100 * p:+.1f} %" for stage, p in [*s.parts.items()][:2])]
        for s in steps
    ]  # fmt: skip
    if rows:
        blocks.append(Table(("metric", "commits", "change", "95 %", "of which"), rows, (0, 4)))
    else:
        blocks.append("No change of 3 % or more with three runs on both sides.")
    return [Section("Over time", blocks)]


def _when(index: Index) -> list[tuple[str, str]]:
    return [(r["utc"], r["run_id"]) for r in index.runs()]


def _dots(
    index: Index, metric: str, line: str, points: list[Point], why: dict[str, str]
) -> list[Dot]:
    import statistics

    level: dict[str, float] = {}
    for era in eras(index, metric):
        if era[0].line == line:
            for part in levels([p for p in era if not p.fit]):
                middle = statistics.median(p.value for p in part)
                level.update((p.run_id, middle) for p in part)
    return [Dot(p.value, not p.fit, level.get(p.run_id), why.get(p.run_id, "")) for p in points]


def _name(point: Point) -> str:
    return f"{point.utc[:10]} {point.sha[:7]}".strip()
