"""What a report says about a record, before it is HTML or Markdown."""

import statistics
from collections.abc import Sequence

from asr.bench import heat
from asr.bench.record import BUCKETS, TOTAL, Bench, Heat, Pairs
from asr.bench.summary import INCLUDES
from asr.report import before_after, charts, words
from asr.report.blocks import Figure, Report, Section, Table
from asr.report.charts import milliseconds


def report(run: Bench, more: Sequence[Section] = (), pairs: Pairs | None = None,
           patches: Sequence[str] = ()) -> Report:  # fmt: skip
    """Put together what a record says.

    Args:
        run: the record.
        more: sections about its history.
        pairs: before and after.
        patches: one line per commit between the two.
    """
    sections = [_rtf(run), _states(run), _stages(run)]
    if pairs is not None:
        sections.append(before_after.section(pairs, patches))
    sections += [*more, _distributions(run), _memory(run), _texts(run), _machine(run)]
    method = [*words.METHOD, *([words.PAIRS_METHOD] if pairs is not None else [])]
    sections.append(Section("Method", method))
    return Report(_title(run), _lead(run), warnings(run), _tiles(run), sections)


def main_bucket(run: Bench) -> str:
    """The length that one number stands for: 5 s, or the first there is."""
    there = [b for b in BUCKETS if any(c.bucket == b for c in run.clips)]
    return "5 s" if "5 s" in there else there[0]


def _title(run: Bench) -> str:
    named = f": {run.label}" if run.label else ""
    return f"asr {run.tool.version}, {run.model.name}{named}"


def _lead(run: Bench) -> str:
    fields, options = run.machine.fields, run.options
    source = f"commit {run.git.sha[:9]}, " if run.git else ""
    cores = "any core" if options.pin is None else f"cores {','.join(map(str, options.pin))}"
    return (
        f"{source}{options.engine}, {run.tool.backend}, {options.threads} "
        f"thread{'s' * (options.threads != 1)}, {cores}; {fields.get('cpu', 'unknown CPU')}, "
        f"{fields.get('cores', '?')} cores; {run.utc}"
    )


def warnings(run: Bench) -> list[str]:
    """Why a reader should not rely on the numbers."""
    found = [f"{c.id}: another text than expected; its times do not count"
             for c in run.clips if not c.text_as_expected]  # fmt: skip
    if run.tool.profile == "debug":
        found.append("a debug build: its times say nothing")
    if run.git is not None and run.git.dirty:
        found.append("uncommitted changes: no commit stands for these times")
    if run.noise.class_ == "noisy":
        found.append("a noisy machine: times vary by more than 10 %, or others took the CPU")
    return found


def _tiles(run: Bench) -> list[tuple[str, str]]:
    bucket, rtf = main_bucket(run), run.summary["rtf"]
    found = []
    if "rtf_warm" in rtf:
        row = rtf["rtf_warm"]["all"]
        found += [("RTF, warm", f"{row['median']:.4f}"),
                  ("times real time, warm", f"{1 / row['median']:.0f}")]  # fmt: skip
    warm = run.summary["stages"].get("warm", {}).get(bucket)
    if warm:
        found.append((f"warm call, {bucket}", milliseconds(warm[TOTAL]["median_ns"])))
    if "rtf_process" in rtf:
        seconds = statistics.fmean(c.audio_s for c in run.clips if c.bucket == bucket)
        cold_ns = 1e9 * rtf["rtf_process"][bucket]["median"] * seconds
        found.append((f"fresh process to text, {bucket}", milliseconds(cold_ns)))
    found.append(("most memory", f"{run.memory.peak_rss_bytes / 1e6:.0f} MB"))
    return found


def _rtf(run: Bench) -> Section:
    found = run.summary["rtf"]
    buckets = list(dict.fromkeys(b for rows in found.values() for b in rows if b != "all"))
    rows = []
    for name, by_bucket in found.items():
        whole = by_bucket["all"]
        values = [f"{by_bucket[b]['median']:.4f}" if b in by_bucket else "-" for b in buckets]
        fold = f"{1 / whole['median']:.1f}" if whole["median"] else "-"
        interval = f"{whole['low']:.4f} - {whole['high']:.4f}"
        rows.append([name, *values, f"{whole['median']:.4f}", interval, fold, str(whole["n"])])
    spans = Table(("RTF", "contains"), [(name, INCLUDES[name]) for name in found], (0, 1))
    head = ("RTF", *buckets, "all", "95 % of all", "x real time", "calls")
    return Section("Real-time factors", [spans, Table(head, rows)])


def _states(run: Bench) -> Section:
    """Waterfalls of a cold, idle, evicted and warm call of one length."""
    bucket, stages = main_bucket(run), run.summary["stages"]
    blocks: list[str | Table | Figure] = [
        f"Clips of {bucket}, medians. The cold call has a scale of its own; the other three share "
        "one. Medians of stages need not add up to the median of the whole."
    ]
    rows, names = [], [s for s in words.STATES if s in stages]
    shared = max((stages[s][bucket][TOTAL]["median_ns"] for s in names if s != "cold"), default=0)
    for state in names:
        found = stages[state][bucket]
        call = [charts.Bar(name, row["median_ns"], "net" if name == "infer" else "bar")
                for name, row in found.items() if name != TOTAL]  # fmt: skip
        load = [charts.Bar(phase, row["median_ns"], "load")
                for phase, row in run.summary["load"].items() if phase != TOTAL]  # fmt: skip
        bars = [*load, *call] if state == "cold" else call
        whole = sum(b.ns for b in bars)
        figure = charts.waterfall(bars, whole if state == "cold" else max(shared, whole))
        blocks.append(Figure(figure, f"{state}: {words.STATES[state]}, {milliseconds(whole)}"))
        total = found[TOTAL]
        rows.append([state, milliseconds(sum(b.ns for b in load)) if state == "cold" else "-",
                     milliseconds(total["median_ns"]), milliseconds(total["mad_ns"]),
                     milliseconds(total["p95_ns"])])  # fmt: skip
    blocks.append(Table(("state", "load", "call", "MAD", "p95"), rows))
    return Section("Cold, idle, evicted, warm", blocks)


