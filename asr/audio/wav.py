"""WAV whose header lies: chunks are walked, sizes believed only where the file agrees.

libsndfile reads nothing when the size of the data is 0, and stops early when it is too small; both
are what a recorder leaves behind that was not stopped properly, or that wrote to a pipe.
"""

import os
import struct
from collections.abc import Iterator
from typing import NamedTuple

from asr.audio.raw import MAX_CHANNELS, WIDTHS, RawFormat, decode_blocks
from asr.audio.sound import MAX_RATE_HZ, MIN_RATE_HZ, Notes, Sound
from asr.errors import AudioError
from asr.records import Float32

#: Sizes from here on are what programs write that do not know the size: pipes.
_UNKNOWN = 0x7FFF0000
#: More chunks than this are no header.
_MAX_CHUNKS = 4096
#: A remainder behind the samples that is too short to matter.
_SHORT_TAIL = 128
_KNOWN = {
    b"LIST", b"JUNK", b"junk", b"PAD ", b"FLLR", b"bext", b"fact", b"cue ", b"smpl", b"inst",
    b"PEAK", b"iXML", b"_PMX", b"axml", b"chna", b"umid", b"levl", b"id3 ", b"ID3 ", b"acid",
    b"cart", b"minf", b"elm1", b"regn", b"afsp", b"DISP", b"plst", b"labl", b"note", b"data",
}  # fmt: skip
_TAGS = (b"TAG", b"ID3", b"APETAGEX")
_TAG_ENCODINGS = {
    1: {1: "u8", 2: "s16", 3: "s24", 4: "s32"},
    3: {4: "f32", 8: "f64"},
    6: {1: "alaw"},
    7: {1: "mulaw"},
}
_EXTENSIBLE = 0xFFFE


class _Data(NamedTuple):
    """Where the samples lie.

    Attributes:
        start: first byte.
        size: bytes that are there.
        claim: bytes the header states; None where it knows nothing.
    """

    start: int
    size: int
    claim: int | None


def sound(descriptor: int, name: str) -> Sound | None:
    """Open a WAV file of uncompressed or companded samples.

    Args:
        descriptor: of a regular file; stays open.
        name: what to call it.

    Returns:
        None where this is no such file: another codec, no format, no data.
    """
    size = os.fstat(descriptor).st_size
    head = os.pread(descriptor, 12, 0)
    if head[:4] not in (b"RIFF", b"RIFX", b"RF64", b"BW64") or head[8:12] != b"WAVE":
        return None
    raw, data = _walk(descriptor, size, ">" if head[:4] == b"RIFX" else "<")
    if raw is None or data is None:
        return None

    def blocks(notes: Notes) -> Iterator[Float32]:
        if data.size < raw.frame_bytes and data.claim:
            raise AudioError(
                f"{name}: expected samples behind the header, found none in {size} bytes; "
                "copy or download it again"
            )
        yield from decode_blocks(descriptor, name, data.start, data.size, raw)
        if data.claim is not None and data.claim != data.size:
            second = raw.frame_bytes * raw.sample_rate_hz
            notes.damaged(
                f"its header promises {data.claim / second:.2f} s and it holds "
                f"{data.size / second:.2f} s"
            )

    floats = raw.encoding.startswith("f")
    return Sound(name, raw.sample_rate_hz, raw.channels, floats, blocks)


def _walk(descriptor: int, size: int, order: str) -> tuple[RawFormat | None, _Data | None]:
    """Find the format and the samples, in either order."""
    raw: RawFormat | None = None
    data: _Data | None = None
    long_claim: int | None = None
    place = 12
    for _ in range(_MAX_CHUNKS):
        head = os.pread(descriptor, 8, place)
        if len(head) < 8 or (raw and data):
            break
        name, length = head[:4], struct.unpack(f"{order}I", head[4:])[0]
        start = place + 8
        if name == b"ds64":
            sizes = os.pread(descriptor, 16, start)
            long_claim = struct.unpack("<Q", sizes[8:])[0] if len(sizes) == 16 else None
        elif name == b"fmt ":
            raw = _format(os.pread(descriptor, min(length, 64), start), order)
            if raw is None:
                break
        elif name == b"data" and data is None:
            known = length < _UNKNOWN
            claim = length
            if length == 0xFFFFFFFF and long_claim is not None:
                claim, known = long_claim, long_claim < 1 << 62
            data = _data(descriptor, size, start, claim, known)
            length = data.size
        following = _next(descriptor, size, start, length)
        if following is None:  # a size that leads nowhere: look for the next name we need
            following = _search(
                descriptor, place + 4, (b"fmt ", b"data") if not raw else (b"data",)
            )
            if following is None:
                break
        place = following
    return raw, data


def _format(fields: bytes, order: str) -> RawFormat | None:
    """Read the fields of a ``fmt `` chunk; None for what this module does not decode."""
    if len(fields) < 16:
        return None
    tag, channels, rate, _, align, bits = struct.unpack(f"{order}HHIIHH", fields[:16])
    if tag == _EXTENSIBLE and len(fields) >= 26:
        tag = struct.unpack(f"{order}H", fields[24:26])[0]
    if not 1 <= channels <= MAX_CHANNELS or not MIN_RATE_HZ <= rate <= MAX_RATE_HZ:
        return None
    width = (bits + 7) // 8
    # 20 or 24 bits may stand in wider samples, left-justified; the alignment says so.
    if tag == 1 and align % channels == 0 and width < align // channels <= 4:
        width = align // channels
    encoding = _TAG_ENCODINGS.get(tag, {}).get(width)
    if encoding is None:
        return None
    if encoding not in WIDTHS:
        encoding += "be" if order == ">" else "le"
    return RawFormat(encoding, rate, channels)


def _data(descriptor: int, size: int, start: int, claim: int, known: bool) -> _Data:
    """Decide where the samples end, whatever the header claims."""
    rest = max(0, size - start)
    if claim > rest:
        return _Data(start, rest, claim if known else None)
    tail = rest - claim
    if tail <= 1 or _next(descriptor, size, start, claim) is not None:
        return _Data(start, claim, claim)
    if claim and (tail <= _SHORT_TAIL or _is_no_sound(descriptor, start + claim)):
        return _Data(start, claim, claim)
    return _Data(start, rest, claim or None)


def _next(descriptor: int, size: int, start: int, length: int) -> int | None:
    """Where the next chunk begins: padded to even bytes, as it should be, or not."""
    end = start + length
    if end >= size:
        return end if end <= size + 1 else None
    for place in (end + length % 2, end):
        head = os.pread(descriptor, 8, place)
        if len(head) < 8:
            if place >= size:
                return place
            continue
        name, following = head[:4], min(struct.unpack(p, head[4:])[0] for p in ("<I", ">I"))
        fits = place + 8 + following <= size + 1
        if name in _KNOWN or name == b"fmt " or (_is_name(name) and fits):
            return place
    return None


def _is_name(name: bytes) -> bool:
    return all(c in b" _-" or chr(c).isalnum() for c in name) and name.isascii()


def _is_no_sound(descriptor: int, place: int) -> bool:
    """Whether what follows the samples is a tag of another kind, or padding."""
    tail = os.pread(descriptor, 4096, place)
    return tail.startswith(_TAGS) or tail[1:].startswith(_TAGS) or not any(tail)


def _search(descriptor: int, place: int, names: tuple[bytes, ...]) -> int | None:
    """The first of some chunk names in the next MiB."""
    window = os.pread(descriptor, 1 << 20, place)
    found = [at for at in map(window.find, names) if at >= 0]
    return place + min(found) if found else None
