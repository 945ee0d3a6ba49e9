"""How figures of a verdict are written, the same in every form."""

from asr.gate.findings import Finding, Verdict

_SCALES = {"ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs")), "bytes": ((1e6, "MB"), (1e3, "kB"))}


def amount(value: float | None, unit: str) -> str:
    """``3.62 ms``; ``-`` for nothing."""
    if value is None:
        return "-"
    for scale, name in _SCALES.get(unit, ()):
        if value >= scale:
            return f"{value / scale:.3g} {name}" if value < 1000 * scale else f"{value:.0f} {unit}"
    return f"{value:.4g} {unit}".strip()


def change(share: float | None) -> str:
    """``+5.1 %``; ``-`` for nothing."""
    return "-" if share is None else f"{100 * share:+.1f} %"


def interval(finding: Finding) -> str:
    """``+4.2 to +6.0 %``: where the change lies with 95 %."""
    if finding.low is None or finding.high is None:
        return "-"
    return f"{100 * (finding.low - 1):+.1f} to {100 * (finding.high - 1):+.1f} %"


def outcome(finding: Finding) -> str:
    """The outcome as a word or two."""
    word = finding.outcome.replace("_", " ")
    return f"{word}, accepted" if finding.accepted else word


def sentence(finding: Finding) -> str:
    """One finding in one line."""
    told = [f"{finding.metric} against {finding.against}: {outcome(finding)}"]
    if finding.ratio is not None:
        told.append(
            f"{change(finding.ratio - 1)} ({interval(finding)}), "
            f"{amount(finding.a, finding.unit)} to {amount(finding.b, finding.unit)}, "
            f"margin {change(finding.margin)}"
        )
    elif finding.b is not None and finding.limit is not None:
        found, limit = amount(finding.b, finding.unit), amount(finding.limit, finding.unit)
        told.append(f"{found}, limit {limit}")
    if finding.more_pairs is not None:
        told.append(settling(finding))
    if finding.note:
        told.append(finding.note)
    return "; ".join(told)


def settling(finding: Finding) -> str:
    """What an inconclusive finding could not see, and what would settle it."""
    seen = (
        "these pairs are too few to find any slowdown"
        if finding.detectable is None
        else f"these {finding.pairs} pairs find {change(finding.detectable)} or more"
    )
    return f"{seen}; about {finding.more_pairs} more would settle it"


def headline(verdict: Verdict) -> str:
    """The whole verdict in one line."""
    if verdict.failures:
        names = {f.outcome.replace("_", " "): None for f in verdict.failures}
        word = f"fails ({', '.join(names)})"
    elif not any(f.ratio is not None for f in verdict.findings):
        word = "compared nothing"
    else:
        word = "passes"
    counted = ", ".join(f"{n} {o.replace('_', ' ')}" for o, n in verdict.counts.items())
    return f"{verdict.judged} {word}: {counted or 'no findings'}"
