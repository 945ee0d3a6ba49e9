"""Audio -> Features: Kaldi fbank, low frame rate stacking (LFR), mean and variance norm (CMVN).

The recipe is data that comes from the model's layout; nothing here has a default.
"""

from dataclasses import dataclass

import numpy as np

from asr import _rust_fe
from asr.errors import FrontEndError
from asr.records import Audio, Features, Float32

#: Natural logarithm of FLT_EPSILON: the least that fbank returns.
LOG_FLOOR = float(np.log(np.finfo(np.float32).eps))
#: Frames of digital silence that may stay at either end of sound.
KEPT_FRAMES = 30


@dataclass(frozen=True, slots=True, eq=False)
class FrontEndConfig:
    """Everything that decides what the features are.

    Attributes:
        sample_rate_hz: the rate the network was trained on.
        sample_scale: factor on samples of full scale ±1.0; 32768 makes them look like int16.
        frame_length_ms: analysis window.
        frame_shift_ms: hop.
        window: ``hamming`` (symmetric, 0.54/0.46).
        num_mel_bins: mel filters.
        low_freq_hz: lower edge of the first filter.
        high_freq_hz: upper edge of the last filter.
        preemphasis: coefficient, 0.97 in Kaldi.
        lfr_m: fbank frames stacked into one row.
        lfr_n: fbank frames from one row to the next.
        neg_mean: float32 (lfr_m * num_mel_bins,), added; ``<AddShift>`` of am.mvn.
        inv_stddev: float32 (lfr_m * num_mel_bins,), multiplied; ``<Rescale>`` of am.mvn.
    """

    sample_rate_hz: int
    sample_scale: float
    frame_length_ms: float
    frame_shift_ms: float
    window: str
    num_mel_bins: int
    low_freq_hz: float
    high_freq_hz: float
    preemphasis: float
    lfr_m: int
    lfr_n: int
    neg_mean: Float32
    inv_stddev: Float32


class FrontEnd:
    """The three Rust stages, built once per recipe; may be shared between threads.

    Args:
        config: the recipe.
        backend: SIMD path by name (``scalar``, ``avx2`` ...); None takes the best this CPU has.

    Raises:
        FrontEndError: a value of the recipe cannot be used, or the CPU lacks the backend.
    """

    def __init__(self, config: FrontEndConfig, *, backend: str | None = None) -> None:
        dim = config.lfr_m * config.num_mel_bins
        for name in ("neg_mean", "inv_stddev"):
            shape = getattr(config, name).shape
            if shape != (dim,):
                raise FrontEndError(
                    f"CMVN {name}: expected {dim} values ({config.lfr_m} x {config.num_mel_bins}), "
                    f"found {shape}"
                )
        self.config = config
        self._fbank = _rust_fe.Fbank(
            sample_rate_hz=config.sample_rate_hz,
            frame_length_ms=config.frame_length_ms,
            frame_shift_ms=config.frame_shift_ms,
            window=config.window,
            num_mel_bins=config.num_mel_bins,
            low_freq_hz=config.low_freq_hz,
            high_freq_hz=config.high_freq_hz,
            preemphasis=config.preemphasis,
            sample_scale=config.sample_scale,
            backend=backend,
        )

    @property
    def backend(self) -> str:
        """SIMD path in use."""
        return self._fbank.backend

    def fbank(self, audio: Audio) -> Features:
        """Compute log-mel energies.

        Args:
            audio: at the recipe's rate.

        Returns:
            float32 (n, num_mel_bins) with n = 0 for less than one window, else
            1 + (num_samples - window) // hop.

        Raises:
            FrontEndError: the audio has another rate.

        Source: Kaldi ``feat/feature-fbank.cc``, ``snip_edges=true``, dither 0. Deliberate
        difference: FunASR's Python leaves dither at 1.0, so its features are random.
        """
        if audio.sample_rate_hz != self.config.sample_rate_hz:
            raise FrontEndError(
                f"{audio.source}: expected {self.config.sample_rate_hz} Hz, "
                f"found {audio.sample_rate_hz} Hz; resample first"
            )
        values = self._fbank.compute(audio.samples)
        return Features(values, self.config.frame_shift_ms / 1000)

    def sounding(self, features: Features) -> tuple[Features, int]:
        """Leave out long digital silence at the ends: some networks hear words in it, or none.

        Args:
            features: from fbank, whose floor is exact where no mel bin holds energy.

        Returns:
            The frames from KEPT_FRAMES before the first with energy to as many behind the last,
            borrowed, and the number left out in front, a multiple of ``lfr_n``. No frames where
            none holds energy: digital silence, or a constant.
        """
        values = features.values
        # One cell at each end answers for nearly all sound; looking at every cell takes 30 times
        # as long.
        if len(values) and values[0, 0] > LOG_FLOOR and values[-1, 0] > LOG_FLOOR:
            return features, 0
        loud = np.flatnonzero(values.max(axis=1, initial=LOG_FLOOR) > LOG_FLOOR)
        if not loud.size:
            return Features(values[:0], features.frame_shift_s), 0
        first = max(0, int(loud[0]) - KEPT_FRAMES)
        first -= first % self.config.lfr_n
        end = int(loud[-1]) + 1 + KEPT_FRAMES
        return Features(values[first:end], features.frame_shift_s), first

    def lfr(self, features: Features) -> Features:
        """Stack ``lfr_m`` frames every ``lfr_n``.

        Args:
            features: float32 (n, num_mel_bins) from fbank.

        Returns:
            float32 (ceil(n / lfr_n), lfr_m * num_mel_bins).

        Source: FunASR ``wav_frontend.py`` ``apply_lfr``: the first frame is repeated
        (lfr_m - 1) // 2 times on the left, the last as often as needed on the right.
        """
        config = self.config
        stacked = _rust_fe.lfr(features.values, config.lfr_m, config.lfr_n)
        return Features(stacked, features.frame_shift_s * config.lfr_n)

    def cmvn(self, features: Features) -> Features:
        """Normalise: (x + neg_mean) * inv_stddev, per column, in the features' own memory.

        A new array would cost twice the front end's time at 30 s, in pages fetched anew for every
        call; an observer that keeps a value beyond its step must copy it.

        Args:
            features: float32 (t, lfr_m * num_mel_bins) from lfr; used up.

        Returns:
            the same array, normalised.

        Source: FunASR ``wav_frontend.py`` ``apply_cmvn`` (its ``means`` are negated means and
        its ``vars`` inverse deviations).
        """
        config = self.config
        values = _rust_fe.cmvn(features.values, config.neg_mean, config.inv_stddev)
        return Features(values, features.frame_shift_s)
