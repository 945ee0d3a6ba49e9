"""``asr transcribe``: files to text."""

from __future__ import annotations

import argparse
import time

from asr.cli import Help, _report_bug, report
from asr.errors import TextChangedError, UsageError

TYPE_CHECKING = False  # importing typing would cost asr --help a tenth of its time
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import Any, TypeAlias

    from asr.audio.raw import RawFormat
    from asr.cli.outputs import Job
    from asr.observe import Observer, Timer
    from asr.recognizer import Recognizer
    from asr.records import Transcript

    #: Wall nanoseconds of a call, and its steps.
    Call: TypeAlias = tuple[int, list[tuple[str, int]]]


_DEFAULT_REPEAT = 6


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "transcribe",
        help="print or write what was said in sound files",
        description="Print what was said. Text goes to stdout, everything else to stderr.",
        epilog=(
            "With one file the text stands alone; with several each line is FILE<tab>TEXT.\n"
            "A file that cannot be read does not stop the others.\n"
            "ASR_DUMP=FOLDER writes what every stage returned, as .npz files."
        ),
        formatter_class=Help,
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="WAV, FLAC, Ogg, MP3, any sample rate; a folder with all below, or a 'pattern*'",
    )
    parser.add_argument(
        "--model",
        metavar="DIR|NAME",
        help="model folder, or a name from asr models list (default: tiny-en)",
    )
    parser.add_argument(
        "--language", default="auto", metavar="LANG", help="hint for the network (default: auto)"
    )
    parser.add_argument(
        "--itn",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="digits and punctuation, where the model can (default: off)",
    )
    parser.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="threads of the network (default: the cores this process may use, at most 4)",
    )
    parser.add_argument(
        "--phrases",
        metavar="FILE",
        help="hear nothing but these phrases, one a line, 'text' or 'text => label'",
    )
    parser.add_argument(
        "--phrase-mode",
        choices=("one", "many"),
        default="one",
        help="one phrase per file, or many in a row, such as digits (default: one)",
    )
    _add_output_options(parser)
    _add_sound_options(parser)
    parser.add_argument(
        "--timings", action="store_true", help="where the time went, cold and warm, on stderr"
    )
    parser.add_argument(
        "--repeat",
        type=_positive,
        metavar="N",
        help=f"transcribe each file N times; the first call is cold "
        f"(default: 1, with --timings {_DEFAULT_REPEAT})",
    )
    parser.set_defaults(run=run)


def _add_output_options(parser: argparse.ArgumentParser) -> None:
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="one JSON object per file and line, with word times"
    )
    form.add_argument(
        "--format",
        type=_formats,
        metavar="LIST",
        help="txt, json, srt, vtt, tsv, lrc; several with commas, for -o (default: txt)",
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE|DIR", help="write there; a folder gets NAME.EXT per file"
    )
    parser.add_argument(
        "--skip-existing", action="store_true", help="leave out what has its output already"
    )
    parser.add_argument(
        "--words", action="store_true", help="tsv with a row per word, not per stretch of speech"
    )
    parser.add_argument(
        "--rich",
        choices=("emoji", "tags"),
        help="event and emotion beside the text of txt, where the model knows them (default: off)",
    )
    parser.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="files at a time (default: 1)"
    )
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="errors only: no progress, notes, warnings"
    )


def _formats(word: str) -> tuple[str, ...]:
    from asr.formats import NAMES

    names = tuple(dict.fromkeys(word.split(",")))
    if not set(names) <= set(NAMES):
        raise argparse.ArgumentTypeError(f"expected some of {','.join(NAMES)}, found {word!r}")
    return names


def _add_sound_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--raw",
        type=_raw,
        metavar="FORMAT",
        help="samples without a header: ENCODING,RATE,CHANNELS such as s16le,16000,1",
    )
    parser.add_argument(
        "--channel",
        type=_positive,
        metavar="N",
        help="hear this channel only, counted from 1 (default: their mean)",
    )
    parser.add_argument(
        "--strict",
        action="store_true",
        help="refuse a damaged file (default: hear what is left, with a warning)",
    )
    parser.add_argument(
        "--no-vad",
        action="store_true",
        help="hear all of a long file (default: leave out its pauses)",
    )
    parser.add_argument(
        "--piece-s",
        type=_piece_s,
        default=20.0,
        metavar="SECONDS",
        help="longest piece heard in one call, 1 to 60; longer files are cut (default: 20)",
    )


def _raw(words: str) -> RawFormat:
    from asr.audio.raw import RawFormat

    try:
        return RawFormat.parse(words)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("raw: ")) from None


def _piece_s(word: str) -> float:
    try:
        seconds = float(word)
    except ValueError:
        seconds = 0.0
    if not 1 <= seconds <= 60:
        raise argparse.ArgumentTypeError(f"expected 1 to 60 seconds, found {word!r}")
    return seconds


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found {word!r}")
    return int(word)


