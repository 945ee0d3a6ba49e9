"""What a measurement leaves behind: ``asr-bench/1`` (one version) and ``asr-pairs/1`` (two).

One JSON file per run. Times are integer nanoseconds, memory bytes, audio seconds. Raw samples are
kept; ``summary`` follows from them by one function (``asr.bench.summary``). Published as
docs/bench.schema.json and docs/pairs.schema.json, made from the classes below.
"""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from asr.bench.plain import ABSENT, from_plain, to_plain
from asr.errors import RecordError, SystemAccessError

BENCH_SCHEMA: Final = "asr-bench/1"
PAIRS_SCHEMA: Final = "asr-pairs/1"

State: TypeAlias = Literal["cold", "idle", "evicted", "warm"]
Bucket: TypeAlias = Literal["1 s", "5 s", "15 s", "30 s", "long"]
BUCKETS: tuple[Bucket, ...] = ("1 s", "5 s", "15 s", "30 s", "long")
#: Beside the contract's stages in every ``stages_ns``: what no stage saw.
UNACCOUNTED = "unaccounted"
#: Beside the stages in summaries: the whole call.
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Git:
    """The source of what was measured.

    Attributes:
        sha: commit, 40 hexadecimal digits.
        dirty: whether tracked files differed from it.
        parent: its first parent; null for a root or where history is cut off.
    """

    sha: str
    dirty: bool
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """What ran.

    Attributes:
        version: of this package.
        profile: of the Rust build; a debug build's times say nothing.
        backend: SIMD path of the Rust stages.
        python: version.
        onnxruntime: version.
        numpy: version.
        rust: the compiler of the Rust stages; absent where the version does not say.
    """

    version: str
    profile: Literal["release", "debug"]
    backend: str
    python: str
    onnxruntime: str
    numpy: str
    rust: str | None = field(default=None, metadata=ABSENT)


@dataclass(frozen=True, slots=True)
class Model:
    """What it ran.

    Attributes:
        name: as the user gave it.
        layout: the convention its folder follows.
        network_sha256: of the network file.
        network_bytes: size of the network file.
        recipe_sha256: of the front end's recipe, CMVN values included.
        tokens_sha256: of the list of tokens.
    """

    name: str
    layout: str
    network_sha256: str
    network_bytes: int
    recipe_sha256: str
    tokens_sha256: str


@dataclass(frozen=True, slots=True)
class Options:
    """How it was asked to run; runs with different ones are not compared for a verdict.

    Attributes:
        threads: of the network.
        pin: cores the measured processes stayed on; null leaves it to the system.
        warm_up: calls per clip before the first one counted.
        repeat: calls per clip, or calls per process of a pair; null measures until half_width.
        half_width: half of the 95 % interval of rtf_warm as a share of it, to be reached; null
            with repeat.
        language: hint given to the network.
        itn: whether inverse text normalisation was asked for.
        seed: of the order of clips.
        page_cache: whether files were in memory when a fresh process started.
        engine: what runs the network.
        cold: fresh processes per clip.
        idle_s: seconds without work before an `idle` call.
        evict_bytes: bytes read before an `evicted` call to fill the caches.
        evicted_model: what was done to the model's own pages before an `evicted` call.
        pairs: pairs of processes per clip, for asr-pairs/1.
        workload: name and hash of the manifest.
        prepared: `cached` or `off` (`--no-optimize`) for a large network, which asr prepares for
            this CPU before it is measured; absent for one too small for that.
        in_turns: whether the warm calls of the two processes of a pair took turns, for
            asr-pairs/1; else one process ended before the other began.
    """

    threads: int
    pin: list[int] | None
    warm_up: int
    repeat: int | None
    half_width: float | None
    language: str
    itn: bool
    seed: int
    page_cache: Literal["warm", "dropped", "unknown"]
    engine: str
    cold: int | None = field(default=None, metadata=ABSENT)
    idle_s: float | None = field(default=None, metadata=ABSENT)
    evict_bytes: int | None = field(default=None, metadata=ABSENT)
    evicted_model: str | None = field(default=None, metadata=ABSENT)
    pairs: int | None = field(default=None, metadata=ABSENT)
    workload: str | None = field(default=None, metadata=ABSENT)
    prepared: str | None = field(default=None, metadata=ABSENT)
    in_turns: bool | None = field(default=None, metadata=ABSENT)


