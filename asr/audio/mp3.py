"""MP3 whose length nobody knows: libsndfile stops where a tag or its own guess says.

Without a Xing tag (files cut by programs, written to a pipe, taken from a stream) the guess is made
from the first frames; of a file with a variable bit rate, two thirds can go missing without a word.
"""

import os

from asr.audio.window import Window

#: kbit/s of Layer III by index: MPEG 1, then MPEG 2 and 2.5.
_KBITS = (
    (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
)
_RATES = (44100, 48000, 32000)


def true_start(descriptor: int) -> tuple[bytes, int] | None:
    """A start of the file that promises enough, where its own does not.

    Args:
        descriptor: of a regular file; stays open.

    Returns:
        Bytes, and the place in the file after which they are to stand; None where the file's own
        tag can be believed.

    Source: ISO/IEC 11172-3 2.4.2.3, frame header; the tag as the encoder LAME writes it.
    """
    size = os.fstat(descriptor).st_size
    if size < 64:
        return None
    data = Window(descriptor)
    place = _first_frame(data)
    length = _frame_bytes(data.at(place, 4))
    if not length:
        return None
    frame = bytearray(data.at(place, length))
    most = min(size // 24 + 2, 0x7FFFFFFF).to_bytes(4, "big")
    tag = max(frame.find(b"Xing", 4, 64), frame.find(b"Info", 4, 64))
    if tag > 0 and len(frame) >= tag + 12 and frame[tag + 7] & 1:
        promised = int.from_bytes(frame[tag + 8 : tag + 12], "big")
        if not _more_than(data, place + length, promised + 1):
            return None
        frame[tag + 8 : tag + 12] = most
        return bytes(frame), place + length
    return _tag_frame(bytes(frame[:4]), most), place


def _first_frame(data: Window) -> int:
    """Place of the first frame that another one follows; behind tags, and behind debris."""
    head = data.at(0, 10)
    start = 0
    if head[:3] == b"ID3" and len(head) == 10:
        start = 10 + (head[6] << 21 | head[7] << 14 | head[8] << 7 | head[9])
    place = start
    while 0 <= place < start + (1 << 16):
        length = _frame_bytes(data.at(place, 4))
        if length and _frame_bytes(data.at(place + length, 4)):
            return place
        place = data.find(b"\xff", place + 1)
    return start


def _tag_frame(head: bytes, frames: bytes) -> bytes:
    """A frame without sound that holds a Xing tag with a number of frames, and nothing else."""
    mono, mpeg1 = head[3] >> 6 == 3, head[1] >> 3 & 3 == 3
    side = (17 if mono else 32) if mpeg1 else (9 if mono else 17)
    head = bytes([head[0], head[1] | 1, 0x80 | head[2] & 0x0C, head[3]])
    body = head + bytes(side) + b"Xing" + (1).to_bytes(4, "big") + frames
    return body.ljust(_frame_bytes(head), b"\0")


def _more_than(data: Window, place: int, limit: int) -> bool:
    """Whether more frames than ``limit`` follow each other; counting ends where they stop."""
    count = 0
    while length := _frame_bytes(data.at(place, 4)):
        place += length
        count += 1
        if count > limit:
            return True
    return False


def _frame_bytes(head: bytes) -> int:
    """Length of the Layer III frame with this header; 0 for what is no header."""
    if len(head) < 4:
        return 0
    first, second, third = head[:3]
    if first != 0xFF or second & 0xE6 != 0xE2 or second & 0x18 == 0x08:
        return 0
    version = second >> 3 & 3  # 3 is MPEG 1, 2 is MPEG 2, 0 is MPEG 2.5
    bits, rate = third >> 4, third >> 2 & 3
    if not 0 < bits < 15 or rate == 3:
        return 0
    hz = _RATES[rate] >> {3: 0, 2: 1, 0: 2}[version]
    samples = 144 if version == 3 else 72
    return samples * 1000 * _KBITS[version != 3][bits] // hz + (third >> 1 & 1)
