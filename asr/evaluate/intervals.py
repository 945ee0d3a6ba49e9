"""Rates with the range in which the true one may lie."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)
#: Resamples of a bootstrap: the ends move by about 3 % of the width from seed to seed.
_DRAWS = 2000
#: Clips drawn at a time, to bound memory.
_BLOCK = 500_000


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate and its 95 % interval.

    Attributes:
        value: count / out_of.
        low: lower bound.
        high: upper bound.
        count: how many.
        out_of: of how many, at least one.
    """

    value: float
    low: float
    high: float
    count: int
    out_of: int


def wilson(count: int, out_of: int) -> Rate | None:
    """A share with Wilson's score interval; None of nothing.

    Args:
        count: 0 to ``out_of``.
        out_of: independent trials.

    Source: E. B. Wilson, 1927, Journal of the American Statistical Association 22.
    """
    if not out_of:
        return None
    share, z2 = count / out_of, _Z * _Z
    centre = (share + z2 / (2 * out_of)) / (1 + z2 / out_of)
    spread = _Z * math.sqrt(share * (1 - share) / out_of + z2 / (4 * out_of**2))
    spread /= 1 + z2 / out_of
    # The bounds hold the share exactly; without min and max rounding could leave it outside.
    return Rate(
        share, max(0.0, min(share, centre - spread)), min(1.0, max(share, centre + spread)),
        count, out_of,
    )  # fmt: skip


def error_rate(errors: Sequence[int], expected: Sequence[int]) -> Rate | None:
    """Errors per expected unit over clips; None without expected units.

    Args:
        errors: per clip; may exceed ``expected``, since insertions count.
        expected: per clip, units of the expected text.

    Returns:
        The interval is the bootstrap over clips, seeded: words of one clip go wrong together, so
        they are no independent trials. Where every draw would be the same (no error, one clip) it
        is Wilson's, of errors in expected units.

    Source: M. Bisani and H. Ney, ICASSP 2004, "Bootstrap estimates for confidence intervals in ASR
    performance evaluation".
    """
    total, out_of = sum(errors), sum(expected)
    if not out_of:
        return None
    value = total / out_of
    if not total or len(errors) < 2:
        rough = wilson(min(total, out_of), out_of)
        assert rough is not None  # noqa: S101 - out_of > 0
        return Rate(value, rough.low, max(value, rough.high), total, out_of)
    low, high = np.quantile(_resampled(errors, expected), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Rate(value, min(value, float(low)), max(value, float(high)), total, out_of)


def _resampled(errors: Sequence[int], expected: Sequence[int]) -> npt.NDArray[np.float64]:
    """Error rates of as many clips drawn with replacement, seeded: float64 (draws,)."""
    columns = np.array([errors, expected], np.float64)
    generator = np.random.default_rng(0)
    clips = len(errors)
    block = max(1, _BLOCK // clips)
    sums = [
        columns[:, generator.integers(0, clips, (min(block, _DRAWS - done), clips))].sum(axis=2)
        for done in range(0, _DRAWS, block)
    ]
    drawn_errors, drawn_expected = np.concatenate(sums, axis=1)
    some = drawn_expected > 0
    rates: npt.NDArray[np.float64] = drawn_errors[some] / drawn_expected[some]
    return rates
