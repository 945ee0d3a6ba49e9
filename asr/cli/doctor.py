"""``asr doctor``: is this model what it should be, and does it say what other programs say."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

    from asr.doctor.report import Report


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "doctor",
        help="examine a model folder: files, recipe, tokens, clips, peers; a report to send",
        description="Examine a model, and say whether something is wrong with it.",
        epilog=(
            "Nothing is downloaded or sent. Without --clips the model hears 20 clips of this\n"
            "package: synthetic speech in five languages.\n"
            "--json prints one object without paths, host or user names, and names of your\n"
            "files; the verdict then goes to stderr. Texts of your own clips only with --texts."
        ),
        formatter_class=Help,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="model folder, or a name from asr models list"
    )
    parser.add_argument(
        "--peers", action="store_true", help="compare with sherpa-onnx and funasr-onnx if installed"
    )
    parser.add_argument(
        "--clips", metavar="DIR|MANIFEST", help="hear the first 20 of these (default: our own)"
    )
    parser.add_argument("--texts", action="store_true", help="report what your own clips say, too")
    parser.add_argument("--threads", type=int, metavar="N", help="as for asr transcribe")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Examine and tell.

    Returns:
        0, or the exit code of what makes the model unusable.
    """
    from pathlib import Path

    from asr.bench import machine
    from asr.doctor import clips
    from asr.doctor.examine import examine

    report = examine(
        options.model,
        clips.load(Path(options.clips) if options.clips else None),
        machine=machine.fields(),
        with_texts=options.texts or not options.clips,
        with_peers=options.peers,
        threads=options.threads,
        progress=_progress,
    )
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if options.json:
        import json

        print(json.dumps(report.to_json(), ensure_ascii=False, indent=1, allow_nan=False))
    print("\n".join(_lines(report)), file=sys.stderr if options.json else sys.stdout)
    if report.broken is None:
        return 0
    code: int = getattr(report.broken, "exit_code", 4)
    return code


def _progress(what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _lines(report: Report) -> list[str]:
    facts = report.facts
    lines = [f"{'good' if good else 'ODD ':<6}{text}" for good, text in report.findings]
    if times := facts["timings"]:
        lines.append(
            f"time  load {times['load_ms']:.0f} ms, first call {times['first_call_ms']:.0f} ms, "
            f"warm {times['warm_ms']:.0f} ms for {times['audio_s']:.1f} s of sound "
            f"(RTF {times['rtf_warm']:.4f}), {facts['engine']['threads']} threads"
        )
    if report.broken is not None:
        lines.append(f"BAD   {facts['error']}")
    return [*lines, f"verdict: {report.verdict}"]
