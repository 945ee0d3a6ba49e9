"""The languages a text may be in: prompt row 0 is a classifier, read among those alone."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from asr.records import Float32


@dataclass(frozen=True, slots=True)
class Languages:
    """The languages allowed.

    Attributes:
        tags: vocabulary id of a language's tag -> language; at least one.
        nospeech_id: vocabulary id of the tag that says that nobody speaks; None without one.
    """

    tags: Mapping[int, str]
    nospeech_id: int | None

    def settle(self, row: Float32) -> tuple[str, bool]:
        """Choose by the scores of prompt row 0.

        Args:
            row: float32 (vocab_size,), of a pass whose prompt left the language open.

        Returns:
            The best language of those allowed, and whether the pass can stand: its own choice is
            allowed, or it is that nobody speaks, which no language can better.
        """
        ids = list(self.tags)
        best = ids[int(np.argmax(row[ids]))]
        free = int(np.argmax(row))
        return self.tags[best], free in (best, self.nospeech_id)
