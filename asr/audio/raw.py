"""PCM without a header, and the samples inside WAV: bytes -> float32."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from asr.audio.sound import BLOCK_SAMPLES, MAX_RATE_HZ, MIN_RATE_HZ, Notes, Sound
from asr.errors import AudioError, SystemAccessError, UsageError
from asr.records import Float32

#: Bytes of one sample.
WIDTHS = {
    "u8": 1, "s8": 1, "alaw": 1, "mulaw": 1, "s16le": 2, "s16be": 2, "s24le": 3, "s24be": 3,
    "s32le": 4, "s32be": 4, "f32le": 4, "f32be": 4, "f64le": 8, "f64be": 8,
}  # fmt: skip
MAX_CHANNELS = 1024


@dataclass(frozen=True, slots=True)
class RawFormat:
    """How samples without a header are to be read.

    Attributes:
        encoding: s16le, s16be, s24le, s32le, f32le, f64le, u8, alaw, mulaw (and s8, s24be,
            s32be, f32be, f64be).
        sample_rate_hz: samples per second, 4000 to 384000.
        channels: interleaved channels, 1 to 1024.

    Raises:
        UsageError: one of them is something else.
    """

    encoding: str
    sample_rate_hz: int
    channels: int = 1

    def __post_init__(self) -> None:
        if self.encoding not in WIDTHS:
            raise UsageError(
                f"raw: expected an encoding of {' '.join(WIDTHS)}, found {self.encoding!r}"
            )
        if not MIN_RATE_HZ <= self.sample_rate_hz <= MAX_RATE_HZ:
            raise UsageError(
                f"raw: expected a rate of {MIN_RATE_HZ} to {MAX_RATE_HZ} Hz, "
                f"found {self.sample_rate_hz}"
            )
        if not 1 <= self.channels <= MAX_CHANNELS:
            raise UsageError(f"raw: expected 1 to {MAX_CHANNELS} channels, found {self.channels}")

    @classmethod
    def parse(cls, words: str) -> "RawFormat":
        """Read ``ENCODING,RATE`` or ``ENCODING,RATE,CHANNELS``, such as ``s16le,16000,1``.

        Raises:
            UsageError: another form, or a value that cannot be used.
        """
        encoding, *numbers = (word.strip() for word in words.split(","))
        if len(numbers) not in (1, 2) or not all(n.isascii() and n.isdigit() for n in numbers):
            raise UsageError(
                f"raw: expected ENCODING,RATE,CHANNELS such as s16le,16000,1, found {words!r}"
            )
        return cls(encoding.lower(), *(int(n[:12]) for n in numbers))

    @property
    def frame_bytes(self) -> int:
        """Bytes of one sample of all channels."""
        return WIDTHS[self.encoding] * self.channels


def sound(descriptor: int, name: str, raw: RawFormat) -> Sound:
    """Open a file of samples.

    Args:
        descriptor: of a regular file; stays open.
        name: what to call it.
        raw: what is in it.
    """
    size = os.fstat(descriptor).st_size
    rest = size % raw.frame_bytes

    def blocks(notes: Notes) -> Iterator[Float32]:
        if size and size == rest:
            raise AudioError(
                f"{name}: expected samples of {raw.frame_bytes} bytes, found {size} bytes in all"
            )
        if rest:
            notes.damaged(f"the last sample has {rest} of {raw.frame_bytes} bytes")
        yield from decode_blocks(descriptor, name, 0, size, raw)

    floats = raw.encoding.startswith("f")
    return Sound(name, raw.sample_rate_hz, raw.channels, floats, blocks)


def decode_blocks(
    descriptor: int, name: str, start: int, size: int, raw: RawFormat
) -> Iterator[Float32]:
    """Decode whole frames of a part of a file: float32 (n,) or (n, channels) at a time.

    Raises:
        SystemAccessError: the file cannot be read.
    """
    step = max(1, BLOCK_SAMPLES // raw.channels) * raw.frame_bytes
    end = start + size // raw.frame_bytes * raw.frame_bytes
    while start < end:
        try:
            data = os.pread(descriptor, min(step, end - start), start)
        except OSError as error:
            raise SystemAccessError(f"{name}: cannot read the file: {error.strerror}") from None
        data = data[: len(data) // raw.frame_bytes * raw.frame_bytes]
        if not data:
            return  # the file got shorter while it was read
        start += len(data)
        values = decode(data, raw.encoding)
        yield values if raw.channels == 1 else values.reshape(-1, raw.channels)


def decode(data: bytes, encoding: str) -> Float32:
    """Decode samples: float32 (n,), full scale ±1.0.

    Args:
        data: whole samples.
        encoding: a key of ``WIDTHS``.
    """
    if encoding in ("alaw", "mulaw"):
        return _table(encoding)[np.frombuffer(data, np.uint8)]
    if encoding == "u8":
        return (np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128)) / np.float32(
            128
        )
    order = ">" if encoding.endswith("be") else "<"
    if encoding.startswith("f"):
        with np.errstate(over="ignore", invalid="ignore"):  # infinity is named by its position
            return np.frombuffer(data, f"{order}f{WIDTHS[encoding]}").astype(np.float32)
    if encoding.startswith("s24"):
        wide = np.zeros((len(data) // 3, 4), np.uint8)  # the upper 24 of 32 bits
        triples = np.frombuffer(data, np.uint8).reshape(-1, 3)
        wide[:, slice(1, 4) if order == "<" else slice(0, 3)] = triples
        integers, bits = wide.view(f"{order}i4").ravel(), 32
    else:
        integers = np.frombuffer(data, f"{order}i{WIDTHS[encoding]}")
        bits = 8 * WIDTHS[encoding]
    return integers.astype(np.float32) * np.float32(2.0 ** (1 - bits))


@lru_cache(maxsize=2)
def _table(encoding: str) -> Float32:
    """All 256 values of a companded sample.

    Source: ITU-T G.711; A-law 13 bits and mu-law 14 bits, both left-justified in 16.
    """
    code = np.arange(256)
    if encoding == "alaw":
        code ^= 0x55
        exponent, mantissa = (code >> 4) & 7, code & 15
        size = np.where(
            exponent == 0, mantissa * 16 + 8, (mantissa * 16 + 264) << np.maximum(exponent - 1, 0)
        )
        values = np.where(code & 0x80, size, -size)
    else:
        code ^= 0xFF
        size = (((code & 15) * 8 + 132) << ((code >> 4) & 7)) - 132
        values = np.where(code & 0x80, -size, size)
    return (values / 32768).astype(np.float32)
