"""Whether a confidence of 0.8 means right in eight cases of ten."""

from collections.abc import Sequence
from dataclasses import dataclass

from asr.evaluate.hear import HeardWord
from asr.evaluate.intervals import Rate, wilson

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Words of similar confidence.

    Attributes:
        low: lowest confidence that belongs here.
        high: the next bin's lowest; 1 belongs to the last bin.
        confidence: mean of the words here; None without words.
        right: share of them that are right; None without words.
        words: how many.
    """

    low: float
    high: float
    confidence: float | None
    right: Rate | None
    words: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """Confidence beside truth.

    Attributes:
        words: heard words, after normalisation; deleted words have no confidence.
        confidence: their mean; None without words.
        right: share that is right; None without words.
        ece: expected calibration error, 0 to 1: the bins' mean distance between confidence and
            share right, weighted by words; None without words.
        bins: equally wide, from 0 to 1.
    """

    words: int
    confidence: float | None
    right: Rate | None
    ece: float | None
    bins: tuple[Bin, ...]


def calibrate(words: Sequence[HeardWord]) -> Calibration:
    """Compare confidence with truth over heard words.

    Source: Guo et al., ICML 2017, "On calibration of modern neural networks", equation 3.
    """
    groups: list[list[HeardWord]] = [[] for _ in range(BINS)]
    for word in words:
        groups[min(int(word.confidence * BINS), BINS - 1)].append(word)
    bins = tuple(
        Bin(i / BINS, (i + 1) / BINS, _mean(group), _right(group), len(group))
        for i, group in enumerate(groups)
    )
    gaps = [
        b.words * abs(b.right.value - b.confidence)
        for b in bins
        if b.right is not None and b.confidence is not None
    ]
    ece = sum(gaps) / len(words) if words else None
    return Calibration(len(words), _mean(words), _right(words), ece, bins)


def _mean(words: Sequence[HeardWord]) -> float | None:
    return sum(word.confidence for word in words) / len(words) if words else None


def _right(words: Sequence[HeardWord]) -> Rate | None:
    return wilson(sum(word.right for word in words), len(words))
