"""Any sound -> Audio: a path, standard input, bytes or an array; then the rate the recipe wants.

``libsndfile.py`` decodes most files, ``wav.py`` the WAV files that libsndfile misreads,
``packets.py`` what needs PyAV, ``raw.py`` headerless PCM, ``arrays.py`` arrays; ``sound.py`` makes
one channel of many. What each accepts: ``docs/audio.md``.
"""

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from asr.audio.reader import Reader as Reader
from asr.audio.reader import Resampler as Resampler
from asr.audio.sound import MIN_RATE_HZ, Notes, check_rate, collect, opened
from asr.errors import UsageError
from asr.records import Audio

if TYPE_CHECKING:
    from asr.audio.raw import RawFormat as RawFormat

Source: TypeAlias = "str | os.PathLike[str] | bytes | npt.NDArray[Any] | Audio"


def read(
    source: Source,
    sample_rate: int | None = None,
    *,
    raw: "RawFormat | None" = None,
    channel: int | None = None,
    strict: bool = False,
    warn: Callable[[str], None] | None = None,
) -> Audio:
    """Read sound and make it mono.

    Args:
        source: a file; ``-`` for standard input; ``bytes``, a file's content; or an array of shape
            (num_samples,) or (num_samples, channels), channels at most 8 and fewer than samples:
            float32 or float64 with full scale ±1.0, or int16, int32, uint8 with all their bits.
            What is Audio already is returned as it is.
        sample_rate: samples per second of an array; a file states its own.
        raw: how to read a file or bytes without a header.
        channel: the one to take, counted from 1; None averages them.
        strict: refuse a damaged file instead of taking what can be decoded.
        warn: gets each warning, one line without the source's name, the kind first
            (``audio_damaged: ...``); None hands them to Python's ``warnings``.

    Returns:
        Audio at the source's own rate. Channels are averaged, so two equal channels give
        the level of one; channels that cancel each other are replaced by the louder one.

    Raises:
        AudioError: missing file, not sound, a package that would decode it is missing, an array
            of another type or shape, no rate given, values that are no samples.
        UsageError: a rate given for a file, a raw format given for an array, channel 0.
        SystemAccessError: the system would not let us read the file.
    """
    if isinstance(source, Audio):
        if sample_rate is not None or raw is not None or channel is not None:
            raise UsageError(f"{source.source}: expected Audio without further options")
        return source
    with opened(source, sample_rate, raw) as sound:
        return collect(sound, channel, Notes(sound.name, strict, warn))


def read_channels(
    source: Source,
    sample_rate: int | None = None,
    *,
    raw: "RawFormat | None" = None,
    strict: bool = False,
    warn: Callable[[str], None] | None = None,
) -> Iterator[Audio]:
    """Read each channel by itself, one after the other: memory holds one.

    Args:
        source: as in ``read``.
        sample_rate: as in ``read``.
        raw: as in ``read``.
        strict: as in ``read``.
        warn: as in ``read``; what is wrong with the file is said once.

    Yields:
        Audio of channel 1, 2 ...; its ``source`` says which.

    Raises:
        AudioError, UsageError, SystemAccessError: as in ``read``.
    """
    with opened(source, sample_rate, raw) as sound:
        notes = Notes(sound.name, strict, warn)
        for number in range(1, sound.channels + 1):
            found = collect(sound, number, notes)
            name = f"{sound.name} (channel {number})"
            yield Audio(found.samples, found.sample_rate_hz, name)


def count_channels(source: Source, *, raw: "RawFormat | None" = None) -> int:
    """Say how many channels a source has, from its header or first packet.

    Args:
        source: as in ``read``; standard input can be read once only.
        raw: as in ``read``.

    Raises:
        AudioError, UsageError, SystemAccessError: as in ``read``.
    """
    if isinstance(source, Audio):
        return 1
    any_rate = MIN_RATE_HZ if isinstance(source, np.ndarray) else None
    with opened(source, any_rate, raw) as sound:
        return sound.channels


def resample(audio: Audio, sample_rate_hz: int) -> Audio:
    """Change the rate with an anti-alias filter; the same record when the rate is right already.

    Args:
        audio: at 4 to 384 kHz.
        sample_rate_hz: the wanted rate.

    Returns:
        Audio of the same duration, to within one sample.

    Raises:
        AudioError: the audio has a rate outside 4 to 384 kHz.

    Source: soxr, quality HQ (passband to 0.91 of Nyquist, stopband below -120 dB).
    """
    if audio.sample_rate_hz == sample_rate_hz:
        return audio
    check_rate(audio.sample_rate_hz, audio.source)
    import soxr

    samples = soxr.resample(audio.samples, audio.sample_rate_hz, sample_rate_hz, quality="HQ")
    return Audio(np.ascontiguousarray(samples), sample_rate_hz, audio.source)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562 returns whatever the name is
    """Import RawFormat when it is first used: most runs read files with headers."""
    if name == "RawFormat":
        from asr.audio.raw import RawFormat

        return RawFormat
    raise AttributeError(f"module 'asr.audio' has no attribute {name!r}")
