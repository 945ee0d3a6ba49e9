"""Expected and heard units side by side, and what went wrong between them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from asr.evaluate.libraries import require

#: (expected, heard): equal is a hit, None on the right a deletion, None on the left an insertion.
Pair: TypeAlias = "tuple[str | None, str | None]"


@dataclass(frozen=True, slots=True)
class Edits:
    """How many units of a text were heard how.

    Attributes:
        hits: heard as expected.
        substitutions: heard as something else.
        deletions: not heard.
        insertions: heard though nobody said them.
    """

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def expected(self) -> int:
        """Units of the expected text."""
        return self.hits + self.substitutions + self.deletions

    @property
    def errors(self) -> int:
        """The numerator of an error rate."""
        return self.substitutions + self.deletions + self.insertions

    def __add__(self, other: "Edits") -> "Edits":
        return Edits(
            self.hits + other.hits,
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
        )


def align(expected: Sequence[str], heard: Sequence[str]) -> list[Pair]:
    """Put two sequences side by side with the fewest errors.

    Args:
        expected: words, or a string for its characters.
        heard: the same.

    Returns:
        Pairs in order; their left sides are ``expected``, their right sides ``heard``.

    Raises:
        MissingToolError: RapidFuzz is not installed.

    Source: RapidFuzz ``Levenshtein.opcodes``; where several alignments have the fewest errors it
    decides which one is shown.
    """
    pairs: list[Pair] = []
    for code in require("rapidfuzz.distance.Levenshtein").opcodes(expected, heard):
        left: Sequence[str] = expected[code.src_start : code.src_end]
        right: Sequence[str] = heard[code.dest_start : code.dest_end]
        if code.tag == "delete":
            pairs += [(unit, None) for unit in left]
        elif code.tag == "insert":
            pairs += [(None, unit) for unit in right]
        else:  # equal and replace have as many units on both sides
            pairs += zip(left, right, strict=True)
    return pairs


def count(pairs: Iterable[Pair]) -> Edits:
    """Count an alignment."""
    hits = substitutions = deletions = insertions = 0
    for expected, heard in pairs:
        if expected is None:
            insertions += 1
        elif heard is None:
            deletions += 1
        elif expected == heard:
            hits += 1
        else:
            substitutions += 1
    return Edits(hits, substitutions, deletions, insertions)
