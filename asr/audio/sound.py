"""An opened sound: blocks of samples that are checked and made one channel."""

import os
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from asr.errors import AudioError, SystemAccessError, UsageError
from asr.records import Audio, Float32

if TYPE_CHECKING:
    from asr.audio.raw import RawFormat

#: Samples decoded at a time: 65 s of mono at 16 kHz, so that short clips need no second copy.
BLOCK_SAMPLES = 1 << 20
#: Rates that are sound; soxr resamples all of them without aliasing.
MIN_RATE_HZ, MAX_RATE_HZ = 4_000, 384_000
#: A float beyond this is no loud sound but an integer that nobody divided.
MAX_AMPLITUDE = 16.0
#: Channels cancel when their mean holds less than this part of their energy: -20 dB.
_CANCELLED = 0.01
#: Mean square of noise that no decision is based on: -80 dB.
_QUIET = 1e-8


class Notes:
    """Where warnings about one source go; with ``strict``, damage is an error.

    Each line is told once, so a source that is decoded twice does not repeat itself.
    """

    def __init__(self, name: str, strict: bool, warn: Callable[[str], None] | None) -> None:
        self.name = name
        self._strict = strict
        self._warn = warn
        self._told: set[str] = set()

    def damaged(self, what: str) -> None:
        """The sound is not all there, or not as it was.

        Raises:
            AudioError: with ``strict``.
        """
        if self._strict:
            raise AudioError(
                f"{self.name}: expected an undamaged file, found that {what}; copy it again, or "
                "allow damage (not strict)"
            )
        self.tell("audio_damaged", what)

    def tell(self, kind: str, what: str) -> None:
        """Warn: the kind, a colon, a line in words."""
        line = f"{kind}: {what}"
        if line in self._told:
            return
        self._told.add(line)
        if self._warn is None:
            warnings.warn(f"{self.name}: {line}", RuntimeWarning, stacklevel=5)
        else:
            self._warn(line)


class Sound:
    """An opened source.

    Attributes:
        name: what to call it in messages.
        rate_hz: samples per second.
        channels: how many.
        floats: whether values may be anything: decoded from floats, so that they need a look.
        blocks: from the start at every call: float32 (n,) or (n, channels).
    """

    __slots__ = ("blocks", "channels", "floats", "name", "rate_hz")

    def __init__(
        self,
        name: str,
        rate_hz: int,
        channels: int,
        floats: bool,
        blocks: Callable[[Notes], Iterator[Float32]],
    ) -> None:
        check_rate(rate_hz, name)
        self.name = name
        self.rate_hz = rate_hz
        self.channels = channels
        self.floats = floats
        self.blocks = blocks


def check_rate(rate_hz: int, name: str) -> None:
    """Refuse a rate at which nobody samples speech: a damaged header, or a mistake.

    Raises:
        AudioError: outside 4 to 384 kHz.
    """
    if not MIN_RATE_HZ <= rate_hz <= MAX_RATE_HZ:
        raise AudioError(
            f"{name}: expected a rate of {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz, found {rate_hz} Hz; "
            "is the header damaged, or the rate mistyped?"
        )


@contextmanager
def opened(
    source: Any,  # noqa: ANN401 - what it may be is checked here
    sample_rate: int | None,
    raw: "RawFormat | None",
) -> Iterator[Sound]:
    """Open a source of any kind.

    Raises:
        AudioError, UsageError, SystemAccessError: as ``asr.audio.read`` says.
    """
    if isinstance(source, np.ndarray):
        from asr.audio import arrays

        if raw is not None:
            raise UsageError(f"array: expected no raw format with an array, found {raw}")
        yield arrays.sound(source, sample_rate)
        return
    content = isinstance(source, bytes | bytearray | memoryview)
    name = "bytes" if content else os.fspath(source)
    if not isinstance(name, str):
        raise UsageError(f"source: expected a path, '-', bytes or an array, found {name!r}")
    if sample_rate is not None:
        raise UsageError(
            f"{name}: expected no sample_rate with a file, found {sample_rate}; "
            "a file states its own, raw= that of samples without a header"
        )
    if content or name == "-":
        from asr.audio import pipes

        name = name if content else "stdin"
        sniff = raw is None
        descriptor = pipes.hold(source) if content else pipes.standard_input(name, sniff=sniff)
    else:
        descriptor = _open(name, raw)
    try:
        if raw is not None:
            from asr.audio.raw import sound as raw_sound

            yield raw_sound(descriptor, name, raw)
        else:
            from asr.audio import libsndfile

            with libsndfile.opened(descriptor, name) as sound:
                yield sound
    finally:
        os.close(descriptor)


