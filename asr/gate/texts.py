"""Other text is no speed: the lock on what is heard."""

from collections.abc import Mapping, Sequence

from asr.gate.budget import Accuracy
from asr.gate.findings import Comparison, Finding


def text_findings(
    comparisons: Sequence[Comparison], locked: Mapping[str, bool] | None, accuracy: Accuracy
) -> list[Finding]:
    """Texts and error rates, per comparison; and against what the workload expects.

    Args:
        comparisons: with pairs.
        locked: clip -> whether the expected text was heard; None where nobody listened.
        accuracy: what may change.
    """
    findings = []
    for comparison in comparisons:
        assert comparison.pairs is not None  # noqa: S101 - the caller has looked
        clips = comparison.pairs.clips
        changed = [c.id for c in clips if not c.text_same]
        findings.append(_texts(comparison.against, changed, len(clips), accuracy))
        rises = {
            c.id: c.cer_b - c.cer_a for c in clips if c.cer_a is not None and c.cer_b is not None
        }
        findings += _cer(comparison.against, rises, accuracy)
    if locked is not None:
        unexpected = [name for name, right in locked.items() if not right]
        findings.append(_texts("the workload", unexpected, len(locked), accuracy))
    return findings


def _texts(against: str, changed: list[str], clips: int, accuracy: Accuracy) -> Finding:
    bad = len(changed) > accuracy.texts_changed
    return Finding(
        metric="text",
        against=against,
        outcome="text_changed" if bad else "pass",
        unit="clips",
        b=len(changed),
        limit=accuracy.texts_changed,
        note=f"another text for {', '.join(changed)}" if changed else f"{clips} clips, same text",
    )


def _cer(against: str, rises: dict[str, float], accuracy: Accuracy) -> list[Finding]:
    if not rises:
        return []
    worst = max(rises, key=lambda name: rises[name])
    bad = rises[worst] > accuracy.cer
    return [
        Finding(
            metric="cer",
            against=against,
            outcome="text_changed" if bad else "pass",
            unit="cer",
            b=rises[worst],
            limit=accuracy.cer,
            note=f"more wrong characters in {worst}" if bad else "",
        )
    ]
