"""Profile one transcription: a plain run, a run under the hook, runs that watch the lock."""

import contextlib
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asr import audio, networks
from asr.engines.ort import OrtEngine, default_threads
from asr.errors import SystemAccessError, UsageError
from asr.frontend import FrontEnd
from asr.hub import DEFAULT_MODEL, find_model
from asr.layouts import open_layout
from asr.observe import SILENT, Observer, Timer
from asr.profile.locks import LockWatch
from asr.profile.nodes import Node, read
from asr.profile.watch import BETWEEN, Watch
from asr.recognizer import LONGEST_PIECE_S, Recognizer
from asr.records import Audio, Transcript

#: Plain calls whose medians the summary shows.
_PLAIN_CALLS = 5
#: Watch the lock until so many calls in a row showed nothing new, on a sound of this length: on
#: shorter ones the quickest calls are over before the other thread has woken.
_LOCK_PATIENCE, _LOCK_SOUND_S = 10, 59.0


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread of this process and the CPU time that it used in the profiled call."""

    thread_id: int
    name: str
    cpu_ns: int


@dataclass(frozen=True, slots=True)
class Profile:
    """What was seen of one transcription.

    Attributes:
        source: what was transcribed.
        cold: whether load and first call were profiled, instead of a later call.
        engine: the runtime.
        engine_threads: threads of the network.
        backend: SIMD path of the Rust stages.
        transcript: of the profiled call.
        start_ns: of the profiled call, ``time.perf_counter_ns``.
        end_ns: the same clock.
        watch: slices, blocks and steps of the profiled call.
        nodes: of the network.
        threads: that used CPU time.
        plain_ms: stage -> median of calls that nobody looked at; ``total`` is
            their sum.
        lock_released: native function -> whether it was seen to let go of the interpreter lock.
    """

    source: str
    cold: bool
    engine: str
    engine_threads: int
    backend: str
    transcript: Transcript
    start_ns: int
    end_ns: int
    watch: Watch
    nodes: list[Node]
    threads: list[Thread]
    plain_ms: dict[str, float]
    lock_released: dict[str, bool]


def profile(
    source: audio.Source,
    *,
    model: str = DEFAULT_MODEL,
    threads: int | None = None,
    sample_rate: int | None = None,
    cold: bool = False,
) -> Profile:
    """Transcribe and look.

    Args:
        source: as for ``Recognizer.transcribe``.
        model: a model directory or name.
        threads: of the network; None as for ``Recognizer.load``.
        sample_rate: of an array.
        cold: profile loading and the first call; otherwise a call after others.

    Raises:
        AsrError: as ``Recognizer.load`` and ``Recognizer.transcribe`` raise.
        SystemAccessError: no room for the runtime's own profile.
        UsageError: ``threads`` is below 1, or the source can be read only once.
    """
    if threads is not None and threads < 1:
        raise UsageError(f"threads: expected 1 or more, found {threads}")
    count = threads or default_threads()
    if isinstance(source, str) and source == "-":
        raise UsageError("-: expected a file to transcribe several times, found standard input")
    watch = Watch(source)
    try:
        with tempfile.TemporaryDirectory(prefix="asr-profile-") as folder:
            return _profile(source, model, count, sample_rate, cold, watch, f"{folder}/nodes")
    except SystemAccessError:
        raise
    except OSError as error:
        where = error.filename or tempfile.gettempdir()
        raise SystemAccessError(
            f"{where}: cannot keep the runtime's profile: {error.strerror or error}"
        ) from None


def _profile(
    source: audio.Source,
    model: str,
    threads: int,
    sample_rate: int | None,
    cold: bool,
    watch: Watch,
    prefix: str,
) -> Profile:
    def transcribe(recognizer: Recognizer, observer: Observer) -> Transcript:
        return recognizer.transcribe(source, sample_rate=sample_rate, observer=observer)

    if cold:
        before = _cpu_ns()
        watch.start()
        start_ns = time.perf_counter_ns()
        try:
            recognizer, engine = _load(model, threads, watch, prefix)
            transcript = transcribe(recognizer, watch)
            end_ns = time.perf_counter_ns()
        finally:
            watch.stop()
    else:
        recognizer, engine = _load(model, threads, Timer(), prefix)
        for _ in range(2):
            transcribe(recognizer, Timer())
        before = _cpu_ns()
        watch.start()
        start_ns = time.perf_counter_ns()
        try:
            transcript = transcribe(recognizer, watch)
            end_ns = time.perf_counter_ns()
        finally:
            watch.stop()
    used = _threads(before)
    nodes = [node for node in read(*engine.end_profile()) if start_ns <= node.start_ns <= end_ns]
    plain = Recognizer(recognizer.layout, recognizer.front_end, _engine(recognizer, threads))
    return Profile(
        source=os.fspath(source) if isinstance(source, str | os.PathLike) else "array",
        cold=cold,
        engine=engine.description,
        engine_threads=threads,
        backend=recognizer.front_end.backend,
        transcript=transcript,
        start_ns=start_ns,
        end_ns=end_ns,
        watch=watch,
        nodes=nodes,
        threads=used,
        plain_ms=_plain_ms(lambda observer: transcribe(plain, observer)),
        lock_released=_locks(plain, audio.read(source, sample_rate)),
    )


def _load(
    model: str, threads: int, observer: Observer, prefix: str
) -> tuple[Recognizer, OrtEngine]:
    """Load as ``Recognizer.load`` does, with a runtime that writes down its nodes."""
    step = observer.step
    layout = step("layout", open_layout, find_model(model))
    front_end = step("front_end", FrontEnd, layout.front_end)
    network = networks.find(layout, observer)
    engine = step("session_create", network.engine, threads, prefix)
    return Recognizer(layout, front_end, engine), engine


def _engine(recognizer: Recognizer, threads: int) -> OrtEngine:
    return networks.find(recognizer.layout, SILENT).engine(threads)


def _plain_ms(transcribe: Callable[[Observer], Transcript]) -> dict[str, float]:
    """Median of each stage, ``-`` being what lies between them; their sum is ``total``."""
    transcribe(Timer())
    stages: dict[str, list[float]] = {}
    for _ in range(_PLAIN_CALLS):
        timer = Timer()
        start_ns = time.perf_counter_ns()
        transcribe(timer)
        rows = {BETWEEN: time.perf_counter_ns() - start_ns - sum(ns for _, ns in timer.steps_ns)}
        for name, ns in timer.steps_ns:
            rows[name] = rows.get(name, 0) + ns
        for name, ns in rows.items():
            stages.setdefault(name, []).append(ns / 1e6)
    medians = {name: statistics.median(values) for name, values in stages.items()}
    return {**medians, "total": sum(medians.values())}


def _locks(recognizer: Recognizer, sound: Audio) -> dict[str, bool]:
    """Hear the sound over and over in one piece: each call must outlast the waking of a thread."""
    most = int(_LOCK_SOUND_S * sound.sample_rate_hz)
    samples = np.resize(sound.samples, most) if len(sound.samples) else sound.samples
    long_sound = Audio(samples, sound.sample_rate_hz, sound.source)
    watch = LockWatch()
    watch.start()
    try:
        patience, released = _LOCK_PATIENCE, 0
        while patience and not (watch.seen and all(watch.seen.values())):
            recognizer.transcribe(long_sound, piece_s=LONGEST_PIECE_S)
            patience = patience - 1 if sum(watch.seen.values()) == released else _LOCK_PATIENCE
            released = sum(watch.seen.values())
    finally:
        watch.stop()
    return watch.seen


def _cpu_ns() -> dict[int, tuple[str, int]]:
    """Name and CPU time of each thread of this process; empty where the system does not tell."""
    found = {}
    for task in Path("/proc/self/task").glob("*"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            cpu_ns = int((task / "schedstat").read_text().split()[0])
            found[int(task.name)] = ((task / "comm").read_text().strip(), cpu_ns)
    return found


def _threads(before: dict[int, tuple[str, int]]) -> list[Thread]:
    main = threading.get_native_id()
    used = []
    for thread_id, (name, cpu_ns) in _cpu_ns().items():
        spent_ns = cpu_ns - before.get(thread_id, ("", 0))[1]
        if spent_ns > 0:
            title = "main" if thread_id == main else f"{name} {thread_id}"
            used.append(Thread(thread_id, title, spent_ns))
    return sorted(used, key=lambda thread: -thread.cpu_ns)
