"""One bundle, one runtime, one number of threads; only the host differs: Python or asr-edge.

Cold: fresh processes, spawn to exit. Idle: a call of a resident process after a rest. Warm: call
after call. Hosts take turns, a b, b a, so that drift hits both alike.
"""

import json
import os
import re
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from asr.bench import machine, resident
from asr.bench.child import spawn
from asr.bench.clips import Workload
from asr.bench.installs import running
from asr.bench.measure import Contender, Worker
from asr.bench.stats import Interval, ratio_interval
from asr.engines.named import DEFAULT_ENGINE
from asr.errors import MissingToolError, TextChangedError
from asr.profile.run import profile
from asr.profile.summary import native_calls

SCHEMA_ID = "asr-hosts/1"
PYTHON, EDGE = "python", "edge"


@dataclass(frozen=True, slots=True)
class Asked:
    """How two hosts are compared.

    Attributes:
        bundle: the folder that both read.
        program: asr-edge.
        threads: of the network.
        cold: fresh processes of each per clip.
        idle: calls after a rest of each per clip.
        warm: warm calls of each per clip.
        idle_s: the rest, seconds.
    """

    bundle: Path
    program: Path
    threads: int
    cold: int = 5
    idle: int = 3
    warm: int = 20
    idle_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Row:
    """One state of one clip.

    Attributes:
        clip: its id.
        state: ``cold``, ``idle`` or ``warm``.
        python_ms: median.
        edge_ms: median.
        ratio: median of edge / python over pairs, with its 95 % interval.
    """

    clip: str
    state: str
    python_ms: float
    edge_ms: float
    ratio: Interval


@dataclass(frozen=True, slots=True)
class Hosts:
    """What was found.

    Attributes:
        rows: by clip and state.
        peak_rss_bytes: the most memory that each host's resident process has held.
        native_calls: crossings from the host into native code in one warm call of the first clip.
        library: the runtime's file.
        threads: of the network.
        texts: clip -> what both heard.
    """

    rows: tuple[Row, ...]
    peak_rss_bytes: dict[str, int]
    native_calls: dict[str, int]
    library: str
    threads: int
    texts: dict[str, str]

    def to_json(self) -> str:
        """The record, with the machine it was measured on."""
        here = asdict(machine.here())
        return json.dumps({"schema": SCHEMA_ID, "machine": here, **asdict(self)}, indent=2) + "\n"


class _Resident(Protocol):
    def call(self, clip: Path) -> tuple[float, str]:
        """Seconds from reading to text, and the text."""

    def peak_rss_bytes(self) -> int:
        """The most memory it has held."""


def runtime_library() -> Path:
    """The library inside the package onnxruntime: what Python loads, as a file of its own.

    Raises:
        MissingToolError: the package holds none.
    """
    import importlib.util

    spec = importlib.util.find_spec("onnxruntime")
    for folder in (spec and spec.submodule_search_locations) or ():
        for path in sorted(Path(folder, "capi").glob("libonnxruntime.so.*")):
            return path
    raise MissingToolError("onnxruntime: expected libonnxruntime.so in the package, found none")


def compare(asked: Asked, workload: Workload, say: Callable[[str], object]) -> Hosts:
    """Measure both hosts on every clip.

    Raises:
        TextChangedError: the hosts hear different texts.
        MissingToolError: a host cannot be started.
    """
    library = runtime_library()
    environment = {"ORT_DYLIB_PATH": str(library), "ORT_DISABLE_TELEMETRY": "1"}
    rows: list[Row] = []
    texts: dict[str, str] = {}
    with _python(asked) as a, _edge(asked, environment) as b:
        for clip in workload.clips:
            say(clip.id)
            texts[clip.id] = _same(clip.id, a.call(clip.path)[1], b.call(clip.path)[1])
            rows.append(_cold(asked, environment, clip.id, clip.path))
            states = (("idle", asked.idle, asked.idle_s), ("warm", asked.warm, 0.0))
            for state, count, rest_s in states:
                run = partial(_call, clip.path, rest_s)
                rows.append(_row(clip.id, state, 1e3, _turns(count, run, a, b)))
        peaks = {PYTHON: a.peak_rss_bytes(), EDGE: b.peak_rss_bytes()}
    crossings = native_calls(
        profile(str(workload.clips[0].path), model=str(asked.bundle), threads=asked.threads)
    )
    calls = {PYTHON: sum(row["times"] for row in crossings), EDGE: 0}
    return Hosts(tuple(rows), peaks, calls, library.name, asked.threads, texts)


