"""For a terminal."""

from asr.bench.report import table
from asr.gate.findings import Finding, Verdict
from asr.gate.outputs.words import amount, change, headline, interval, outcome, sentence, settling

_HEAD = ["metric", "against", "change", "95 %", "before", "now", "margin", "finds", "verdict"]


def text(verdict: Verdict, *, every: bool = True) -> str:
    """Rows, what they mean in words, and the headline last.

    Args:
        verdict: to print.
        every: also the metrics that pass.
    """
    shown = [f for f in verdict.findings if every or f.outcome != "pass"]
    compared = [f for f in shown if f.ratio is not None]
    lines = [table([_HEAD, *map(_row, compared)]), ""] if compared else []
    lines += [sentence(f) for f in shown if f.ratio is None]
    for finding in compared:
        if finding.more_pairs is not None:
            lines.append(f"{finding.metric} against {finding.against}: {settling(finding)}")
        if finding.note:
            lines.append(f"{finding.metric} against {finding.against}: {finding.note}")
    lines += [str(blame) for blame in verdict.blames]
    lines += [f"do not rely on it: {reason}" for reason in verdict.unfit]
    return "\n".join([*lines, headline(verdict)])


def _row(finding: Finding) -> list[str]:
    return [
        finding.metric,
        finding.against,
        change(finding.ratio - 1 if finding.ratio else None),
        interval(finding),
        amount(finding.a, finding.unit),
        amount(finding.b, finding.unit),
        change(finding.margin),
        change(finding.detectable),
        outcome(finding),
    ]
