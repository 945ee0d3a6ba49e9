"""The test signals: committed speech clips, and seeded signals made from integers.

Noise comes from the raw words of PCG64, whose stream NumPy guarantees, and tones are rounded to
16 bits, so that every machine and NumPy version gets the same samples. `digest` proves it.
"""

import hashlib
import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10, where pytest brings the same parser under this name
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
RATE = 16000

Float32 = NDArray[np.float32]
Float64 = NDArray[np.float64]


def load_cases() -> dict[str, Any]:
    """Read cases.toml: tables `tolerance` and `stability`, `model`, lists `speech` and `signal`."""
    return tomllib.loads((HERE / "cases.toml").read_text(encoding="utf-8"))


def name_of(case: dict[str, Any]) -> str:
    """Return a case's name: the folder of its expected values."""
    return case.get("name") or Path(case["file"]).stem


def samples_of(case: dict[str, Any]) -> Float32:
    """Return the float32 samples (num_samples,), full scale +-1.0, of a case of cases.toml."""
    if "file" in case:
        return read_wav(HERE / "audio" / case["file"])
    make = KINDS[case["kind"]]
    samples = make(case["samples"], **case.get("with", {}))
    return np.ascontiguousarray(samples, np.float32)


def read_wav(path: Path) -> Float32:
    """Read a 16 kHz mono 16-bit WAV file as float32, full scale +-1.0."""
    with wave.open(str(path)) as clip:
        found = (clip.getframerate(), clip.getnchannels(), clip.getsampwidth())
        if found != (RATE, 1, 2):
            raise ValueError(f"{path}: wanted 16000 Hz, 1 channel, 2 bytes; found {found}")
        data = clip.readframes(clip.getnframes())
    return (np.frombuffer(data, "<i2") / 32768.0).astype(np.float32)


def digest(samples: Float32) -> str:
    """Return a short fingerprint of the exact samples."""
    return hashlib.sha256(samples.astype("<f4").tobytes()).hexdigest()[:16]


def model_digest(folder: Path) -> str:
    """Return a fingerprint of the files of a model directory that decide its words."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.suffix in (".onnx", ".mvn", ".yaml", ".model"):
            total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def _uniform(count: int, seed: int) -> Float64:
    words = np.random.PCG64(seed).random_raw(count)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0  # in [-1, 1)


def _sixteen_bit(samples: Float64) -> Float64:
    return np.clip(np.rint(samples * 32768.0), -32768, 32767) / 32768.0


def _constant(count: int, level: float = 0.0) -> Float64:
    return np.full(count, level)


def _noise(count: int, level: float, seed: int) -> Float64:
    return level * _uniform(count, seed)


def _tone(count: int, hz: float, level: float) -> Float64:
    return _sixteen_bit(level * np.sin(2 * np.pi * hz * np.arange(count) / RATE))


def _sweep(count: int, low_hz: float, high_hz: float, level: float) -> Float64:
    time = np.arange(count) / RATE
    rate = (high_hz - low_hz) / (count / RATE)
    return _sixteen_bit(level * np.sin(2 * np.pi * (low_hz + rate * time / 2) * time))


def _impulse(count: int, at: int, level: float) -> Float64:
    samples = np.zeros(count)
    samples[at] = level
    return samples


def _dc_with_lsb(count: int, level: float, seed: int) -> Float64:
    """Large offset under a signal of -1, 0 or +1 steps of 16 bits."""
    steps = np.rint(1.5 * _uniform(count, seed))
    return (np.rint(level * 32768.0) + np.clip(steps, -1, 1)) / 32768.0


def _mixture(count: int, seed: int) -> Float64:
    """Sweep, hum and noise that swells and fades: loud, soft and silent parts in one long clip."""
    swell = np.abs((np.arange(count) / RATE) % 4.0 - 2.0) / 2.0
    noise = 0.2 * np.where(swell < 0.1, 0.0, swell) * _uniform(count, seed)
    return _sixteen_bit(_sweep(count, 50, 7500, 0.3) * swell + _tone(count, 50, 0.05) + noise)


KINDS = {
    "constant": _constant,
    "noise": _noise,
    "tone": _tone,
    "sweep": _sweep,
    "impulse": _impulse,
    "dc_with_lsb": _dc_with_lsb,
    "mixture": _mixture,
}