@dataclass(frozen=True, slots=True)
class Machine:
    """What it ran on.

    Attributes:
        fingerprint: hash of the fields; different ones are never compared for a verdict.
        fields: what decides how fast the machine is.
    """

    fingerprint: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Noise:
    """How quiet the machine was.

    Attributes:
        probe_ns: times of the same fixed work before, between and after the measurements.
        probe_ratio: largest of them over the smallest.
        steal_share: part of CPU time that the hypervisor gave to others.
        load_1min: load average when it ended.
        voluntary_switches: of the resident process.
        involuntary_switches: of the resident process: somebody else took the core.
        class_: the verdict.
        repeated: whether a first, noisy attempt was thrown away.
    """

    probe_ns: list[int]
    probe_ratio: float
    steal_share: float
    load_1min: float
    voluntary_switches: int
    involuntary_switches: int
    class_: Literal["quiet", "ok", "noisy"]
    repeated: bool


@dataclass(frozen=True, slots=True)
class Clip:
    """One piece of sound.

    Attributes:
        id: name within the workload.
        bucket: length class.
        sha256: of the file's bytes.
        audio_s: seconds of source audio, the denominator of every RTF.
        text_sha256: of what was heard.
        text_as_expected: whether every call heard what the manifest expects.
        cer: character error rate against what was really said; null when nobody knows.
    """

    id: str
    bucket: Bucket
    sha256: str
    audio_s: float
    text_sha256: str
    text_as_expected: bool
    cer: float | None


@dataclass(frozen=True, slots=True)
class Sample:
    """One call.

    Attributes:
        state: of the process before it.
        clip: id.
        round: counts from 0 within a state.
        wall_ns: read to text; a cold process's first call.
        cpu_ns: CPU time of all threads during wall_ns; of the whole process in state cold.
        stages_ns: wall time of each stage, and `unaccounted`.
        load_ns: wall time of each phase before the first call; state cold alone.
        process_ns: a fresh `asr transcribe CLIP` from spawn to exit; state cold alone.
    """

    state: State
    clip: str
    round: int
    wall_ns: int
    cpu_ns: int
    stages_ns: dict[str, int]
    load_ns: dict[str, int] | None = field(default=None, metadata=ABSENT)
    process_ns: int | None = field(default=None, metadata=ABSENT)


@dataclass(frozen=True, slots=True)
class Memory:
    """Of the resident process.

    Attributes:
        peak_rss_bytes: most it ever held.
        rss_start_bytes: after the warm-up.
        rss_end_bytes: after the last call.
        growth_bytes: their difference.
        calls: between the two.
    """

    peak_rss_bytes: int
    rss_start_bytes: int
    rss_end_bytes: int
    growth_bytes: int
    calls: int


@dataclass(frozen=True, slots=True)
class Energy:
    """What the warm calls took from the wall.

    Attributes:
        joules: of the whole package, idle power included.
        source: who measured.
        audio_s: seconds of audio transcribed meanwhile.
    """

    joules: float
    source: Literal["rapl", "board"]
    audio_s: float


@dataclass(frozen=True, slots=True)
class Heat:
    """Whether the board could keep its clock.

    Attributes:
        celsius_start: of its hottest zone before the first call; null where nobody tells.
        celsius_end: after the last one.
        throttled_bits: of the Raspberry Pi's firmware at the end: bits 0 to 3 under-voltage,
            frequency capped, throttled, soft temperature limit; 16 to 19 the same since it was
            started. Null elsewhere.
        clock_held: whether the kernel cooled by a lower clock at the end; null where it cannot.
    """

    celsius_start: float | None
    celsius_end: float | None
    throttled_bits: int | None
    clock_held: bool | None


