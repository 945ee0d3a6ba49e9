"""Word errors and how sure one may be of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein


@dataclass(frozen=True)
class Score:
    """Counts over a list of clips.

    Attributes:
        clips: number of clips.
        words: words in the references.
        errors: substitutions + deletions + insertions.
        exact: clips without any error.
    """

    clips: int
    words: int
    errors: int
    exact: int

    @property
    def word_error_percent(self) -> float:
        """Errors per hundred reference words; may exceed 100."""
        return 100 * self.errors / max(1, self.words)

    @property
    def exact_percent(self) -> float:
        """Clips fully right, per hundred."""
        return 100 * self.exact / max(1, self.clips)


def score(pairs: list[tuple[str, str]]) -> Score:
    """Counts over (reference, hypothesis) pairs of lower-case text."""
    errors = [Levenshtein.distance(said.split(), heard.split()) for said, heard in pairs]
    words = sum(len(said.split()) for said, _ in pairs)
    return Score(len(pairs), words, sum(errors), sum(count == 0 for count in errors))


def wilson_interval(right: int, total: int, deviations: float = 1.96) -> tuple[float, float]:
    """95 % interval of a share of independent trials, both ends in percent."""
    if total == 0:
        return 0.0, 100.0
    share, square = right / total, deviations**2
    centre = (share + square / (2 * total)) / (1 + square / total)
    spread = math.sqrt(share * (1 - share) / total + square / (4 * total**2))
    half = deviations * spread / (1 + square / total)
    return 100 * max(0.0, centre - half), 100 * min(1.0, centre + half)
