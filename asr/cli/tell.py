"""What ``asr transcribe`` prints and writes about one file that was heard."""

from __future__ import annotations

import sys

from asr.cli import is_utf8

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    import argparse
    from pathlib import Path
    from typing import Any

    from asr.cli.outputs import Job
    from asr.records import Transcript


def print_text(transcript: Transcript, job: Job, options: argparse.Namespace) -> None:
    """Print the text, or another format but JSON, to stdout."""
    text = transcript.text + "\n"
    if job.form != "txt" or options.rich:
        from asr.formats import render

        text = render(
            transcript, job.form, source=str(job.path), rich=options.rich, words=options.words
        )
    job.say(_print, job.prefix + text)


def finish(
    transcript: Transcript,
    job: Job,
    options: argparse.Namespace,
    timings: dict[str, Any] | None,
) -> None:
    """Write what comes once per file: output files, notes, JSON, the table of times.

    Raises:
        SystemAccessError: an output file cannot be written.
    """
    extra: dict[str, Any] = {} if timings is None else {"timings": timings}
    if job.targets:
        _write(transcript, job, options, extra)
    if not options.quiet:
        job.say(_tell_user, transcript, job.path, options.model)
    if job.form == "json" and not job.targets:
        from asr.formats import to_json

        line = to_json(transcript, str(job.path), ascii_only=not is_utf8(sys.stdout), **extra)
        job.say(_print, line + "\n")
    elif timings is not None:
        from asr.cli.timings import table

        print(table(job.path.name, timings), file=sys.stderr)


def _write(
    transcript: Transcript, job: Job, options: argparse.Namespace, extra: dict[str, Any]
) -> None:
    from asr.cli.outputs import write
    from asr.formats import render

    for form, target in job.targets.items():
        more = extra if form == "json" else {}
        text = render(
            transcript, form, source=str(job.path), rich=options.rich, words=options.words, **more
        )
        write(target, text)


def _print(text: str) -> None:
    sys.stdout.write(text)  # one write, also when unbuffered
    sys.stdout.flush()


def _tell_user(transcript: Transcript, path: Path, model: str | None) -> None:
    if transcript.no_speech or transcript.rejected:
        print(f"asr: {path}: no text ({transcript.reason})", file=sys.stderr)
    if transcript.rejected or transcript.reason == "low_confidence":
        from asr.hub import DEFAULT_MODEL, dictation_hint

        if hint := dictation_hint(model or DEFAULT_MODEL):
            print(f"asr: {path}: {hint}", file=sys.stderr)
    for warning in transcript.warnings:
        print(f"asr: {path}: warning: {warning}", file=sys.stderr)


def show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line."""
    print(f"asr: warning: {message}", file=sys.stderr)


def ignore_warning(*_: object, **__: object) -> None:
    """Show nothing."""
