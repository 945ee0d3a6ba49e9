"""Stage, augmentation strength and learning rate by step: nothing depends on the clock.

Warm-up, constant, decay: the main run warms up and then keeps one learning rate, so it can be
continued for as long as one likes. A decay branch, started from any of its states, lowers the
rate to zero within a fixed number of steps and gives a model to ship.
"""

from __future__ import annotations

from dataclasses import dataclass

from rounds import FULL_STAGE, SHORT_STAGE, WORDS_STAGE


@dataclass(frozen=True)
class Schedule:
    """All in optimiser steps.

    Attributes:
        peak: the constant learning rate.
        first_step: where this process began (0, or the step it resumed from).
        warm_up: steps of linear rise after `first_step`.
        decay: length of the linear fall from `first_step`; 0 in a main run.
        words_until: end of the stage of single words.
        short_until: end of the stage of short clips.
        mild_until: end of mild augmentation.
        strong_from: start of full augmentation; linear in between.
    """

    peak: float
    first_step: int
    warm_up: int
    decay: int
    words_until: int
    short_until: int
    mild_until: int
    strong_from: int

    @property
    def last_step(self) -> int | None:
        """Where a decay branch ends; a main run has no end."""
        return self.first_step + self.decay if self.decay else None

    def learning_rate(self, step: int) -> float:
        """For the step about to be taken."""
        done = step - self.first_step
        if self.decay:
            return self.peak * max(0.0, 1 - done / self.decay)
        return self.peak * min(1.0, (done + 1) / max(1, self.warm_up))

    def stage(self, step: int) -> str:
        """Which clips a round that starts now consists of."""
        if step < self.words_until:
            return WORDS_STAGE
        return SHORT_STAGE if step < self.short_until else FULL_STAGE

    def strength(self, step: int) -> float:
        """Of the augmentation, 0 mild .. 1 full."""
        span = max(1, self.strong_from - self.mild_until)
        return min(1.0, max(0.0, (step - self.mild_until) / span))
