"""``asr transcribe``: files to text."""

from __future__ import annotations

import time

from asr.cli import Help
from asr.cli.options import add_options, network_options
from asr.errors import UsageError

TYPE_CHECKING = False  # importing typing would cost asr --help a tenth of its time
if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from typing import Any

    from asr.cli.outputs import Job
    from asr.observe import Observer
    from asr.recognizer import Recognizer


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
    add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load the model once and transcribe file by file, or some at a time.

    Returns:
        0, or the exit code of the first file that failed.
    """
    import warnings

    from asr.cli import ENTERED_NS, batch, inputs, outputs, signals, tell

    with signals.at_once():
        from asr.cli.hear import transcribe
        from asr.observe import SILENT, Timer

    warnings.showwarning = tell.ignore_warning if options.quiet else tell.show_warning
    if options.timings and options.jobs > 1:
        raise UsageError("--timings: expected --jobs 1; calls side by side slow one another")
    if options.timings and options.split_channels:
        raise UsageError("--timings: expected no --split-channels; --channel times one of them")
    if options.in_turns and not (options.timings and options.json):
        raise UsageError("--in-turns: expected --json --timings beside it; docs/bench.md")
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
    with signals.at_once():
        recognizer = _load(options, timer or SILENT)
    if options.languages is None:  # refuse before the first file is read
        recognizer.layout.language_id(options.language)
    else:
        recognizer.layout.languages(options.languages)
    if options.phrases is not None:
        from asr.phrases import PhraseList

        recognizer.phrases = PhraseList.read(
            options.phrases,
            recognizer.layout.vocabulary,
            many=options.phrase_mode == "many",
        )
    load = (time.perf_counter_ns() - ENTERED_NS, timer.take()) if timer else None

    def hear(job: Job, observer: Observer) -> int:
        return transcribe(recognizer, job, options, observer)

    def one_by_one() -> Iterator[tuple[Job, int]]:
        cold = load
        for job in jobs:
            yield job, transcribe(recognizer, job, options, timer or SILENT, cold)
            cold = None  # the process is cold only once

    if len(jobs) == 1 and not many:
        return next(one_by_one())[1]
    workers = min(options.jobs, len(jobs))
    results = batch.in_order(jobs, hear, workers) if workers > 1 else one_by_one()
    return batch.tell_all(results, jobs, options, many=many)


def _load(options: argparse.Namespace, observer: Observer) -> Recognizer:
    from asr.hub import DEFAULT_MODEL

    recognizer_type = observer.step("import", _import_pipeline)
    wanted = network_options(options, quiet=options.quiet)
    if options.threads is None and options.jobs > 1:
        from asr.engines.ort import default_threads

        wanted["threads"] = max(1, default_threads() // options.jobs)
    return recognizer_type.load(
        DEFAULT_MODEL if options.model is None else options.model, **wanted, observer=observer
    )


def _import_pipeline() -> type[Recognizer]:
    """Import all that a run needs, so that a timer sees it as one step."""
    import soundfile  # noqa: F401

    from asr.engines.ort import import_runtime
    from asr.recognizer import Recognizer

    import_runtime()

    return Recognizer
