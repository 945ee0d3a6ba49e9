"""Weighted L1 Potts: the piecewise constant line that explains a series with the fewest steps.

Minimises ``sum_i min(w_i |y_i - x_i|, cap) + penalty * steps(x)`` exactly, by dynamic programming
over the runs and over the values that a level can take: an optimal level is one of the data. The
idea is that of asv (asv.step_detect). The least length of a segment and the cap are ours: a run
that somebody disturbed must neither move a level nor make two of them a level of their own.
"""

import math
from collections.abc import Sequence

import numpy as np

#: Runs that a level needs.
LEAST = 3
#: What one run can say at most, in scales: three runs in a row outvote the penalty of a step, two
#: disturbed ones do not outvote that of a step up and one down.
_CAP = 6.0


def fit(values: Sequence[float], scales: Sequence[float], least: int = LEAST) -> list[int]:
    """Find the steps of a series.

    Args:
        values: logarithms, in order.
        scales: how far each lies from its level on average, same unit.
        least: values that every segment has.

    Returns:
        where a new segment begins, without 0; empty when the series is too short.
    """
    y = np.asarray(values, np.float64)
    if len(y) < 2 * least:
        return []
    weights = 1 / np.asarray(scales, np.float64)
    # For Laplace noise of these scales the Bayesian criterion asks ln(n) for a step's place and
    # level. So many series are looked at that more is asked: in 300 series each of 6 to 100 runs
    # without a step, 2 % noise and some disturbed runs, at most 3 % of the series then show one.
    return _segments(y, weights, 2.5 * math.log(len(y)), least)


def _segments(
    y: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    weights: "np.ndarray[tuple[int], np.dtype[np.float64]]",
    penalty: float,
    least: int,
) -> list[int]:
    levels = np.unique(y)
    # cost[k, j]: cheapest line up to here that ends on levels[j], k + 1 values after its last
    # step; the last row holds every longer one. begun: where that segment began.
    cost = np.full((least, len(levels)), np.inf)
    begun = np.zeros((least, len(levels)), np.int64)
    ends: list[int] = [0]  # ends[i]: where the last segment of the best line of i values began
    best = -penalty  # the first segment is no step
    for i, value in enumerate(y):
        here = np.minimum(weights[i] * np.abs(value - levels), _CAP)
        stay = cost[-2] <= cost[-1] if least > 1 else np.zeros(len(levels), bool)
        last = np.where(stay, cost[-2], cost[-1]) if least > 1 else cost[-1]
        last_begun = np.where(stay, begun[-2], begun[-1]) if least > 1 else begun[-1]
        cost[1:], begun[1:] = cost[:-1].copy(), begun[:-1].copy()
        if least > 1:
            cost[-1], begun[-1] = last, last_begun
        cost[0], begun[0] = best + penalty, i
        cost += here
        j = int(np.argmin(cost[-1]))
        best = float(cost[-1, j])
        ends.append(int(begun[-1, j]))
    found, at = [], len(y)
    while (at := ends[at]) > 0:
        found.append(at)
    return found[::-1]


def scale_of(values: Sequence[float]) -> float:
    """How far values lie from their level on average; steps hardly move it.

    From the median difference of successive values, for normal noise.

    Args:
        values: in order, at least two.
    """
    return float(0.836 * np.median(np.abs(np.diff(np.asarray(values, np.float64)))))
