"""What all contenders hear and decode: the golden clips one after another, and made-up scores."""

import wave
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

RATE_HZ = 16000
AUDIO = Path(__file__).resolve().parents[3] / "golden" / "audio"


def samples_of(path: str | Path) -> NDArray[np.float32]:
    """16-bit WAV -> float32 (num_samples,), full scale +-1.0."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def write_sound(path: Path, seconds: float) -> None:
    """Speech of a length: golden clips at 16 kHz, repeated, with a faint hiss in their pauses.

    Random weights hear no words in it: only its length matters, and that nothing of it is silent.
    """
    clips = []
    for clip in sorted(AUDIO.glob("*.wav")):
        with wave.open(str(clip)) as file:
            if file.getframerate() == RATE_HZ and file.getnchannels() == 1:
                clips.append(np.frombuffer(file.readframes(file.getnframes()), "<i2"))
    count = round(seconds * RATE_HZ)
    hiss = np.random.default_rng(0).integers(-8, 9, count)
    samples = np.clip(np.resize(np.concatenate(clips), count) + hiss, -32768, 32767)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE_HZ)
        file.writeframes(samples.astype("<i2"))


def network_rows(seconds: float) -> int:
    """Rows that the network is given: frames of 25 ms every 10, six to a row, four prompts."""
    frames = 1 + (round(seconds * RATE_HZ) - 400) // 160
    return -(-frames // 6) + 4


def scores(rows: int, columns: int) -> NDArray[np.float32]:
    """Seeded scores (rows, columns); three rows of four say blank, as speech does."""
    values = np.random.default_rng(0).standard_normal((rows, columns), np.float32)
    values[np.arange(rows) % 4 != 0, 0] += 20
    return values
