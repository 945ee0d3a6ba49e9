"""A history for other programs: CSV, JSON, Bencher, github-action-benchmark."""

import csv
import io
import json
from collections.abc import Callable, Sequence

from asr.history.index import Index
from asr.history.metrics import Value

#: Bencher's own measures, and ours for what it has none.
_MEASURES = {"ns": "latency", "bytes": "file-size", "rtf": "rtf"}


def rows(index: Index, pattern: str = "*") -> list[dict[str, object]]:
    """Every number of every run, in order."""
    found = index.database.execute(
        "select utc, run_id, sha, label, fingerprint, line, era, noise, fit, metric, value, "
        "error, unit from ordered join measured using(run_id) where metric glob ? "
        "order by place, measured.rowid",
        (pattern,),
    )
    return [dict(row) for row in found]


def as_csv(index: Index, pattern: str = "*") -> str:
    """A row per number, with a head."""
    text, found = io.StringIO(), rows(index, pattern)
    writer = csv.DictWriter(text, list(found[0]) if found else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def as_json(index: Index, pattern: str = "*") -> str:
    """The same as a list of objects."""
    return json.dumps(rows(index, pattern), indent=1, ensure_ascii=False) + "\n"


def as_bencher(index: Index, pattern: str = "*") -> str:
    """Bencher Metric Format of the newest run; bounds are its 95 % interval where it has one."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for value in _newest(index, pattern):
        measure = "memory" if value.metric == "memory/peak" else _MEASURES[value.unit]
        numbers = {"value": value.value}
        if value.error:
            half = 1.96 * value.error * value.value
            numbers |= {"lower_value": value.value - half, "upper_value": value.value + half}
        found[value.metric] = {measure: numbers}
    return json.dumps(found, indent=1) + "\n"


def as_benchmark_action(index: Index, pattern: str = "*") -> str:
    """``customSmallerIsBetter`` JSON of github-action-benchmark, of the newest run."""
    found = []
    for value in _newest(index, pattern):
        row: dict[str, object] = {"name": value.metric, "unit": value.unit, "value": value.value}
        if value.error:
            row["range"] = f"± {1.96 * value.error * value.value:.4g}"
        found.append(row)
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _newest(index: Index, pattern: str) -> Sequence[Value]:
    newest = max(index.runs(), key=lambda run: str(run["utc"]), default=None)
    if newest is None:
        return []
    values = index.values(newest["run_id"])
    return [values[name] for name in index.metrics(pattern) if name in values]


#: Name on the command line -> how it is written.
FORMS: dict[str, Callable[[Index, str], str]] = {
    "csv": as_csv,
    "json": as_json,
    "bencher": as_bencher,
    "benchmark-action": as_benchmark_action,
}
