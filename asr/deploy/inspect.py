"""What can be said of an image without running it: each check a row, none of them silent."""

import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from asr.deploy import contents, cross, elf
from asr.deploy.oci import PLATFORM, Image
from asr.deploy.tree import HOME, MANIFEST, SBOM, USER_ID
from asr.deploy.work import checksums, files_of
from asr.errors import LayoutError


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        ok: whether it is as it should be.
        found: in words.
    """

    name: str
    ok: bool
    found: str

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def check(image: Image, root: Path, facts: dict[str, Any]) -> Iterator[Check]:
    """Look at an image.

    Args:
        image: its archive, digests checked.
        root: its layers, unpacked over one another.
        facts: its manifest.
    """
    config = image.config["config"]
    platform = {key: image.config.get(key) for key in PLATFORM}
    yield Check("platform", platform == PLATFORM, "/".join(map(str, platform.values())))
    user = config.get("User")
    yield Check("user", user == f"{USER_ID}:{USER_ID}", str(user))
    yield Check("size", *_size(image, facts["profile"]))
    yield Check("files", *_files(root, facts))
    yield from _programs(root)
    yield Check("links", *_links(root))
    yield Check("licences", *_licences(root, facts))


def _size(image: Image, profile: str) -> tuple[bool, str]:
    limit = contents.profile(profile).largest_mb
    size = image.layer_bytes[0] / 1e6
    model = sum(image.layer_bytes[1:]) / 1e6
    told = f"{size:.2f} MB without a model, at most {limit}; model layer {model:.2f} MB"
    return size <= limit, told


def _files(root: Path, facts: dict[str, Any]) -> tuple[bool, str]:
    """Against the manifest: nothing changed, nothing missing, nothing that nobody named."""
    expected = {row["path"]: row["sha256"] for row in facts["files"]}
    found = {
        row["path"]: row["sha256"]
        for row in checksums(root)
        if row["path"] != MANIFEST and not row["path"].startswith("models/")
    }
    wrong = sorted(
        path for path in expected.keys() | found.keys() if expected.get(path) != found.get(path)
    )
    told = f"{len(found)} as in {MANIFEST}" if not wrong else f"not as in the manifest: {wrong[:3]}"
    return not wrong, told


def _programs(root: Path) -> Iterator[Check]:
    """The machine, the libraries and the glibc that each ELF file wants."""
    plain = [path for path in files_of(root) if path.is_file() and not path.is_symlink()]
    files = {path: found for path in plain if (found := elf.read(path)) is not None}
    other = [
        f"{p.relative_to(root)} ({e.machine})" for p, e in files.items() if e.machine != "aarch64"
    ]
    told = ", ".join(other[:3]) if other else f"{len(files)} files, all aarch64"
    yield Check("machine", bool(files) and not other, told)
    names = {path.name for path in files_of(root)}
    absent = sorted({n for e in files.values() for n in e.needed if n not in names})
    linkers = {e.interpreter for e in files.values()} - {""}
    absent += sorted(path for path in linkers if not os.path.lexists(root / path))
    yield Check("libraries", not absent, f"missing: {absent}" if absent else "all inside")
    has = _glibc_of(root, files)
    newest, path = max((e.glibc, str(p.relative_to(root))) for p, e in files.items())
    told = f"has {_dotted(has)}, {path} needs the most: {_dotted(newest)}"
    yield Check("glibc", newest <= has, told)
    limit = tuple(map(int, cross.GLIBC.split(".")))
    ours = [e.glibc for p, e in files.items() if p.is_relative_to(root / HOME)]
    most = max(ours, default=())
    told = f"what is ours needs {_dotted(most)}, at most {cross.GLIBC}"
    yield Check("glibc of ours", most <= limit, told)


def _glibc_of(root: Path, files: dict[Path, elf.Elf]) -> tuple[int, ...]:
    """The newest version that the image's libc names."""
    import re

    libc = [path for path in files if path.name == "libc.so.6"]
    if not libc:
        raise LayoutError(f"{root}: expected libc.so.6 in the image, found none")
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)\0", libc[0].read_bytes())
    return max(tuple(map(int, pair)) for pair in found)


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version)) or "none"


def _links(root: Path) -> tuple[bool, str]:
    """Every link leads to something inside the image."""
    links = [path for path in files_of(root) if path.is_symlink()]
    broken = []
    for path in links:
        target = str(path.readlink())
        start = root if target.startswith("/") else path.parent
        whole = Path(os.path.normpath(start / target.lstrip("/")))
        if not whole.is_relative_to(root) or not os.path.lexists(whole):
            broken.append(f"{path.relative_to(root)} -> {target}")
    return not broken, ", ".join(broken[:3]) if broken else f"{len(links)}, all inside"


def _licences(root: Path, facts: dict[str, Any]) -> tuple[bool, str]:
    """Each package has a licence; those that bring a text have it here; the SPDX list is there."""
    rows = facts["packages"]
    bare = [row["name"] for row in rows if not row["licence"] or row["licence"] == "NOASSERTION"]
    folder = root / HOME / "share/licences"
    lost = [
        r["name"] for r in rows if r["kind"] == "deb" and not (folder / f"deb-{r['name']}").is_dir()
    ]
    ok = not bare and not lost and (root / SBOM).is_file()
    told = f"{len(rows)} packages in {SBOM}" if ok else f"without a licence: {(bare + lost)[:3]}"
    return ok, told