@dataclass(frozen=True, slots=True)
class Bench:
    """A file of schema asr-bench/1: one run of one version.

    Attributes:
        schema: name and version of this form.
        run_id: unique.
        utc: when it ended, ISO 8601.
        label: the user's name for it.
        git: source, where it is known.
        tool: what ran.
        model: what it ran.
        options: how it was asked to run.
        machine: what it ran on.
        noise: how quiet that was.
        clips: the workload.
        samples: every call.
        memory: of the resident process.
        energy: null where nothing can measure it.
        hyperfine: its own result for `asr transcribe CLIP`, ours beside it, `agrees`.
        summary: as ``asr.bench.summary.summarise`` makes it from clips and samples.
        heat: whether the board could keep its clock; absent where nothing tells.
    """

    schema: Literal["asr-bench/1"]
    run_id: str
    utc: str
    label: str | None
    git: Git | None
    tool: Tool
    model: Model
    options: Options
    machine: Machine
    noise: Noise
    clips: list[Clip]
    samples: list[Sample]
    memory: Memory
    energy: Energy | None
    hyperfine: dict[str, Any] | None
    summary: dict[str, Any]
    heat: Heat | None = field(default=None, metadata=ABSENT)


@dataclass(frozen=True, slots=True)
class Version:
    """One side of a comparison.

    Attributes:
        label: for tables.
        git: source, where it is known.
        tool: what ran.
        model: what it ran.
    """

    label: str
    git: Git | None
    tool: Tool
    model: Model


@dataclass(frozen=True, slots=True)
class PairClip:
    """One piece of sound, heard by both.

    Attributes:
        id: name within the workload.
        bucket: length class.
        sha256: of the file's bytes.
        audio_s: seconds of source audio.
        text_sha256_a: of what a heard.
        text_sha256_b: of what b heard.
        text_same: whether they are equal in every process.
        cer_a: character error rate of a; null when nobody knows what was said.
        cer_b: the same of b.
    """

    id: str
    bucket: Bucket
    sha256: str
    audio_s: float
    text_sha256_a: str
    text_sha256_b: str
    text_same: bool
    cer_a: float | None
    cer_b: float | None


