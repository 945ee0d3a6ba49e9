"""Random changes of log-mel frames: speaker, room, noise, band, level, masks.

Every frame array here is float32 (frames, 80), natural log of mel energy, 10 ms a frame.
`strength` from 0 (mild, for the start of training) to 1 widens the ranges.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.signal import lfilter

from features import LOG_FLOOR, MEL_BINS

DECIBEL = math.log(10) / 10
"""One decibel of power in natural-log units."""
_LOW_HZ, _HIGH_HZ = 20.0, 8000.0


def _mel(hertz: np.ndarray | float) -> np.ndarray:
    return 1127 * np.log(1 + np.asarray(hertz) / 700)


def bin_of(hertz: np.ndarray | float) -> np.ndarray:
    """Fractional number of the mel bin whose centre is at `hertz`."""
    low, high = _mel(_LOW_HZ), _mel(_HIGH_HZ)
    return (_mel(hertz) - low) / (high - low) * (MEL_BINS + 1) - 1


def warp_matrix(factor: float) -> np.ndarray:
    """float32 (80, 80): moves frequencies by `factor` (vocal tract); multiply from the right."""
    low, high = _mel(_LOW_HZ), _mel(_HIGH_HZ)
    centres = low + (np.arange(MEL_BINS) + 1) * (high - low) / (MEL_BINS + 1)
    hertz = 700 * (np.exp(centres / 1127) - 1)
    top = hertz[hertz * factor < 7600].max()
    beyond = top * factor + (hertz - top) * (_HIGH_HZ - top * factor) / (_HIGH_HZ - top)
    place = np.clip(bin_of(np.where(hertz <= top, hertz * factor, beyond)), 0, MEL_BINS - 1)
    lower = np.floor(place).astype(int)
    upper = np.minimum(lower + 1, MEL_BINS - 1)
    matrix = np.zeros((MEL_BINS, MEL_BINS), np.float32)
    rows = np.arange(MEL_BINS)
    matrix[rows, lower] += 1 - (place - lower)
    matrix[rows, upper] += place - lower
    return np.ascontiguousarray(matrix.T)


def add_power(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Log of the sum of two log powers; several times faster than np.logaddexp in float32."""
    return np.maximum(first, second) + np.log(1 + np.exp(-np.abs(first - second)))


