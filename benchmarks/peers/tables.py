"""A result as Markdown: everything that was measured, then what follows from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from contenders import RIVALS, ours_beside
from judge import Judged
from limit import least_ms
from results import Result
from sounds import network_rows

from asr.bench.stats import Interval

NOT_MEASURED = "not measured"


def cell(found: Interval | None, digits: int = 2, scale: float = 1.0) -> str:
    """A median with its 95 % interval."""
    if found is None:
        return NOT_MEASURED
    low, middle, high = (f"{v * scale:.{digits}f}" for v in (found.low, found.median, found.high))
    return f"{middle} ({low}–{high})"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table: first column to the left, the others to the right."""
    marks = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, marks, *lines))


def targets(judged: Sequence[Judged]) -> str:
    """Every target beside what was found."""
    lines = []
    for one in judged:
        target = one.target
        in_ms = not target.peer
        wanted = f"≥ {target.least:g}" if target.least is not None else f"≤ {target.most:g}"
        lines.append(
            [
                target.what,
                target.peer or "ours alone",
                cell(one.interval, 2, 1e-6) + " ms" if in_ms else cell(one.interval),
                f"≤ {(target.most or 0) / 1e6:g} ms" if in_ms else wanted,
                "yes" if one.met else "NO" if one.interval else NOT_MEASURED,
            ]
        )
    return table(("target", "peer", "found (95 % interval)", "wanted", "kept"), lines)


def warm(result: Result, key: str) -> str:
    """A row of whole calls: times, real-time factor, ratios, share of the limit."""
    row, lines = result.rows[key], []
    for name in row["samples"]:
        wall, cpu = (result.median(key, name, m) for m in ("wall_ns", "cpu_ns"))
        ours = ours_beside(name)
        assert wall is not None and cpu is not None  # noqa: PT018 - a row has both
        percent = share(result, row, cpu, PRECISIONS.get(name, "int8"))
        against = ["1", "1"] if name == ours else [
            cell(result.ratio(key, name, ours, m)) for m in ("wall_ns", "cpu_ns")
        ]  # fmt: skip
        lines.append(
            [
                f"{name}: {result.facts['entries'].get(name, '')}",
                f"{wall.median / 1e6:.1f}",
                f"{cpu.median / 1e6:.1f}",
                f"{wall.median / 1e9 / row['seconds']:.4f}",
                *against,
                "" if percent is None else f"{percent:.0f} %",
            ]
        )
    head = ("contender", "wall ms", "CPU ms", "RTF", "wall ÷ ours", "CPU ÷ ours", "of the limit")
    return table(head, lines)


#: What the linear layers of a contender multiply, where it is not bytes.
PRECISIONS = {"sherpa-onnx fp32": "fp32", "funasr-onnx fp32": "fp32", "openvino fp32": "bf16"}


def share(
    result: Result, row: Mapping[str, Any], cpu: Interval, precision: str = "int8"
) -> float | None:
    """Least time of the network over the CPU time of a call, in percent; None if unknown."""
    peaks = result.peaks()
    if not _told(peaks, precision) or row["kind"] != "warm":
        return None
    return 100 * least_ms(network_rows(row["seconds"]), peaks, precision) / (cpu.median / 1e6)


def _told(peaks: Mapping[str, float], precision: str) -> bool:
    """Whether the probe knows this CPU's multipliers."""
    return bool(peaks.get("fp32_gflops")) and (precision != "int8" or bool(peaks["int8_gops"]))


