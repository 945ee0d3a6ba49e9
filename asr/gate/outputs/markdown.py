"""Markdown for a pull request or a job summary: the guilty stage first."""

from asr.gate.findings import Finding, Verdict
from asr.gate.outputs.words import amount, change, headline, interval, outcome, sentence

_MARKS = {
    "text_changed": "❌",
    "over_budget": "❌",
    "regressed": "❌",
    "inconclusive": "❔",
    "not_comparable": "❔",
    "improved": "✅",
    "pass": "✅",
}


def text(verdict: Verdict) -> str:
    """Headline, blame, what is not a pass; the rest folded away."""
    mark = "❌" if verdict.failures else "✅"
    lines = [f"### {mark} {_safe(headline(verdict))}", ""]
    lines += [f"**{_safe(str(blame))}**\n" for blame in verdict.blames]
    lines += [f"> do not rely on it: {_safe(reason)}\n" for reason in verdict.unfit]
    told = [f for f in verdict.findings if f.outcome != "pass"]
    quiet = [f for f in verdict.findings if f.outcome == "pass"]
    lines += _listed(told)
    if quiet:
        lines += [
            "",
            f"<details><summary>{len(quiet)} metrics pass</summary>",
            "",
            *_listed(quiet),
            "",
            "</details>",
        ]
    return "\n".join(lines) + "\n"


def _listed(findings: list[Finding]) -> list[str]:
    """A line each for what has no ratio, a table for the rest."""
    lines = [f"- {_MARKS[f.outcome]} {_safe(sentence(f))}" for f in findings if f.ratio is None]
    return [*lines, "", *_table([f for f in findings if f.ratio is not None])]


def _table(findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    return [
        "| metric | against | change | 95 % | before | now | verdict |",
        "|---|---|---:|---:|---:|---:|---|",
        *(
            f"| {_safe(f.metric)} | {_safe(f.against)} | {change((f.ratio or 1) - 1)} "
            f"| {interval(f)} | {amount(f.a, f.unit)} | {amount(f.b, f.unit)} "
            f"| {_MARKS[f.outcome]} {outcome(f)} |"
            for f in findings
        ),
    ]


def _safe(text: str) -> str:
    """Text that cannot leave its cell or become markup."""
    for mark in "\\|<>*_`[]":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
