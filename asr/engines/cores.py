"""How many cores this process may keep busy: its affinity, and the quota of its control group."""

import math
import os
from pathlib import Path


def available(root: Path = Path("/")) -> int:
    """Count the cores, at least 1.

    A container with ``--cpus 1.5`` sees every core of its machine; threads beyond its quota only
    make the kernel stop all of them for the rest of each period. A part of a core counts as one,
    as the Java and Go runtimes have it.

    Args:
        root: where ``proc`` and ``sys`` are mounted.

    Source: Linux ``admin-guide/cgroup-v2``, ``cpu.max``; ``scheduler/sched-bwc`` for version 1.
    """
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, math.ceil(min(cores, _quota(root))))


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
