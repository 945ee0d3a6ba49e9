"""FLAC frames behind a damaged one: libsndfile gives up at the first, the rest is still there."""

from asr.audio.window import Window

#: Bytes that follow the coded number, by the codes of block size and sample rate.
_MORE_SIZE, _MORE_RATE = {6: 1, 7: 2}, {12: 1, 13: 2, 14: 2}


def next_frame(descriptor: int, start: int, after: int) -> tuple[int, int] | None:
    """Find a frame that begins behind a position in the sound.

    Args:
        descriptor: of a regular file; stays open.
        start: place in the file from which to look.
        after: samples of one channel.

    Returns:
        Its place in the file and its first sample; None where there is no more.

    Source: RFC 9639, 9.1: sync code, coded number, CRC-8 of the header.
    """
    data = Window(descriptor)
    block = int.from_bytes(data.at(8, 2), "big")
    while (start := data.find(b"\xff", start)) >= 0:
        head = data.at(start, 16)
        if head[1:2] in (b"\xf8", b"\xf9"):
            first = _first_sample(head, block)
            if first is not None and first > after:
                return start, first
        start += 1
    return None


def _first_sample(head: bytes, block: int) -> int | None:
    """Position of the frame with this header; None for what is no header."""
    if len(head) < 8 or head[2] >> 4 == 0 or head[2] & 15 == 15 or head[3] >> 4 > 10 or head[3] & 1:
        return None
    lead = head[4]
    ones = 8 - (lead ^ 0xFF).bit_length()  # as in UTF-8: 0 for one byte, else how many
    if ones in (1, 8):
        return None
    more = max(0, ones - 1)
    number = lead & (0x7F >> ones)
    for byte in head[5 : 5 + more]:
        if byte & 0xC0 != 0x80:
            return None
        number = number << 6 | byte & 0x3F
    end = 5 + more + _MORE_SIZE.get(head[2] >> 4, 0) + _MORE_RATE.get(head[2] & 15, 0)
    if len(head) <= end or _crc8(head[:end]) != head[end]:
        return None
    return number if head[1] & 1 else number * block


def _crc8(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x07) & 0xFF if crc & 0x80 else crc << 1
    return crc
