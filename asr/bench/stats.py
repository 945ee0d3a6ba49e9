"""Statistics of repeated timings: medians, and intervals by the bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

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


def signed_rank(logs: Sequence[float], limit: float = 0.0) -> float:
    """Chance of pairs at least this far above ``limit`` when their centre is not above it.

    The exact Wilcoxon signed-rank test. Unlike a bootstrap it keeps its word for a handful of
    pairs: n of them cannot say less than 2 to the power of -n.

    Args:
        logs: natural logarithms of b / a, one per pair.
        limit: on the same scale.

    Returns:
        the exact one-sided p-value; 1.0 without pairs.
    """
    shifted = np.asarray(logs, np.float64) - limit
    if not len(shifted):
        return 1.0
    ranks = doubled_ranks(np.abs(shifted))
    found = int(ranks[shifted > 0].sum())
    return float(rank_chances(ranks)[found:].sum())


def doubled_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Twice the ranks, so that the mean rank of equal values is whole."""
    order = np.sort(values)
    return np.searchsorted(order, values, "left") + np.searchsorted(order, values, "right") + 1


def rank_chances(ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Chance of each sum of ranks when every sign is a fair coin."""
    chances = np.zeros(int(ranks.sum()) + 1)
    chances[0] = 1.0
    for rank in ranks:
        moved = np.zeros_like(chances)
        moved[rank:] = chances[: len(chances) - rank]
        chances = (chances + moved) / 2
    return chances


#: Standard normal quantiles of a one-sided 1 % error rate and of a power of 90 %.
_Z_ALPHA, _Z_POWER = 2.326, 1.282


def detectable(error: float) -> float:
    """The smallest slowdown found in 9 of 10 cases at 1 % error rate, as a share.

    Args:
        error: an ``Interval.error`` of a ratio; it falls with the square root of the pairs.
    """
    return float(np.expm1((_Z_ALPHA + _Z_POWER) * error))
