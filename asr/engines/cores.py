"""How many cores this process may keep busy: affinity, kind of core, control group's quota."""

import math
import os
from pathlib import Path

#: ``CPU part`` of Arm's Cortex-A76 in /proc/cpuinfo.
A76 = "0xd0b"


def parts(root: Path = Path("/")) -> dict[int, str]:
    """Arm's number of the kind of each core: processor -> ``CPU part``.

    Args:
        root: where ``proc`` is mounted.

    Returns:
        nothing on another architecture, where reading the file can cost milliseconds.
    """
    found: dict[int, str] = {}
    processor = -1
    for line in _words(root / "proc/cpuinfo", split="\n") if _is_arm() else ():
        name, _, value = (word.strip() for word in line.partition(":"))
        if name == "processor" and value.isdecimal():
            processor = int(value)
        elif name == "CPU part":
            found[processor] = value
    return found


def counted(root: Path = Path("/")) -> list[int]:
    """The cores of this process's affinity; of a chip with Cortex-A76 and smaller ones, its A76.

    A matrix product is split into equal parts, one per thread: on a smaller core the part takes
    longer and all others wait for it.

    Args:
        root: where ``proc`` is mounted.
    """
    if hasattr(os, "sched_getaffinity"):
        allowed = sorted(os.sched_getaffinity(0))
    else:
        allowed = list(range(os.cpu_count() or 1))
    kind = parts(root)
    return [core for core in allowed if kind.get(core) == A76] or allowed


def _is_arm() -> bool:
    return os.uname().machine in ("aarch64", "armv8l", "armv7l")


def available(root: Path = Path("/")) -> int:
    """Count the cores, at least 1.

    Of a chip that has Cortex-A76 and smaller cores only the Cortex-A76 count.

    A container with ``--cpus 1.5`` sees every core of its machine; threads beyond its quota only
    make the kernel stop all of them for the rest of each period. A part of a core counts as one,
    as the Java and Go runtimes have it.

    Args:
        root: where ``proc`` and ``sys`` are mounted.

    Source: Linux ``admin-guide/cgroup-v2``, ``cpu.max``; ``scheduler/sched-bwc`` for version 1.
    """
    return max(1, math.ceil(min(len(counted(root)), _quota(root))))


def _quota(root: Path) -> float:
    """The least quota of the groups this process is in, in cores; infinite without any."""
    least = math.inf
    for line in _words(root / "proc/self/cgroup", split="\n"):
        number, _, rest = line.partition(":")
        controllers, _, place = rest.partition(":")
        if number == "0" and not controllers:
            mounts = [root / "sys/fs/cgroup"]
        elif "cpu" in controllers.split(","):
            mounts = [root / "sys/fs/cgroup" / name for name in ("cpu", controllers)]
        else:
            continue
        for mount in mounts:
            # A container may not see its own group's path; its quota then stands at the mount.
            group = mount / place.strip("/")
            while True:
                least = min(least, _quota_of(group))
                if group == mount or mount not in group.parents:
                    break
                group = group.parent
    return least


def _quota_of(group: Path) -> float:
    words = _words(group / "cpu.max") or (
        _words(group / "cpu.cfs_quota_us") + _words(group / "cpu.cfs_period_us")
    )
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        return math.inf  # "max", -1, or no such file
    quota, period = map(int, words)
    return quota / period if quota and period else math.inf


def _words(path: Path, split: str | None = None) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").split(split)
    except OSError:
        return []