def run(options: argparse.Namespace) -> int:
    """Load the model once and transcribe file by file, or some at a time.

    Returns:
        0, or the exit code of the first file that failed.
    """
    import warnings

    from asr.cli import ENTERED_NS, batch, inputs, outputs, tell
    from asr.observe import SILENT, Timer

    warnings.showwarning = tell.ignore_warning if options.quiet else tell.show_warning
    if options.timings and options.jobs > 1:
        raise UsageError("--timings: expected --jobs 1; calls side by side slow one another")
    if options.output == "-":
        options.output = None
    found, many = inputs.expand(options.files)
    jobs = outputs.plan(options, found, many=many)
    timer = Timer() if options.timings else None
    if timer:
        timer.steps_ns.append(("command_line", time.perf_counter_ns() - ENTERED_NS))
    nothing_left = bool(jobs) and all(job.skipped for job in jobs)
    if nothing_left:
        return batch.tell_all(((job, 0) for job in jobs), jobs, options, many=many)
    recognizer = _load(options, timer or SILENT)
    recognizer.layout.language_id(options.language)  # refuse before the first file is read
    if options.phrases is not None:
        from asr.phrases import PhraseList

        recognizer.phrases = PhraseList.read(
            options.phrases,
            recognizer.layout.vocabulary,
            many=options.phrase_mode == "many",
        )
    load = (time.perf_counter_ns() - ENTERED_NS, timer.take()) if timer else None

    def hear(job: Job, observer: Observer) -> int:
        return _transcribe(recognizer, job.path, options, None, None, job, observer)

    def one_by_one() -> Iterator[tuple[Job, int]]:
        cold = load
        for job in jobs:
            yield job, _transcribe(recognizer, job.path, options, timer, cold, job)
            cold = None  # the process is cold only once

    if len(jobs) == 1 and not many:
        return next(one_by_one())[1]
    workers = min(options.jobs, len(jobs))
    results = batch.in_order(jobs, hear, workers) if workers > 1 else one_by_one()
    return batch.tell_all(results, jobs, options, many=many)


def _load(options: argparse.Namespace, observer: Observer) -> Recognizer:
    from asr.hub import DEFAULT_MODEL

    recognizer_type = observer.step("import", _import_pipeline)
    threads = options.threads
    if threads is None and options.jobs > 1:
        from asr.engines.ort import default_threads

        threads = max(1, default_threads() // options.jobs)
    return recognizer_type.load(
        DEFAULT_MODEL if options.model is None else options.model,
        threads=threads,
        observer=observer,
    )


def _import_pipeline() -> type[Recognizer]:
    """Import all that a run needs, so that a timer sees it as one step."""
    import soundfile  # noqa: F401

    from asr.engines.ort import import_runtime
    from asr.recognizer import Recognizer

    import_runtime()

    return Recognizer


def _transcribe(
    recognizer: Recognizer,
    path: Path,
    options: argparse.Namespace,
    timer: Timer | None,
    load: Call | None,
    job: Job | None = None,
    observer: Observer | None = None,
) -> int:
    """Transcribe one file and write it; an error is reported, not raised."""
    from asr.cli.outputs import Job
    from asr.errors import AsrError

    job = job or Job(path)
    if job.skipped:
        return 0
    try:
        _hear(recognizer, job, options, timer, load, observer)
    except AsrError as error:
        job.fail(error)
        job.say(report, error, error.exit_code)
        return error.exit_code
    except OSError:
        raise  # nothing can be written to stdout
    except Exception as error:  # our bug with this file stops no other
        job.fail(error)
        job.say(_report_bug, error)
        return 70
    return 0


def _hear(
    recognizer: Recognizer,
    job: Job,
    options: argparse.Namespace,
    timer: Timer | None,
    load: Call | None,
    observer: Observer | None,
) -> None:
    """Transcribe one file as often as asked, write it once."""
    from asr.cli import tell
    from asr.observe import SILENT

    if job.error is not None:
        raise job.error
    observer = timer or observer or SILENT
    times = options.repeat or (_DEFAULT_REPEAT if timer else 1)
    calls: list[Call] = []
    first: Transcript | None = None
    if timer:
        timer.take()  # steps of a file that failed belong to no other
    for _ in range(times):
        start_ns = time.perf_counter_ns()
        transcript = recognizer.transcribe(
            job.path,
            language=options.language,
            itn=options.itn,
            raw=options.raw,
            channel=options.channel,
            strict=options.strict,
            vad=not options.no_vad,
            piece_s=options.piece_s,
            observer=observer,
        )
        wall_ns = time.perf_counter_ns() - start_ns
        if first is None:
            first = transcript
            if job.form != "json" and not job.targets:
                observer.step("write", tell.print_text, transcript, job, options)
        elif transcript.text != first.text:
            raise TextChangedError(
                f"{job.path}: the text changed between two calls: {first.text!r}, "
                f"then {transcript.text!r}"
            )
        if timer:
            calls.append((wall_ns, timer.take()))
    assert first is not None  # noqa: S101 - times >= 1
    times_found = None
    if timer:
        from asr.cli import timings

        times_found = timings.collect(recognizer, first.audio_s, load, calls)
    tell.finish(first, job, options, times_found)
