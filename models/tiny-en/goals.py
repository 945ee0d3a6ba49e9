"""What the model card promises: a target per test set, and whether a result meets it."""

from __future__ import annotations

from dataclasses import dataclass

from scoring import Score


@dataclass(frozen=True)
class Target:
    """A number to reach.

    Attributes:
        what: `clips` fully right, `words` (100 - word error rate), or `empty`: clips without
            words that show none, because nothing was heard or the text was withheld.
        percent: the least.
    """

    what: str
    percent: float

    def __str__(self) -> str:
        return f"{self.what} >= {self.percent:g}"

    def reached(self, result: Score, empty_percent: float) -> float:
        """The figure that the target speaks of, in percent."""
        if self.what == "words":
            return 100 - result.word_error_percent
        return result.exact_percent if self.what == "clips" else empty_percent


TARGETS = {
    "Speech Commands words": Target("clips", 93),
    "FSDD digits (theo), as cut": Target("clips", 92),
    "FSDD digits (theo), padded, list of ten": Target("clips", 97),
    "digit strings 3-6 (theo)": Target("words", 98),
    "command strings 2-5": Target("words", 90),
    "wake words, held-out clips": Target("clips", 98),
    "'(hey) computer', other corpus": Target("clips", 80),
    "speechocean762 sentences": Target("words", 55),
    "noise, held-out recordings": Target("empty", 98),
    "hum, clicks, silence (generated)": Target("empty", 98),
}
PHRASES = Target("words", 92)
"""Of every held-out synthetic voice."""


def target_of(name: str) -> Target | None:
    """The target of a test set, if it has one."""
    return PHRASES if name.startswith("device phrases") else TARGETS.get(name)
