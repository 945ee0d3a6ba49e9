"""Layers, images and packages: the same tree is the same bytes, and damage is seen."""

import gzip
import hashlib
import io
import json
import os
import tarfile

import pytest

from asr.deploy import oci
from asr.deploy.archive import compress, tar
from asr.errors import LayoutError

CONFIG = {"User": "1000:1000", "Entrypoint": ["/x"], "Labels": {"a": "b"}}
WHEN_S = 1_700_000_000


def grow(folder, names):
    """A tree with a file, a program, a link and an empty folder, made in the order of the names."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (folder / "bin/run").chmod(0o775)
    (folder / "bin/link").symlink_to("run")
    (folder / "tmp").mkdir()
    (folder / "tmp").chmod(0o1777)
    return folder


@pytest.fixture
def tree(tmp_path):
    return grow(tmp_path / "tree", ["bin/run", "etc/passwd", "b.txt"])


def entries(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {m.name: m for m in archive}


def test_a_tar_is_the_tree_and_nothing_of_the_machine(tree, tmp_path):
    """Another order of making, other times, other permissions of the maker: the same bytes."""
    other = grow(tmp_path / "other", ["b.txt", "etc/passwd", "bin/run"])
    os.utime(other / "b.txt", (1, 1))
    (other / "b.txt").chmod(0o640)
    assert tar([tree], WHEN_S) == tar([other], WHEN_S)
    found = entries(tar([tree], WHEN_S))
    assert list(found) == sorted(found)
    assert {m.mtime for m in found.values()} == {WHEN_S}
    assert {(m.uid, m.gid, m.uname, m.gname) for m in found.values()} == {(0, 0, "root", "root")}
    modes = {name: oct(m.mode) for name, m in found.items()}
    assert modes == {
        "b.txt": "0o644", "bin": "0o755", "bin/link": "0o777", "bin/run": "0o755",
        "etc": "0o755", "etc/passwd": "0o644", "tmp": "0o1777",
    }  # fmt: skip
    assert found["bin/link"].linkname == "run"


def test_what_changed_shows(tree):
    """A content, a permission, a link, a time: each is other bytes."""
    seen = [tar([tree], WHEN_S), tar([tree], WHEN_S + 1)]
    (tree / "b.txt").write_text("c.txt")
    seen.append(tar([tree], WHEN_S))
    (tree / "b.txt").chmod(0o755)
    seen.append(tar([tree], WHEN_S))
    (tree / "bin/link").unlink()
    (tree / "bin/link").symlink_to("other")
    seen.append(tar([tree], WHEN_S))
    assert len(set(seen)) == len(seen)


def test_a_later_tree_lies_on_top(tree, tmp_path):
    """A file of the second tree replaces that of the first."""
    (tmp_path / "top").mkdir()
    (tmp_path / "top/b.txt").write_text("new")
    (tmp_path / "top/a.txt").write_text("first")
    with tarfile.open(fileobj=io.BytesIO(tar([tree, tmp_path / "top"], WHEN_S))) as archive:
        assert archive.extractfile("b.txt").read() == b"new"
        assert archive.getnames() == sorted(archive.getnames())


def test_gzip_has_no_name_and_no_time():
    """Bytes 4 to 7 of a gzip file are its time; bit 3 of its flags says that a name follows."""
    data = compress(b"x" * 1000)
    assert (data[4:8], data[3] & 8) == (b"\0\0\0\0", 0)
    assert gzip.decompress(data) == b"x" * 1000


@pytest.fixture
def image(tree, tmp_path):
    layers = [oci.Layer(tar([tree], WHEN_S), "one"), oci.Layer(tar([tree / "etc"], WHEN_S), "two")]
    path = tmp_path / "image.tar"
    digest = oci.write(path, "asr:1.0", layers, CONFIG, WHEN_S)
    return path, digest, layers


def test_an_image_comes_back(image):
    """Tag, digest, configuration and layers; built for 64-bit Arm."""
    path, digest, layers = image
    found = oci.read(path)
    assert (found.tag, found.manifest_digest) == ("asr:1.0", digest)
    assert found.layers == tuple(layer.tar for layer in layers)
    assert found.config["config"] == CONFIG
    assert {k: found.config[k] for k in oci.PLATFORM} == oci.PLATFORM
    assert found.config["created"] == "2023-11-14T22:13:20Z"
    assert [row["created_by"] for row in found.config["history"]] == ["one", "two"]


def test_the_same_image_is_the_same_file(image, tmp_path):
    """Byte for byte."""
    path, _, layers = image
    oci.write(tmp_path / "again.tar", "asr:1.0", layers, CONFIG, WHEN_S)
    assert (tmp_path / "again.tar").read_bytes() == path.read_bytes()


def test_docker_finds_the_same_blobs(image):
    """Docker's manifest.json names the configuration and the layers by their digests."""
    path, _, layers = image
    with tarfile.open(path) as archive:
        (row,) = json.load(archive.extractfile("manifest.json"))
        packed = [archive.extractfile(name).read() for name in row["Layers"]]
    assert row["RepoTags"] == ["asr:1.0"]
    assert [gzip.decompress(data) for data in packed] == [layer.tar for layer in layers]
    names = [f"blobs/sha256/{hashlib.sha256(data).hexdigest()}" for data in packed]
    assert row["Layers"] == names


def rewrite(path, change):
    """The archive with its files changed."""
    with tarfile.open(path) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive if m.isfile()}
    change(files)
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def largest(files):
    return max(files, key=lambda name: len(files[name]))


def flip(files):
    name = largest(files)
    files[name] = files[name][:50] + bytes([files[name][50] ^ 1]) + files[name][51:]


def lose(files):
    del files[largest(files)]


def swap_docker(files):
    (row,) = json.loads(files["manifest.json"])
    row["Layers"].reverse()
    files["manifest.json"] = json.dumps([row]).encode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flip, "expected a blob sha256:"),
        (lose, "expected an OCI archive, found it damaged"),
        (swap_docker, "manifest.json names other blobs"),
        (lambda files: files.pop("index.json"), "found it damaged"),
        (lambda files: files.update({"index.json": b"{"}), "found it damaged"),
    ],
)
def test_damage_is_seen(image, change, message):
    """A bit of a layer, a layer gone, the two indexes apart, no index, half an index."""
    path = image[0]
    rewrite(path, change)
    with pytest.raises(LayoutError, match=message):
        oci.read(path)


@pytest.mark.parametrize("content", [None, b"", b"not a tar file" * 100])
def test_what_is_no_image(tmp_path, content):
    """A file that is not there, an empty one, another one."""
    if content is not None:
        (tmp_path / "x.tar").write_bytes(content)
    with pytest.raises(LayoutError, match=r"x\.tar: expected an"):
        oci.read(tmp_path / "x.tar")
