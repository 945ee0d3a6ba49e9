"""What a number was measured on: the fields of a fingerprint."""

import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from asr import _rust_fe
from asr.bench.record import Machine
from asr.engines import cores

#: Names of Arm's cores by ``CPU part``, those that boards of this class have.
_ARM = {"0xd03": "Cortex-A53", "0xd04": "Cortex-A35", "0xd05": "Cortex-A55",
        "0xd07": "Cortex-A57", "0xd08": "Cortex-A72", "0xd09": "Cortex-A73",
        "0xd0a": "Cortex-A75", "0xd0b": "Cortex-A76", "0xd41": "Cortex-A78"}  # fmt: skip


def fields(root: Path = Path("/")) -> dict[str, str | int | float]:
    """What decides how fast this machine is; no host name, nothing that names a person.

    On Arm also ``core_kinds``, ``a76_cores`` and ``dot_product``.

    Args:
        root: where ``proc`` and ``sys`` are mounted.
    """
    cpu = _cpuinfo(root)
    part = cores.parts(root)
    used = cores.counted(root)
    name = cpu.get("model name") or _arm_name(part.get(used[0])) or platform.processor()
    return {
        "arch": platform.machine(),
        "cpu": name,
        "backends": " ".join(_rust_fe.build_info()["backends"]),
        "cores": len(os.sched_getaffinity(0)),
        "quota": _quota(root),
        "memory_gib": _memory_gib(root),
        "hypervisor": "yes" if "hypervisor" in cpu.get("flags", "").split() else "no",
        "governor": _governors(used, root) or "unknown",
        "kernel": ".".join(platform.release().split(".")[:2]),
        "libc": "-".join(platform.libc_ver()),
        "python": platform.python_version(),
        **(_arm_fields(cpu, part) if part else {}),
    }


def fingerprint() -> str:
    """16 hexadecimal digits; runs with different ones are never compared for a verdict."""
    text = json.dumps(fields(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def here() -> Machine:
    """Both, as a record has them."""
    return Machine(fingerprint(), dict(fields()))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _arm_name(part: str | None) -> str | None:
    return None if part is None else f"{_ARM.get(part, 'Arm')} ({part})"


def _arm_fields(cpu: Mapping[str, str], part: Mapping[int, str]) -> dict[str, str | int]:
    kinds = Counter(part.values())
    return {
        "core_kinds": ", ".join(f"{n} x {_arm_name(kind)}" for kind, n in sorted(kinds.items())),
        "a76_cores": kinds[cores.A76],
        "dot_product": "yes" if "asimddp" in cpu.get("Features", "").split() else "no",
    }


def _governors(used: Iterable[int], root: Path) -> str:
    """Frequency governors of the cores that count, each once: big and small ones have their own."""
    folder = root / "sys/devices/system/cpu"
    found = {_read(folder / f"cpu{core}/cpufreq/scaling_governor") for core in used}
    return " ".join(sorted(found - {""}))


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor's fields of /proc/cpuinfo."""
    first = _read(root / "proc/cpuinfo").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _quota(root: Path) -> float:
    """Cores that the control group allows; 0 when it sets no limit."""
    quota, _, period = _read(root / "sys/fs/cgroup/cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else 0.0


def _memory_gib(root: Path) -> int:
    lines = dict(
        line.partition(":")[::2]
        for line in _read(root / "proc/meminfo").splitlines()
        if ":" in line
    )
    total = lines.get("MemTotal", "0 kB").split()[0]
    return round(int(total) / 2**20)
