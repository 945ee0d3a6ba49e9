"""The options of ``asr transcribe``."""

from __future__ import annotations

import argparse
import sys

from asr.errors import UsageError

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

    from asr.audio.raw import RawFormat

#: Calls per file with --timings: one cold, and warm ones for a median.
DEFAULT_REPEAT = 6


def add_options(parser: argparse.ArgumentParser) -> None:
    """Describe what the command takes."""
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
    language = parser.add_mutually_exclusive_group()
    language.add_argument(
        "--language", default="auto", metavar="LANG", help="hint for the network (default: auto)"
    )
    language.add_argument(
        "--languages",
        type=lambda words: tuple(words.split(",")),
        metavar="LIST",
        help="the text is in one of these, such as zh,en; heard again where another was heard",
    )
    itn = parser.add_mutually_exclusive_group()
    itn.add_argument(
        "--itn",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="digits and punctuation, where the model can (default: off)",
    )
    itn.add_argument(
        "--punct-only",
        dest="itn",
        action="store_const",
        const="punctuation",
        help="punctuation but no digits; runs the network twice",
    )
    parser.add_argument(
        "--threads",
        type=_positive,
        metavar="N",
        help="threads of the network (default: the cores this process may use, at most 4)",
    )
    add_network_options(parser)
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
        f"(default: 1, with --timings {DEFAULT_REPEAT})",
    )
    parser.add_argument(
        "--in-turns",
        action="store_true",
        help="with --json --timings: end each call with an empty line, then wait for a byte on "
        "stdin, so that two processes can be timed in turns",
    )


def add_network_options(parser: argparse.ArgumentParser) -> None:
    """What runs the network and how it is made ready: for every command that loads one."""
    parser.add_argument(
        "--engine",
        default="ort",
        metavar="NAME",
        help="what runs the network: ort, ort:PROVIDER such as ort:CUDA, openvino (default: ort)",
    )
    ready = parser.add_mutually_exclusive_group()
    ready.add_argument(
        "--no-optimize",
        action="store_true",
        help="run the network as its file has it, and keep no prepared copy (docs/optimize.md)",
    )
    ready.add_argument(
        "--quantize",
        choices=("int8",),
        help="run byte weights made from the model's fp32 network; can change the text",
    )


def network_options(options: argparse.Namespace, *, quiet: bool = False) -> dict[str, Any]:
    """The same for ``Recognizer.load``."""
    return {
        "threads": options.threads,
        "engine": options.engine,
        "optimize": not options.no_optimize,
        "quantize": options.quantize,
        "progress": None if quiet else _tell,
    }


def _tell(line: str) -> None:
    print(f"asr: {line}", file=sys.stderr)


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
    channel = parser.add_mutually_exclusive_group()
    channel.add_argument(
        "--channel",
        type=_positive,
        metavar="N",
        help="hear this channel only, counted from 1 (default: their mean)",
    )
    channel.add_argument(
        "--split-channels",
        action="store_true",
        help="hear each channel by itself; outputs say who spoke, in the order of time",
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
