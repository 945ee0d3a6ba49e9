"""One page to hand to a reviewer, human or model: what is slow, where, what may not change."""

import re
from collections import Counter
from pathlib import Path

from asr.bench.record import TOTAL, UNACCOUNTED, Bench
from asr.errors import RecordError
from asr.report import words
from asr.report.blocks import Table
from asr.report.charts import milliseconds
from asr.report.content import main_bucket, warnings
from asr.report.forms import markdown_table

_HOTTEST = 20
_NOT_KNOWN = "not known: no Cargo.toml of asr-rtf at {}"


def brief(run: Bench, folded: str | None, checkout: Path) -> str:
    """Write the page, as Markdown.

    Args:
        run: the record.
        folded: stacks with their microseconds, as ``asr profile --folded`` writes them.
        checkout: where Cargo.toml is.

    Raises:
        RecordError: ``folded`` holds no stacks.
    """
    bucket = main_bucket(run)
    tool, options = run.tool, run.options
    parts = [
        f"# Where does the time go: asr {tool.version}, {run.model.name}, clips of {bucket}",
        *(f"> **{w}**" for w in warnings(run)),
        f"**Question.** {_question(run, bucket)}",
        "**Constraints.** " + _constraints(run),
        f"**Machine.** {run.machine.fields.get('cpu', 'unknown CPU')}, "
        f"{run.machine.fields.get('cores', '?')} cores, {options.threads} thread"
        f"{'s' * (options.threads != 1)}; {options.engine}, {tool.backend}, Python {tool.python}; "
        f"noise {run.noise.class_}.",
        "## Stages of a warm call",
        markdown_table(_stages(run, bucket)),
        _cold(run),
        f"## {_HOTTEST} hottest functions",
        _hottest(folded),
        "## Release profile",
        f"```toml\n{release_profile(checkout)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _question(run: Bench, bucket: str) -> str:
    rows = run.summary["stages"]["warm"][bucket]
    total_ns = rows[TOTAL]["median_ns"]
    stages = {n: r["median_ns"] for n, r in rows.items() if n not in (TOTAL, UNACCOUNTED)}
    first = max(stages, key=lambda n: stages[n])
    ours = {n: ns for n, ns in stages.items() if n != "infer"}
    second = max(ours, key=lambda n: ours[n])
    spread = rows[TOTAL]["mad_ns"] / total_ns
    also = "" if second == first else (
        f" Outside of the network `{second}` leads with {milliseconds(ours[second])}."
    )  # fmt: skip
    share = 100 * stages[first] / total_ns
    return (
        f"A warm call takes {milliseconds(total_ns)}, of which `{first}` "
        f"{milliseconds(stages[first])} ({share:.0f} %).{also} Which single change makes the whole "
        f"call at least 3 % faster (by {milliseconds(0.03 * total_ns)}; calls vary by "
        f"{100 * spread:.1f} %, MAD), and how would you prove it with `asr bench --against`?"
    )


def _constraints(run: Bench) -> str:
    sure = sum(c.text_as_expected for c in run.clips)
    memory, peak_mb = run.memory, run.memory.peak_rss_bytes / 1e6
    growth = f", {memory.growth_bytes / 1e6:+.1f} MB over {memory.calls} calls"
    return (
        f"Every text stays as it is ({sure} of {len(run.clips)} clips as expected, by hash); "
        f"memory does not rise (peak {peak_mb:.0f} MB{growth * bool(memory.calls)}); "
        "no stage leaves its boundaries below; scalar Rust stays the definition of right; no "
        "further dependency at run time; the network file stays "
        f"({run.model.network_sha256[:12]}, {run.model.network_bytes / 1e6:.1f} MB)."
    )


def _stages(run: Bench, bucket: str) -> Table:
    rows = []
    for name, row in run.summary["stages"]["warm"][bucket].items():
        begins, ends, _, rust = words.STAGES.get(name, ("", "", "", ""))
        where = words.place_of(name) if name in words.STAGES else ""
        rows.append([name, begins, ends, milliseconds(row["median_ns"]),
                     milliseconds(row["mad_ns"]), f"{100 * row['share']:.1f} %",
                     ", ".join(filter(None, (where, rust)))])  # fmt: skip
    return Table(("stage", "from", "to", "median", "MAD", "share", "source"), rows, (0, 1, 2, 6))


def _cold(run: Bench) -> str:
    load = {n: r["median_ns"] for n, r in run.summary["load"].items() if n != TOTAL}
    if not load:
        return "No cold calls in this record."
    largest = sorted(load.items(), key=lambda row: -row[1])[:4]
    told = ", ".join(f"`{n}` {milliseconds(ns)}" for n, ns in largest)
    return f"Before the first call of a fresh process: {milliseconds(sum(load.values()))}: {told}."


def _hottest(folded: str | None) -> str:
    if folded is None:
        return (
            "Not in this record. `asr profile CLIP --folded stacks.txt`, then "
            "`asr report RECORD --brief --folded stacks.txt`."
        )
    own: Counter[str] = Counter()
    for line in folded.splitlines():
        stack, _, micros = line.rpartition(" ")
        if not stack or not micros.isdigit():
            raise RecordError(f"expected stacks such as `asr;read;open 12`, found {line[:60]!r}")
        own[stack.rpartition(";")[2]] += int(micros)
    total = sum(own.values())
    if not total:
        raise RecordError("expected stacks of asr profile --folded, found none")
    rows = [[f"`{n}`", milliseconds(1000 * us), f"{100 * us / total:.1f} %"]
            for n, us in own.most_common(_HOTTEST)]  # fmt: skip
    note = "Of one call that a profiler watched, without what they call: shares, not speeds."
    return f"{note}\n\n{markdown_table(Table(('function', 'own time', 'share'), rows))}"


def release_profile(checkout: Path) -> str:
    """The ``[profile.release]`` of a checkout's Cargo.toml, as it stands there."""
    try:
        text = (checkout / "Cargo.toml").read_text(encoding="utf-8")
    except OSError:
        return "# " + _NOT_KNOWN.format(checkout)
    found = re.search(r"^\[profile\.release\]\n(?:(?!\[).*\n?)*", text, re.M)
    if found is None:
        return "# " + _NOT_KNOWN.format(checkout)
    return re.sub(r"\n#.*\Z", "", found[0].strip()).strip()
