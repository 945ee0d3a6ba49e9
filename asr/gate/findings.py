"""What a verdict consists of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from asr.bench.record import Pairs

Outcome: TypeAlias = Literal[
    "text_changed",
    "over_budget",
    "regressed",
    "inconclusive",
    "not_comparable",
    "improved",
    "pass",
]
#: Worst first; also the order of tables.
OUTCOMES: tuple[Outcome, ...] = (
    "text_changed", "over_budget", "regressed", "inconclusive", "not_comparable", "improved",
    "pass",
)  # fmt: skip
#: If several apply, the first.
EXIT_CODES: dict[Outcome, int] = {"text_changed": 12, "over_budget": 11, "regressed": 10}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one version was held against.

    Attributes:
        against: for people: ``parent 1a2b3c4``.
        pairs: what was measured; None when it could not be.
        why: then, why not.
    """

    against: str
    pairs: Pairs | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one metric.

    Attributes:
        metric: name.
        against: what it was held against.
        outcome: the verdict.
        unit: of ``a``, ``b`` and ``limit``: ns, bytes, rtf, MB, clips or cer.
        a: typical value of the base; None where there is no base.
        b: typical value of what is judged.
        limit: the promise, where the metric has one.
        ratio: b / a over the pairs; None without pairs.
        low: lower 95 % bound of it; None where the pairs are too few to have one.
        high: upper 95 % bound.
        margin: slowdown let pass, as a share.
        pairs: how many.
        detectable: smallest slowdown that these pairs find with a chance of 95 %, as a share.
        more_pairs: how many more would settle an inconclusive one.
        confirmed: whether the confirming re-run agreed; None when nothing was accused.
        accepted: the file that excuses it.
        note: what else a reader must know.
    """

    metric: str
    against: str
    outcome: Outcome
    unit: str = ""
    a: float | None = None
    b: float | None = None
    limit: float | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    pairs: int = 0
    detectable: float | None = None
    more_pairs: int | None = None
    confirmed: bool | None = None
    accepted: str | None = None
    note: str = ""

    @property
    def fails(self) -> bool:
        """Whether it alone turns the verdict red."""
        return self.outcome in EXIT_CODES and self.accepted is None


@dataclass(frozen=True, slots=True)
class Blame:
    """Where a slower call of one bucket spends its new time.

    Attributes:
        bucket: length class.
        against: what it was held against.
        change: of the whole call, as a share: 0.11 is 11 %.
        parts: stage -> what it adds, as a share of the whole call before; largest first.
        regressed: the stages that are regressions by themselves.
    """

    bucket: str
    against: str
    change: float
    parts: Mapping[str, float]
    regressed: Sequence[str] = ()

    @property
    def stage(self) -> str:
        """The guilty one: of what regressed by itself, or else of all, what adds most."""
        return max(self.regressed or self.parts, key=lambda name: self.parts.get(name, 0.0))

    def __str__(self) -> str:
        """``+11.0 % in warm RTF at 5 s, of which fbank +9.6``."""
        guilty = {self.stage: self.parts.get(self.stage, 0.0)}
        worst = max(guilty[self.stage], 0.0)
        others = {n: v for n, v in self.parts.items() if n in self.regressed or v > worst / 4 > 0}
        told = [f"{name} {100 * part:+.1f}" for name, part in {**guilty, **others}.items()]
        return (
            f"{100 * self.change:+.1f} % in warm RTF at {self.bucket} against {self.against}, "
            f"of which {', '.join(told)}"
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """All findings of one question.

    Attributes:
        judged: for people, what was judged.
        findings: worst first.
        blames: one per bucket and base in which a warm metric regressed.
        unfit: why a strict reader should not believe it: a noisy machine, a debug build.
        error_rate: chance of one false alarm among all findings together.
    """

    judged: str
    findings: Sequence[Finding]
    blames: Sequence[Blame] = ()
    unfit: Sequence[str] = ()
    error_rate: float = 0.01
    counts: Mapping[str, int] = field(init=False)

    def __post_init__(self) -> None:
        counts = {o: sum(f.outcome == o for f in self.findings) for o in OUTCOMES}
        object.__setattr__(self, "counts", {o: n for o, n in counts.items() if n})

    @property
    def failures(self) -> list[Finding]:
        """The findings that turn it red."""
        return [f for f in self.findings if f.fails]

    def exit_code(
        self,
        *,
        strict: bool = False,
        require_verdict: bool = False,
        require_baseline: bool = False,
    ) -> int:
        """What the command returns: 0, or the first of 12, 11, 10, 15, 14, 13 that applies.

        Args:
            strict: 15 when the machine was too noisy or the build unfit.
            require_verdict: 13 when something stayed inconclusive.
            require_baseline: 14 when nothing could be compared.
        """
        for outcome, code in EXIT_CODES.items():
            if any(f.outcome == outcome for f in self.failures):
                return code
        if strict and self.unfit:
            return 15
        if require_baseline and not any(f.ratio is not None for f in self.findings):
            return 14
        if require_verdict and "inconclusive" in self.counts:
            return 13
        return 0
