"""What ``asr transcribe`` prints and writes about one file that was heard."""

from __future__ import annotations

import sys

from asr.cli import is_utf8

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    import argparse
    from typing import Any

    from asr.cli.outputs import Job
    from asr.records import Transcript


def print_text(heard: tuple[Transcript, ...], job: Job, options: argparse.Namespace) -> None:
    """Print the text, or another format but JSON, to stdout."""
    text = heard[0].text + "\n"
    if job.form != "txt" or options.rich or options.split_channels:
        text = _render(heard, job.form, job, options)
    if job.prefix:
        text = "".join(f"{job.prefix}{line}\n" for line in text[:-1].split("\n"))
    job.say(_print, text)


def finish(
    heard: tuple[Transcript, ...],
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
        from asr.cli.outputs import write

        for form, target in job.targets.items():
            more = extra if form == "json" else {}
            write(target, _render(heard, form, job, options, **more))
    if not options.quiet:
        _tell_all(heard, job, options)
    if job.form == "json" and not job.targets:
        line = _render(heard, "json", job, options, ascii_only=not is_utf8(sys.stdout), **extra)
        job.say(_print, line)
    elif timings is not None:
        from asr.cli.timings import table

        print(table(job.path.name, timings), file=sys.stderr)


def _render(
    heard: tuple[Transcript, ...],
    form: str,
    job: Job,
    options: argparse.Namespace,
    **more: Any,  # noqa: ANN401 - members of JSON
) -> str:
    from asr.formats import render

    return render(
        heard if options.split_channels else heard[0],
        form,
        source=str(job.path),
        rich=options.rich,
        words=options.words,
        **more,
    )


def _tell_all(heard: tuple[Transcript, ...], job: Job, options: argparse.Namespace) -> None:
    for transcript in heard:
        name = str(job.path)
        if options.split_channels:
            name += f" (channel {transcript.channel})"
        job.say(_tell_user, transcript, name, options.model)


def _print(text: str) -> None:
    sys.stdout.write(text)  # one write, also when unbuffered
    sys.stdout.flush()


def _tell_user(transcript: Transcript, path: str, model: str | None) -> None:
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
