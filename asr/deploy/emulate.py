"""Run an image's entry point on an emulated core, as its own user, its root read-only."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from asr.deploy.tools import need
from asr.errors import SystemAccessError

#: What each core says of itself in /proc/cpuinfo: part number and features. qemu 7 shows the
#: host's file, on which ONNX Runtime's library for that crashes.
CORES = {
    "cortex-a76": (
        "0xd0b",
        "fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc "
        "dcpop asimddp",
    ),
    "cortex-a72": ("0xd08", "fp asimd evtstrm aes pmull sha1 sha2 crc32 cpuid"),
}
NUM_CORES = 4
#: The guest's own mounts: everything else of the root is read-only.
_SCRIPT = """
set -e
root={root}
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --bind {cpuinfo} "$root/proc/cpuinfo"
mount --rbind /sys "$root/sys"
mount -t tmpfs tmpfs "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
for device in null zero urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
cp {qemu} "$root/dev/qemu"
for file in {files}; do cp "$file" "$root/tmp/"; done
chmod 1777 "$root/tmp"
mount -o remount,bind,ro "$root"
exec chroot --userspec={user} "$root" /dev/qemu -cpu {cpu} {command}
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: ``code`` (negative: a signal), and what it wrote."""

    code: int
    stdout: str
    stderr: str


def cpuinfo(cpu: str) -> str:
    """``/proc/cpuinfo`` of a board with four such cores, as Linux prints it."""
    part, features = CORES[cpu]
    return "".join(
        f"processor\t: {core}\nBogoMIPS\t: 108.00\nFeatures\t: {features}\n"
        f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\n"
        f"CPU part\t: {part}\nCPU revision\t: 1\n\n"
        for core in range(NUM_CORES)
    )


def run(
    root: Path,
    command: Sequence[str],
    *,
    cpu: str,
    user: str,
    environment: Mapping[str, str],
    files: Sequence[Path] = (),
    scratch: Path,
    timeout_s: float = 600,
) -> Ended:
    """Run a command of an image.

    Its root is read-only but for ``/tmp`` and ``/dev``, it has no network, and sees no other
    process.

    Args:
        root: the image's tree, unpacked.
        command: program and arguments, as paths of the image.
        cpu: one of ``CORES``.
        user: ``UID:GID``.
        environment: all of the command's variables.
        files: copied into its ``/tmp``.
        scratch: for the file with the core's description.
        timeout_s: after so many seconds it is ended.

    Raises:
        MissingToolError: qemu-aarch64-static or unshare is not installed.
        SystemAccessError: we are not root, or it was not done in time.
    """
    need("qemu-aarch64-static", "unshare")
    if os.geteuid() != 0:
        raise SystemAccessError(
            "asr deploy verify: expected to run as root, to mount a root file system of its own; "
            "use sudo"
        )
    described = scratch / f"cpuinfo-{cpu}"
    described.write_text(cpuinfo(cpu))
    script = _SCRIPT.format(
        root=shlex.quote(str(root.resolve())),
        cpuinfo=shlex.quote(str(described.resolve())),
        qemu=shutil.which("qemu-aarch64-static"),
        files=shlex.join(str(path.resolve()) for path in files),
        user=user,
        cpu=cpu,
        command=shlex.join(command),
    )
    outer = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", **environment}
    outer["PATH"] += ":/usr/sbin:/usr/bin:/sbin:/bin"
    isolated = ["unshare", "--mount", "--net", "--ipc", "--pid", "--fork", "--kill-child"]
    process = subprocess.Popen(  # noqa: S603
        [*isolated, "sh", "-c", script],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=outer,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise SystemAccessError(
            f"{command[0]} on {cpu}: not done after {timeout_s:.0f} s of emulation"
        ) from None
    return Ended(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))
