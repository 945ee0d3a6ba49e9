"""What verify says of an image: every check can fail, and a missing tool is named."""

import dataclasses
import io
import json
import tarfile

import pytest
from elf_files import elf

from asr.cli import main
from asr.deploy import boot, contents, emulate, inspect, oci, tools, verify
from asr.deploy.archive import tar
from asr.deploy.pack import config
from asr.deploy.tree import MANIFEST, SBOM
from asr.deploy.work import checksums, write_json
from asr.errors import MissingToolError, SystemAccessError

LIBC = "lib/libc.so.6"


@pytest.fixture
def root(tmp_path):
    """A small image: a program, the libc and linker that it needs, a link, a licence, the lists."""
    root = tmp_path / "root"
    files = {
        "opt/asr/bin/asr-edge": elf(needed=["libc.so.6"], glibc=["2.17", "2.28"]),
        LIBC: elf(needed=["ld-linux-aarch64.so.1"]) + b"GLIBC_2.17\0GLIBC_2.36\0",
        "lib/ld-linux-aarch64.so.1": elf(),
        "opt/asr/share/licences/deb-libc6/copyright": b"LGPL",
        SBOM: b"{}",
    }
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    (root / "lib/libc.so").symlink_to("libc.so.6")
    (root / "lib/libc").symlink_to("/lib/libc.so.6")
    write_manifest(root)
    return root


def write_manifest(root):
    package = {"kind": "deb", "name": "libc6", "version": "1", "licence": "LGPL", "sha256": None}
    facts = {"profile": "rust", "version": "1", "packages": [package], "built_at_s": 0}
    (root / MANIFEST).unlink(missing_ok=True)
    write_json(root / MANIFEST, facts | {"files": checksums(root)})


def checks(root, tmp_path, change=lambda image: image):
    """Names of the checks that fail, with what was found."""
    facts = json.loads((root / MANIFEST).read_text())
    path = tmp_path / "image.tar"
    oci.write(path, "asr-rust:1", [oci.Layer(tar([root], 0), "x")], config(facts), 0)
    found = list(inspect.check(change(oci.read(path)), root, facts))
    assert {c.name for c in found} == {
        "platform", "user", "size", "files", "machine", "libraries", "glibc", "glibc of ours",
        "links", "licences",
    }  # fmt: skip
    return {check.name: check.found for check in found if not check.ok}


def test_a_good_image_has_nothing_wrong(root, tmp_path):
    assert checks(root, tmp_path) == {}


def add(path, data):
    def change(root):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
        write_manifest(root)

    return change


def link(target):
    def change(root):
        (root.parent / "outside").touch()
        (root / "lib/away").symlink_to(target)

    return change


