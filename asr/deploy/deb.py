"""The Rust profile as a Debian package, on the board's own libc."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from asr.deploy.cross import GLIBC
from asr.deploy.tools import need, run
from asr.deploy.tree import HOME, MODELS, SBOM
from asr.errors import UsageError

_CONTROL = """Package: asr-edge
Version: {version}
Architecture: arm64
Maintainer: asr-rtf maintainers <maintainers@users.noreply.example>
Installed-Size: {kib}
Depends: libc6 (>= {glibc}), libgcc-s1, libstdc++6
Section: sound
Priority: optional
Description: Speech to text on a Cortex-A76 board
 One program, one library for C, ONNX Runtime beside them, a model and a unit
 for systemd. Nothing is sent anywhere.
"""
_COPYRIGHT = """asr-edge is licensed under Apache-2.0. The licences of all that it is made of are in
/{home}/share/licences, the list in /{sbom}.
"""


def write(root: Path, model: Path | None, unit: Path, path: Path, facts: dict[str, Any]) -> None:
    """Write the package.

    Args:
        root: the tree of the Rust profile; only what is ours is taken, libc is the board's.
        model: a folder with ``models/``, which goes to ``/opt/asr/models``.
        unit: for systemd.
        path: the package.
        facts: the tree's manifest.

    Raises:
        UsageError: another profile.
        MissingToolError: dpkg-deb is not installed.
    """
    if facts["profile"] != "rust":
        raise UsageError("--format deb belongs to --profile rust; take a wheel for Python")
    need("dpkg-deb")
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        tree = Path(scratch) / "tree"
        shutil.copytree(root / HOME, tree / HOME, symlinks=True)
        if model is not None:
            shutil.copytree(model / MODELS, tree / HOME / MODELS)
        _text(tree / "lib/systemd/system/asr-edge.service", unit.read_text(encoding="utf-8"))
        _text(tree / "usr/share/doc/asr-edge/copyright", _COPYRIGHT.format(home=HOME, sbom=SBOM))
        (tree / "usr/bin").mkdir(parents=True)
        (tree / "usr/bin/asr-edge").symlink_to(f"/{HOME}/bin/asr-edge")
        total = sum(p.stat().st_size for p in tree.rglob("*") if p.is_file())
        _text(
            tree / "DEBIAN/control",
            _CONTROL.format(version=facts["version"], kib=total // 1024, glibc=GLIBC),
        )
        for entry in tree.rglob("*"):
            if not entry.is_symlink():
                executable = entry.is_dir() or entry.stat().st_mode & 0o100
                entry.chmod(0o755 if executable else 0o644)
        run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", tree, path],
            environment={"SOURCE_DATE_EPOCH": str(facts["built_at_s"])},
        )


def _text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
