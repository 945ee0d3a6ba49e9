"""What an ELF file says of itself."""

import subprocess

import pytest
from elf_files import elf as made

from asr.deploy import elf
from asr.errors import LayoutError


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, elf.Elf("aarch64", (), ())),
        ({"machine": "x86-64"}, elf.Elf("x86-64", (), ())),
        ({"needed": ["libm.so.6", "libz.so"]}, elf.Elf("aarch64", ("libm.so.6", "libz.so"), ())),
        ({"glibc": ["2.9", "2.28", "2.17"]}, elf.Elf("aarch64", (), (2, 28))),
        ({"glibc": ["2.2.5"]}, elf.Elf("aarch64", (), (2, 2, 5))),
        (
            {"interpreter": "/lib/ld-linux-aarch64.so.1", "needed": ["libc.so.6"]},
            elf.Elf("aarch64", ("libc.so.6",), (), "lib/ld-linux-aarch64.so.1"),
        ),
    ],
)
def test_machine_libraries_and_glibc(tmp_path, options, expected):
    """2.28 is newer than 2.9; the dynamic linker is a path, not a name."""
    (tmp_path / "x").write_bytes(made(**options))
    assert elf.read(tmp_path / "x") == expected


def test_what_is_no_elf_file(tmp_path):
    """A script, and a file of nothing."""
    for content in (b"#!/bin/sh\n", b"", b"\x7fEL"):
        (tmp_path / "x").write_bytes(content)
        assert elf.read(tmp_path / "x") is None


@pytest.mark.parametrize("length", [5, 30, 63, 100, 170])
def test_a_damaged_file_is_named(tmp_path, length):
    """Cut off anywhere in its headers."""
    (tmp_path / "x").write_bytes(made(needed=["libc.so.6"])[:length])
    with pytest.raises(LayoutError, match="x: expected a whole ELF file"):
        elf.read(tmp_path / "x")


def test_as_readelf_says(tmp_path):
    """This machine's shell, against binutils."""
    from pathlib import Path

    path = Path("/bin/sh").resolve()
    found = elf.read(path)
    listed = subprocess.run(["readelf", "-d", path], capture_output=True, text=True, check=True)
    for name in found.needed:
        assert f"[{name}]" in listed.stdout
    assert listed.stdout.count("(NEEDED)") == len(found.needed)
    assert Path("/", found.interpreter).is_file()
