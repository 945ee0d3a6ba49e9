"""The front end of the model: Kaldi log-mel, stacking of frames (LFR), normalisation (CMVN)."""

from __future__ import annotations

from dataclasses import dataclass

import kaldi_native_fbank
import numpy as np

from audio import SAMPLE_RATE

MEL_BINS = 80
FRAME_SHIFT_MS = 10
FRAME_LENGTH_MS = 25
STACK = 7
"""Frames in one input row (LFR m)."""
STRIDE = 6
"""Frames between input rows (LFR n); a row lasts 60 ms."""
ROW_WIDTH = MEL_BINS * STACK
LOG_FLOOR = -15.9424
"""Natural log of the smallest mel energy (FLT_EPSILON)."""


def log_mel(waveform: np.ndarray) -> np.ndarray:
    """Kaldi log-mel energies.

    Args:
        waveform: float32 (samples,), 16 kHz, full scale 1.

    Returns:
        float32 (frames, 80), natural log; no frame if there are fewer than 400 samples.
    """
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = SAMPLE_RATE
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = "hamming"
    options.frame_opts.frame_shift_ms = FRAME_SHIFT_MS
    options.frame_opts.frame_length_ms = FRAME_LENGTH_MS
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = MEL_BINS
    options.mel_opts.low_freq = 20
    options.mel_opts.high_freq = 0
    options.energy_floor = 0.0
    bank = kaldi_native_fbank.OnlineFbank(options)
    bank.accept_waveform(SAMPLE_RATE, (waveform * 32768).tolist())
    bank.input_finished()
    frames = [bank.get_frame(index) for index in range(bank.num_frames_ready)]
    return np.array(frames, dtype=np.float32).reshape(-1, MEL_BINS)


def stack_frames(frames: np.ndarray) -> np.ndarray:
    """Low frame rate: seven neighbouring frames side by side, every sixth frame.

    The first frame is repeated three times on the left, the last one as needed on the right.

    Args:
        frames: float32 (frames, 80), at least one frame.

    Returns:
        float32 (ceil(frames / 6), 560).
    """
    rows = -(-len(frames) // STRIDE)
    left = np.repeat(frames[:1], (STACK - 1) // 2, axis=0)
    missing = (rows - 1) * STRIDE + STACK - len(left) - len(frames)
    right = np.repeat(frames[-1:], max(0, missing), axis=0)
    padded = np.concatenate([left, frames, right])
    index = np.arange(rows)[:, None] * STRIDE + np.arange(STACK)[None]
    return padded[index].reshape(rows, -1)


@dataclass(frozen=True)
class Normaliser:
    """Global mean and deviation of the training frames.

    Attributes:
        mean: float32 (80,), natural log units.
        inverse_deviation: float32 (80,).
    """

    mean: np.ndarray
    inverse_deviation: np.ndarray

    def __call__(self, frames: np.ndarray) -> np.ndarray:
        """float32 (frames, 80) with mean 0 and deviation 1 over the training data."""
        return (frames - self.mean) * self.inverse_deviation

    @classmethod
    def measure(cls, frames: np.ndarray) -> Normaliser:
        """Mean and deviation of (frames, 80)."""
        values = frames.astype(np.float32)
        inverse = 1 / np.maximum(values.std(axis=0), 1e-3)
        return cls(values.mean(axis=0), inverse.astype(np.float32))


def model_input(frames: np.ndarray, normaliser: Normaliser) -> np.ndarray:
    """float32 (rows, 560) from log-mel frames (frames, 80)."""
    return stack_frames(normaliser(frames).astype(np.float32))
