"""What is measured, a row at a time: contenders take turns, so that drift hits all alike."""

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import limit
import programs
from contenders import ENTRIES, MAIN, PROGRAMS, WORKERS, Entry, environment, padded
from rapidfuzz.distance import Levenshtein
from sounds import network_rows, write_sound

from asr.bench.child import spawn
from asr.bench.measure import Contender, Worker

#: contender -> measure -> one number per round; the unit ends the measure's name.
Samples = dict[str, dict[str, list[float]]]

FAIRNESS = tuple(ENTRIES)
FRESH = (*MAIN, "ours-lossless/sherpa", "ours-lossless/funasr", "sherpa-onnx fp32",
         "funasr-onnx fp32", "openvino fp32", "lele")  # fmt: skip
FRONT_ENDS = ("ours/funasr", "asrfront", "funasr-onnx")
DECODERS = ("ours/funasr", "funasr-onnx")


@dataclass(frozen=True, slots=True)
class Row:
    """One line of what is measured.

    Attributes:
        key: its name; done rows are found by it.
        kind: a key of ``KINDS``.
        seconds: of sound.
        threads: of the network.
        names: contenders.
        rounds: in each, every contender has one turn.
        minutes: about what it takes on the machine of the recorded result.
    """

    key: str
    kind: str
    seconds: float
    threads: int
    names: tuple[str, ...]
    rounds: int
    minutes: float


def plan(pairs: int, processes: int, long_rounds: int) -> tuple[Row, ...]:
    """All rows, the most telling first."""
    return (
        Row("limit", "limit", 0, 1, (), 3, 0.3),
        Row("warm-5.6s-1t", "warm", 5.6, 1, FAIRNESS, pairs, 1.5),
        Row("fresh-5.6s-1t", "fresh", 5.6, 1, FRESH, processes, 4),
        Row("programs-5.6s-1t", "programs", 5.6, 1, programs.NAMES, processes, 0.8),
        Row("warm-30s-1t", "warm", 30, 1, FAIRNESS, pairs, 6.5),
        Row("outside-5.6s-1t", "outside", 5.6, 1, ("ours/sherpa", "ours/funasr"), pairs, 0.3),
        Row("warm-15s-1t", "warm", 15, 1, MAIN, pairs, 1),
        Row("warm-5.6s-2t", "warm", 5.6, 2, MAIN, pairs, 0.4),
        Row("warm-30s-2t", "warm", 30, 2, MAIN, pairs, 1.3),
        Row("front_end-5.6s", "front_end", 5.6, 1, FRONT_ENDS, 2 * pairs, 0.2),
        Row("front_end-30s", "front_end", 30, 1, FRONT_ENDS, 2 * pairs, 0.2),
        Row("decode-5.6s", "decode", 5.6, 1, DECODERS, 2 * pairs, 0.2),
        Row("decode-30s", "decode", 30, 1, DECODERS, 2 * pairs, 0.2),
        Row("agreement", "agreement", 0, 1, (), 1, 1),
        Row("long-600s-1t", "long", 600, 1, MAIN, long_rounds, 2.2 * long_rounds),
    )


