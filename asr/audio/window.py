"""Bytes of a file by place, without holding the file."""

import os


class Window:
    """A file's bytes, read a quarter of a MiB at a time.

    Not ``mmap``: a file that another program shortens meanwhile would end this process.

    Args:
        descriptor: of a regular file; stays open.
    """

    _STEP = 1 << 18

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._start = 0
        self._data = b""

    def at(self, place: int, count: int) -> bytes:
        """Some bytes; fewer at the end of the file."""
        first = place - self._start
        if first < 0 or first + count > len(self._data):
            self._data = os.pread(self._descriptor, max(count, self._STEP), place)
            self._start, first = place, 0
        return self._data[first : first + count]

    def find(self, byte: bytes, place: int) -> int:
        """Where a byte comes next; -1 when there is none."""
        while self.at(place, 1):
            found = self._data.find(byte, place - self._start)
            if found >= 0:
                return self._start + found
            place = self._start + len(self._data)
        return -1
