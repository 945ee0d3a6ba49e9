"""Rust for aarch64 on an x86-64 machine: ``asr-edge`` and the wheels, for glibc 2.28 and any CPU.

The linker is zig: one download from PyPI that knows every glibc's symbols, so that what is built
runs wherever ONNX Runtime's own library does. Debian's cross compiler would demand its own glibc,
2.34 or newer. Code is generated for the generic CPU; the hot loops choose their instructions at
run time, which ``target-cpu=cortex-a76`` would turn into a crash on older cores.
"""

import os
import subprocess
import sys
from pathlib import Path

from asr.deploy import contents
from asr.deploy.tools import need, run
from asr.deploy.work import Work, fresh
from asr.errors import UsageError

LOCK = Path(__file__).with_name("cross.lock")
TARGET, GLIBC = "aarch64-unknown-linux-gnu", "2.28"
#: Debian's compiler that is kept current for its browsers, and its library for the board.
_COMPILER = ("rustc-web", "libstd-rust-web-dev:arm64")


def checkout(folder: Path) -> Path:
    """A folder with this project's sources.

    Raises:
        UsageError: it has none.
    """
    folder = folder.resolve()
    if not (folder / "deploy/edge/Cargo.toml").is_file():
        raise UsageError(
            f"{folder}: expected a checkout of this project with deploy/edge/Cargo.toml, found "
            "none; run it there, or name one with --source"
        )
    return folder


def edge(work: Work, source: Path) -> Path:
    """Build ``asr-edge`` and ``libasr_edge.so``.

    Args:
        work: holds the linker and, where needed, the compiler.
        source: a checkout.

    Returns:
        the folder they are in.
    """
    need("cargo")
    target = source / "target/cross"
    run(
        ["cargo", "zigbuild", "--release", "--locked", "--quiet", "--package", "asr-edge",
         "--target", f"{TARGET}.{GLIBC}"],
        folder=source,
        environment=environment(work, source, TARGET) | {"CARGO_TARGET_DIR": str(target)},
    )  # fmt: skip
    return target / TARGET / "release"


def wheel(work: Work, source: Path, machine: str) -> Path:
    """Build this project's manylinux wheel.

    Args:
        work: gets ``wheel-MACHINE/``.
        source: a checkout.
        machine: ``aarch64`` or ``x86_64``.

    Returns:
        the wheel.
    """
    target = f"{machine}-unknown-linux-gnu"
    folder = fresh(work.root / f"wheel-{machine}")
    run(
        [_python(work), "-m", "maturin", "build", "--release", "--locked", "--quiet", "--zig",
         "--target", target, "--compatibility", f"manylinux_{GLIBC.replace('.', '_')}",
         "--out", folder],
        folder=source,
        environment=environment(work, source, target)
        | {"CARGO_TARGET_DIR": str(source / "target/cross")},
    )  # fmt: skip
    (path,) = folder.glob("*.whl")
    return path


def _python(work: Work) -> Path:
    """The linker's environment, made when first asked for."""
    folder = work.cross.resolve() / "env"
    python = folder / "bin/python"
    if not (folder / "ready").is_file():
        fresh(folder)
        run([sys.executable, "-m", "venv", folder])
        run([python, "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:",
             "--require-hashes", "--requirement", LOCK])  # fmt: skip
        (folder / "ready").touch()
    return python


def environment(work: Work, source: Path, target: str, *, own: bool = True) -> dict[str, str]:
    """Variables with which ``cargo zigbuild`` builds for a target.

    Args:
        work: holds the linker and, where needed, the compiler.
        source: a checkout.
        target: of Rust.
        own: whether the machine's Rust will do where it knows the target; False takes Debian's
            everywhere, so that the same instructions come out.
    """
    python = _python(work)
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo").resolve()
    flags = f"--remap-path-prefix={source}=/source --remap-path-prefix={home}=/cargo"
    cache = work.cross.resolve() / "cache"
    return {
        "PATH": f"{python.parent}:{os.environ['PATH']}",
        "RUSTC": str(_compiler(work, target, own)),
        "RUSTFLAGS": flags,
        "CARGO_PROFILE_RELEASE_STRIP": "symbols",
        "CARGO_ZIGBUILD_CACHE_DIR": str(cache),
        "ZIG_GLOBAL_CACHE_DIR": str(cache / "zig"),
        "ZIG_LOCAL_CACHE_DIR": str(cache / "zig"),
    }


def _compiler(work: Work, target: str, allowed: bool) -> Path | str:
    """A rustc with the target's standard library: the machine's if allowed, else Debian's."""
    need("cargo")
    own = os.environ.get("RUSTC", "rustc")
    if allowed and has_target(own, target):
        return own
    need("mmdebstrap")
    script = work.cross.resolve() / "rustc"
    if script.is_file():
        return script
    folder = work.cross.resolve() / "rust"
    fresh(folder).rmdir()
    run([
        "mmdebstrap", "--quiet", "--architectures=amd64,arm64", "--variant=extract",
        "--dpkgopt=path-exclude=/usr/share/*", f"--include={','.join(_COMPILER)}",
        contents.base()["suite"], folder,
    ])  # fmt: skip
    script.write_text(
        "#!/bin/sh\n"
        f'LD_LIBRARY_PATH="{folder}/usr/lib/x86_64-linux-gnu" exec "{folder}/usr/bin/rustc" "$@"\n'
    )
    script.chmod(0o755)
    return script


def has_target(rustc: str, target: str) -> bool:
    """Whether a compiler has a target's standard library: ``rustup target add`` brings it."""
    command = [rustc, "--print", "target-libdir", "--target", target]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return ended.returncode == 0 and any(Path(ended.stdout.strip()).glob("libstd-*.rlib"))