def _open(path: str, raw: "RawFormat | None") -> int:
    """Open a file for reading; say why where that is not possible."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise AudioError(f"{path}: file not found") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        why = getattr(error, "strerror", None) or error
        raise SystemAccessError(f"{path}: cannot read the file: {why}") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    try:
        if stat.S_ISDIR(mode):
            raise AudioError(f"{path}: expected a sound file, found a folder")
        from asr.audio import pipes

        return pipes.drain(descriptor, path, sniff=raw is None)
    finally:
        os.close(descriptor)


def collect(sound: Sound, channel: int | None, notes: Notes) -> Audio:
    """Decode to the end and make it mono: memory follows the sound, not a header.

    Raises:
        AudioError, UsageError: as ``mono_blocks``.
    """
    blocks = list(mono_blocks(sound, channel, notes))
    if len(blocks) == 1:
        samples = blocks[0]
    else:
        samples = np.concatenate(blocks) if blocks else np.zeros(0, np.float32)
    return Audio(samples, sound.rate_hz, sound.name)


def mono_blocks(sound: Sound, channel: int | None, notes: Notes) -> Iterator[Float32]:
    """Decode block by block, check the values and make them mono: float32 (n,).

    Raises:
        AudioError: no such channel, or values that are no samples.
        UsageError: channel below 1.
    """
    if channel is not None and channel < 1:
        raise UsageError(f"channel: expected 1 or more, counted from 1; found {channel}")
    if channel is not None and channel > sound.channels:
        raise AudioError(
            f"{sound.name}: expected channel {channel}, found {sound.channels} "
            f"channel{'s' * (sound.channels > 1)}"
        )
    mixer = Mixer(sound.channels, notes)
    done = 0
    for block in sound.blocks(notes):
        if sound.floats:
            _check_values(block, done, sound.name)
        done += len(block)
        if block.ndim == 1:
            yield block
        else:
            yield mixer.mean(block) if channel is None else block[:, channel - 1].copy()


def _check_values(block: Float32, first: int, name: str) -> None:
    """Refuse NaN, infinity and absurd amplitudes by position; two passes, no temporary."""
    with np.errstate(invalid="ignore"):
        if not block.size or (block.min() >= -MAX_AMPLITUDE and block.max() <= MAX_AMPLITUDE):
            return
        place = np.argwhere(~(np.abs(block) <= MAX_AMPLITUDE))[0]
    value = block[tuple(place)]
    where = f"sample {first + place[0]}" + (
        f" of channel {place[1] + 1}" if block.ndim == 2 and block.shape[1] > 1 else ""
    )
    if not np.isfinite(value):
        raise AudioError(f"{name}: {where} is {value}; expected finite values in ±1.0")
    raise AudioError(
        f"{name}: {where} is {value:g}; expected floats with full scale ±1.0, ±{MAX_AMPLITUDE:g} "
        "at most; integers kept as floats need a division, by 32768 for 16 bits"
    )


class Mixer:
    """The mean of channels, block by block; the louder one where they cancel each other."""

    def __init__(self, channels: int, notes: Notes) -> None:
        self._energies = np.zeros(channels)
        self._notes = notes

    def mean(self, block: Float32) -> Float32:
        """Mix float32 (n, channels) to (n,)."""
        channels = block.shape[1]
        mean = block[:, 0].copy()
        if channels == 1:
            return mean
        for number in range(1, channels):  # block.mean(axis=1) takes five times as long
            mean += block[:, number]
        mean /= channels
        energies = np.array([np.dot(block[:, c], block[:, c]) for c in range(channels)], float)
        self._energies += energies
        level = float(energies.mean())
        heard = float(np.dot(mean, mean))
        if heard >= _CANCELLED * level or level <= _QUIET * len(block):
            return mean
        loudest = int(np.argmax(self._energies))
        self._notes.tell(
            "channels_cancel",
            f"the mean of {channels} channels is more than 20 dB below them (opposite phase); "
            f"channel {loudest + 1} was taken in its place",
        )
        return block[:, loudest].copy()
