"""The front end and the decoding statistics in float64 NumPy, written plainly from the formulas.

This is the second opinion beside the pinned packages of `references.py`. It needs NumPy only, so
the tests can run it; it shares no code and no table with the package under test.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float64 = NDArray[np.float64]

SAMPLE_RATE_HZ = 16000
FRAME_LENGTH = 400  # samples, 25 ms
FRAME_SHIFT = 160  # samples, 10 ms
FFT_SIZE = 512
NUM_MEL_BINS = 80
LOW_FREQ_HZ = 20.0
HIGH_FREQ_HZ = 8000.0
PREEMPHASIS = 0.97
SAMPLE_SCALE = 32768.0
ENERGY_FLOOR = float(np.finfo(np.float32).eps)  # Kaldi's FLT_EPSILON: the log of silence


def num_frames(num_samples: int) -> int:
    """Count the whole windows that fit: Kaldi's rule with snip_edges."""
    return 0 if num_samples < FRAME_LENGTH else 1 + (num_samples - FRAME_LENGTH) // FRAME_SHIFT


def mel(frequency_hz: ArrayLike) -> Float64:
    """Convert Hz to Kaldi's mel scale."""
    return 1127.0 * np.log(1.0 + np.asarray(frequency_hz, np.float64) / 700.0)


def mel_weights() -> Float64:
    """Return the triangular filters, float64 (80, 256): the Nyquist bin takes no part.

    Source: Kaldi feat/mel-computations.cc, MelBanks::MelBanks.
    """
    edges = np.linspace(mel(LOW_FREQ_HZ), mel(HIGH_FREQ_HZ), NUM_MEL_BINS + 2)
    bins = mel(np.arange(FFT_SIZE // 2) * SAMPLE_RATE_HZ / FFT_SIZE)
    left, centre, right = (edges[i : i + NUM_MEL_BINS, None] for i in range(3))
    rising = (bins - left) / (centre - left)
    falling = (right - bins) / (right - centre)
    return np.maximum(0.0, np.minimum(rising, falling))


def fbank(samples: NDArray[np.float32]) -> Float64:
    """Compute log-mel energies.

    Args:
        samples: float32 (num_samples,), full scale +-1.0, 16 kHz.

    Returns:
        float64 (num_frames, 80), natural log of energy on the 16-bit scale, floor log(2^-23).

    Source: Kaldi feat/feature-window.cc (ProcessWindow) and feat/feature-fbank.cc, without dither.
    """
    scaled = np.asarray(samples, np.float64) * SAMPLE_SCALE
    starts = FRAME_SHIFT * np.arange(num_frames(len(scaled)))
    frames = scaled[starts[:, None] + np.arange(FRAME_LENGTH)]
    frames = frames - frames.mean(axis=1, keepdims=True)
    previous = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)  # sample 0 precedes itself
    frames = frames - PREEMPHASIS * previous
    phase = 2.0 * np.pi * np.arange(FRAME_LENGTH) / (FRAME_LENGTH - 1)  # symmetric window
    frames = frames * (0.54 - 0.46 * np.cos(phase))
    power = np.abs(np.fft.rfft(frames, FFT_SIZE)[:, : FFT_SIZE // 2]) ** 2
    return np.log(np.maximum(power @ mel_weights().T, ENERGY_FLOOR))


def lfr(features: np.ndarray, m: int = 7, n: int = 6) -> np.ndarray:
    """Stack m frames every n frames; the first frame stands in on the left, the last on the right.

    Args:
        features: (num_frames, dim), any dtype.
        m: frames in a stack.
        n: frames from one stack to the next.

    Returns:
        (ceil(num_frames / n), m * dim), same dtype.
    """
    count = len(features)
    rows = n * np.arange(-(-count // n))[:, None] + np.arange(m) - (m - 1) // 2
    return features[np.clip(rows, 0, count - 1)].reshape(len(rows), -1)


def cmvn(features: np.ndarray, neg_mean: np.ndarray, inv_stddev: np.ndarray) -> Float64:
    """Shift by the negative mean, then scale by one over the deviation, in float64."""
    return (np.asarray(features, np.float64) + neg_mean) * inv_stddev


def greedy(scores: np.ndarray, prompt_frames: int = 4, blank: int = 0) -> dict[str, np.ndarray]:
    """Decode greedily and measure every row.

    Args:
        scores: float32 (prompt_frames + num_frames, vocab), logits or log-probabilities.
        prompt_frames: rows in front of the speech rows; measured, but no tokens come from them.
        blank: id of the CTC blank.

    Returns:
        dict with the fields of the record Decoded: per row `argmax` int32, `log_prob` and
        `entropy` float32 (natural log, nats); per token `token_ids`, `start_frame`, `end_frame`
        (exclusive; counted after the prompts) int32, `log_probs`, `entropies` float32, both from
        the most probable row of the token's run. Beside them `margin` float32 (T,): how far the
        best score leads the second.
    """
    scores = np.asarray(scores, np.float64)
    argmax = scores.argmax(axis=1)
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_probs = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    log_prob = log_probs[np.arange(len(scores)), argmax]
    entropy = -(np.exp(log_probs) * log_probs).sum(axis=1)
    starts, ends, best = [], [], []
    row = prompt_frames
    while row < len(argmax):
        end = row + 1
        while end < len(argmax) and argmax[end] == argmax[row]:
            end += 1
        if argmax[row] != blank:
            starts.append(row)
            ends.append(end)
            best.append(row + int(log_prob[row:end].argmax()))
        row = end
    starts, ends, best = (np.array(rows, np.int32) for rows in (starts, ends, best))
    second, first = np.sort(scores, axis=1)[:, -2:].T
    return {
        "margin": (first - second).astype(np.float32),
        "argmax": argmax.astype(np.int32),
        "log_prob": log_prob.astype(np.float32),
        "entropy": entropy.astype(np.float32),
        "token_ids": argmax[starts].astype(np.int32),
        "start_frame": starts - prompt_frames,
        "end_frame": ends - prompt_frames,
        "log_probs": log_prob[best].astype(np.float32),
        "entropies": entropy[best].astype(np.float32),
    }
