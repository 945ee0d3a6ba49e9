"""The root file system of an image, and the model that may lie on top of it."""

import shutil
import sys
import zipfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from asr import _rust_fe
from asr.deploy import closure, fetch, parts
from asr.deploy.contents import Profile, matches
from asr.deploy.parts import Part
from asr.deploy.tools import run
from asr.deploy.work import Work, checksums, files_of, fresh, write_json

#: Everything of ours, in every profile; ``MODELS`` is where a volume or the model layer goes.
HOME, MODELS = "opt/asr", "models"
MANIFEST, SBOM = f"{HOME}/manifest.json", f"{HOME}/sbom.spdx.json"
SCHEMA_ID = "asr-image/1"
USER_ID = 1000
_RUNTIME = "onnxruntime/capi/libonnxruntime.so.*"
_EMPTY = ("dev", "proc", "run", "sys", "tmp", MODELS)
_LAUNCHER = """#!/usr/bin/python3.11
import sys

sys.path.insert(0, "/opt/asr/lib")
from asr.cli import run_and_exit

run_and_exit()
"""


def assemble(
    work: Work,
    profile: Profile,
    built: Path,
    ours: list[Part],
    built_at_s: int,
    headers: list[Path],
) -> Path:
    """Put a root file system together.

    Args:
        work: holds what was fetched; gets the tree.
        profile: what goes in.
        built: of ``rust`` the folder with ``asr-edge``, of ``python`` the wheel.
        ours: what ``built`` is made of.
        built_at_s: seconds since 1970, for the manifest.
        headers: C headers of ``rust``'s library.

    Returns:
        the tree.

    Raises:
        LayoutError: a library that something needs is in no package.
    """
    root = fresh(work.profile(profile.name) / "root")
    found = list(ours)
    if profile.name == "rust":
        found += _rust(work, root, built, headers)
    else:
        found += _python(work, root, built, profile)
    found += closure.take(work, root, profile)
    _system(root)
    if profile.name == "python":
        _byte_compile(root)
    for part in found:
        part.keep_licences(root / HOME / "share/licences")
    version = _rust_fe.build_info()["version"]
    write_json(root / SBOM, parts.spdx(found, f"asr-{profile.name}-{version}", built_at_s))
    manifest = {
        "schema": SCHEMA_ID,
        "profile": profile.name,
        "version": version,
        "built_at_s": built_at_s,
        "packages": [part.row() for part in found],
        "files": checksums(root),
    }
    write_json(root / MANIFEST, manifest)
    return root


def _rust(work: Work, root: Path, built: Path, headers: list[Path]) -> list[Part]:
    """The program, the C library and its header, and the runtime beside them."""
    for folder in ("bin", "include", "lib"):
        (root / HOME / folder).mkdir(parents=True, exist_ok=True)
    for name, folder in (("asr-edge", "bin"), ("libasr_edge.so", "lib")):
        shutil.copyfile(built / name, root / HOME / folder / name)
        (root / HOME / folder / name).chmod(0o755)
    for header in headers:
        shutil.copyfile(header, root / HOME / "include" / header.name)
    (wheel,) = work.wheels.glob("onnxruntime-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if fnmatchcase(n, _RUNTIME)]
        (root / HOME / "lib/libonnxruntime.so.1").write_bytes(archive.read(name))
    return [parts.of_wheel(wheel)]


def _python(work: Work, root: Path, built: Path, profile: Profile) -> list[Part]:
    """This project's wheel, what it depends on, and a launcher."""
    wheels = [built, *sorted(work.wheels.glob("*.whl"))]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                path = f"{HOME}/lib/{entry.filename}"
                if entry.is_dir() or ".data/" in path or matches(path, profile.prune):
                    continue
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_bytes(archive.read(entry))
    launcher = root / HOME / "bin/asr"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER)
    launcher.chmod(0o755)
    return [parts.of_wheel(wheel) for wheel in wheels[1:]]


def _system(root: Path) -> None:
    """A user, and the folders that a kernel or a container engine mounts over."""
    for name in _EMPTY:
        (root / name).mkdir(exist_ok=True)
    (root / "tmp").chmod(0o1777)
    etc = root / "etc"
    etc.mkdir(exist_ok=True)
    (etc / "passwd").write_text(
        f"root:x:0:0:root:/:/sbin/nologin\nasr:x:{USER_ID}:{USER_ID}:asr:/tmp:/sbin/nologin\n"
    )
    (etc / "group").write_text(f"root:x:0:\nasr:x:{USER_ID}:\n")


def _byte_compile(root: Path) -> None:
    """Compile by content, not by time stamp: the same bytes each time, nothing to write later."""
    folders = [root / f"usr/lib/python{fetch.PYTHON}", root / HOME / "lib"]
    is_ours = ".".join(map(str, sys.version_info[:2])) == fetch.PYTHON
    python = sys.executable if is_ours else f"python{fetch.PYTHON}"
    run(
        [python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
         "-s", root, "-p", "/", *folders],
        environment={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""},
    )  # fmt: skip


def add_model(work: Work, profile: Profile, model: str) -> Path:
    """The layer on top: for ``rust`` a bundle, for ``python`` the model's folder.

    Args:
        work: gets ``PROFILE/model/models``.
        profile: of the image below.
        model: folder, or a name from ``asr models list``.
    """
    from asr.deploy import bundle
    from asr.hub import find_model
    from asr.layouts import open_layout

    folder = fresh(work.profile(profile.name) / "model") / MODELS
    layout = open_layout(find_model(model))
    if profile.name == "rust":
        return bundle.write(layout, layout.folder.resolve().name, folder)
    shutil.copytree(layout.folder, folder)
    return folder


def summary(root: Path) -> dict[str, Any]:
    """``files`` and ``bytes`` of a tree."""
    plain = [path for path in files_of(root) if path.is_file() and not path.is_symlink()]
    return {"files": len(plain), "bytes": sum(path.stat().st_size for path in plain)}
