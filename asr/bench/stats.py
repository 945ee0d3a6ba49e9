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
        error: standard error of the median; of a ratio's, that of its logarithm.
    """

    median: float
    low: float
    high: float
    n: int
    error: float = 0.0


def median_interval(values: Sequence[float], level: float = 0.95, draws: int = _DRAWS) -> Interval:
    """The median and its bootstrap percentile interval.

    Args:
        values: at least one number, any unit.
        level: share of the resampled medians between the bounds.
        draws: resamples.

    Returns:
        the same for the same values: the resampling is seeded.
    """
    sample = np.asarray(values, np.float64)
    picks = np.random.default_rng(0).integers(0, len(sample), (draws, len(sample)))
    medians = np.median(sample[picks], axis=1)
    low, high = np.quantile(medians, [(1 - level) / 2, (1 + level) / 2])
    error = float(np.std(medians))
    return Interval(float(np.median(sample)), float(low), float(high), len(sample), error)


def ratio_interval(
    a: Sequence[float], b: Sequence[float], level: float = 0.95, draws: int = _DRAWS
) -> Interval:
    """Median of b / a over pairs measured side by side, with its interval.

    Args:
        a: the base, positive, one number per pair.
        b: the contender, as many numbers.
        level: as for ``median_interval``.
        draws: resamples.

    Returns:
        computed on logarithms, so that b / a and a / b tell the same story.
    """
    logs = median_interval(np.log(np.asarray(b) / np.asarray(a)).tolist(), level, draws)
    median, low, high = np.exp([logs.median, logs.low, logs.high]).tolist()
    return Interval(median, low, high, logs.n, logs.error)


def mad(values: Sequence[float]) -> float:
    """Median absolute deviation from the median, in the unit of the values."""
    sample = np.asarray(values, np.float64)
    return float(np.median(np.abs(sample - np.median(sample))))


def p95(values: Sequence[float]) -> float:
    """The value that 95 % do not exceed, interpolated."""
    return float(np.quantile(np.asarray(values, np.float64), 0.95))


def signed_rank(a: Sequence[float], b: Sequence[float]) -> float:
    """How often chance alone puts b so far above a: the exact Wilcoxon signed-rank test.

    Unlike a bootstrap it keeps its word for a handful of pairs: n of them cannot say less than
    2 to the power of -n.

    Args:
        a: the base, positive, one number per pair.
        b: the contender, as many numbers.

    Returns:
        the one-sided probability on log ratios; pairs without a difference do not count.
    """
    logs = np.log(np.asarray(b, np.float64) / np.asarray(a, np.float64))
    logs = logs[logs != 0]
    _, group, sizes = np.unique(np.abs(logs), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(sizes) - sizes + 1)[group]  # twice the mean rank: whole numbers
    chance = np.zeros(int(doubled.sum()) + 1)  # of each sum of ranks, when signs are a coin's
    chance[0] = 1.0
    for rank in doubled.tolist():
        chance[rank:] = (chance[rank:] + chance[:-rank]) / 2
        chance[:rank] /= 2
    return float(chance[int(doubled[logs > 0].sum()) :].sum())


#: Standard normal quantiles of a one-sided 1 % error rate and of a power of 90 %.
_Z_ALPHA, _Z_POWER = 2.326, 1.282


def detectable(error: float) -> float:
    """The smallest slowdown found in 9 of 10 cases at 1 % error rate, as a share.

    Args:
        error: an ``Interval.error`` of a ratio; it falls with the square root of the pairs.
    """
    return float(np.expm1((_Z_ALPHA + _Z_POWER) * error))
