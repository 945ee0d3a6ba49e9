"""``customSmallerIsBetter`` JSON of github-action-benchmark."""

import json

from asr.gate.findings import Verdict
from asr.gate.outputs.words import change, interval, outcome

_UNITS = ("ns", "bytes", "rtf", "MB")


def text(verdict: Verdict) -> str:
    """JSON; each metric once, however often it was compared."""
    rows = {}
    for f in verdict.findings:
        if f.unit not in _UNITS or f.b is None or f.metric in rows:
            continue
        row = {"name": f.metric, "unit": f.unit, "value": f.b}
        if f.ratio is not None and f.low is not None and f.high is not None and f.a:
            row["range"] = f"± {f.a * (f.high - f.low) / 2:.4g}"
            row["extra"] = (
                f"{outcome(f)}: {change(f.ratio - 1)} ({interval(f)}) against {f.against}"
            )
        rows[f.metric] = row
    return json.dumps(list(rows.values()), indent=1, ensure_ascii=False)