def speech_level(frames: np.ndarray) -> float:
    """Log mean power of the louder half of the frames."""
    power = np.exp(np.clip(frames, LOG_FLOOR, 40)).mean(1)
    return math.log(np.sort(power)[-max(1, len(power) // 2) :].mean() + 1e-9)


def cut_tightly(frames: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Cuts both ends where they are 3 to 8 nats below the loudest frame, as some recorders do.

    The hardest cuts take soft ends of words along; some test corpora do too.
    """
    level = frames.mean(1)
    quiet, loudest = np.percentile(level, 10), level.max()
    below, margin = rng.uniform(3, 8, 2), rng.integers(0, 3, 2)
    limits = np.maximum(loudest - below, quiet + 0.3 * (loudest - quiet))
    first = np.argmax(level > limits[0]) - margin[0]
    last = len(level) - 1 - np.argmax(level[::-1] > limits[1]) + margin[1]
    return frames[max(0, first) : last + 1]


class Augmenter:
    """All random changes, drawing from one generator.

    Attributes:
        strength: 0 mild .. 1 full.
    """

    def __init__(
        self, noise: Callable[[np.random.Generator], np.ndarray], rng: np.random.Generator
    ) -> None:
        self._noise = noise
        self._rng = rng
        self.strength = 0.0
        self._grain = rng.standard_normal((20_000, MEL_BINS), dtype=np.float32)
        self._warps = [warp_matrix(factor) for factor in np.linspace(0.8, 1.22, 43)]
        orders = np.arange(1, 4)[:, None]
        steps = (np.arange(MEL_BINS) + 0.5) / MEL_BINS
        self._tone = np.cos(np.pi * orders * steps).astype(np.float32)

    def speaker(self, frames: np.ndarray) -> np.ndarray:
        """Tempo, vocal tract and tone of one clip."""
        rng = self._rng
        often = 0.7
        if rng.random() < often and len(frames) > 3:
            frames = self._change_tempo(frames, rng.uniform(0.85, 1.18))
        if rng.random() < often:
            frames = frames @ self._warps[rng.integers(len(self._warps))]
        if rng.random() < 0.6:
            tilt = rng.normal(0, rng.uniform(0.4, 1.4), 3).astype(np.float32)
            frames = frames + tilt @ self._tone
        return frames

    @staticmethod
    def _change_tempo(frames: np.ndarray, factor: float) -> np.ndarray:
        count = max(4, round(len(frames) / factor))
        place = np.linspace(0, len(frames) - 1, count)
        lower = np.floor(place).astype(int)
        upper = np.minimum(lower + 1, len(frames) - 1)
        share = (place - lower)[:, None].astype(np.float32)
        return frames[lower] * (1 - share) + frames[upper] * share

    def lay_out(self, parts: list[np.ndarray], gaps: list[int], lead: int, tail: int) -> np.ndarray:
        """Clips one after another with silence between; then room, noise, band and level.

        Args:
            parts: the clips.
            gaps: silent frames after each clip but the last.
            lead: silent frames before the first clip.
            tail: silent frames after the last clip.
        """
        rng = self._rng
        spoken = [np.full((lead, MEL_BINS), LOG_FLOOR, np.float32)]
        for part, gap in zip(parts, [*gaps, tail], strict=True):
            spoken += [part, np.full((gap, MEL_BINS), LOG_FLOOR, np.float32)]
        frames = np.concatenate(spoken)
        level = speech_level(np.concatenate(parts))
        if rng.random() < 0.25 * self.strength:
            frames = self._reverberate(frames)
        frames = self.channel(self._add_noise(frames, level))
        if rng.random() < 0.2:  # padded by a program, or cut by a gate: not even noise
            frames[:lead] = frames[len(frames) - tail :] = LOG_FLOOR
        return frames

    def channel(self, frames: np.ndarray) -> np.ndarray:
        """Band limit and gain."""
        rng = self._rng
        if rng.random() < 0.6:
            edge = int(bin_of(float(rng.choice([3400, 4000, 4000, 5500, 7000])))) + 1
            loss = np.float32(rng.uniform(3, 12))
            frames = frames.copy()
            if rng.random() < 0.5:
                frames[:, edge:] -= loss
            else:  # nothing but the recorder's own noise is left up there
                floor = self.steady_floor(len(frames), speech_level(frames) - loss - 2)
                frames[:, edge:] = np.minimum(frames, floor)[:, edge:]
        frames = frames + np.float32(rng.uniform(-4.0, 2.0))
        return np.maximum(frames, LOG_FLOOR)

    def _reverberate(self, frames: np.ndarray) -> np.ndarray:
        """An exponential tail in the power domain."""
        seconds = self._rng.uniform(0.15, 0.6)
        decay = 10 ** (-6 * 0.01 / seconds)
        gain = math.exp(-self._rng.uniform(5, 18) * DECIBEL)
        power = np.exp(frames)
        tail = lfilter([0, 0, (1 - decay) * 3], [1, -decay], power, axis=0)
        return np.log(power + gain * tail + 1e-9).astype(np.float32)

    def _add_noise(self, frames: np.ndarray, level: float) -> np.ndarray:
        rng = self._rng
        kind = rng.random()
        if kind < 0.55:
            noise = self.noise_of_length(len(frames))
            noise_level = math.log(np.exp(noise).mean() + 1e-9)
            quietest = 15 - 13 * self.strength
            below = rng.uniform(quietest, 35) * DECIBEL
            frames = add_power(frames, noise + np.float32(level - below - noise_level))
        if kind < 0.15 or 0.55 <= kind < 0.92:
            below = rng.uniform(25, 65) * DECIBEL
            frames = add_power(frames, self.steady_floor(len(frames), level - below))
        return frames

    def noise_of_length(self, count: int) -> np.ndarray:
        """`count` frames of a random noise clip, repeated if it is shorter."""
        noise = self._noise(self._rng)
        if len(noise) < count:
            noise = np.tile(noise, (-(-count // len(noise)), 1))
        start = self._rng.integers(0, len(noise) - count + 1)
        return noise[start : start + count]

    def steady_floor(self, count: int, level: float) -> np.ndarray:
        """Stationary noise with a random slope over frequency, `level` in natural-log power."""
        rng = self._rng
        start = rng.integers(0, len(self._grain) - count)
        slope = np.linspace(rng.uniform(-1.5, 1.5), rng.uniform(-1.5, 1.5), MEL_BINS)
        grain = self._grain[start : start + count]
        return (level + slope + 0.35 * grain).astype(np.float32)

    def mask(self, normalised: np.ndarray) -> np.ndarray:
        """Sets random bands and stretches of normalised frames to the mean (SpecAugment)."""
        rng = self._rng
        frames = normalised.copy()
        for _ in range(2):
            width = rng.integers(0, 10 + int(8 * self.strength))
            start = rng.integers(0, MEL_BINS - width)
            frames[:, start : start + width] = 0
        count = len(frames)
        for _ in range(1 if count < 150 else 2 + count // 250):
            width = rng.integers(0, max(2, min(30, count // 10)))
            start = rng.integers(0, max(1, count - width))
            frames[start : start + width] = 0
        return frames
