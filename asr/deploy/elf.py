"""What an ELF file is for and what it needs, read without any tool."""

import re
import struct
from dataclasses import dataclass
from pathlib import Path

from asr.errors import LayoutError

MAGIC = b"\x7fELF"
MACHINES = {3: "i386", 40: "arm", 62: "x86-64", 183: "aarch64", 243: "riscv"}

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_NEEDED, _STRTAB, _SONAME, _VERNEED, _VERNEEDNUM = 1, 5, 14, 0x6FFFFFFE, 0x6FFFFFFF


@dataclass(frozen=True, slots=True)
class Elf:
    """One file.

    Attributes:
        machine: ``aarch64``, ``x86-64`` or another name, or the number as text.
        needed: names of the libraries it loads.
        glibc: the newest GLIBC symbol version it needs, as numbers; empty where none.
        interpreter: path of the dynamic linker, without the leading slash; empty for a library.
    """

    machine: str
    needed: tuple[str, ...]
    glibc: tuple[int, ...]
    interpreter: str = ""


def read(path: Path) -> Elf | None:
    """Read a file's headers.

    Returns:
        None where it is no ELF file.

    Raises:
        LayoutError: it begins as an ELF file and is not whole.
    """
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            return None
    try:
        return _parse(path.read_bytes())
    except (struct.error, IndexError, ValueError) as error:
        raise LayoutError(f"{path}: expected a whole ELF file, found a damaged one") from error


def _parse(data: bytes) -> Elf:
    (number,) = struct.unpack_from("<H", data, 18)
    machine = MACHINES.get(number, str(number))
    if data[4:6] != b"\x02\x01":  # 64 bits, least significant byte first
        return Elf(machine, (), ())
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    loads, dynamic, interpreter = [], None, ""
    for at in range(table, table + size * count, size):
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, at)
        if kind == _LOAD:
            loads.append((address, offset, length))
        elif kind == _DYNAMIC:
            dynamic = (offset, length)
        elif kind == _INTERPRETER:
            interpreter = _text(data, offset).lstrip("/")
    if dynamic is None:
        return Elf(machine, (), (), interpreter)
    entries = [struct.unpack_from("<QQ", data, dynamic[0] + at) for at in range(0, dynamic[1], 16)]
    tags = {tag: value for tag, value in entries if tag in (_STRTAB, _VERNEED, _VERNEEDNUM)}
    strings = _offset(loads, tags[_STRTAB])
    needed = [_text(data, strings + value) for tag, value in entries if tag == _NEEDED]
    newest: tuple[int, ...] = ()
    if _VERNEED in tags:
        at = _offset(loads, tags[_VERNEED])
        for _ in range(tags[_VERNEEDNUM]):
            _, names, _, first, following = struct.unpack_from("<HHIII", data, at)
            one = at + first
            for _ in range(names):
                _, _, _, name, after = struct.unpack_from("<IHHII", data, one)
                found = re.fullmatch(r"GLIBC_([\d.]+)", _text(data, strings + name))
                if found:
                    newest = max(newest, tuple(map(int, found[1].split("."))))
                one += after
            at += following
    return Elf(machine, tuple(needed), newest, interpreter)


def _offset(loads: list[tuple[int, int, int]], address: int) -> int:
    for start, offset, length in loads:
        if start <= address < start + length:
            return offset + address - start
    raise ValueError("an address outside the file")


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()
