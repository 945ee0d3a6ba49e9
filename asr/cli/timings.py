"""What ``asr transcribe --timings`` prints: stages, cold and warm, and the four RTFs."""

import statistics
import time
from typing import TYPE_CHECKING, Any

from asr import cli
from asr.engines.ort import OrtEngine, read_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asr.cli.hear import Call
    from asr.engines.preparation import Preparation
    from asr.recognizer import Recognizer

#: What each RTF spans. The denominator is always the seconds of source audio.
_BOUNDARIES = {
    "rtf_process": {
        "from": "process start (interpreter start by its CPU time)",
        "to": "text of the first clip",
        "includes": "interpreter, imports, model load, first call",
    },
    "rtf_first": {"from": "read", "to": "text", "includes": "first call after load"},
    "rtf_warm": {
        "from": "read",
        "to": "text",
        "includes": "each stage's median over the calls after the first, summed",
    },
    "rtf_infer": {"from": "infer", "to": "infer", "includes": "network only, median of warm calls"},
}


def collect(
    recognizer: "Recognizer",
    audio_s: float,
    load: "Call | None",
    calls: "Sequence[Call]",
    *,
    apart: bool = True,
) -> dict[str, Any]:
    """Sum up the calls on one file.

    Args:
        recognizer: for what ran where, and to measure weight preparation.
        audio_s: seconds of source audio.
        load: wall nanoseconds from our first line to the end of the load, and its steps; None
            when the process was warm already.
        calls: the same of each call, the first one first.
        apart: whether weight preparation is told apart from session creation: it takes six more
            sessions, for which others may not want to wait.

    Returns:
        a JSON-ready record; all times in milliseconds, raw samples included.
    """
    cold_wall_ns, cold_steps = calls[0]
    warm = calls[1:]
    record: dict[str, Any] = {
        "unit": "ms",
        "audio_s": audio_s,
        "engine": recognizer.engine.description,
        "prepared": _preparation(recognizer.engine.preparation),
        "threads": recognizer.engine.threads,
        "backend": recognizer.front_end.backend,
        "load": _load_rows(recognizer if apart else None, load) if load else None,
        "first": _stage_rows(cold_wall_ns, cold_steps),
        "warm": _median_rows(warm),
        "samples": [{"wall": _ms(wall), "stages": _as_ms(steps)} for wall, steps in calls],
        "rtf": {},
    }
    spans = {"rtf_first": _ms(cold_wall_ns)}
    if load:
        spans["rtf_process"] = record["load"]["total"] + record["first"]["total"]
    if warm:
        spans["rtf_warm"] = record["warm"]["total"]
        spans["rtf_infer"] = record["warm"].get("infer", 0.0)
    if audio_s > 0:
        for name, span_ms in spans.items():
            record["rtf"][name] = {"value": span_ms / 1000 / audio_s, **_BOUNDARIES[name]}
    return record


def _preparation(found: "Preparation") -> dict[str, Any]:
    """What stands between the model's file and the network that ran."""
    return {
        "state": found.state,
        "reason": found.reason,
        "passes": list(found.passes),
        "disk_bytes": found.disk_bytes,
        "wall": 1000 * found.wall_s,
    }


def _ms(ns: float) -> float:
    return ns / 1e6


def _as_ms(steps: "Sequence[tuple[str, int]]") -> dict[str, float]:
    """Milliseconds by step; a step that ran for several pieces is summed."""
    sums: dict[str, float] = {}
    for name, ns in steps:
        sums[name] = sums.get(name, 0.0) + _ms(ns)
    return sums


def _stage_rows(wall_ns: int, steps: "Sequence[tuple[str, int]]") -> dict[str, float]:
    """Stages of one call; ``write`` comes after the call's own wall time."""
    rows = _as_ms(steps)
    inside = sum(ms for name, ms in rows.items() if name != "write")
    rows["unaccounted"] = _ms(wall_ns) - inside
    rows["total"] = _ms(wall_ns) + rows.get("write", 0.0)
    return rows


def _median_rows(calls: "Sequence[Call]") -> dict[str, float]:
    """Median of each row over the calls; their sum is the total.

    ``unaccounted`` is a median like the others: closing the sum with it would show the mismatch
    of medians as time that somebody spent.
    """
    if not calls:
        return {}
    tables = [_stage_rows(*call) for call in calls]
    rows = {name: statistics.median(t[name] for t in tables) for name in tables[0]}
    del rows["total"]
    return {**rows, "total": sum(rows.values())}


