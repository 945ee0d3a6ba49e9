"""Rust for aarch64, built here and run under emulation: what counting and testing on Arm share.

Always Debian's compiler, whatever else the machine has: a count belongs to a compiler. It and the
linker come with ``asr.deploy.cross``, as for the images, into build/deploy.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

from asr.deploy import cross
from asr.deploy.work import DEFAULT, Work
from asr.errors import MissingToolError, SystemAccessError

ROOT = Path(__file__).resolve().parent.parent
WORK = Work(ROOT / DEFAULT)
#: The core that is counted, and the older one without byte dot products.
CORES = ("cortex-a76", "cortex-a72")
PLUGIN_SOURCE = ROOT / "benchmarks/instructions/qemu_count.c"


def need_emulator() -> None:
    """Stop unless QEMU for programs is there.

    Raises:
        MissingToolError: the message has the line that installs it.
    """
    if shutil.which("qemu-aarch64") is None:
        raise MissingToolError("expected qemu-aarch64, found none; apt-get install qemu-user")


def build(source: Path, target_folder: Path, *arguments: str) -> list[Path]:
    """Run ``cargo zigbuild``.

    Args:
        source: a checkout.
        target_folder: cargo's.
        arguments: of ``cargo build``.

    Returns:
        the programs.

    Raises:
        MissingToolError: a tool is not there.
        SystemAccessError: it does not compile.
    """
    variables = cross.environment(WORK, source, cross.TARGET, own=False)
    done = subprocess.run(
        ["cargo", "zigbuild", "--locked", "--target", f"{cross.TARGET}.{cross.GLIBC}",
         "--message-format", "json-render-diagnostics", *arguments],
        cwd=source, env=os.environ | variables | {"CARGO_TARGET_DIR": str(target_folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemAccessError(f"the build for aarch64 failed: {done.stderr[-1500:]}")
    told = (json.loads(line) for line in done.stdout.splitlines())
    return [Path(t["executable"]) for t in told if t.get("executable")]


def compiler() -> str:
    """The compiler's version; ``build`` has fetched it."""
    script = cross.environment(WORK, ROOT, cross.TARGET, own=False)["RUSTC"]
    return subprocess.check_output([script, "--version"], text=True).split()[1]


def plugin(folder: Path) -> Path:
    """Compile the counter."""
    made = folder / "qemu_count.so"
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", made, PLUGIN_SOURCE], check=True)
    return made


def emulated(program: Path, cpu: str, *, counter: Path | None = None) -> list[str]:
    """The command that runs a program on a core; Debian's arm64 libraries are the compiler's."""
    counting = ["-plugin", str(counter), "-d", "plugin"] if counter else []
    return ["qemu-aarch64", "-cpu", cpu, *counting, "-L", str(WORK.cross / "rust"), str(program)]
