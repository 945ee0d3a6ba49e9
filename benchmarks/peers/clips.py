"""The clips of the parity check: 200 lengths from 0.05 to 30 s, made from the golden audio."""

import wave
from pathlib import Path

import numpy as np

RATE = 16000


def write_clips(audio: Path, out: Path, count: int = 200) -> list[Path]:
    """Write seeded mixtures of golden clips, pauses and hiss as 16-bit WAV files.

    Args:
        audio: folder of golden clips, 16 kHz mono.
        out: folder to fill.
        count: how many; their lengths are spread evenly on a logarithmic scale.

    Returns:
        the paths, shortest first.
    """
    speech = [_read(path) for path in sorted(audio.glob("*.wav"))]
    rng = np.random.default_rng(0)
    paths = []
    for number, seconds in enumerate(np.geomspace(0.05, 30.0, count)):
        length = round(float(seconds) * RATE)
        parts: list[np.ndarray] = []
        while sum(map(len, parts)) < length + RATE:
            parts.append(speech[rng.integers(len(speech))])
            parts.append(np.zeros(int(rng.integers(0, RATE // 2)), np.float32))
        start = int(rng.integers(0, RATE))
        samples = np.concatenate(parts)[start : start + length]
        samples = samples * rng.uniform(0.3, 1.0) + rng.standard_normal(length) * 1e-3
        path = out / f"{number:03d}-{seconds:.2f}s.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(RATE)
            file.writeframes(np.clip(np.rint(samples * 32767), -32768, 32767).astype("<i2"))
        paths.append(path)
    return paths


def _read(path: Path) -> np.ndarray:
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
