"""The command line. Only this folder prints; only this folder turns errors into exit codes.

Nothing here may import NumPy before a command runs: ``asr --help`` costs what argparse costs.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time

TYPE_CHECKING = False  # importing typing would cost asr --help a tenth of its time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn, TextIO

#: When this process reached our code, and the CPU time it had used until then: ``--timings``.
ENTERED_NS = time.perf_counter_ns()
ENTERED_CPU_NS = time.process_time_ns()


_is_program = False


class Help(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, found without shutil: it costs a tenth of ``asr --help``."""

    def __init__(self, prog: str) -> None:
        try:
            columns = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
        except (OSError, ValueError):
            columns = 80
        super().__init__(prog, width=max(40, columns - 2))


class Parser(argparse.ArgumentParser):
    """A parser whose options may wait until its command is the one asked for.

    Attributes:
        fill: adds the options; ``asr --help`` never gets that far.
    """

    fill: Callable[[argparse.ArgumentParser], object] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401
        """Add the options, then parse."""
        fill, self.fill = self.fill, None
        if fill is not None:
            fill(self)
        return super().parse_known_args(args, namespace)


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    from asr.cli import (
        bench,
        cache,
        deploy,
        doctor,
        evaluate,
        gate,
        history,
        inspect,
        models,
        optimize,
        profile,
        report,
        transcribe,
    )

    parser = Parser(
        prog="asr",
        description="Speech to text on a CPU, with a real-time factor (RTF) that can be audited.",
        epilog=(
            "examples:\n"
            "  asr transcribe clip.wav              print what was said\n"
            "  asr transcribe clip.wav --timings    and where each millisecond went\n"
            "  asr transcribe *.wav --json          one JSON object per line\n"
            "  asr transcribe calls -o out --format srt  subtitles of a folder\n"
            "  asr inspect tiny-en                  what a model is made of\n"
            "  asr bench --quick                    how fast this machine is, stage by stage\n"
            "  asr gate --quick                     is this version slower than its parent\n"
            "  asr history steps                    which commit made it slower\n"
            "  asr report record.json -o page.html  a record as one page\n"
            "  asr evaluate clips.tsv --out DIR     how often it is right, and when it knows\n"
            "  asr profile clip.wav                 every native call and block of memory\n"
            "  asr models pull sensevoice-small-int8  bring a model for free speech\n"
            "\n"
            "exit codes: 0 done, 2 usage, 3 bad audio, 4 bad model, 5 cannot read or write,\n"
            "            6 source unreachable or wrong checksum, 7 a needed tool is missing,\n"
            "            70 our bug, 130 interrupted, 143 terminated"
        ),
        formatter_class=Help,
    )
    parser.add_argument("--version", action=_Version, help="print version and build, then exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (
        transcribe, inspect, optimize, bench, gate, history, report, evaluate, profile, models,
        cache, deploy, doctor,
    ):  # fmt: skip
        module.add_parser(commands)
    return parser


class _Version(argparse.Action):
    """Print the version of the compiled part, which is the version of the whole."""

    def __init__(self, option_strings: list[str], dest: str, help: str) -> None:  # noqa: A002
        super().__init__(option_strings, dest, nargs=0, help=help, default=argparse.SUPPRESS)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from asr import _rust_fe

        info = _rust_fe.build_info()
        print(f"asr {info['version']} ({info['profile']} build, {info['target']})")
        parser.exit()


def run_and_exit() -> NoReturn:
    """The program: run the command of this process, then leave without taking it apart.

    Measured on a 3 s clip: looking for garbage while modules are imported, and tearing down the
    interpreter and the runtime at the end, cost a sixth of a cold start and achieve nothing.
    """
    global _is_program
    _is_program = True
    gc.set_threshold(100_000)  # a long run still collects, in larger steps
    try:
        code = main()
    except KeyboardInterrupt:  # before there was anything to do
        code = 130
    except SystemExit as leave:  # argparse has said what there was to say
        code = leave.code if isinstance(leave.code, int) else 0
    if not all([_is_flushed(sys.stdout), _is_flushed(sys.stderr)]):
        code = code or 5
    os._exit(code)


def _is_flushed(stream: TextIO | None) -> bool:
    try:
        if stream is not None:
            stream.flush()
    except OSError:
        return False
    return True


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: without the program's name; None takes them from the command line.

    Returns:
        the exit code.
    """
    if sys.stderr is None:  # closed: messages must not land in the text
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - lives as long as we do
    if sys.stdout is None:
        return fail(OSError("stdout: expected a place to write to, found it closed"), 5)
    for stream in (sys.stdout, sys.stderr):
        # A file name of raw bytes goes out as it came in; what a terminal cannot show is escaped.
        if hasattr(stream, "reconfigure"):
            errors = "surrogateescape" if is_utf8(stream) else "backslashreplace"
            stream.reconfigure(errors=errors)
    options = build_parser().parse_args(arguments)
    from asr.cli import signals  # after --help has ended

    signals.is_program = _is_program
    try:
        with signals.heeded():
            code: int = options.run(options)
            sys.stdout.flush()
    except KeyboardInterrupt as stop:
        return getattr(stop, "exit_code", 130)
    except BrokenPipeError:
        # The reader has gone (``asr ... | head``); leave nothing for the interpreter to flush.
        sys.stdout = None
        return 141
    except OSError as error:
        return fail(error, getattr(error, "exit_code", 5))
    except Exception as error:
        if signals.received:
            return 128 + signals.received
        code = getattr(error, "exit_code", 70)
        if code == 70:
            return _report_bug(error)
        return fail(error, code)
    return code


def is_utf8(stream: TextIO) -> bool:
    """Whether what goes to the stream is encoded as UTF-8."""
    return (stream.encoding or "").lower().replace("-", "") == "utf8"


def fail(error: Exception, code: int) -> int:
    """Print an error as one line on stderr and return its exit code."""
    message = " ".join(str(error).split())
    print(f"asr: {message}", file=sys.stderr)
    return code


def _report_bug(error: Exception) -> int:
    import traceback

    if os.environ.get("ASR_TRACEBACK"):
        traceback.print_exception(error)
    where = traceback.extract_tb(error.__traceback__)[-1]
    return fail(
        RuntimeError(
            f"internal error, please report it: {type(error).__name__}: {error} "
            f"({where.filename}:{where.lineno}); ASR_TRACEBACK=1 shows the whole trace"
        ),
        70,
    )
