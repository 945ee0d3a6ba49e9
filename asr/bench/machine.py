"""What a number was measured on: the fields of a fingerprint."""

import hashlib
import json
import os
import platform
from pathlib import Path

from asr import _rust_fe
from asr.bench.record import Machine


def fields() -> dict[str, str | int | float]:
    """What decides how fast this machine is; no host name, nothing that names a person."""
    cpu = _cpuinfo()
    return {
        "arch": platform.machine(),
        "cpu": cpu.get("model name") or cpu.get("CPU part") or platform.processor(),
        "backends": " ".join(_rust_fe.build_info()["backends"]),
        "cores": len(os.sched_getaffinity(0)),
        "quota": _quota(),
        "memory_gib": _memory_gib(),
        "hypervisor": "yes" if "hypervisor" in cpu.get("flags", "").split() else "no",
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "unknown",
        "kernel": ".".join(platform.release().split(".")[:2]),
        "libc": "-".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def fingerprint() -> str:
    """16 hexadecimal digits; runs with different ones are never compared for a verdict."""
    text = json.dumps(fields(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def here() -> Machine:
    """Both, as a record has them."""
    return Machine(fingerprint(), dict(fields()))


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _cpuinfo() -> dict[str, str]:
    """The first processor's fields of /proc/cpuinfo."""
    first = _read("/proc/cpuinfo").split("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _quota() -> float:
    """Cores that the control group allows; 0 when it sets no limit."""
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    return int(quota) / int(period) if quota.isdigit() and period.isdigit() else 0.0


def _memory_gib() -> int:
    lines = dict(
        line.partition(":")[::2] for line in _read("/proc/meminfo").splitlines() if ":" in line
    )
    total = lines.get("MemTotal", "0 kB").split()[0]
    return round(int(total) / 2**20)
