"""Programs that we start: the missing are named with the line that installs them."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from asr.errors import MissingToolError, SystemAccessError

#: Debian package of each program.
PACKAGES = {
    "buildah": "buildah",
    "cargo": "cargo",
    "cpio": "cpio",
    "dpkg-deb": "dpkg",
    "mksquashfs": "squashfs-tools",
    "mmdebstrap": "mmdebstrap",
    "python3.11": "python3.11",
    "qemu-aarch64-static": "qemu-user-static",
    "qemu-system-aarch64": "qemu-system-arm",
    "skopeo": "skopeo",
    "systemd-analyze": "systemd",
    "umoci": "umoci",
    "unshare": "util-linux",
}


def need(*programs: str) -> None:
    """Stop unless all of these are there.

    Raises:
        MissingToolError: the message has the line that installs the ones that are not.
    """
    missing = [name for name in programs if shutil.which(name) is None]
    if missing:
        raise _missing(missing)


def _missing(programs: Sequence[str]) -> MissingToolError:
    packages = " ".join(dict.fromkeys(PACKAGES.get(name, name) for name in programs))
    return MissingToolError(
        f"asr deploy: expected {', '.join(programs)}, found none; apt-get install -y {packages}"
    )


def run(
    command: Sequence[str | Path],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 1800,
    stdin: bytes | None = None,
) -> str:
    """Run a program to its end.

    Args:
        command: the program and its arguments.
        folder: where it runs.
        environment: variables on top of ours.
        timeout_s: after so many seconds it is ended.
        stdin: what it reads.

    Returns:
        what it wrote to stdout.

    Raises:
        MissingToolError: there is no such program.
        SystemAccessError: it failed; the message has the end of what it said.
    """
    words = [str(word) for word in command]
    try:
        ended = subprocess.run(  # noqa: S603
            words,
            cwd=folder,
            env={**os.environ, **(environment or {})},
            input=stdin if stdin is not None else b"",
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError:
        raise _missing([Path(words[0]).name]) from None
    except subprocess.TimeoutExpired as late:
        raise SystemAccessError(f"{words[0]}: not done after {timeout_s:.0f} s") from late
    if ended.returncode:
        said = (ended.stderr + ended.stdout).decode(errors="replace").strip()[-1500:]
        raise SystemAccessError(f"{words[0]}: exit code {ended.returncode}: {said}")
    return ended.stdout.decode(errors="replace")
