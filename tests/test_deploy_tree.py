"""What goes into an image: libraries that are needed, nothing pruned, a licence for each."""

import json
import zipfile

import pytest
from elf_files import elf

from asr.deploy import closure, contents, fetch, parts
from asr.deploy.contents import Profile
from asr.deploy.work import Work, write_json
from asr.errors import LayoutError, UsageError

LIBS = "usr/lib/aarch64-linux-gnu"
RUST = Profile("rust", (), (), 16, 512)


@pytest.fixture
def work(tmp_path):
    """A base of three packages: libc, a library that needs libc, one that nobody needs."""
    made = Work(tmp_path / "work")
    base = made.base
    files = {
        "libc6": {
            f"{LIBS}/gconv/libc.so.6": b"not this one",
            f"{LIBS}/ld-linux-aarch64.so.1": elf(),
            f"{LIBS}/libc.so.6": elf(needed=["ld-linux-aarch64.so.1"]),
        },
        "zlib1g": {f"{LIBS}/libz.so.1.3": elf(needed=["libc.so.6"])},
        "libffi8": {f"{LIBS}/libffi.so.8": elf(needed=["libc.so.6"])},
    }
    rows = []
    for name, content in files.items():
        for path, data in content.items():
            (base / path).parent.mkdir(parents=True, exist_ok=True)
            (base / path).write_bytes(data)
        doc = base / f"usr/share/doc/{name}/copyright"
        doc.parent.mkdir(parents=True)
        doc.write_text(f"licence of {name}")
        rows.append({"name": name, "version": "1", "sha256": "0" * 64, "files": list(content)})
    (base / "lib").mkdir()
    (base / "lib/ld-linux-aarch64.so.1").symlink_to(f"/{LIBS}/ld-linux-aarch64.so.1")
    rows[0]["files"].append("lib/ld-linux-aarch64.so.1")
    (base / LIBS / "libz.so.1").symlink_to("libz.so.1.3")
    rows[1]["files"].append(f"{LIBS}/libz.so.1")
    write_json(base.with_name("base.json"), {"packages": rows})
    return made


def program(folder, *needed, interpreter="/lib/ld-linux-aarch64.so.1"):
    (folder / "opt").mkdir(parents=True)
    (folder / "opt/x").write_bytes(elf(needed=needed, interpreter=interpreter))
    return folder


def names(folder):
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if not p.is_dir()}


def test_libraries_come_along_and_no_others(work, tmp_path):
    """What a library needs in turn, a link with what it leads to, the real libc.so.6."""
    root = program(tmp_path / "root", "libz.so.1")
    found = closure.take(work, root, RUST)
    assert names(root) == {
        "opt/x", "lib/ld-linux-aarch64.so.1", f"{LIBS}/ld-linux-aarch64.so.1",
        f"{LIBS}/libc.so.6", f"{LIBS}/libz.so.1", f"{LIBS}/libz.so.1.3",
    }  # fmt: skip
    assert [part.name for part in found] == ["libc6", "zlib1g"]
    assert (root / LIBS / "libz.so.1").is_symlink()
    assert (root / LIBS / "libc.so.6").read_bytes() != b"not this one"


def test_a_library_inside_the_image_is_not_brought_again(work, tmp_path):
    """A program with its own libz takes only libc from the base."""
    root = program(tmp_path / "root", "libz.so.1", "libc.so.6")
    (root / "opt/libz.so.1").write_bytes(elf())
    assert [part.name for part in closure.take(work, root, RUST)] == ["libc6"]


def test_a_library_that_is_nowhere(work, tmp_path):
    """The message names who needs it, and where to add its package."""
    root = program(tmp_path / "root", "libasound.so.2")
    with pytest.raises(LayoutError, match=r"opt/x: needs libasound\.so\.2.*contents\.toml"):
        closure.take(work, root, RUST)
    root = program(tmp_path / "musl", interpreter="/lib/ld-musl-aarch64.so.1")
    with pytest.raises(LayoutError, match=r"opt/x: needs lib/ld-musl-aarch64\.so\.1"):
        closure.take(work, root, RUST)


def test_a_profile_keeps_and_prunes(work, tmp_path):
    """A kept file comes without being needed, a pruned one does not."""
    root = program(tmp_path / "root")
    profile = Profile("python", (f"{LIBS}/*",), ("*/gconv/*", "*/libz*"), 50, 512)
    closure.take(work, root, profile)
    assert {n.rpartition("/")[2] for n in names(root)} == {
        "x", "libc.so.6", "libffi.so.8", "ld-linux-aarch64.so.1",
    }  # fmt: skip


