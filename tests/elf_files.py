"""ELF files small enough to read, made from what they shall say of themselves."""

import struct

MACHINES = {"aarch64": 183, "x86-64": 62, "arm": 40}


def elf(machine="aarch64", needed=(), glibc=(), interpreter=None):
    """A 64-bit file with one segment, a dynamic section, and the versions it needs of libc.so.6."""
    strings = b"\0"

    def text(word):
        nonlocal strings
        at = len(strings)
        strings += word.encode() + b"\0"
        return at

    libraries = [text(name) for name in needed]
    libc = text("libc.so.6")
    versions = [text(f"GLIBC_{version}") for version in glibc]
    linker = text(interpreter) if interpreter else 0
    headers = 3 if interpreter else 2
    strings_at = 64 + 56 * headers
    verneed_at = strings_at + len(strings) + -len(strings) % 8
    entries = b""
    for number, name in enumerate(versions):
        following = 16 if number + 1 < len(versions) else 0
        entries += struct.pack("<IHHII", 0, 0, 2, name, following)
    verneed = struct.pack("<HHIII", 1, len(versions), libc, 16, 0) + entries if versions else b""
    dynamic_at = verneed_at + len(verneed) + -len(verneed) % 8
    # Addresses differ from offsets, as in real files.
    tags = [(1, at) for at in libraries] + [(5, 0x10000 + strings_at)]
    if versions:
        tags += [(0x6FFFFFFE, 0x10000 + verneed_at), (0x6FFFFFFF, 1)]
    dynamic = b"".join(struct.pack("<QQ", *pair) for pair in [*tags, (0, 0)])
    end = dynamic_at + len(dynamic)
    segments = [(1, 0, 0x10000, end), (2, dynamic_at, 0x10000 + dynamic_at, len(dynamic))]
    if interpreter:
        at = strings_at + linker
        segments.append((3, at, 0x10000 + at, len(interpreter) + 1))
    table = b"".join(
        struct.pack("<IIQQQQQQ", kind, 4, at, address, address, size, size, 8)
        for kind, at, address, size in segments
    )
    header = struct.pack(
        "<4sBBBBQHHIQQQIHHHHHH",
        b"\x7fELF", 2, 1, 1, 0, 0, 3, MACHINES[machine], 1, 0, 64, 0, 0, 64, 56, headers, 0, 0, 0,
    )  # fmt: skip
    whole = header + table + strings
    whole += b"\0" * (verneed_at - len(whole)) + verneed
    return whole + b"\0" * (dynamic_at - len(whole)) + dynamic
