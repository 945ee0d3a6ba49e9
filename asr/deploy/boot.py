"""Boot a whole board: Debian's arm64 kernel on an emulated A76, the image as read-only root."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asr.deploy.fetch import MODULES
from asr.deploy.pack import squashfs
from asr.deploy.tools import need, run
from asr.deploy.work import fresh
from asr.errors import SystemAccessError, UsageError

#: The image is mounted as the board would mount it. start-stop-daemon changes the user and becomes
#: the program; what the console says is read below.
_INIT = """#!/busybox sh
export PATH=/
/busybox mount -t proc proc /proc
/busybox mount -t devtmpfs dev /dev
for module in {modules}; do /busybox insmod /$module.ko; done
/busybox mount -t squashfs -o ro /dev/vda /image || /busybox poweroff -f
/busybox mount -t proc proc /image/proc
/busybox mount -t sysfs sys /image/sys
/busybox mount -t devtmpfs dev /image/dev
/busybox mount -t tmpfs -o mode=1777 tmp /image/tmp
/busybox cp /files/* /image/tmp/
/busybox cp /busybox /image/dev/busybox
/busybox awk '/MemTotal/ {{print "@memory_kib " $2}}' /proc/meminfo
/busybox awk '/CPU part/ {{print "@part " $4}}' /proc/cpuinfo
echo "@begin"
export {environment}
/busybox chroot /image /dev/busybox start-stop-daemon -S -c {user} \\
  -x {program} -- {arguments} 2>/image/tmp/stderr
echo "@code $?"
/busybox sed 's/^/@stderr /' /image/tmp/stderr
/busybox poweroff -f
"""


@dataclass(frozen=True, slots=True)
class Booted:
    """What a board said.

    Attributes:
        code: the program's exit code.
        text: what it printed.
        stderr: what it said on stderr.
        memory_kib: what the kernel had, in 2^10 bytes.
        part: number of the CPU part that the kernel saw.
    """

    code: int
    text: str
    stderr: str
    memory_kib: int
    part: str


def boot(
    tree: bytes,
    kernel: Path,
    command: Sequence[str],
    *,
    user: str,
    environment: Mapping[str, str],
    files: Sequence[Path],
    memory_mb: int,
    scratch: Path,
    timeout_s: float = 600,
) -> Booted:
    """Boot, run one command of the image, power off.

    Args:
        tree: the image as a tar file, its layers laid over one another.
        kernel: what ``fetch`` left: ``vmlinuz``, modules, ``busybox``.
        command: program and arguments, as paths of the image.
        user: ``UID:GID``.
        environment: variables of the command.
        files: copied into its ``/tmp``.
        memory_mb: of the board, in 2^20 bytes.
        scratch: a folder for the board's disk and start-up files.
        timeout_s: after so many seconds the board is switched off.

    Raises:
        MissingToolError: a program is not installed.
        SystemAccessError: the board did not get as far as running the command.
    """
    need("qemu-system-aarch64", "mksquashfs", "cpio")
    if not (kernel / "vmlinuz").is_file():
        raise UsageError(f"{kernel}: expected a kernel to boot, found none; asr deploy fetch")
    squashfs(tree, scratch / "root.squashfs", 0)
    first = fresh(scratch / "first")
    for name in ("dev", "proc", "image", "files"):
        (first / name).mkdir()
    for path in (*(kernel / f"{name}.ko" for name in MODULES), kernel / "busybox"):
        (first / path.name).write_bytes(path.read_bytes())
    for path in files:
        (first / "files" / path.name).write_bytes(path.read_bytes())
    (first / "busybox").chmod(0o755)
    (first / "init").write_text(
        _INIT.format(
            modules=" ".join(MODULES),
            environment=" ".join(f"{k}={shlex.quote(v)}" for k, v in environment.items()),
            user=user,
            program=shlex.quote(command[0]),
            arguments=shlex.join(command[1:]),
        )
    )
    (first / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(first)) for path in sorted(first.rglob("*")))
    packed = scratch / "first.cpio"
    run(["cpio", "--quiet", "-o", "-H", "newc", "-F", packed], folder=first, stdin=names.encode())
    said = run(
        ["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a76", "-smp", "2",
         "-m", str(memory_mb), "-nographic", "-no-reboot", "-nic", "none",
         "-kernel", kernel / "vmlinuz", "-initrd", packed,
         "-drive", f"file={scratch / 'root.squashfs'},format=raw,if=none,id=root,readonly=on",
         "-device", "virtio-blk-device,drive=root",
         "-append", "console=ttyAMA0 panic=-1 quiet"],
        timeout_s=timeout_s,
    )  # fmt: skip
    return read(said)


def read(said: str) -> Booted:
    """What the console of ``boot`` says.

    Raises:
        SystemAccessError: the command was never run.
    """
    said = said.replace("\r", "")
    ran = re.search(r"^@begin\n(.*?)^@code (\d+)$", said, re.M | re.S)
    if ran is None:
        raise SystemAccessError(f"the board stopped before it ran anything: {said.strip()[-800:]}")
    memory = re.search(r"^@memory_kib (\d+)$", said, re.M)
    part = re.search(r"^@part (\w+)$", said, re.M)
    return Booted(
        int(ran[2]),
        ran[1],
        "\n".join(re.findall(r"^@stderr (.*)$", said, re.M)),
        int(memory[1]) if memory else 0,
        part[1] if part else "",
    )
