"""GitHub annotations: workflow commands, one line each.

Source: GitHub, Workflow commands for GitHub Actions. A step shows ten of a kind and drops the
rest, so the tenth says how many more there are.
"""

from collections.abc import Sequence

from asr.gate.findings import Finding, Verdict
from asr.gate.outputs.words import sentence

SHOWN = 10


def text(verdict: Verdict) -> str:
    """Errors for what fails, warnings for what stays open or was signed for."""
    kinds: dict[str, list[str]] = {"error": [], "warning": [], "notice": []}
    guilty = [str(blame) for blame in verdict.blames]
    for finding in verdict.findings:
        kind = _kind(finding)
        if kind:
            kinds[kind].append(_command(kind, finding.metric, sentence(finding)))
    head = "error" if verdict.failures else "notice"
    kinds[head][:0] = [_command(head, "guilty stage", line) for line in guilty]
    kinds["warning"] += [_command("warning", "do not rely on it", r) for r in verdict.unfit]
    return "\n".join(line for kind, lines in kinds.items() for line in _first(kind, lines))


def _kind(finding: Finding) -> str:
    if finding.fails:
        return "error"
    if finding.accepted or finding.outcome in ("inconclusive", "not_comparable"):
        return "warning"
    return "notice" if finding.outcome == "improved" else ""


def _first(kind: str, lines: Sequence[str]) -> list[str]:
    if len(lines) <= SHOWN:
        return list(lines)
    rest = len(lines) - SHOWN + 1
    return [*lines[: SHOWN - 1], _command(kind, "asr gate", f"{rest} more; see the job summary")]


def _command(kind: str, title: str, message: str) -> str:
    return f"::{kind} title={_escape(title, ':,')}::{_escape(message)}"


def _escape(text: str, more: str = "") -> str:
    for character in "%\r\n" + more:
        text = text.replace(character, f"%{ord(character):02X}")
    return text
