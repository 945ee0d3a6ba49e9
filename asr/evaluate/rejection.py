"""When to withhold a text: what a threshold of word confidence and of entropy costs and buys.

Only clips in which something was heard are judged: an empty text is withheld already.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from asr.evaluate.hear import Clip
from asr.evaluate.intervals import Rate, wilson
from asr.rejection import Thresholds

#: Points that a reported curve has at most, and candidates for each threshold.
_POINTS = 101
_CANDIDATES = 256


@dataclass(frozen=True, slots=True)
class Point:
    """One threshold of a curve.

    Attributes:
        threshold: of the curve's measure; None withholds everything.
        right_rejected: share of right texts that it withholds.
        wrong_accepted: share of wrong texts that it shows.
    """

    threshold: float | None
    right_rejected: float
    wrong_accepted: float


@dataclass(frozen=True, slots=True)
class Curve:
    """Every threshold of one measure.

    Attributes:
        measure: ``word_confidence`` (of the least sure word, the least) or ``entropy`` (the most).
        auroc: chance that a right text has the better value than a wrong one, 0.5 is a coin.
        points: from showing everything to showing nothing.
    """

    measure: str
    auroc: float
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What thresholds do to a set of clips.

    Attributes:
        right_rejected: of the clips heard right, the share withheld.
        wrong_accepted: of the clips heard wrong, with some text, the share shown.
        accepted_right: of the clips whose text is shown, the share heard right.
        silent_quiet: of the clips in which nobody speaks, the share with no text or a withheld one.
    """

    right_rejected: Rate | None
    wrong_accepted: Rate | None
    accepted_right: Rate | None
    silent_quiet: Rate | None


def effect(clips: Sequence[Clip], thresholds: Thresholds) -> Effect:
    """Count what thresholds do; ``Thresholds(0, None)`` show every text."""
    right, wrong = _with_text(clips)
    right_shown = sum(shows(thresholds, clip) for clip in right)
    wrong_shown = sum(shows(thresholds, clip) for clip in wrong)
    silent = [clip for clip in clips if clip.silent]
    return Effect(
        wilson(len(right) - right_shown, len(right)),
        wilson(wrong_shown, len(wrong)),
        wilson(right_shown, right_shown + wrong_shown),
        wilson(sum(not shows(thresholds, clip) for clip in silent), len(silent)),
    )


def shows(thresholds: Thresholds, clip: Clip) -> bool:
    """Whether a clip's text is shown. A clip without text shows none."""
    return thresholds.accept(clip.word_confidence, clip.entropy)


def curve(clips: Sequence[Clip], measure: str) -> Curve | None:
    """Share of wrong texts shown against share of right texts withheld.

    Args:
        clips: any.
        measure: ``word_confidence`` or ``entropy``.

    Returns:
        None unless some texts are right and some are wrong.
    """
    sign = -1.0 if measure == "entropy" else 1.0  # from here on, more is better
    right, wrong = (
        np.sort([sign * getattr(clip, measure) for clip in group]) for group in _with_text(clips)
    )
    if not len(right) or not len(wrong):
        return None
    below = np.searchsorted(wrong, right, "left") + np.searchsorted(wrong, right, "right")
    values = np.unique(np.concatenate([right, wrong]))
    values = values[np.unique(np.linspace(0, len(values) - 1, _POINTS - 1).astype(int))]
    points = [
        Point(
            float(sign * value),
            float(np.searchsorted(right, value, "left") / len(right)),
            float(1 - np.searchsorted(wrong, value, "left") / len(wrong)),
        )
        for value in values
    ]
    points.append(Point(None, 1.0, 0.0))
    return Curve(measure, float(below.mean() / 2 / len(wrong)), tuple(points))


def choose(clips: Sequence[Clip], max_right_rejected: float) -> Thresholds | None:
    """Choose the pair of thresholds that shows the fewest wrong texts.

    Args:
        clips: of a validation split.
        max_right_rejected: the share of right texts that may be withheld for it.

    Returns:
        Of equally good pairs the one that withholds the fewest right texts, then the one that
        asks the least confidence. None unless some texts are right and some are wrong.
    """
    right, wrong = _with_text(clips)
    if not right or not wrong:
        return None
    confidences = _between([c.word_confidence for c in clips if c.word_confidence is not None])
    entropies = _between([c.entropy for c in clips if c.entropy is not None])
    floors = np.concatenate([[0.0], confidences])
    ceilings = np.concatenate([[np.inf], entropies[::-1]])
    lost = len(right) - _shown(right, floors, ceilings)
    shown = _shown(wrong, floors, ceilings)
    allowed = lost <= max_right_rejected * len(right)
    shown[~allowed] = len(wrong) + 1
    lost[shown > shown.min()] = len(right) + 1
    i, j = np.unravel_index(int(lost.argmin()), lost.shape)  # the first is the laxest
    ceiling = float(ceilings[j])
    return Thresholds(float(floors[i]), None if np.isinf(ceiling) else ceiling)


def _with_text(clips: Sequence[Clip]) -> tuple[list[Clip], list[Clip]]:
    """Clips heard right and wrong, of those in which something was heard."""
    heard = [clip for clip in clips if clip.word_confidence is not None]
    return [clip for clip in heard if clip.right], [clip for clip in heard if not clip.right]


def _between(values: list[float]) -> npt.NDArray[np.float64]:
    """Places between neighbouring values, ascending: a threshold on a value would be a tie."""
    distinct = np.unique(values)
    middle = (distinct[1:] + distinct[:-1]) / 2
    if len(middle) > _CANDIDATES:
        middle = middle[np.linspace(0, len(middle) - 1, _CANDIDATES).astype(int)]
    return np.unique(np.round(middle, 4))


def _shown(
    clips: Sequence[Clip],
    floors: npt.NDArray[np.float64],
    ceilings: npt.NDArray[np.float64],
) -> npt.NDArray[Any]:
    """How many texts each pair shows: float64 (floors, ceilings)."""
    confident = np.array([clip.word_confidence for clip in clips])[:, None] >= floors
    certain = np.array([clip.entropy for clip in clips])[:, None] <= ceilings
    return confident.T.astype(np.float64) @ certain.astype(np.float64)
