"""Statistics of repeated timings: medians, and intervals by the bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Resamples of a bootstrap; the ends of an interval move by less than 1 % of its width beyond.
_DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class Interval:
    """A median and where it may lie.

    Attributes:
        median: of the sample, in its unit.
        low: lower bound, same unit.
        high: upper bound, same unit.
        n: numbers in the sample.
    """

    median: float
    low: float
    high: float
    n: int


def median_interval(values: Sequence[float], level: float = 0.95) -> Interval:
    """The median and its bootstrap percentile interval.

    Args:
        values: at least one number, any unit.
        level: share of the resampled medians between the bounds.

    Returns:
        the same for the same values: the resampling is seeded.
    """
    sample = np.asarray(values, np.float64)
    draws = np.random.default_rng(0).integers(0, len(sample), (_DRAWS, len(sample)))
    medians = np.median(sample[draws], axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(np.median(sample)), float(low), float(high), len(sample))


def ratio_interval(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval:
    """Median of b / a over pairs measured side by side, with its interval.

    Args:
        a: the base, positive, one number per pair.
        b: the contender, as many numbers.
        level: as for ``median_interval``.

    Returns:
        computed on logarithms, so that b / a and a / b tell the same story.
    """
    logs = median_interval(np.log(np.asarray(b) / np.asarray(a)).tolist(), level)
    median, low, high = np.exp([logs.median, logs.low, logs.high]).tolist()
    return Interval(median, low, high, logs.n)


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, in the unit of the values."""
    sample = np.asarray(values, np.float64)
    return float(np.median(np.abs(sample - np.median(sample))))
