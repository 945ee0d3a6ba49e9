"""Sound block by block: memory holds a block, not the recording."""

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import numpy as np

from asr.audio.sound import BLOCK_SAMPLES, Notes, check_rate, mono_blocks, opened
from asr.errors import UsageError
from asr.records import Audio, Float32

if TYPE_CHECKING:
    from asr.audio import Source
    from asr.audio.raw import RawFormat


class Reader:
    """A source that is opened when its first block is wanted, and closed behind its last.

    Args:
        source: as in ``asr.audio.read``, and so are the others.
        sample_rate: samples per second of an array.
        raw: how to read a file or bytes without a header.
        channel: the one to take, counted from 1; None averages them.
        strict: refuse a damaged file.
        warn: gets each warning.
    """

    def __init__(
        self,
        source: "Source",
        sample_rate: int | None = None,
        *,
        raw: "RawFormat | None" = None,
        channel: int | None = None,
        strict: bool = False,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        if isinstance(source, Audio):
            if sample_rate is not None or raw is not None or channel is not None:
                raise UsageError(f"{source.source}: expected Audio without further options")
            self._blocks = _slices(source)
        else:
            self._blocks = _blocks(source, sample_rate, raw, channel, strict, warn)
        self._num_samples = 0
        self._rate_hz = 1

    @property
    def read_s(self) -> float:
        """Seconds of sound read so far."""
        return self._num_samples / self._rate_hz

    def head(self, limit_s: float) -> Audio:
        """The whole sound where it is not longer than a limit, else a beginning that is.

        Raises:
            AudioError, UsageError, SystemAccessError: as ``asr.audio.read``.
        """
        found: list[Audio] = []
        while not found or self.read_s <= limit_s:
            block = self.next()
            if block is None:
                break
            found.append(block)
        if len(found) == 1:
            return found[0]
        samples = np.concatenate([block.samples for block in found])
        return Audio(samples, found[0].sample_rate_hz, found[0].source)

    def next(self) -> Audio | None:
        """The next block, at most a MiB of samples; None behind the last.

        Raises:
            AudioError, UsageError, SystemAccessError: as ``asr.audio.read``.
        """
        block = next(self._blocks, None)
        if block is not None:
            self._num_samples += len(block.samples)
            self._rate_hz = block.sample_rate_hz
        return block

    def close(self) -> None:
        """Close the source before its end."""
        self._blocks.close()


def _slices(sound: Audio) -> Generator[Audio, None, None]:
    yield from _parts(sound.samples, sound.sample_rate_hz, sound.source)


def _blocks(
    source: Any,  # noqa: ANN401 - what it may be is checked by opened
    sample_rate: int | None,
    raw: "RawFormat | None",
    channel: int | None,
    strict: bool,
    warn: Callable[[str], None] | None,
) -> Generator[Audio, None, None]:
    with opened(source, sample_rate, raw) as sound:
        empty = True
        for samples in mono_blocks(sound, channel, Notes(sound.name, strict, warn)):
            empty = False
            yield from _parts(samples, sound.rate_hz, sound.name)
        if empty:
            yield Audio(np.zeros(0, np.float32), sound.rate_hz, sound.name)


def _parts(samples: Float32, rate_hz: int, source: str) -> Generator[Audio, None, None]:
    """An array is one block to its decoder: lend it in parts."""
    for start in range(0, max(1, len(samples)), BLOCK_SAMPLES):
        yield Audio(samples[start : start + BLOCK_SAMPLES], rate_hz, source)


class Resampler:
    """Changes the rate of a sound that comes in blocks; joined, what one call would give.

    Args:
        sample_rate_hz: the wanted rate.

    Source: as ``asr.audio.resample``.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        self._rate_hz = sample_rate_hz
        self._stream: Any = None

    def feed(self, block: Audio, last: bool) -> Audio:
        """Resample a block, all at the same rate; the last one flushes the filter.

        Raises:
            AudioError: the audio has a rate outside 4 to 384 kHz.
        """
        if block.sample_rate_hz == self._rate_hz:
            return block
        if self._stream is None:
            check_rate(block.sample_rate_hz, block.source)
            import soxr

            self._stream = soxr.ResampleStream(
                block.sample_rate_hz, self._rate_hz, 1, dtype="float32", quality="HQ"
            )
        samples = self._stream.resample_chunk(block.samples, last=last)
        return Audio(np.ascontiguousarray(samples), self._rate_hz, block.source)
