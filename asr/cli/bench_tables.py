"""What ``asr bench`` prints about a record of one version."""

from __future__ import annotations

from asr.bench.record import BUCKETS, TOTAL, UNACCOUNTED, Bench, Git, Options, Tool
from asr.bench.report import table
from asr.bench.summary import INCLUDES
from asr.observe import STAGES

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_STATES = ("cold", "idle", "evicted", "warm")


def bench_text(run: Bench) -> str:
    """All tables."""
    warm = run.summary["stages"]["warm"]
    shown = "5 s" if "5 s" in warm else "all"
    parts = [
        _head(run),
        _rtf_table(run),
        _state_table(run),
        f"warm call, clips of {shown}\n{_spread_table('stage', warm[shown])}",
        f"warm calls, medians in ms\n{_median_table(warm)}",
        f"before the first call of a fresh process\n{_spread_table('phase', run.summary['load'])}",
        _tail(run),
    ]
    if run.noise.class_ == "noisy":
        parts.append(
            "NOISY: times vary by more than 10 %, or others took the CPU; see docs/bench.md"
        )
    return "\n\n".join(parts)


def marks(tool: Tool, git: Git | None) -> str:
    """What makes a build unfit for numbers that somebody relies on."""
    found = [" [DEBUG BUILD]"] if tool.profile == "debug" else []
    return "".join(found + ([" [DIRTY]"] if git is not None and git.dirty else []))


def cores(options: Options) -> str:
    """Where the processes were, in words."""
    return "any core" if options.pin is None else f"cores {','.join(map(str, options.pin))}"


def _head(run: Bench) -> str:
    tool, fields, options = run.tool, run.machine.fields, run.options
    source = f" {run.git.sha[:9]}" if run.git else ""
    return (
        f"asr {tool.version}{source}{marks(tool, run.git)}, {run.model.name}, "
        f"{options.engine}, {tool.backend}, threads {options.threads}, {cores(options)}\n"
        f"{fields.get('cpu')}, {fields.get('cores')} cores; machine {run.machine.fingerprint}"
        + _heat(run)
    )


def _heat(run: Bench) -> str:
    """A line when the board could not keep its clock: the times are then not those of the board."""
    from asr.bench import heat

    found = heat.words(run.heat) if run.heat else []
    return f"\n[{', '.join(found)}]" if found else ""


def _rtf_table(run: Bench) -> str:
    rows = [["RTF", *_buckets(run), "all", "95 % interval", "x real time", "n"]]
    for name, found in run.summary["rtf"].items():
        all_ = found["all"]
        rows.append(
            [
                name,
                *(f"{found[b]['median']:.4f}" for b in _buckets(run)),
                f"{all_['median']:.4f}",
                f"{all_['low']:.4f} - {all_['high']:.4f}",
                f"{1 / all_['median']:.1f}" if all_["median"] else "-",
                str(all_["n"]),
            ]
        )
    words = "\n".join(f"{name:<12} {INCLUDES[name]}" for name in run.summary["rtf"])
    return f"{table(rows)}\n{words}"


def _buckets(run: Bench) -> list[str]:
    there = {clip.bucket for clip in run.clips}
    return [bucket for bucket in BUCKETS if bucket in there]


def _state_table(run: Bench) -> str:
    """One row per clip: medians of a whole call in every state; text beside time."""
    stages = run.summary["stages"]
    rows = [["clip", "audio s", "first ms", "idle ms", "evicted ms", "warm ms", "p95 ms",
             "warm CPU ms", "CER", "text"]]  # fmt: skip
    for clip in run.clips:
        times = [
            _ms(stages[state][clip.bucket][TOTAL]["median_ns"]) if state in stages else "-"
            for state in _STATES
        ]
        rows.append(
            [
                clip.id,
                f"{clip.audio_s:.2f}",
                *times,
                _ms(stages["warm"][clip.bucket][TOTAL]["p95_ns"]),
                _ms(_median([s.cpu_ns for s in run.samples
                             if (s.state, s.clip) == ("warm", clip.id)])),
                "-" if clip.cer is None else f"{100 * clip.cer:.1f} %",
                "ok" if clip.text_as_expected else "CHANGED",
            ]
        )  # fmt: skip
    return table(rows)


def _median(values: list[int]) -> float:
    import statistics

    return statistics.median(values)


def _spread_table(first: str, found: Mapping[str, Any]) -> str:
    rows = [[first, "median ms", "MAD ms", "p95 ms", "share"]]
    rows += [
        [
            name.replace("_", " "),
            _ms(row["median_ns"]),
            _ms(row["mad_ns"]),
            _ms(row["p95_ns"]),
            f"{100 * row['share']:.1f} %",
        ]
        for name, row in found.items()
    ]
    return table(rows)


def _median_table(warm: Mapping[str, Any]) -> str:
    there = {name for rows in warm.values() for name in rows}
    rows = [["stage", *warm]]
    for name in [n for n in (*STAGES, UNACCOUNTED, TOTAL) if n in there]:
        cells = (_ms(rows_[name]["median_ns"]) if name in rows_ else "-" for rows_ in warm.values())
        rows.append([name, *cells])
    return table(rows)


def _ms(ns: float) -> str:
    return f"{ns / 1e6:.3f}"


def _tail(run: Bench) -> str:
    memory, options = run.memory, run.options
    mb = 1e6
    lines = [
        f"memory     peak {memory.peak_rss_bytes / mb:.1f} MB, {memory.growth_bytes / mb:+.1f} MB "
        f"over {memory.calls} calls; network {run.model.network_bytes / mb:.1f} MB",
        *([f"network    prepared: {options.prepared}"] if options.prepared else []),
        f"page cache {options.page_cache} at each fresh process; evicted: model pages "
        f"{options.evicted_model}",
        f"energy     {_energy(run)}",
        _noise_line(run),
    ]
    if run.hyperfine:
        lines.append(_hyperfine_line(run.hyperfine))
    return "\n".join(lines)


def _energy(run: Bench) -> str:
    energy = run.energy
    if energy is None:
        return "not measured"
    return (
        f"{energy.joules:.1f} J ({energy.source}) for {energy.audio_s:.0f} s of audio, "
        f"{energy.joules / energy.audio_s:.3f} J/s"
    )


def _noise_line(run: Bench) -> str:
    noise = run.noise
    again = ", measured once more" if noise.repeated else ""
    return (
        f"noise      {noise.class_}{again}: probe x{noise.probe_ratio:.2f}, steal "
        f"{100 * noise.steal_share:.1f} %, load {noise.load_1min:.1f}, switches "
        f"{noise.voluntary_switches}/{noise.involuntary_switches}"
    )


def _hyperfine_line(found: Mapping[str, Any]) -> str:
    said = "agrees" if found["agrees"] else "DISAGREES by more than 5 %"
    ours_ms = _median(found["ours_process_ns"]) / 1e6
    return (
        f"hyperfine  {1e3 * found['median']:.1f} ms for a whole process, ours {ours_ms:.1f} ms: "
        f"{said}"
    )
