"""Where the stages of an image leave what the next stage reads: one folder, nothing outside it."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.errors import UsageError
from asr.hub.store import digest

DEFAULT = Path("build/deploy")


@dataclass(frozen=True, slots=True)
class Work:
    """The folder of a build.

    Attributes:
        root: holds ``fetched/``, ``cross/``, one folder per profile, and ``out/``.
    """

    root: Path

    @property
    def base(self) -> Path:
        """Debian's arm64 files, unpacked, and ``base.json`` beside them."""
        return self.root / "fetched/base"

    @property
    def wheels(self) -> Path:
        """The aarch64 wheels."""
        return self.root / "fetched/wheels"

    @property
    def boot(self) -> Path:
        """A kernel, its modules and busybox, for the boot of ``verify``."""
        return self.root / "fetched/boot"

    @property
    def cross(self) -> Path:
        """The linker's environment and, where the machine's Rust lacks aarch64, a compiler."""
        return self.root / "cross"

    def profile(self, name: str) -> Path:
        """``root/`` (the tree), ``model/`` (the second layer) and ``image.json`` of a profile."""
        return self.root / name

    @property
    def out(self) -> Path:
        """What ``pack`` writes."""
        return self.root / "out"


def fresh(folder: Path) -> Path:
    """An empty folder in place of whatever was there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def read_json(path: Path, stage: str) -> Any:  # noqa: ANN401 - the reader knows what it wrote
    """What an earlier stage wrote.

    Raises:
        UsageError: the stage has not run; the message says which.
    """
    if not path.is_file():
        raise UsageError(f"{path}: expected what asr deploy {stage} leaves, found none; run it")
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, value: object) -> None:
    """Write with sorted keys, so that the same value is the same bytes."""
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def files_of(folder: Path) -> list[Path]:
    """Everything below a folder, folders and links included, sorted by path."""
    return sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())


def checksums(folder: Path) -> list[dict[str, Any]]:
    """``path``, ``size`` and ``sha256`` of each plain file below a folder, sorted."""
    return [
        {
            "path": path.relative_to(folder).as_posix(),
            "size": path.stat().st_size,
            "sha256": digest(path),
        }
        for path in files_of(folder)
        if path.is_file() and not path.is_symlink()
    ]


def built_at_s(source: Path) -> int:
    """The time that goes into an image: SOURCE_DATE_EPOCH, else the commit's, else 0.

    Args:
        source: a checkout.
    """
    import subprocess

    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "-C", str(source), "log", "-1", "--format=%ct"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except FileNotFoundError:
        return 0
    return int(ended.stdout or 0) if ended.returncode == 0 else 0