@dataclass(frozen=True, slots=True)
class Call:
    """One call inside a process.

    Attributes:
        wall_ns: read to text.
        stages_ns: wall time of each stage, and `unaccounted`.
    """

    wall_ns: int
    stages_ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One fresh process: `asr transcribe CLIP --json --timings --repeat N`.

    Attributes:
        process_ns: spawn to exit.
        cpu_ns: CPU time of the whole process.
        peak_rss_bytes: most it ever held.
        load_ns: wall time of each phase before the first call.
        first: the first call.
        warm: the calls after it.
    """

    process_ns: int
    cpu_ns: int
    peak_rss_bytes: int
    load_ns: dict[str, int]
    first: Call
    warm: list[Call]


@dataclass(frozen=True, slots=True)
class Pair:
    """Both versions, one after the other, on the same cores.

    Attributes:
        round: counts from 0.
        order: who went first.
        bucket: of the clip.
        clip: id.
        a: the base.
        b: the other.
    """

    round: int
    order: Literal["ab", "ba"]
    bucket: Bucket
    clip: str
    a: Side
    b: Side


@dataclass(frozen=True, slots=True)
class PairMemory:
    """Of one version's processes.

    Attributes:
        peak_rss_bytes: median over the processes of the longest clip.
    """

    peak_rss_bytes: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """Of one version's files.

    Attributes:
        wheel_bytes: null for a checkout that was not packed.
        network_bytes: the network file.
    """

    wheel_bytes: int | None
    network_bytes: int


@dataclass(frozen=True, slots=True)
class Change:
    """How much slower (above 1) or faster b is in one respect.

    Attributes:
        metric: warm and first: a call's stage or total; load: a phase or total; cold: load and
            first call together; memory: peak.
        bucket: length class; null for load and memory, which take all clips together.
        stage: stage or phase; null for the total.
        ratio: median of b / a over the pairs.
        low: lower 95 % bound of it.
        high: upper 95 % bound of it.
        n: pairs.
        mde: smallest slowdown that so many pairs of this noise find in 9 of 10 cases at 1 % error
            rate, as a share: 0.03 is 3 %.
        median_a: in `unit`.
        median_b: in `unit`.
        unit: of both medians.
    """

    metric: Literal["warm", "cold", "load", "first", "memory"]
    bucket: Bucket | None
    stage: str | None
    ratio: float
    low: float
    high: float
    n: int
    mde: float
    median_a: float
    median_b: float
    unit: Literal["ns", "bytes"]


@dataclass(frozen=True, slots=True)
class Pairs:
    """A file of schema asr-pairs/1: two versions side by side.

    Attributes:
        schema: name and version of this form.
        run_id: unique.
        utc: when it ended, ISO 8601.
        a: the base.
        b: the other.
        machine: what they ran on.
        noise: how quiet that was.
        options: how they were asked to run.
        clips: the workload.
        pairs: every pair of processes.
        confirm: pairs of the confirming re-run; null when nothing looked slower.
        memory: by side, `a` and `b`.
        sizes: by side, `a` and `b`.
        summary: as ``asr.bench.summary.changes`` makes it from `pairs`.
    """

    schema: Literal["asr-pairs/1"]
    run_id: str
    utc: str
    a: Version
    b: Version
    machine: Machine
    noise: Noise
    options: Options
    clips: list[PairClip]
    pairs: list[Pair]
    confirm: list[Pair] | None
    memory: dict[str, PairMemory]
    sizes: dict[str, Sizes]
    summary: list[Change]


_KINDS: dict[str, type[Bench] | type[Pairs]] = {BENCH_SCHEMA: Bench, PAIRS_SCHEMA: Pairs}


def read(path: str | os.PathLike[str]) -> Bench | Pairs:
    """Read a record of either kind.

    Raises:
        SystemAccessError: the file cannot be read.
        RecordError: it is no record, with the place of what is wrong.
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the record: {error.strerror}") from None
    except ValueError as error:
        raise RecordError(f"{path}: expected a record in JSON, found {error}") from None
    kind = _KINDS.get(value.get("schema", "")) if isinstance(value, dict) else None
    if kind is None:
        raise RecordError(f"{path}: expected schema {' or '.join(_KINDS)}, found another file")
    return from_plain(kind, value, str(path))


def read_bench(path: str | os.PathLike[str]) -> Bench:
    """Read a record of one version; raises as ``read``."""
    record = read(path)
    if not isinstance(record, Bench):
        raise RecordError(f"{path}: expected {BENCH_SCHEMA}, found {record.schema}")
    return record


def read_pairs(path: str | os.PathLike[str]) -> Pairs:
    """Read a record of two versions; raises as ``read``."""
    record = read(path)
    if not isinstance(record, Pairs):
        raise RecordError(f"{path}: expected {PAIRS_SCHEMA}, found {record.schema}")
    return record


def write(record: Bench | Pairs, path: str | os.PathLike[str]) -> None:
    """Write a record: JSON with one sample or pair a line, so that files compress and diff well.

    Raises:
        SystemAccessError: the file cannot be written.
    """
    place = Path(path)
    part = place.with_name(f".{place.name}.part")
    try:
        part.write_text(dumps(record), encoding="utf-8")
        part.replace(place)
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot write the record: {error.strerror}") from None


def dumps(record: Bench | Pairs) -> str:
    """The record as JSON text, ending in a line feed."""
    lines = []
    for key, value in to_plain(record).items():
        if isinstance(value, list) and value:
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            lines.append(f" {json.dumps(key)}: [\n  {rows}\n ]")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"