def _stages(run: Bench) -> Section:
    bucket = main_bucket(run)
    warm = run.summary["stages"].get("warm", {}).get(bucket, {})
    return Section(
        f"Stages of a warm call, {bucket}",
        [_spread_table("stage", warm), "Before the first call of a fresh process:",
         _spread_table("phase", run.summary["load"])],
    )  # fmt: skip


def _spread_table(first: str, found: dict[str, dict[str, float]]) -> Table:
    rows = [
        [name.replace("_", " "), milliseconds(r["median_ns"]), milliseconds(r["mad_ns"]),
         milliseconds(r["p95_ns"]), f"{100 * r['share']:.1f} %"]
        for name, r in found.items()
    ]  # fmt: skip
    return Table((first, "median", "MAD", "p95", "share"), rows)


def _distributions(run: Bench) -> Section:
    rows = []
    for clip in run.clips:
        times = [s.wall_ns for s in run.samples if (s.state, s.clip) == ("warm", clip.id)]
        if times:
            p95 = run.summary["stages"]["warm"][clip.bucket][TOTAL]["p95_ns"]
            rows.append((clip.bucket, times, statistics.median(times), p95))
    if not rows:
        return Section("Distributions", ["The samples were dropped; their summaries are above."])
    caption = "Every warm call, relative to its clip's median; lines: median and 95th percentile."
    table = Table(
        ("length", "calls", "fastest", "median", "p95", "slowest"),
        [
            [name, str(len(times)), *map(milliseconds, (min(times), median, p95, max(times)))]
            for name, times, median, p95 in rows
        ],
    )
    return Section("Distributions", [Figure(charts.strips(rows), caption), table])


def _memory(run: Bench) -> Section:
    memory, energy = run.memory, run.energy
    calls = f"over {memory.calls} calls" if memory.calls else "not measured"
    rows = [
        ["peak", f"{memory.peak_rss_bytes / 1e6:.1f} MB"],
        ["after the warm-up", f"{memory.rss_start_bytes / 1e6:.1f} MB"],
        ["after the last call", f"{memory.rss_end_bytes / 1e6:.1f} MB"],
        ["growth", f"{memory.growth_bytes / 1e6:+.2f} MB {calls}"],
        ["network file", f"{run.model.network_bytes / 1e6:.1f} MB"],
        ["energy", "not measured" if energy is None else
         f"{energy.joules / energy.audio_s:.3f} J per second of audio ({energy.source})"],
    ]  # fmt: skip
    return Section("Memory and energy", [Table(("", "resident"), rows, (0,))])


def _texts(run: Bench) -> Section:
    rows = [
        [c.id, f"{c.audio_s:.2f} s", "-" if c.cer is None else f"{100 * c.cer:.1f} %",
         "as expected" if c.text_as_expected else "CHANGED", c.text_sha256[:12], c.sha256[:12]]
        for c in run.clips
    ]  # fmt: skip
    head = ("clip", "audio", "CER", "text", "text's SHA-256", "sound's SHA-256")
    return Section("Text beside time", [Table(head, rows, (0,))])


def _heat(found: Heat) -> str:
    degrees = [
        f"{c:.0f}" if c is not None else "?" for c in (found.celsius_start, found.celsius_end)
    ]
    return f"{' to '.join(degrees)} °C; {', '.join(heat.words(found)) or 'clock not held down'}"


def _machine(run: Bench) -> Section:
    noise, tool, model = run.noise, run.tool, run.model
    again = ", measured once more" if noise.repeated else ""
    rows = [
        *([name, str(value)] for name, value in run.machine.fields.items()),
        ["fingerprint", run.machine.fingerprint],
        ["noise", f"{noise.class_}{again}: probe x{noise.probe_ratio:.2f}, steal "
                  f"{100 * noise.steal_share:.1f} %, load {noise.load_1min:.1f}"],
        *([["heat", _heat(run.heat)]] if run.heat else []),
        ["page cache", run.options.page_cache],
        ["build", f"{tool.rust or 'compiler not told'}, {tool.profile}, {tool.backend}; ONNX "
                  f"Runtime {tool.onnxruntime}, Python {tool.python}, NumPy {tool.numpy}"],
        ["model", f"{model.name}, {model.layout}, network {model.network_sha256[:12]}, recipe "
                  f"{model.recipe_sha256[:12]}, tokens {model.tokens_sha256[:12]}"],
        ["workload", run.options.workload or "-"],
        ["run", run.run_id],
    ]  # fmt: skip
    return Section("Machine", [Table(("", ""), rows, (0, 1))])