def _load_rows(recognizer: "Recognizer | None", load: "Call") -> dict[str, float]:
    """Phases before the first call, from process start; weight preparation with a recognizer."""
    wall_ns, steps = load
    rows = {"python_start": _ms(cli.ENTERED_CPU_NS), **_as_ms(steps)}
    if recognizer is not None:
        preparation = min(_weight_preparation_ms(recognizer), rows["session_create"])
        rows["session_create"] -= preparation
        rows["weight_prepare"] = preparation
    rows["total"] = rows["python_start"] + _ms(wall_ns)
    rows["unaccounted"] = _ms(wall_ns) - sum(_as_ms(steps).values())
    return rows


def _weight_preparation_ms(recognizer: "Recognizer") -> float:
    """What bringing the weights into the kernels' order costs at load.

    The runtime does it inside session creation and tells nobody, so it is the median difference
    of three pairs of further sessions, with and without it, made after all timed calls. The
    weights of a prepared network are in that order already; other engines do not tell.
    """
    engine = recognizer.engine
    if engine.preparation.network is not None or not isinstance(engine, OrtEngine):
        return 0.0
    network = recognizer.layout.network
    data = read_model(network)
    threads = engine.threads

    def create_ns(*, prepack: bool) -> int:
        start_ns = time.perf_counter_ns()
        OrtEngine(data, name=str(network), threads=threads, folder=network.parent, prepack=prepack)
        return time.perf_counter_ns() - start_ns

    differences = [create_ns(prepack=True) - create_ns(prepack=False) for _ in range(3)]
    return max(0.0, _ms(statistics.median(differences)))


_LABELS = {
    "python_start": "interpreter start",
    "command_line": "command line",
    "import": "import",
    "layout": "layout (recipe, tokens)",
    "front_end": "front end tables",
    "prepare": "network preparation",
    "model_read": "model read",
    "session_create": "session creation",
    "weight_prepare": "weight preparation",
}


def table(name: str, record: dict[str, Any]) -> str:
    """The record for people: a row per phase and stage, cold and warm side by side."""
    audio_s = record["audio_s"]
    load, first, warm = record["load"] or {}, record["first"], record["warm"]
    warm_calls = len(record["samples"]) - 1
    cold_total = load.get("total", 0.0) + first["total"]
    lines = [
        f"{name}: {audio_s:.2f} s of audio, {record['engine']}, threads {record['threads']}, "
        f"{record['backend']}, network prepared: {record['prepared']['state']}",
        f"{'stage':<24}{'cold ms':>9}{'share':>8}{'RTF':>9}"
        f"{f'warm ms (median of {warm_calls})':>27}{'share':>8}{'RTF':>9}",
    ]

    def row(label: str, cold_ms: float | None, warm_ms: float | None) -> str:
        cells = _cells(cold_ms, cold_total, audio_s, 9) + _cells(
            warm_ms, warm.get("total", 0.0), audio_s, 27
        )
        return f"{label:<24}{cells}".rstrip()

    lines += [row(label, load[key], None) for key, label in _LABELS.items() if key in load]
    names = [n for n in first if n not in ("unaccounted", "total")]
    lines += [row(n, first[n], warm.get(n)) for n in names]
    lines.append(
        row(
            "unaccounted",
            load.get("unaccounted", 0.0) + first["unaccounted"],
            warm.get("unaccounted"),
        )
    )
    lines.append(row("total", cold_total, warm.get("total")))
    lines += [
        f"{key:<12} {entry['value']:.4f}  from {entry['from']} to {entry['to']}: "
        f"{entry['includes']}"
        for key, entry in record["rtf"].items()
    ]
    return "\n".join(lines)


def _cells(ms: float | None, total_ms: float, audio_s: float, width: int) -> str:
    if ms is None:
        return f"{'-':>{width}}{'-':>8}{'-':>9}"
    share = f"{100 * ms / total_ms:.1f} %" if total_ms else "-"
    rtf = f"{ms / 1000 / audio_s:.4f}" if audio_s else "-"
    return f"{ms:>{width}.3f}{share:>8}{rtf:>9}"
