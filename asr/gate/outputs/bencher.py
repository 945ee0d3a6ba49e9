"""Bencher Metric Format: https://bencher.dev/docs/reference/bencher-metric-format.

Values of the judged version; its bounds are the base's value times the bounds of the ratio.
"""

import json
from typing import Any

from asr.gate.findings import Finding, Verdict

#: Bencher's built-in measures, where it has them.
_MEASURES = {"ns": "latency", "bytes": "file-size", "rtf": "rtf", "MB": "megabytes"}


def values(verdict: Verdict) -> dict[str, dict[str, dict[str, float]]]:
    """Benchmark -> measure -> value; each metric once, however often it was compared."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for finding in verdict.findings:
        measure = _measure(finding)
        if measure and finding.b is not None and finding.metric not in found:
            found[finding.metric] = {measure: _numbers(finding)}
    return found


def _measure(finding: Finding) -> str:
    return "memory" if finding.metric == "memory/peak" else _MEASURES.get(finding.unit, "")


def _numbers(finding: Finding) -> dict[str, Any]:
    numbers = {"value": finding.b}
    if finding.a and finding.low and finding.high:
        bounds = sorted([finding.a * finding.low, finding.a * finding.high])
        numbers["lower_value"], numbers["upper_value"] = bounds
    return numbers


def text(verdict: Verdict) -> str:
    """JSON."""
    return json.dumps(values(verdict), indent=1)
