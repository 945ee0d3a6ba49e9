"""From measurements and limits to a verdict."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from asr.bench.record import TOTAL, Bench, Pairs, Version
from asr.gate.accepted import Accepted, covering
from asr.gate.budget import Budget, Margins
from asr.gate.findings import OUTCOMES, Blame, Comparison, Finding, Verdict
from asr.gate.metrics import metrics_of, parts_of
from asr.gate.promises import promises_kept
from asr.gate.texts import text_findings
from asr.gate.weigh import Measured, weigh

#: Whether the history from one commit to another holds a third.
Brought = Callable[[str | None, str | None, str], bool]


def judge(
    comparisons: Sequence[Comparison],
    budget: Budget,
    *,
    record: Bench | None = None,
    locked: Mapping[str, bool] | None = None,
    accepted: Sequence[Accepted] = (),
    brought: Brought = lambda _a, b, sha: bool(b and b.startswith(sha)),
) -> Verdict:
    """Judge everything that was measured, with one error rate.

    Args:
        comparisons: against the parent, the reference, or whatever else.
        budget: margins and promises.
        record: of the judged version alone, for the promises and the text lock.
        locked: clip -> whether the expected text was heard, where there is no record.
        accepted: slowdowns that somebody signed for.
        brought: whether the history from commit a to commit b holds a commit.
    """
    margins = budget.margins
    comparable = [c for c in comparisons if not _why_not(c)]
    findings = [
        Finding("*", c.against, "not_comparable", note=_why_not(c))
        for c in comparisons
        if _why_not(c)
    ]
    measured = [row for c in comparable for row in measured_in(c, margins)]
    findings += weigh(measured, margins.error_rate)
    for comparison in comparable:
        findings += _sizes(comparison, margins)
    if record is not None:
        locked = {clip.id: clip.text_as_expected for clip in record.clips}
    findings += text_findings(comparable, locked, budget.accuracy)
    findings += promises_kept(budget, [c.pairs for c in comparable if c.pairs], record)
    findings = [_excuse(f, comparable, accepted, brought) for f in findings]
    findings.sort(key=lambda f: (OUTCOMES.index(f.outcome), f.accepted is not None))
    records: list[Bench | Pairs] = [c.pairs for c in comparable if c.pairs]
    return Verdict(
        judged=_judged(records + ([record] if record else [])),
        findings=findings,
        blames=_blames(findings, comparable),
        unfit=[line for r in records + ([record] if record else []) for line in unfit(r)],
        error_rate=margins.error_rate,
    )


def _why_not(comparison: Comparison) -> str:
    """Why two sides must not be compared; empty when they may."""
    pairs = comparison.pairs
    if pairs is None:
        return comparison.why
    if not pairs.pairs:
        return "no pairs were measured"
    for field in ("layout", "network_sha256", "recipe_sha256", "tokens_sha256"):
        a, b = getattr(pairs.a.model, field), getattr(pairs.b.model, field)
        if a != b:
            return f"the models differ: {field} {a[:12]} and {b[:12]}"
    return ""


def measured_in(comparison: Comparison, margins: Margins) -> list[Measured]:
    """The metrics of a comparison, its confirming pairs beside them."""
    assert comparison.pairs is not None  # noqa: S101 - the caller has looked
    again = {m.name: m for m in metrics_of(comparison.pairs.confirm or [], margins.worth)}
    return [
        Measured(comparison.against, metric, again.get(metric.name), margins.of(metric.kind))
        for metric in metrics_of(comparison.pairs.pairs, margins.worth)
    ]


def _sizes(comparison: Comparison, margins: Margins) -> list[Finding]:
    """Bytes have no noise: one look decides."""
    assert comparison.pairs is not None  # noqa: S101 - the caller has looked
    sizes = comparison.pairs.sizes
    findings = []
    for what in ("wheel", "network"):
        a, b = (getattr(sizes[side], f"{what}_bytes") for side in "ab")
        if not a or not b:
            continue
        margin: float = getattr(margins, what)
        over, under = b / a > 1 + margin, a / b > 1 + margin
        findings.append(
            Finding(
                metric=f"size/{what}",
                against=comparison.against,
                outcome="regressed" if over else "improved" if under else "pass",
                unit="bytes",
                a=a,
                b=b,
                ratio=b / a,
                margin=margin,
            )
        )
    return findings


def _excuse(
    finding: Finding,
    comparisons: Sequence[Comparison],
    accepted: Sequence[Accepted],
    brought: Brought,
) -> Finding:
    """A signed-off slowdown stays a regression in the table and no longer fails."""
    pairs = next((c.pairs for c in comparisons if c.against == finding.against), None)
    if finding.outcome != "regressed" or finding.ratio is None or pairs is None:
        return finding
    a, b = _sha(pairs.a), _sha(pairs.b)
    entry = covering(accepted, finding.metric, finding.ratio, lambda sha: brought(a, b, sha))
    if entry is None:
        return finding
    note = f"accepted until {entry.expires} by {entry.signed_off_by}: {entry.reason}"
    return replace(finding, accepted=entry.file.name, note=note)


def _sha(version: Version) -> str | None:
    return version.git.sha if version.git else None


def _blames(findings: Sequence[Finding], comparisons: Sequence[Comparison]) -> list[Blame]:
    """One per base and bucket in which a call or one of its stages regressed."""
    guilty: dict[tuple[str, str], list[str]] = {}
    for f in findings:
        if f.outcome == "regressed" and f.metric.startswith("warm/"):
            _, bucket, stage = f.metric.split("/")
            guilty.setdefault((f.against, bucket), []).append(stage)
    blames = []
    for (against, bucket), stages in guilty.items():
        pairs = next(c.pairs for c in comparisons if c.against == against)
        assert pairs is not None  # noqa: S101 - a finding comes from pairs
        key = (against, f"warm/{bucket}/{TOTAL}")
        total = next((f.ratio for f in findings if (f.against, f.metric) == key), None)
        parts = parts_of(pairs.pairs, bucket)
        alone = [stage for stage in stages if stage != TOTAL]
        blames.append(Blame(bucket, against, (total or 1.0) - 1, parts, alone))
    return blames


def _judged(records: Sequence[Bench | Pairs]) -> str:
    for record in records:
        git = record.git if isinstance(record, Bench) else record.b.git
        label = record.label if isinstance(record, Bench) else record.b.label
        if git:
            return f"{git.sha[:10]}{', changed since' if git.dirty else ''}"
        if label:
            return label
    return "nothing"


def unfit(record: Bench | Pairs) -> list[str]:
    """Why a strict reader should not believe a record."""
    sides: Mapping[str, Bench | Version] = (
        {"it": record} if isinstance(record, Bench) else {"a": record.a, "b": record.b}
    )
    found = []
    if record.noise.class_ == "noisy":
        found.append(f"{record.run_id}: the machine was noisy")
    for name, side in sides.items():
        if side.tool.profile == "debug":
            found.append(f"{record.run_id}: {name} is a debug build")
        if side.git and side.git.dirty:
            found.append(f"{record.run_id}: {name} differs from its commit")
    return found
