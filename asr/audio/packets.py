"""AAC, M4A, WebM, video: containers that FFmpeg decodes, packet by packet, through PyAV.

PyAV is an extra: ``pip install asr-rtf[av]``.
"""

import importlib
import importlib.util
import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from asr.audio.sniff import Kind
from asr.audio.sound import BLOCK_SAMPLES, Notes, Sound
from asr.errors import AudioError
from asr.records import Float32

#: FFmpeg's sample formats that are not floats, and what their values are divided by.
_INTEGERS = {"u8": 128.0, "s16": 2.0**15, "s32": 2.0**31, "s64": 2.0**63}
#: Damaged packets after which the rest is given up.
_MAX_BAD = 10_000
#: Containers that state a length one can hold them to.
_PROMISING = ("mov", "matroska", "wv", "tta", "ape")


def is_installed() -> bool:
    """Whether PyAV can be imported."""
    return importlib.util.find_spec("av") is not None


def sound(descriptor: int, name: str, kind: Kind) -> Sound:
    """Open a container.

    Args:
        descriptor: of a regular file; stays open.
        name: what to call it.
        kind: what its first bytes say.

    Raises:
        AudioError: PyAV is not installed, FFmpeg cannot read the file, or it has no sound.
    """
    try:
        av: Any = importlib.import_module("av")
    except ImportError:
        raise AudioError(
            f"{name}: expected WAV, FLAC, Ogg or MP3, found {kind.words} that needs PyAV; "
            "install it: pip install 'asr-rtf[av]'"
        ) from None
    decoder = _Decoder(av, descriptor, name, kind)
    first = next(decoder.frames(), None)
    if first is None:
        raise AudioError(
            f"{name}: expected sound, could not decode {os.fstat(descriptor).st_size} bytes of "
            f"{kind.words}: {decoder.why or 'nothing in it is sound'}"
        )
    # A damaged packet can decode to anything: as with floats, the values need a look.
    return Sound(name, first.sample_rate, len(first.layout.channels), True, decoder.blocks)


class _Decoder:
    """The sound of one stream, from the start as often as asked."""

    def __init__(self, av: Any, descriptor: int, name: str, kind: Kind) -> None:  # noqa: ANN401 - PyAV is not imported for its types
        self._av, self._descriptor, self._name, self._kind = av, descriptor, name, kind
        self.bad = 0
        self.why = ""
        self.promised_s = 0.0

    def frames(self) -> Iterator[Any]:
        """Decode packet by packet; one that cannot be decoded is counted and left out."""
        self.bad, self.why = 0, ""
        errors = (self._av.error.FFmpegError, OSError, ValueError)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with _Portions(os.dup(self._descriptor), "rb") as file:
            try:
                container = self._av.open(
                    file, mode="r", format=self._kind.demuxer, metadata_errors="ignore"
                )
            except errors as error:
                self._count(error)
                return
            with container:
                stream = container.streams.best("audio")
                if stream is None or stream.codec_context is None:
                    raise AudioError(
                        f"{self._name}: expected sound, found {self._kind.words} without any"
                    )
                self.promised_s = self._promise(container, stream)
                packets = container.demux(stream)
                while True:
                    try:
                        packet = next(packets, None)
                        decoded = packet.decode() if packet is not None else None
                    except self._av.error.EOFError:
                        return
                    except errors as error:
                        self._count(error)
                        if self.bad > _MAX_BAD:
                            return
                        continue
                    if packet is None or decoded is None:
                        return
                    self.bad += bool(packet.is_corrupt)
                    yield from decoded

    def _count(self, error: Exception) -> None:
        self.bad += 1
        words = str(getattr(error, "strerror", None) or error)
        self.why = words.splitlines()[0] if words else type(error).__name__

    def _promise(self, container: Any, stream: Any) -> float:  # noqa: ANN401 - as above
        if self._kind.demuxer not in _PROMISING:
            return 0.0
        if stream.duration and stream.time_base:
            return float(stream.duration * stream.time_base)
        return (container.duration or 0) / 1e6  # microseconds

    def blocks(self, notes: Notes) -> Iterator[Float32]:
        """Decode: float32 (n, channels) at a time."""
        shape: tuple[int, int] | None = None
        parts: list[Float32] = []
        held = done = 0
        for frame in self.frames():
            found = (frame.sample_rate, len(frame.layout.channels))
            if shape is None:
                shape = found
            if found != shape:
                notes.damaged(
                    f"from {done / shape[0]:.2f} s on it has {found[0]} Hz and {found[1]} "
                    "channels, which was left out"
                )
                break
            parts.append(_values(frame))
            held += frame.samples * shape[1]
            done += frame.samples
            if held >= BLOCK_SAMPLES:
                yield np.concatenate(parts)
                parts, held = [], 0
        if parts:
            yield np.concatenate(parts)
        if shape is not None:
            self._tell(notes, done / shape[0])

    def _tell(self, notes: Notes, seconds: float) -> None:
        if self.bad:
            notes.damaged(f"{self.bad} of its packets could not be decoded, {seconds:.2f} s could")
        elif seconds < 0.98 * self.promised_s - 0.5:
            notes.damaged(f"it promises {self.promised_s:.2f} s and holds {seconds:.2f} s")


class _Portions(io.FileIO):
    """A file that hands out a little at a time: FFmpeg asks for as much as a header claims."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read at most a quarter of a MiB."""
        return super().read(min(size, 1 << 18) if size is not None and size >= 0 else 1 << 18)


def _values(frame: Any) -> Float32:  # noqa: ANN401 - a frame of PyAV
    """Make a decoded frame float32 (n, channels), full scale ±1.0."""
    array = frame.to_ndarray()  # planar: (channels, n); packed: (1, n * channels)
    channels = len(frame.layout.channels)
    array = array.T if frame.format.is_planar else array.reshape(-1, channels)
    kind = frame.format.name.removesuffix("p")
    values: Float32 = array.astype(np.float32)
    if kind in _INTEGERS:
        values = (values - (128 if kind == "u8" else 0)) / np.float32(_INTEGERS[kind])
    return values