def _same(clip: str, python: str, edge: str) -> str:
    if python != edge:
        raise TextChangedError(f"{clip}: Python heard {python!r}, asr-edge {edge!r}")
    return python


def _call(clip: Path, rest_s: float, host: _Resident) -> float:
    time.sleep(rest_s)
    return host.call(clip)[0]


def _turns(
    count: int, run: Callable[[Any], float], a: object, b: object
) -> tuple[list[float], list[float]]:
    """``count`` pairs in the order a b, b a, a b ..."""
    found: tuple[list[float], list[float]] = ([], [])
    for pair in range(count):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            found[side].append(run((a, b)[side]))
    return found


def _row(
    clip: str, state: str, to_ms: float, found: tuple[Sequence[float], Sequence[float]]
) -> Row:
    python, edge = (to_ms * statistics.median(side) for side in found)
    return Row(clip, state, python, edge, ratio_interval(*found))


def _cold(asked: Asked, environment: dict[str, str], name: str, clip: Path) -> Row:
    """Fresh processes, from spawn to exit."""
    threads = ["--threads", str(asked.threads)]
    command = [str(running().command), "transcribe", str(clip), "--no-optimize"]
    commands = {
        PYTHON: [*command, "--model", str(asked.bundle)],
        EDGE: [str(asked.program), "--bundle", str(asked.bundle), str(clip)],
    }

    def run(host: str) -> float:
        command = [*commands[host], *threads]
        return spawn(command, name=host, environment=environment).process_ns

    return _row(name, "cold", 1e-6, _turns(asked.cold, run, PYTHON, EDGE))


@contextmanager
def _python(asked: Asked) -> Iterator[_Resident]:
    settings = {"model": str(asked.bundle), "threads": asked.threads, "engine": DEFAULT_ENGINE,
                "language": "auto", "itn": False, "optimize": False}  # fmt: skip
    contender = Contender(PYTHON, Path(resident.__file__), "resident", (json.dumps(settings),))
    with Worker(contender) as worker:
        yield _Python(worker)


class _Python:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def call(self, clip: Path) -> tuple[float, str]:
        found = json.loads(self._worker.run("call", str(clip)).value)
        return found["wall_ns"] / 1e9, found["text"]

    def peak_rss_bytes(self) -> int:
        return int(json.loads(self._worker.run("state").value)["peak_rss_bytes"])


@contextmanager
def _edge(asked: Asked, environment: dict[str, str]) -> Iterator[_Resident]:
    words = [str(asked.program), "--bundle", str(asked.bundle), "--serve"]
    words += ["--threads", str(asked.threads)]
    try:
        process = subprocess.Popen(  # noqa: S603 - the program that is measured
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **environment}
        )
    except OSError as error:
        message = f"{asked.program}: cannot be started: {error.strerror}; make edge builds it"
        raise MissingToolError(message) from None
    try:
        yield _Edge(process)
    finally:
        process.kill()
        process.communicate()


class _Edge:
    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def call(self, clip: Path) -> tuple[float, str]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None  # noqa: S101 - Popen was told to pipe
        assert stdout is not None  # noqa: S101
        stdin.write(json.dumps({"file": str(clip)}).encode() + b"\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise MissingToolError("asr-edge: the process ended; run it by hand to see why")
        found = json.loads(line)
        if "error" in found:
            raise MissingToolError(f"asr-edge: {found['error']['message']}")
        return found["wall_s"], found["text"]

    def peak_rss_bytes(self) -> int:
        # Not the children's rusage: that begins with the memory of the process that forked them.
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="utf-8")
        found = re.search(r"^VmHWM:\s+(\d+)", status, re.M)
        return 1024 * int(found[1]) if found else 0
