"""One file of ``asr transcribe``: heard as often as asked, told once."""

from __future__ import annotations

import os
import time

from asr.cli import _report_bug, fail
from asr.cli.options import DEFAULT_REPEAT
from asr.cli.signals import raise_if_received
from asr.errors import AsrError, TextChangedError
from asr.observe import SILENT, Timer

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    import argparse
    from typing import Any, TypeAlias

    from asr.cli.outputs import Job
    from asr.observe import Observer
    from asr.recognizer import Recognizer
    from asr.records import Transcript

    #: Wall nanoseconds of a call, and its steps.
    Call: TypeAlias = tuple[int, list[tuple[str, int]]]


def transcribe(
    recognizer: Recognizer,
    job: Job,
    options: argparse.Namespace,
    observer: Observer = SILENT,
    load: Call | None = None,
) -> int:
    """Transcribe one file and write it; an error is reported, not raised.

    Args:
        recognizer: the model.
        job: the file, and where its text goes.
        options: of ``asr transcribe``.
        observer: sees every stage; a ``Timer``'s times are told.
        load: what came before the first call, for the times of a cold process.

    Returns:
        0, or the error's exit code.
    """
    if job.skipped:
        return 0
    try:
        _hear(recognizer, job, options, observer, load)
    except AsrError as error:
        raise_if_received()
        job.fail(error)
        job.say(fail, error, error.exit_code)
        return error.exit_code
    except OSError:
        raise  # nothing can be written to stdout
    except Exception as error:  # our bug with this file stops no other
        raise_if_received()
        job.fail(error)
        job.say(_report_bug, error)
        return 70
    return 0


def _hear(
    recognizer: Recognizer,
    job: Job,
    options: argparse.Namespace,
    observer: Observer,
    load: Call | None,
) -> None:
    from asr.cli import tell

    if job.error is not None:
        raise job.error
    timer = observer if isinstance(observer, Timer) else None
    times = options.repeat or (DEFAULT_REPEAT if timer else 1)
    calls: list[Call] = []
    first: tuple[Transcript, ...] = ()
    if timer:
        timer.take()  # steps of a file that failed belong to no other
    for _ in range(times):
        start_ns = time.perf_counter_ns()
        heard = _call(recognizer, job, options, observer)
        wall_ns = time.perf_counter_ns() - start_ns
        if not first:
            first = heard
            if job.form != "json" and not job.targets:
                observer.step("write", tell.print_text, heard, job, options)
        for before, after in zip(first, heard, strict=True):
            if before.text != after.text:
                raise TextChangedError(
                    f"{job.path}: the text changed between two calls: {before.text!r}, "
                    f"then {after.text!r}"
                )
        if timer:
            calls.append((wall_ns, timer.take()))
        if options.in_turns:
            _let_others_work()
    times_found = None
    if timer:
        from asr.cli import timings

        times_found = timings.collect(
            recognizer, first[0].audio_s, load, calls, apart=not options.in_turns
        )
    tell.finish(first, job, options, times_found)


def _let_others_work() -> None:
    """Say that a call has ended, and wait for our turn; at the end of input it is always ours.

    An empty line is no part of the JSON that follows.
    """
    os.write(1, b"\n")
    os.read(0, 1)


def _call(
    recognizer: Recognizer, job: Job, options: argparse.Namespace, observer: Observer
) -> tuple[Transcript, ...]:
    """One transcript, or one per channel."""
    wanted: dict[str, Any] = {
        "language": options.languages or options.language,
        "itn": options.itn,
        "raw": options.raw,
        "strict": options.strict,
        "vad": not options.no_vad,
        "piece_s": options.piece_s,
        "observer": observer,
    }
    if options.split_channels:
        return recognizer.transcribe_channels(job.path, **wanted)
    return (recognizer.transcribe(job.path, channel=options.channel, **wanted),)
