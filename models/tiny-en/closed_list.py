"""Which of a few known phrases fits best: the exact CTC score of each, in NumPy."""

from __future__ import annotations

import numpy as np

from network import PROMPT_ROWS
from pieces import BLANK


class ClosedList:
    """Phrases as piece ids."""

    def __init__(self, phrases: list[list[int]]) -> None:
        self._phrases = phrases

    def best(self, logits: np.ndarray) -> int:
        """Number of the likeliest phrase, given float32 (rows + 4, pieces)."""
        rows = logits[PROMPT_ROWS:].astype(np.float64)
        rows = rows - rows.max(1, keepdims=True)
        log_probabilities = rows - np.log(np.exp(rows).sum(1, keepdims=True))
        scores = [ctc_score(log_probabilities, phrase) for phrase in self._phrases]
        return int(np.argmax(scores))


def ctc_score(log_probabilities: np.ndarray, pieces: list[int]) -> float:
    """Log probability of all alignments of `pieces` with float64 (rows, vocabulary)."""
    states = [BLANK]
    for piece in pieces:
        states += [piece, BLANK]
    may_skip = np.array(
        [k >= 2 and states[k] not in (BLANK, states[k - 2]) for k in range(len(states))]
    )
    forward = np.full(len(states), -np.inf)
    for row_number, row in enumerate(log_probabilities):
        if row_number == 0:
            forward[:2] = row[states[:2]]
            continue
        stay_or_step = np.logaddexp(forward, np.concatenate([[-np.inf], forward[:-1]]))
        skipped = np.concatenate([[-np.inf, -np.inf], forward[:-2]])
        forward = np.where(may_skip, np.logaddexp(stay_or_step, skipped), stay_or_step)
        forward = forward + row[states]
    return float(np.logaddexp(forward[-1], forward[-2]))
