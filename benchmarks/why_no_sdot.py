"""What byte dot products would do to the front end: mel filters times power spectrum in int8.

    .venv/bin/python benchmarks/why_no_sdot.py

Quantised as ONNX Runtime's int8 kernels do it: activations per row, weights per filter. The error
is that of the log-mel energies that come out, in natural logarithms; golden values allow 8e-6.
"""

from pathlib import Path

import numpy as np
import soundfile

CLIP = Path(__file__).parent.parent / "golden/audio/transcribe_me.wav"
ALLOWED = 8e-6  # rust_fe/tests/backends.rs, LOG_MEL_TOLERANCE


def mel_filters(bins: int, points: int, rate: int) -> np.ndarray:
    """Kaldi's triangles on the mel scale, float64 (bins, points / 2 + 1)."""

    def mel(hz: np.ndarray | float) -> np.ndarray:
        return 1127 * np.log1p(np.asarray(hz) / 700)

    edges = np.linspace(mel(20.0), mel(rate / 2), bins + 2)
    at = mel(np.arange(points // 2 + 1) * rate / points)[None]
    left, centre, right = (edges[i : i + bins, None] for i in range(3))
    return np.maximum(0, np.minimum((at - left) / (centre - left), (right - at) / (right - centre)))


def spectra(samples: np.ndarray, rate: int) -> np.ndarray:
    """Power spectra float64 (frames, 257) as fbank has them."""
    window, hop = rate * 25 // 1000, rate // 100
    starts = range(0, len(samples) - window + 1, hop)
    frames = np.stack([samples[s : s + window] for s in starts]) * 32768.0
    frames -= frames.mean(1, keepdims=True)
    frames -= 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    return np.abs(np.fft.rfft(frames * np.hamming(window), 512)) ** 2


def in_bytes(values: np.ndarray, top: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers up to top, one scale per row."""
    scale = values.max(1, keepdims=True) / top
    return np.round(values / np.where(scale == 0, 1, scale)), scale


def main() -> None:
    """Print the largest and the median error."""
    samples, rate = soundfile.read(CLIP)
    power, filters = spectra(samples, rate), mel_filters(80, 512, rate)
    floor = np.finfo(np.float32).eps
    exact = np.log(np.maximum(power @ filters.T, floor))
    (bytes_, scale), (weights, weight_scale) = in_bytes(power, 255), in_bytes(filters, 127)
    rough = np.log(np.maximum(bytes_ @ weights.T * scale * weight_scale.T, floor))
    error = np.abs(rough - exact)
    print(f"{CLIP.name}: {len(power)} frames; error of log-mel energies in int8: "
          f"largest {error.max():.3g}, median {np.median(error):.3g}; allowed {ALLOWED:g}; "
          f"bins rounded to nothing {100 * (bytes_ @ weights.T == 0).mean():.0f} %")  # fmt: skip


if __name__ == "__main__":
    main()
