"""What pairs prove: the signed-rank test, its interval, one error rate for many metrics.

The logarithms of b / a of pairs of the same code lie symmetrically around zero: who is a and who
is b is a name. Wilcoxon's signed-rank test needs nothing else, so its error rate holds for any
number of pairs and any shape of noise; a bootstrap of a dozen medians is too narrow to accuse at
an error rate of 1 % shared by thirty metrics.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from asr.bench.stats import rank_chances

#: Chance of finding a slowdown of the size called detectable.
POWER = 0.95

#: More pairs than anybody would measure.
MOST_PAIRS = 10_000

#: Pairs from which the normal approximation serves; draws of noise below.
_MANY, _DRAWS = 60, 1_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio b / a on a logarithmic scale.

    Attributes:
        centre: median of the means of all two pairs (Hodges and Lehmann).
        low: lower bound at the level asked for.
        high: upper bound.
        error: standard error, from the width of the interval that holds 90 %.
        n: pairs.
    """

    centre: float
    low: float
    high: float
    error: float
    n: int


def estimate(logs: Sequence[float], level: float = 0.95) -> Estimate:
    """The centre of the pairs and the interval that the signed-rank test does not refuse.

    Args:
        logs: at least one natural logarithm of b / a.
        level: share of such intervals that hold the truth; at least that much.
    """
    values = np.asarray(logs, np.float64)
    first, second = np.triu_indices(len(values))
    means = np.sort((values[first] + values[second]) / 2)
    below = np.cumsum(rank_chances(2 * np.arange(1, len(values) + 1))[::2])

    def bounds(share: float) -> tuple[float, float]:
        skipped = int(np.searchsorted(below, (1 - share) / 2, "right"))
        return (means[skipped - 1], means[-skipped]) if skipped else (-math.inf, math.inf)

    low90, high90 = bounds(0.90)
    error = (high90 - low90) / (2 * NormalDist().inv_cdf(0.95))
    low, high = bounds(level)
    return Estimate(float(np.median(means)), float(low), float(high), float(error), len(values))


def holm(chances: Mapping[str, float], rate: float) -> set[str]:
    """Names whose p-value may be believed so that one error in all has at most this chance.

    Source: Holm, A simple sequentially rejective multiple test procedure, 1979.
    """
    believed: set[str] = set()
    for place, name in enumerate(sorted(chances, key=chances.__getitem__)):
        if chances[name] > rate / (len(chances) - place):
            break
        believed.add(name)
    return believed


def fewest_pairs(metrics: int, rate: float) -> int:
    """Pairs below which nothing can be proved: n pairs have 2**n equally likely sign patterns."""
    return math.ceil(math.log2(max(1, metrics) / rate))


@functools.lru_cache(maxsize=512)
def reach(pairs: int, chance: float) -> float:
    """Standard errors between a margin and the smallest slowdown that is found beyond it.

    At error rates this small the signed-rank test of a dozen pairs wants nearly all of them on one
    side, which the normal approximation does not know: found from normal noise, seeded.

    Args:
        pairs: how many.
        chance: the error rate that is left for one metric.

    Returns:
        infinity where so few pairs cannot prove anything.
    """
    normal = NormalDist()
    if pairs > _MANY:
        return normal.inv_cdf(1 - chance) + normal.inv_cdf(POWER)
    tail = np.cumsum(rank_chances(2 * np.arange(1, pairs + 1))[::-2])[::-1]
    if tail[-1] > chance:
        return math.inf
    critical = int(np.argmax(tail <= chance))
    noise = np.random.default_rng(0).normal(size=(_DRAWS, pairs))
    low, high = 0.0, 16.0
    for _ in range(10):
        middle = (low + high) / 2
        shifted = noise + middle / math.sqrt(pairs)
        ranks = np.abs(shifted).argsort(axis=1).argsort(axis=1) + 1
        found = np.mean((ranks * (shifted > 0)).sum(axis=1) >= critical)
        low, high = (middle, high) if found < POWER else (low, middle)
    return high


def detectable(found: Estimate, margin: float, metrics: int, rate: float) -> float:
    """The smallest slowdown found with a chance of 95 %, as a share: 0.05 is 5 %.

    Args:
        found: what the pairs said.
        margin: slowdown that is let pass, as a share.
        metrics: how many share the error rate.
        rate: the error rate.
    """
    size = math.log1p(margin) + reach(found.n, rate / max(1, metrics)) * found.error
    return math.expm1(size) if math.isfinite(size) else math.inf


def pairs_for(found: Estimate, margin: float, target: float, metrics: int, rate: float) -> int:
    """Pairs after which a slowdown of ``target`` is found with a chance of 95 %."""
    fewest = fewest_pairs(metrics, rate)
    if not math.isfinite(found.error):
        return fewest
    gap = math.log1p(target) - math.log1p(margin)
    spread = found.error * math.sqrt(found.n)

    pairs = fewest
    while pairs < MOST_PAIRS:
        if reach(pairs, rate / max(1, metrics)) * spread <= gap * math.sqrt(pairs):
            return pairs
        pairs += max(2, pairs // 8)
    return MOST_PAIRS


def pairs_to_settle(found: Estimate, margin: float) -> int:
    """Further pairs after which the interval, no wider than now expected, clears the margin."""
    gap = abs(found.centre - math.log1p(margin))
    if not math.isfinite(found.error):
        return 6
    z = NormalDist().inv_cdf(0.975)
    needed = found.n * (z * found.error / max(gap, 1e-9)) ** 2
    return max(1, min(MOST_PAIRS, math.ceil(needed)) - found.n)