def turns(names: Sequence[str], rounds: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Each round's order: the next contender begins, every other round runs backwards."""
    for number in range(rounds):
        shift = number // 2 % max(len(names), 1)
        order = (*names[shift:], *names[:shift])
        yield number, order[::-1] if number % 2 else order


def sound(work: Path, seconds: float) -> Path:
    """The file of a length, made when first asked for."""
    path = work / f"sound-{seconds:g}s.wav"
    if not path.exists():
        write_sound(path, seconds)
    return path


def measure(row: Row, work: Path, cores: Sequence[int] | None = None) -> Samples:
    """Measure a row."""
    return KINDS[row.kind](row, work, cores)


def _workers(row: Row, work: Path, cores: Sequence[int] | None) -> Samples:
    """Processes that stay alive: whole calls, front ends, decoders, CPU outside the network."""
    path = str(sound(work, row.seconds))
    warm = row.kind in ("warm", "long", "outside")
    given = {
        "front_end": (path,),
        "decode": (str(network_rows(row.seconds)),),
    }.get(row.kind)
    call = (path,) if warm else ()
    samples: Samples = {name: {"wall_ns": [], "cpu_ns": []} for name in row.names}
    with contextlib.ExitStack() as stack:
        workers = {
            name: stack.enter_context(Worker(_contender(name, row, work, given), cores))
            for name in row.names
        }
        for worker in workers.values():
            for _ in range(0 if row.kind == "long" else 2):
                worker.run(*call)
        for _, order in turns(row.names, row.rounds):
            for name in order:
                found = workers[name].run(*call)
                outside_ns = int(found.value) if row.kind == "outside" else found.cpu_ns
                samples[name]["wall_ns"].append(found.wall_ns)
                samples[name]["cpu_ns"].append(outside_ns)
    return samples


def _contender(name: str, row: Row, work: Path, given: Sequence[str] | None) -> Contender:
    """A worker with its arguments: those given, or threads and how the network is loaded."""
    entry = ENTRIES.get(name) or Entry(name, name, "int8-funasr", "a front end alone")
    return entry.contender(row.kind, work, *(given or entry.loaded(row.threads)))


def _fresh(row: Row, work: Path, cores: Sequence[int] | None) -> Samples:
    """A process from nothing to a text, files in the page cache: cold time, load, peak memory."""
    path = str(sound(work, row.seconds))
    samples: Samples = {name: {} for name in row.names}
    for name in row.names:  # bring files into the page cache, byte code onto the disk
        _fresh_once(ENTRIES[name], work, path, row.threads, cores, environment(work))
    for round_, order in turns(row.names, row.rounds):
        around = padded(environment(work), round_)
        for name in order:
            for measure_, value in _fresh_once(
                ENTRIES[name], work, path, row.threads, cores, around
            ).items():
                samples[name].setdefault(measure_, []).append(value)
    return samples


def _fresh_once(
    entry: Entry,
    work: Path,
    path: str,
    threads: int,
    cores: Sequence[int] | None,
    around: Mapping[str, str],
) -> dict[str, float]:
    program = PROGRAMS[entry.program]
    command = [str(program.python), str(WORKERS / "fresh.py"), str(WORKERS / program.worker),
               path, str(work / entry.network), *entry.loaded(threads)]  # fmt: skip
    start_ns = time.perf_counter_ns()
    ended = spawn(command, name=entry.name, cores=cores, environment=around)
    told = json.loads(ended.out.splitlines()[-1])
    return {
        "wall_ns": told["text_at_ns"] - start_ns,
        "cpu_ns": ended.cpu_ns,
        "to_exit_ns": ended.process_ns,
        "peak_bytes": ended.peak_rss_bytes,
        **{f"{part}_wall_ns": told[part]["wall_ns"] for part in ("imports", "load", "first")},
        **{f"{part}_cpu_ns": told[part]["cpu_ns"] for part in ("imports", "load", "first")},
    }


def _programs(row: Row, work: Path, cores: Sequence[int] | None) -> Samples:
    """Whole programs, spawn to exit, files in the page cache."""
    path = sound(work, row.seconds)
    samples: Samples = {name: {} for name in row.names}
    for name in row.names:
        programs.run(name, work, path, row.threads, cores, 0)
    for round_, order in turns(row.names, row.rounds):
        for name in order:
            for measure_, value in programs.run(
                name, work, path, row.threads, cores, round_
            ).items():
                samples[name].setdefault(measure_, []).append(value)
    return samples


def _limit(row: Row, work: Path, cores: Sequence[int] | None) -> Samples:
    program = limit.build(work)
    found: Samples = {"1 core": {}, "2 cores": {}}
    for _ in range(row.rounds):
        for count, name in ((1, "1 core"), (2, "2 cores")):
            for measure_, value in limit.probe(program, count).items():
                found[name].setdefault(measure_, []).append(value)
    return found


#: Who answers, and the fp32 network of the same program that it is compared with.
AGREEMENTS = {
    "ours/sherpa": "fp32-sherpa",
    "ours-lossless/sherpa": "fp32-sherpa",
    "ours-as-is/sherpa": "fp32-sherpa",
    "sherpa-onnx": "fp32-sherpa",
    "lele": "fp32-sherpa",
    "ours/funasr": "fp32-funasr",
    "ours-lossless/funasr": "fp32-funasr",
    "ours-as-is/funasr": "fp32-funasr",
    "funasr-onnx": "fp32-funasr",
}


def _agreement(row: Row, work: Path, cores: Sequence[int] | None) -> Samples:
    """Share of rows (sherpa-onnx: tokens) that say what the fp32 network of the program says."""
    paths = [str(sound(work, seconds)) for seconds in (5.6, 15, 30)]
    heard: dict[tuple[str, str, str], list[list[int]]] = {}

    def ids(entry: Entry) -> list[list[int]]:
        key = entry.program, entry.network, entry.how
        if key not in heard:
            with Worker(entry.contender("answers", work, *entry.loaded(1)), cores) as worker:
                heard[key] = [json.loads(worker.run(path).value) for path in paths]
        return heard[key]

    found: Samples = {}
    for name, fp32 in AGREEMENTS.items():
        entry = ENTRIES[name]
        program = "ours" if entry.program == "lele" else entry.program
        how = "as-is" if program == "ours" else ""
        reference = ids(Entry("fp32", program, fp32, "", how))
        found[name] = {
            "agreement": [same(a, b) for a, b in zip(ids(entry), reference, strict=True)]
        }
    return found


def same(found: Sequence[int], expected: Sequence[int]) -> float:
    """Share of equal ids; of lists of other lengths, after the best alignment."""
    if len(found) == len(expected):
        return sum(a == b for a, b in zip(found, expected, strict=True)) / max(len(expected), 1)
    return float(Levenshtein.normalized_similarity(found, expected))


KINDS = {
    "warm": _workers,
    "long": _workers,
    "outside": _workers,
    "front_end": _workers,
    "decode": _workers,
    "fresh": _fresh,
    "programs": _programs,
    "agreement": _agreement,
    "limit": _limit,
}
