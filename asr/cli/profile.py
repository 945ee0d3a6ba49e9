"""``asr profile``: what one transcription does, call by call."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

#: Something happened that the account does not explain.
_UNEXPLAINED = 10

_LISTED = 8


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "profile",
        help="trace one transcription: stages, native calls, memory, nodes, threads",
        description="Look at one warm transcription from outside; print what it does and where.",
        epilog=(
            "examples:\n"
            "  asr profile clip.wav                       the tables alone\n"
            "  asr profile clip.wav -o trace.json         open it at https://ui.perfetto.dev\n"
            "  asr profile clip.wav --folded stacks.txt   flamegraph.pl stacks.txt > flame.svg\n"
            "  asr profile clip.wav --account calls.toml  exit code 10 if anything is unexplained\n"
            "\n"
            "A native call leaves Python for a library: rust_fe, onnxruntime, libsndfile, numpy,\n"
            "soxr, the system. 'allocated' is memory of Python and NumPy in blocks of 4 KiB or\n"
            "more, 'copied' the part of it in functions that copy, 'made' what a stage's result\n"
            "takes in memory of its own, 'lent' what its result shares with its input.\n"
            "Columns 'plain' are medians of 5 calls that nobody looked at; looking makes a call\n"
            "slower, by the factor that is printed, so no speed is judged by a trace.\n"
            "docs/profile.md explains each row."
        ),
        formatter_class=Help,
    )
    parser.add_argument("file", metavar="FILE", help="as for asr transcribe")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write the trace there, in Chrome's JSON format"
    )
    parser.add_argument(
        "--folded", metavar="FILE", help="write stacks there, one a line with its microseconds"
    )
    parser.add_argument(
        "--account",
        metavar="FILE",
        help="compare with an account in TOML: every call and block with its reason",
    )
    parser.add_argument(
        "--cold", action="store_true", help="profile loading and the first call instead"
    )
    parser.add_argument("--model", metavar="DIR|NAME", help="as for asr transcribe")
    parser.add_argument("--threads", type=int, metavar="N", help="as for asr transcribe")
    parser.add_argument("--json", action="store_true", help="the tables as one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Profile and tell.

    Returns:
        0, or 10 when the account does not explain everything.
    """
    import json
    from pathlib import Path

    from asr.cli.outputs import write
    from asr.hub import DEFAULT_MODEL
    from asr.profile import account, trace
    from asr.profile.run import profile
    from asr.profile.summary import summarise

    expected = account.read(Path(options.account)) if options.account else None
    found = profile(
        options.file,
        model=options.model or DEFAULT_MODEL,
        threads=options.threads,
        cold=options.cold,
    )
    summary = summarise(found)
    if options.output:
        write(Path(options.output), json.dumps(trace.chrome(found), ensure_ascii=False) + "\n")
    if options.folded:
        write(Path(options.folded), trace.folded(found))
    if options.json:
        print(json.dumps(summary, ensure_ascii=False, allow_nan=False))
    else:
        print("\n".join(_lines(summary)))
    unexplained = account.differences(expected, summary) if expected is not None else []
    for line in unexplained:
        print(f"asr: {options.account}: {line}", file=sys.stderr)
    return _UNEXPLAINED if unexplained else 0


def _lines(summary: dict[str, Any]) -> list[str]:
    total = summary["total"]
    slower = total["profiled_ms"] / total["plain_ms"]
    return [
        f"{summary['source']}: {summary['audio_s']:.2f} s, {summary['state']} call, "
        f"{summary['engine']}, {summary['threads']} threads, {summary['backend']}",
        f"{total['native_calls']} native calls, {_size(total['allocated_bytes'])} allocated by "
        f"Python, {_size(total['copied_bytes'])} of them copies; results take "
        f"{_size(total['made_bytes'])}",
        f"plain call {total['plain_ms']:.2f} ms, outside the model "
        f"{total['outside_model_ms']:.2f} ms; under the hook {total['profiled_ms']:.2f} ms "
        + ("with the load" if summary["state"] == "cold" else f"(x {slower:.1f})"),
        "",
        *_stages(summary),
        "",
        *_calls(summary),
        "",
        *_blocks(summary),
        *_operators(summary),
        *(f"cpu {row['ms']:8.2f} ms  {row['thread']}" for row in summary["cpu"]),
    ]


def _stages(summary: dict[str, Any]) -> list[str]:
    columns = ["allocated", "copied", "made", "lent"] + ["rust"] * summary["counts_rust"]
    heads = " ".join(f"{column:>10}" for column in columns)
    lines = [f"{'stage':<16} plain ms  hook ms  calls {heads}"]
    for row in summary["stages"]:
        plain = "" if row["plain_ms"] is None else f"{row['plain_ms']:.3f}"
        sizes = [row["allocated_bytes"], row["copied_bytes"], row["made_bytes"], row["lent_bytes"]]
        if row["rust_bytes"] is not None:
            sizes.append(row["rust_bytes"])
        lines.append(
            f"{'(between)' if row['stage'] == '-' else row['stage']:<16} {plain:>8} "
            f"{row['profiled_ms']:>8.3f} {row['native_calls']:>6} "
            + " ".join(f"{_size(size):>10}" for size in sizes)
        )
    return lines


def _calls(summary: dict[str, Any]) -> list[str]:
    lines = ["stage            times  hook ms  native call"]
    for row in summary["calls"]:
        lock = {True: ", lock released", False: ", lock not seen released"}
        lines.append(
            f"{'(between)' if row['stage'] == '-' else row['stage']:<16} {row['times']:>5} "
            f"{row['ms']:>8.3f}  {row['call']}{lock.get(row['lock_released'], '')}"
        )
    return lines


def _blocks(summary: dict[str, Any]) -> list[str]:
    largest = sorted(summary["blocks"], key=lambda row: -int(row["bytes"]))[:_LISTED]
    return [
        f"{'copy' if row['copy'] else 'block':<5} {_size(row['bytes']):>10}  {row['where']} "
        f"({'between stages' if row['stage'] == '-' else row['stage']})"
        for row in largest
    ] + [""]


def _operators(summary: dict[str, Any]) -> list[str]:
    rows = summary["operators"][:_LISTED]
    lines = [f"node {row['ms']:8.3f} ms  {row['times']:>4} x {row['operator']}" for row in rows]
    return [*lines, ""] if lines else []


def _size(size: int) -> str:
    if size < 10_000:
        return f"{size} B"
    return f"{size / 1000:.1f} kB" if size < 10_000_000 else f"{size / 1e6:.1f} MB"