def test_the_real_lists_prune_what_they_say():
    """Tests, headers and the second runtime go; what the program imports stays."""
    profile = contents.profile("python")
    gone = [
        "usr/lib/python3.11/test/support/__init__.py",
        "usr/lib/python3.11/lib-dynload/_testcapi.cpython-311-aarch64-linux-gnu.so",
        "opt/asr/lib/numpy/_core/tests/test_abc.py",
        "opt/asr/lib/numpy/_core/include/numpy/arrayobject.h",
        "opt/asr/lib/onnxruntime/capi/libonnxruntime.so.1.32.0",
        "opt/asr/lib/onnxruntime/tools/symbolic_shape_infer.py",
    ]
    stays = [
        "usr/lib/python3.11/ctypes/__init__.py",
        "opt/asr/lib/numpy/__init__.py",
        "opt/asr/lib/numpy.libs/libscipy_openblas64_.so",
        "opt/asr/lib/onnxruntime/capi/onnxruntime_pybind11_state.so",
        "opt/asr/lib/asr/testing.py",
    ]
    assert [path for path in gone if not contents.matches(path, profile.prune)] == []
    assert [path for path in stays if contents.matches(path, profile.prune)] == []


def test_a_package_without_a_known_licence_stops_the_build(work):
    """Somebody must read its copyright file first."""
    package = {"name": "libmystery", "version": "1", "sha256": None, "files": []}
    doc = work.base / "usr/share/doc/libmystery/copyright"
    doc.parent.mkdir()
    doc.write_text("?")
    with pytest.raises(LayoutError, match=r"libmystery: expected its licence in .*contents\.toml"):
        parts.of_deb(work.base, package)
    doc.unlink()
    with pytest.raises(LayoutError, match=r"libmystery: expected its licence in .*/copyright"):
        parts.of_deb(work.base, package)


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("Name: soxr\nVersion: 1\nLicense-Expression: LGPL-2.1-or-later\n", "LGPL-2.1-or-later"),
        ("Name: onnxruntime\nVersion: 1\nLicense: MIT License\n", "MIT"),
    ],
)
def test_the_licence_of_a_wheel(tmp_path, metadata, licence):
    """Its own expression; where it has prose, our table. Every licence text is kept."""
    wheel = tmp_path / "x-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("x-1.dist-info/METADATA", metadata)
        archive.writestr("x/LICENSE", "a")
        archive.writestr("x-1.dist-info/licenses/COPYING.LGPL", "b")
        archive.writestr("x/code.py", "c")
    part = parts.of_wheel(wheel)
    assert (part.licence, part.kind) == (licence, "wheel")
    part.keep_licences(tmp_path / "kept")
    kept = {p.name: p.read_text() for p in (tmp_path / "kept").rglob("*") if p.is_file()}
    assert kept == {"x-LICENSE": "a", "x-1.dist-info-licenses-COPYING.LGPL": "b"}


def test_the_list_of_parts_is_spdx():
    """What SPDX 2.3 demands of a document and a package; identifiers of its alphabet."""
    found = parts.spdx(
        [
            parts.Part("deb", "libstdc++6", "12", "MIT", "ab" * 32),
            parts.Part("crate", "ort", "2.0.0-rc.13", "MIT OR Apache-2.0"),
        ],
        "image",
        0,
    )
    assert (found["spdxVersion"], found["dataLicense"]) == ("SPDX-2.3", "CC0-1.0")
    assert found["creationInfo"]["created"] == "1970-01-01T00:00:00Z"
    first, second = found["packages"]
    assert first["SPDXID"] == "SPDXRef-deb-libstdc--6-12"
    assert first["checksums"] == [{"algorithm": "SHA256", "checksumValue": "ab" * 32}]
    assert second["licenseDeclared"] == "MIT OR Apache-2.0"
    related = [row["relatedSpdxElement"] for row in found["relationships"]]
    assert related == [first["SPDXID"], second["SPDXID"]]


def test_the_packages_of_a_given_root_file_system(tmp_path):
    """--base-tar: dpkg's own list says what is installed; without one the file is refused."""
    root = tmp_path / "made/var/lib/dpkg"
    (root / "info").mkdir(parents=True)
    (tmp_path / "made/lib").mkdir()
    (tmp_path / "made/lib/libc.so.6").write_bytes(elf())
    (root / "info/libc6:arm64.list").write_text("/.\n/lib\n/lib/libc.so.6\n/usr/share/gone\n")
    (root / "status").write_text(
        "Package: libc6\nStatus: install ok installed\nArchitecture: arm64\nVersion: 2.36-9\n"
        "Description: a: b\n\nPackage: other\nArchitecture: amd64\nVersion: 1\n"
    )
    import tarfile

    with tarfile.open(tmp_path / "base.tar", "w") as tar:
        tar.add(tmp_path / "made", arcname=".")
    work = Work(tmp_path / "work")
    fetch.base(work, tmp_path / "base.tar")
    assert json.loads(work.base.with_name("base.json").read_text())["packages"] == [
        {"name": "libc6", "version": "2.36-9", "sha256": None, "files": ["lib/libc.so.6"]}
    ]
    with tarfile.open(tmp_path / "bare.tar", "w") as tar:
        tar.add(tmp_path / "made/lib", arcname="lib")
    with pytest.raises(LayoutError, match=r"expected a Debian root file system.*mmdebstrap"):
        fetch.base(work, tmp_path / "bare.tar")


def test_a_stage_that_has_not_run_is_named(tmp_path):
    """Building before fetching."""
    with pytest.raises(UsageError, match=r"base\.json: expected what asr deploy fetch leaves"):
        fetch.packages_of(Work(tmp_path))
