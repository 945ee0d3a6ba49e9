"""Reading recordings: a plain file below a folder, or a member of a tar beside it."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import numpy as np
import soundfile
import soxr

SAMPLE_RATE = 16000


class AudioStore:
    """Waveforms by relative path, from files or from `<first folder>.tar` in one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tars: dict[str, tarfile.TarFile] = {}

    def names(self, tar_name: str) -> list[str]:
        """Paths of all Opus, FLAC and WAV members of one tar."""
        suffixes = (".opus", ".flac", ".wav")
        return [name for name in self._tar(tar_name).getnames() if name.endswith(suffixes)]

    def waveform(self, path: str) -> np.ndarray:
        """float32 (samples,), mono, 16 kHz, full scale 1."""
        plain = self._folder / path
        if plain.exists():
            return load_waveform(plain)
        member = self._tar(path.split("/", 1)[0]).extractfile(path)
        if member is None:
            raise FileNotFoundError(f"{path}: neither a file in {self._folder} nor a tar member")
        return load_waveform(io.BytesIO(member.read()))

    def _tar(self, name: str) -> tarfile.TarFile:
        if name not in self._tars:
            self._tars[name] = tarfile.open(self._folder / f"{name}.tar")  # noqa: SIM115 - kept open
        return self._tars[name]


def load_waveform(file: Path | io.BytesIO) -> np.ndarray:
    """float32 (samples,), mono, 16 kHz, full scale 1; other rates are resampled by soxr."""
    samples, rate = soundfile.read(file, dtype="float32", always_2d=True)
    mono = samples.mean(axis=1)
    if rate != SAMPLE_RATE:
        mono = soxr.resample(mono, rate, SAMPLE_RATE)
    return np.ascontiguousarray(mono, dtype=np.float32)
