"""Bring what the images are cut from: Debian's arm64 files, aarch64 wheels, a kernel to boot."""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

from asr.deploy import contents
from asr.deploy.tools import need, run
from asr.deploy.work import Work, fresh, read_json, write_json
from asr.errors import LayoutError
from asr.hub.store import digest

LOCK = Path(__file__).with_name("wheels.lock")
PYTHON = "3.11"  # the base's
#: pip does not widen a platform tag to the older ones that it includes.
PLATFORMS = ("2_28", "2_27", "2_26", "2014", "2_17")
#: Kernel modules of the boot, in the order they are loaded.
MODULES = ("virtio_ring", "virtio", "virtio_mmio", "virtio_blk", "squashfs")


def base(work: Work, base_tar: Path | None = None) -> None:
    """Unpack Debian's arm64 packages, without running any of their scripts.

    Args:
        work: gets ``fetched/base`` and ``fetched/base.json``.
        base_tar: a Debian arm64 root file system as a tar file, instead of fetching one.

    Raises:
        MissingToolError: mmdebstrap is not installed.
        LayoutError: the tar file has no list of packages.
    """
    if base_tar is None:
        wanted = contents.base()
        packages = _debian(work.base, wanted["packages"], wanted["suite"])
    else:
        folder = fresh(work.base)
        with tarfile.open(base_tar) as tar:
            tar.extractall(folder, filter="tar")
        packages = _installed(folder)
    write_json(work.base.with_name("base.json"), {"packages": packages})


def boot(work: Work) -> None:
    """Unpack a kernel and busybox, keeping what the boot of ``verify`` needs."""
    wanted = contents.base()
    whole = work.boot.with_name("boot-packages")
    packages = _debian(whole, wanted["boot"], wanted["suite"])
    folder = fresh(work.boot)
    (kernel,) = whole.glob("boot/vmlinuz-*")
    shutil.copyfile(kernel, folder / "vmlinuz")
    for name in MODULES:
        (module,) = whole.glob(f"lib/modules/*/kernel/**/{name}.ko")
        shutil.copyfile(module, folder / module.name)
    shutil.copyfile(whole / "bin/busybox", folder / "busybox")
    (folder / "busybox").chmod(0o755)
    shutil.rmtree(whole)
    names = [p for p in packages if p["name"].startswith(("linux-image-6", "busybox"))]
    write_json(folder / "boot.json", {"packages": names})


def wheels(work: Work) -> None:
    """Download the locked aarch64 wheels; pip checks their hashes."""
    platforms = [word for tag in PLATFORMS for word in ("--platform", f"manylinux{_tag(tag)}")]
    abis = [
        word for tag in (f"cp{PYTHON.replace('.', '')}", "abi3", "none") for word in ("--abi", tag)
    ]
    run([
        sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
        "--require-hashes", "--requirement", LOCK, "--dest", fresh(work.wheels),
        "--python-version", PYTHON, "--implementation", "cp", *platforms, *abis,
    ])  # fmt: skip


def _tag(version: str) -> str:
    return f"{version}_aarch64" if version == "2014" else f"_{version}_aarch64"


def packages_of(work: Work) -> list[dict[str, Any]]:
    """Each package of the base: ``name``, ``version``, ``sha256`` or null, ``files``."""
    found: list[dict[str, Any]] = read_json(work.base.with_name("base.json"), "fetch")["packages"]
    return found


def _debian(folder: Path, packages: list[str], suite: str) -> list[dict[str, Any]]:
    """Packages and what they depend on, unpacked into a folder, and what each of them brought."""
    need("mmdebstrap", "dpkg-deb")
    fresh(folder).rmdir()
    run([
        "mmdebstrap", "--quiet", "--architectures=arm64", "--variant=extract", "--skip=cleanup",
        f"--include={','.join(packages)}", suite, folder,
    ])  # fmt: skip
    archives = folder / "var/cache/apt/archives"
    rows = []
    for deb in sorted(archives.glob("*.deb")):
        name, version = (
            run(["dpkg-deb", "-f", deb, field]).strip() for field in ("Package", "Version")
        )
        rows.append(
            {"name": name, "version": version, "sha256": digest(deb), "files": _files_in(deb)}
        )
    shutil.rmtree(folder / "var")
    return rows


def _files_in(deb: Path) -> list[str]:
    """Paths of a package's files and links."""
    command = ["dpkg-deb", "--fsys-tarfile", str(deb)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as piped,  # noqa: S603
        tarfile.open(fileobj=piped.stdout, mode="r|") as tar,
    ):
        return sorted(m.name.removeprefix("./") for m in tar if not m.isdir())


def _installed(folder: Path) -> list[dict[str, Any]]:
    """The packages of a root file system with dpkg's own list."""
    status = folder / "var/lib/dpkg/status"
    if not status.is_file():
        raise LayoutError(
            f"{folder}: expected a Debian root file system with var/lib/dpkg/status, found none; "
            "make one with mmdebstrap --architectures=arm64 --variant=minbase"
        )
    rows = []
    for paragraph in status.read_text(encoding="utf-8").split("\n\n"):
        fields = dict(line.split(": ", 1) for line in paragraph.splitlines() if ": " in line[:40])
        if fields.get("Architecture") not in ("arm64", "all"):
            continue
        name = fields["Package"]
        lists = [folder / f"var/lib/dpkg/info/{stem}.list" for stem in (name, f"{name}:arm64")]
        text = "".join(p.read_text(encoding="utf-8") for p in lists if p.is_file())
        paths = [line.removeprefix("/") for line in text.splitlines()]
        files = sorted(p for p in paths if (folder / p).is_symlink() or (folder / p).is_file())
        rows.append({"name": name, "version": fields["Version"], "sha256": None, "files": files})
    return rows
