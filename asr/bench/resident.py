"""A contender for ``asr.bench.worker``: a process that has loaded the model and is asked to work.

Run by file name in a worker, so that its module state is the process's.
"""

import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asr.observe import Timer
from asr.recognizer import Recognizer

#: Linux: let go of pages; what is needed again is read again. Safe on file-backed pages.
_MADV_PAGEOUT = 21


def resident(settings: str) -> Callable[..., str]:
    """Load a model; the callable does what its first argument says and returns JSON.

    Args:
        settings: JSON of ``model``, ``threads``, ``engine``, ``language``, ``itn``, ``optimize``.

    Returns:
        ``call PATH``: one transcription with wall_ns, cpu_ns, stages_ns, text.
        ``evict BYTES``: push the model out of the CPU's caches; what happened to its pages.
        ``state``: memory in bytes, context switches.
    """
    wanted = json.loads(settings)
    recognizer = Recognizer.load(
        wanted["model"],
        threads=wanted["threads"],
        engine=wanted["engine"],
        optimize=wanted["optimize"],
    )
    prepared = recognizer.engine.preparation.network
    folder = prepared.parent if prepared else recognizer.layout.folder
    actions: dict[str, Callable[..., Any]] = {
        "call": lambda path: _call(recognizer, path, wanted["language"], itn=wanted["itn"]),
        "evict": lambda size: _evict(int(size), folder),
        "state": _state,
    }
    return lambda action, *arguments: json.dumps(actions[action](*arguments))


def _call(recognizer: Recognizer, path: str, language: str, *, itn: bool) -> dict[str, Any]:
    timer = Timer()
    cpu_ns, wall_ns = time.process_time_ns(), time.perf_counter_ns()
    heard = recognizer.transcribe(path, language=language, itn=itn, observer=timer)
    wall_ns = time.perf_counter_ns() - wall_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    stages: dict[str, int] = {}
    for name, ns in timer.steps_ns:
        stages[name] = stages.get(name, 0) + ns
    stages["unaccounted"] = wall_ns - sum(stages.values())
    return {"wall_ns": wall_ns, "cpu_ns": cpu_ns, "stages_ns": stages, "text": heard.text}


def _evict(size: int, folder: Path) -> dict[str, Any]:
    """Read and write so many bytes, then drop what the model has mapped from files."""
    import numpy as np

    sweep = np.zeros(max(1, size // 8), np.int64)
    sweep += 1
    return {"model_pages": drop_mapped(folder)}


def drop_mapped(folder: Path, maps: Path = Path("/proc/self/maps")) -> str:
    """Tell the kernel to let go of this process's pages of files in a folder, in words."""
    import ctypes

    prefix = os.path.realpath(folder) + os.sep
    ranges = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ \S+ \S+ *(.*)$", maps.read_text(), re.M)
    ours = [(int(a, 16), int(b, 16)) for a, b, path in ranges if path.startswith(prefix)]
    if not ours:
        return "not mapped: the weights are copies in memory"
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    done = [madvise(a, b - a, _MADV_PAGEOUT) == 0 for a, b in ours]
    return "dropped" if all(done) else "not permitted"


def _state() -> dict[str, int]:
    status = Path("/proc/self/status").read_text(encoding="utf-8")

    def field(name: str) -> int:
        found = re.search(rf"^{name}:\s+(\d+)", status, re.M)
        return int(found[1]) if found else 0

    return {
        "rss_bytes": 1024 * field("VmRSS"),
        "peak_rss_bytes": 1024 * field("VmHWM"),
        "voluntary_switches": field("voluntary_ctxt_switches"),
        "involuntary_switches": field("nonvoluntary_ctxt_switches"),
    }