def fresh(result: Result, key: str) -> str:
    """Fresh processes: first text, load, memory."""
    lines = []
    for name in result.rows[key]["samples"]:
        ours = ours_beside(name)
        found = {
            m: result.median(key, name, m)
            for m in ("wall_ns", "cpu_ns", "imports_wall_ns", "load_wall_ns", "peak_bytes")
        }
        times = [f"{f.median / 1e6:.0f}" if f else "" for f in found.values()]
        ratios = ["1", "1", "1"] if name == ours else [
            cell(result.ratio(key, name, ours, "wall_ns")),
            cell(result.ratio(key, name, ours, "load_wall_ns")),
            cell(result.ratio(key, ours, name, "peak_bytes")),
        ]  # fmt: skip
        lines.append([name, *times, *ratios])
    head = ("contender", "first text ms", "CPU ms", "imports ms", "load ms", "peak MB",
            "first text ÷ ours", "load ÷ ours", "memory, ours ÷ its")  # fmt: skip
    return table(head, lines)


def programs(result: Result, key: str) -> str:
    """Whole programs against asr-edge."""
    lines, ours = [], "asr-edge"
    for name in result.rows[key]["samples"]:
        found = [result.median(key, name, m) for m in ("wall_ns", "cpu_ns", "peak_bytes")]
        values = [f"{f.median / 1e6:.0f}" if f else "" for f in found]
        ratios = ["1", "1", "1"] if name == ours else [
            cell(result.ratio(key, name, ours, "wall_ns")),
            cell(result.ratio(key, name, ours, "cpu_ns")),
            cell(result.ratio(key, ours, name, "peak_bytes")),
        ]  # fmt: skip
        lines.append([name, *values, *ratios])
    head = ("program", "spawn to exit ms", "CPU ms", "peak MB", "wall ÷ asr-edge's",
            "CPU ÷ asr-edge's", "memory, asr-edge's ÷ its")  # fmt: skip
    return table(head, lines)


def small(result: Result, key: str) -> str:
    """Front ends or decoders: CPU time against ours."""
    lines = []
    ours = "ours/funasr"
    for name in result.rows[key]["samples"]:
        cpu = result.median(key, name, "cpu_ns")
        ratio = "1" if name == ours else cell(result.ratio(key, name, ours, "cpu_ns"))
        lines.append([name, cell(cpu, 3, 1e-6), ratio])
    return table(("contender", "CPU ms", "÷ ours"), lines)


def gains(result: Result, key: str, clock: str) -> str:
    """The lead over each peer, taken apart: what the engine gains, and what the file does."""
    lines = []
    for peer, ours in RIVALS.items():
        layout, given = ours.partition("/")[2], f"{peer} + our file"
        pairs = (
            (peer, f"ours-as-is/{layout}"),
            (peer, f"ours-lossless/{layout}"),
            (peer, given),
            (given, ours),
            (peer, ours),
        )
        found = (result.ratio(key, over, under, f"{clock}_ns") for over, under in pairs)
        lines.append([peer, *map(cell, found)])
    head = ("peer", "engine: same file, nothing changed", "same file, lossless passes",
            "file: the peer with ours", "engine: both have our file", "both")  # fmt: skip
    return table(head, lines)


def agreement(result: Result) -> str:
    """How often each says what its fp32 network says."""
    lines = [
        [name, *(f"{100 * v:.1f} %" for v in found["agreement"])]
        for name, found in result.rows["agreement"]["samples"].items()
    ]
    return table(("contender", "5.6 s", "15 s", "30 s"), lines)


def limits(result: Result) -> str:
    """What the probe reached, and the least times it implies."""
    lines = []
    for cores in (1, 2):
        peaks = result.peaks(cores)
        lines.append([f"{cores}", *(f"{peaks[m]:.0f}" for m in MEASURES)])
    peaks = result.peaks()
    least = ", ".join(
        f"{s:g} s {least_ms(network_rows(s), peaks):.0f} ms" for s in (5.6, 15, 30)
    ) if _told(peaks, "int8") else "unknown on this CPU"  # fmt: skip
    head = ("cores", "int8 GOP/s", "fp32 GFLOP/s", "memory read GB/s")
    return f"{table(head, lines)}\n\nLeast time of the network, int8, one core: {least}."


MEASURES = ("int8_gops", "fp32_gflops", "read_gbytes_per_s")
