"""``asr transcribe``: files to text."""

from __future__ import annotations

import argparse
import sys
import time

from asr.cli import Help, report
from asr.errors import TextChangedError

TYPE_CHECKING = False  # importing typing would cost asr --help a tenth of its time
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, TypeAlias

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
        help="print what was said in sound files",
        description="Print what was said. Text goes to stdout, everything else to stderr.",
        epilog=(
            "With one file the text stands alone; with several each line is FILE<tab>TEXT.\n"
            "A file that cannot be read does not stop the others.\n"
            "ASR_DUMP=FOLDER writes what every stage returned, as .npz files."
        ),
        formatter_class=Help,
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="WAV, FLAC, Ogg, MP3, any sample rate"
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
        "--json", action="store_true", help="one JSON object per file and line, with word times"
    )
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


def _positive(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, found {word!r}")
    return int(word)


def run(options: argparse.Namespace) -> int:
    """Load the model once and transcribe file by file.

    Returns:
        0, or the exit code of the first file that failed.
    """
    import warnings
    from pathlib import Path

    from asr.cli import ENTERED_NS
    from asr.observe import SILENT, Timer

    warnings.showwarning = _show_warning
    timer = Timer() if options.timings else None
    if timer:
        timer.steps_ns.append(("command_line", time.perf_counter_ns() - ENTERED_NS))
    recognizer = _load(options, timer or SILENT)
    recognizer.layout.language_id(options.language)  # refuse before the first file is read
    load = (time.perf_counter_ns() - ENTERED_NS, timer.take()) if timer else None
    codes = []
    for file in options.files:
        codes.append(_transcribe(recognizer, Path(file), options, timer, load))
        load = None  # the process is cold only once
    return next((code for code in codes if code), 0)


def _load(options: argparse.Namespace, observer: Observer) -> Recognizer:
    from asr.hub import DEFAULT_MODEL

    recognizer_type = observer.step("import", _import_pipeline)
    return recognizer_type.load(
        DEFAULT_MODEL if options.model is None else options.model,
        threads=options.threads,
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
) -> int:
    """Transcribe one file as often as asked, write it once; an error is reported, not raised."""
    from asr.errors import AsrError
    from asr.observe import SILENT

    observer = timer or SILENT
    times = options.repeat or (_DEFAULT_REPEAT if timer else 1)
    calls: list[Call] = []
    first: Transcript | None = None
    if timer:
        timer.take()  # steps of a file that failed belong to no other
    try:
        for _ in range(times):
            start_ns = time.perf_counter_ns()
            transcript = recognizer.transcribe(
                path, language=options.language, itn=options.itn, observer=observer
            )
            wall_ns = time.perf_counter_ns() - start_ns
            if first is None:
                first = transcript
                if not options.json:
                    observer.step("write", _write_text, transcript, path, options)
            elif transcript.text != first.text:
                raise TextChangedError(
                    f"{path}: the text changed between two calls: {first.text!r}, "
                    f"then {transcript.text!r}"
                )
            if timer:
                calls.append((wall_ns, timer.take()))
    except AsrError as error:
        return report(error, error.exit_code)
    assert first is not None  # noqa: S101 - times >= 1
    _tell_user(first, path, options.model)
    extra: dict[str, object] = {}
    if timer:
        from asr.cli import timings

        found = timings.collect(recognizer, first.audio_s, load, calls)
        extra["timings"] = found
        if not options.json:
            print(timings.table(path.name, found), file=sys.stderr)
    if options.json:
        from asr.formats import to_json

        print(to_json(first, str(path), ascii_only=not _is_utf8(), **extra), flush=True)
    return 0


def _write_text(transcript: Transcript, path: Path, options: argparse.Namespace) -> None:
    prefix = f"{path}\t" if len(options.files) > 1 else ""
    sys.stdout.write(f"{prefix}{transcript.text}\n")  # one write, also when unbuffered
    sys.stdout.flush()


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _tell_user(transcript: Transcript, path: Path, model: str | None) -> None:
    if transcript.no_speech or transcript.rejected:
        print(f"asr: {path}: no text ({transcript.reason})", file=sys.stderr)
    if transcript.rejected or transcript.reason == "low_confidence":
        from asr.hub import DEFAULT_MODEL, dictation_hint

        if hint := dictation_hint(model or DEFAULT_MODEL):
            print(f"asr: {path}: {hint}", file=sys.stderr)
    for warning in transcript.warnings:
        print(f"asr: {path}: warning: {warning}", file=sys.stderr)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"asr: warning: {message}", file=sys.stderr)
