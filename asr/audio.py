"""A path or an array -> Audio at the rate the recipe wants."""

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from asr.errors import AudioError, SystemAccessError, UsageError
from asr.records import Audio, Float32

if TYPE_CHECKING:
    import soundfile

#: Frames decoded at a time: 65 s at 16 kHz, so that short clips need no second copy.
_BLOCK_FRAMES = 1 << 20

Source: TypeAlias = "str | os.PathLike[str] | npt.NDArray[np.float32 | np.float64 | np.int16]"


def read(source: Source, sample_rate: int | None) -> Audio:
    """Read sound and make it mono.

    Args:
        source: a file that libsndfile can decode (WAV, FLAC, Ogg, MP3 ...), or an array of shape
            (num_samples,): float32 or float64 with full scale ±1.0, or int16.
        sample_rate: samples per second of an array; a file states its own.

    Returns:
        Audio at the source's own rate. Channels are averaged, so two equal channels give
        the level of one.

    Raises:
        AudioError: missing file, not sound, an array of another type or shape, no rate given.
        UsageError: a rate given for a file.
        SystemAccessError: the system would not let us read the file.
    """
    if isinstance(source, np.ndarray):
        return _from_array(source, sample_rate)
    if sample_rate is not None:
        raise UsageError(
            f"{os.fspath(source)}: expected no sample_rate with a file, found {sample_rate}; "
            "a file states its own"
        )
    return _from_file(Path(source))


def resample(audio: Audio, sample_rate_hz: int) -> Audio:
    """Change the rate with an anti-alias filter; the same record when the rate is right already.

    Args:
        audio: at any rate.
        sample_rate_hz: the wanted rate.

    Returns:
        Audio of the same duration, to within one sample.

    Source: soxr, quality HQ (passband to 0.91 of Nyquist, stopband below -120 dB).
    """
    if audio.sample_rate_hz == sample_rate_hz:
        return audio
    import soxr

    samples = soxr.resample(audio.samples, audio.sample_rate_hz, sample_rate_hz, quality="HQ")
    return Audio(np.ascontiguousarray(samples), sample_rate_hz, audio.source)


def _from_array(samples: npt.NDArray[np.generic], sample_rate: int | None) -> Audio:
    if sample_rate is None:
        raise AudioError("array: expected sample_rate=..., found none; an array has no rate")
    if sample_rate <= 0:
        raise AudioError(f"array: expected a positive sample_rate, found {sample_rate}")
    if samples.ndim != 1:
        raise AudioError(
            f"array: expected shape (num_samples,), found {samples.shape}; "
            "pick or average the channels first"
        )
    if samples.dtype == np.int16:
        values = samples.astype(np.float32) / np.float32(32768)
    elif samples.dtype in (np.float32, np.float64):
        with np.errstate(over="ignore"):  # what is infinite as float32 is named by Audio
            values = np.ascontiguousarray(samples, dtype=np.float32)
    else:
        raise AudioError(
            f"array: expected float32 or float64 in ±1.0, or int16, found {samples.dtype}"
        )
    return Audio(values, int(sample_rate), "array")


def _from_file(path: Path) -> Audio:
    import soundfile

    descriptor = _open(path)
    try:
        # By descriptor, so that the content decides: by name, `clip.raw` would be taken for raw.
        with soundfile.SoundFile(descriptor, closefd=False) as file:
            rate: int = file.samplerate
            samples = _read_all(file)
    except soundfile.LibsndfileError as error:
        raise AudioError(
            f"{path}: expected a sound file (WAV, FLAC, Ogg, MP3), could not decode "
            f"{os.fstat(descriptor).st_size} bytes: {error.error_string.strip(' .')}"
        ) from None
    else:
        if not samples.size:
            _refuse_cut_off(path, descriptor)
    finally:
        os.close(descriptor)
    return Audio(samples, rate, str(path))


def _read_all(file: "soundfile.SoundFile") -> Float32:
    """Read to the end in blocks, averaging channels: memory follows the sound, not the header."""
    blocks = []
    while True:
        block = file.read(_BLOCK_FRAMES, dtype="float32")
        blocks.append(block if block.ndim == 1 else block.mean(axis=1, dtype=np.float32))
        if len(block) < _BLOCK_FRAMES:
            break
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _refuse_cut_off(path: Path, descriptor: int) -> None:
    """Refuse a file without samples unless it says itself that it has none: a failed download."""
    head = os.pread(descriptor, 1 << 16, 0)
    if head[:4] == b"RIFF":
        promise = head.partition(b"data")[2][:4]
        empty = promise in (b"\0\0\0\0", b"\xff\xff\xff\xff")
    else:
        empty = head[:4] != b"OggS" and head[:3] != b"ID3" and head[:1] != b"\xff"
    if not empty:
        raise AudioError(
            f"{path}: expected samples behind the header, found none in "
            f"{os.fstat(descriptor).st_size} bytes; copy or download it again"
        )


def _open(path: Path) -> int:
    """Open a file for reading; say why where that is not possible."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise AudioError(f"{path}: file not found") from None
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the file: {error.strerror}") from None
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise AudioError(f"{path}: expected a sound file, found a folder")
    return descriptor
