"""Do two networks say the same? Scores on random features of many lengths, side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asr.engines.base import Engine
    from asr.optimize.graph import Array
    from asr.optimize.probe import Roles

#: Frames: the shortest, odd ones, and up to 36 s, beyond the longest piece.
LENGTHS = (1, 2, 5, 17, 31, 93, 250, 600)

#: The first of them are quick to run at any size.
SHORT = 5

#: A lead of the best score over the second below this is a tie that any rounding may decide.
MARGIN = 1e-2

#: How equal two networks are.
IDENTICAL, ROUNDED, CHANGED = "bit-identical", "same decisions", "changed"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Scores of a network beside those of the one it came from.

    Attributes:
        verdict: ``bit-identical``; ``same decisions``: no score moved by half of MARGIN, so no row
            that leads by MARGIN can decide otherwise; or ``changed``.
        largest: of the absolute differences of scores.
        relative_rms: root mean square of the differences, in standard deviations of the scores.
        agreement: share of rows with the same best id.
        rows: how many rows were compared.
    """

    verdict: str
    largest: float
    relative_rms: float
    agreement: float
    rows: int


def scores(network: Engine, roles: Roles, lengths: Sequence[int] = LENGTHS) -> list[Array]:
    """What a network says to random features, one array (rows, ids) per length."""
    return [network.run(roles.feeds(frames))[roles.scores][0] for frames in lengths]


def compare(before: Sequence[Array], after: Sequence[Array]) -> Comparison:
    """Compare scores length by length.

    Args:
        before: of the network as it was.
        after: of the rewritten one, the same lengths.
    """
    if any(a.shape != b.shape for a, b in zip(before, after, strict=True)):
        return Comparison(CHANGED, float("inf"), float("inf"), 0.0, sum(map(len, before)))
    a, b = np.concatenate(list(before)), np.concatenate(list(after))
    difference = a - b
    largest = float(np.abs(difference).max())
    same = np.array_equal(a, b)
    verdict = IDENTICAL if same else ROUNDED if largest < MARGIN / 2 else CHANGED
    return Comparison(
        verdict=verdict,
        largest=largest,
        relative_rms=float(np.sqrt((difference**2).mean()) / a.std()),
        agreement=float((a.argmax(-1) == b.argmax(-1)).mean()),
        rows=len(a),
    )