@pytest.mark.parametrize(
    ("change", "name", "found"),
    [
        (add("lib/x.so", elf("x86-64")), "machine", "lib/x.so (x86-64)"),
        (add("lib/x.so", elf("arm")), "machine", "lib/x.so (arm)"),
        (add("lib/x.so", elf(needed=["libasound.so"])), "libraries", "missing: ['libasound.so']"),
        (
            add("lib/x.so", elf(glibc=["2.38"])),
            "glibc",
            "has 2.36, lib/x.so needs the most: 2.38",
        ),
        (
            add("opt/asr/lib/x.so", elf(glibc=["2.34"])),
            "glibc of ours",
            "what is ours needs 2.34, at most 2.28",
        ),
        (
            add("opt/asr/bin/x", elf(interpreter="/lib64/ld.so")),
            "libraries",
            "missing: ['lib64/ld.so']",
        ),
        (link("gone.so"), "links", "lib/away -> gone.so"),
        (link("../../outside"), "links", "lib/away -> ../../outside"),
        (link("/etc/gone"), "links", "lib/away -> /etc/gone"),
        (
            lambda root: (root / LIBC).write_bytes((root / LIBC).read_bytes() + b"x"),
            "files",
            "not as in the manifest: ['lib/libc.so.6']",
        ),
        (
            lambda root: (root / "etc.txt").write_text("new"),
            "files",
            "not as in the manifest: ['etc.txt']",
        ),
        (
            lambda root: (root / "opt/asr/share/licences/deb-libc6/copyright").rename(root / "c")
            and (root / "opt/asr/share/licences/deb-libc6").rmdir(),
            "licences",
            "without a licence: ['libc6']",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(root, tmp_path, change, name, found):
    """One thing wrong, one row of the table that says what."""
    change(root)
    assert checks(root, tmp_path)[name] == found


def test_size_user_and_platform(root, tmp_path):
    """An image above its profile's limit, of another user, for another machine."""
    large = contents.profile("rust").largest_mb * 1_000_000 + 1

    def change(image):
        configuration = image.config | {"architecture": "amd64", "config": {"User": "0"}}
        return dataclasses.replace(image, layer_bytes=(large,), config=configuration)

    failed = checks(root, tmp_path, change)
    assert failed.keys() == {"size", "user", "platform"}
    assert failed["size"].startswith("16.00 MB without a model, at most 16")
    exact = checks(root, tmp_path, lambda i: dataclasses.replace(i, layer_bytes=(large - 1,)))
    assert exact == {}


def test_a_missing_tool_is_named_with_the_line_that_installs_it(monkeypatch, tmp_path, capsys):
    """Exit code 7, whatever else may be wrong: nothing is skipped."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["deploy", "verify", str(tmp_path / "none.tar")]) == 7
    said = capsys.readouterr().err
    assert "qemu-aarch64-static" in said
    assert "apt-get install -y qemu-user-static util-linux skopeo" in said


def test_every_tool_has_its_package():
    """A program that we ask for without a line that installs it would be our bug."""
    import re
    from pathlib import Path

    asked = set()
    for path in Path(tools.__file__).parent.glob("*.py"):
        for call in re.findall(r"\bneed\(([^)]*)\)", path.read_text()):
            asked |= set(re.findall(r'"([^"]+)"', call))
    assert asked <= tools.PACKAGES.keys()
    assert len(asked) > 5


def test_a_program_that_fails_says_why(tmp_path):
    """The end of what it said, and its exit code."""
    with pytest.raises(SystemAccessError, match="sh: exit code 3: because"):
        tools.run(["sh", "-c", "echo because >&2; exit 3"])
    with pytest.raises(SystemAccessError, match=r"sleep: not done after 0 s"):
        tools.run(["sleep", "5"], timeout_s=0.1)
    with pytest.raises(MissingToolError, match="apt-get install -y cpio"):
        tools.run(["cpio"], environment={"PATH": str(tmp_path)})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, "one two\n", "", "one two"), ("text a76", True, "'one two'")),
        ((0, "one too\n", "", "one"), ("text a76", False, "expected 'one', found 'one too'")),
        ((4, "", "asr-edge: no\n", "x"), ("run, a76", False, "exit code 4: asr-edge: no")),
        (
            (-4, "", "", "x"),
            ("run, a76", False, "killed by SIGILL: an instruction that this core does not have"),
        ),
    ],
)  # fmt: skip
def test_a_run_is_judged_by_its_text(arguments, expected):
    """The exact text; another one is another name than a crash, hence another exit code."""
    found = verify._text_check("a76", *arguments)
    assert (found.name, found.ok, found.found) == expected


@pytest.mark.parametrize(
    ("results", "code"), [([True], 0), ([True, False], 12), ([False, "run"], 4)]
)
def test_exit_codes(monkeypatch, tmp_path, capsys, results, code):
    """Another text is 12; anything else that failed is 4; the table and the JSON have every row."""
    rows = [
        inspect.Check("run" if r == "run" else f"text {n}", r is True, f"found {n}")
        for n, r in enumerate(results)
    ]
    monkeypatch.setattr(verify, "verify", lambda *_, **__: iter(rows))
    assert main(["deploy", "verify", "x.tar"]) == code
    table = capsys.readouterr().out
    assert [row.found in table for row in rows] == [True] * len(rows)
    assert main(["deploy", "verify", "x.tar", "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], [c["found"] for c in told["checks"]]) == (
        code == 0,
        [r.found for r in rows],
    )


def test_a_clip_needs_its_text(capsys):
    assert main(["deploy", "verify", "x.tar", "--clip", "a.wav"]) == 2
    assert "--clip and --text belong together" in capsys.readouterr().err


def test_what_a_core_says_of_itself():
    """The A76 has the dot product, the A72 has not; four cores each."""
    a76, a72 = (emulate.cpuinfo(cpu) for cpu in ("cortex-a76", "cortex-a72"))
    assert (a76.count("CPU part\t: 0xd0b"), a72.count("CPU part\t: 0xd08")) == (4, 4)
    assert ("asimddp" in a76, "asimddp" in a72) == (True, False)


CONSOLE = (
    "@memory_kib 472000\r\n@part 0xd0b\r\n@part 0xd0b\r\n@begin\r\none two\r\nthree\r\n"
    "@code 0\r\n@stderr a warning\r\n"
)


def test_a_console_is_read():
    """Text, exit code, memory and CPU part; a board that never ran anything is an error."""
    found = boot.read(CONSOLE)
    assert (found.code, found.text, found.stderr) == (0, "one two\nthree\n", "a warning")
    assert (found.memory_kib, found.part) == (472000, "0xd0b")
    with pytest.raises(SystemAccessError, match="stopped before it ran anything: Kernel panic"):
        boot.read("Kernel panic\r\n")
    with pytest.raises(SystemAccessError, match="stopped before"):
        boot.read(CONSOLE[: CONSOLE.index("@code")])


def test_layers_over_one_another():
    """What a board sees of two layers."""

    def layer(**files):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return file.getvalue()

    merged = verify._over_one_another([layer(a=b"1", b=b"2"), layer(b=b"3", c=b"4")])
    with tarfile.open(fileobj=io.BytesIO(merged)) as archive:
        assert {m.name: archive.extractfile(m).read() for m in archive} == {
            "a": b"1", "b": b"3", "c": b"4",
        }  # fmt: skip
