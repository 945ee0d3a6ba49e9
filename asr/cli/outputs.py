"""Where the text of each file goes: checked before work begins, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from asr.errors import AsrError, SystemAccessError, UsageError

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from asr.cli.inputs import Input

#: Formats of which several files make sense one after the other on stdout.
_STREAMS = ("txt", "json")


#: After these no other file can be written either: going on would only waste time.
_HOPELESS = (errno.ENOSPC, errno.EROFS, errno.EDQUOT)


@dataclass(slots=True)
class Job:
    """A file to transcribe, and where what is said about it goes.

    Attributes:
        path: the file.
        error: why it cannot be opened; known before the work begins.
        form: format on stdout, when there are no targets.
        prefix: what stands before the text on stdout.
        targets: output file by format; those that ``--skip-existing`` found are left out.
        skipped: whether nothing is left to be written.
        later: what is to be printed, kept until it is this file's turn; None prints at once.
        failure: the error that ended it, in words.
        hopeless: whether that error leaves no hope for the other files.
    """

    path: Path
    error: AsrError | None = None
    form: str = "txt"
    prefix: str = ""
    targets: dict[str, Path] = field(default_factory=dict)
    skipped: bool = False
    later: list[Callable[[], object]] | None = None
    failure: str = ""
    hopeless: bool = False

    def say(self, function: Callable[..., object], *arguments: Any) -> None:  # noqa: ANN401
        """Call ``function(*arguments)``, which prints: now, or when it is this file's turn."""
        if self.later is None:
            function(*arguments)
        else:
            self.later.append(partial(function, *arguments))

    def catch_up(self) -> None:
        """Print what was kept."""
        waiting, self.later = self.later or [], None
        for function in waiting:
            function()

    def fail(self, error: Exception) -> None:
        """Remember why there is no text."""
        self.failure = " ".join(str(error).split()) or type(error).__name__
        cause = error.__cause__
        self.hopeless = isinstance(cause, OSError) and cause.errno in _HOPELESS


def plan(options: argparse.Namespace, inputs: list[Input], *, many: bool) -> list[Job]:
    """Give each input its outputs, and refuse what would lose anything.

    Args:
        options: of ``asr transcribe``.
        inputs: the files in order.
        many: whether a folder or pattern was named, which may hold another number tomorrow.

    Returns:
        A job per input; one that is named twice has one, where files are written.

    Raises:
        UsageError: options that contradict one another; two inputs with one output; an output
            that is an input.
        SystemAccessError: the output's folder cannot be made or written to.
    """
    many = many or len(inputs) > 1
    output = None if options.output is None else os.fspath(options.output)
    formats = _formats(options, output)
    if output is None:
        _check_stdout(options, formats, many=many)
        return [
            Job(i.path, i.error, formats[0], prefix=f"{i.path}\t" if many else "") for i in inputs
        ]
    is_folder = os.path.isdir(output) or output.endswith(os.sep)  # noqa: PTH112
    if (many or len(formats) > 1) and not is_folder:
        if os.path.lexists(output) or _format_of(output):
            raise UsageError(
                f"{output}: expected a folder for the output of several files or formats, "
                "found a file; a name that ends with / is a new folder"
            )
        is_folder = True
    jobs = _jobs(inputs, formats, Path(output), is_folder=is_folder)
    if options.skip_existing:
        for job in jobs:
            job.targets = {f: t for f, t in job.targets.items() if not t.exists()}
            job.skipped = job.error is None and not job.targets
    if any(job.targets for job in jobs):
        _prepare(Path(output) if is_folder else Path(output).absolute().parent, make=is_folder)
    return jobs


def _formats(options: argparse.Namespace, output: str | None) -> tuple[str, ...]:
    formats: tuple[str, ...] = options.format or ("txt",)
    if options.json:
        if output is not None:
            raise UsageError("--json prints to stdout; --format json -o writes files")
        formats = ("json",)
    elif options.format is None and output and not os.path.isdir(output):  # noqa: PTH112
        formats = _format_of(output) or formats
    if options.words and "tsv" not in formats:
        raise UsageError("--words: expected --format tsv; json has the words always")
    if options.rich and "txt" not in formats:
        raise UsageError("--rich: expected --format txt; json has emotion and event as fields")
    if options.rich and options.split_channels:
        raise UsageError("--rich: expected no --split-channels; json has the fields of each")
    return formats


def _format_of(output: str) -> tuple[str, ...]:
    """The format that a file's extension names; none, or one."""
    from asr.formats import NAMES

    extension = os.path.splitext(output)[1][1:]  # noqa: PTH122
    return (extension,) if extension in NAMES else ()


def _check_stdout(options: argparse.Namespace, formats: tuple[str, ...], *, many: bool) -> None:
    if options.skip_existing:
        raise UsageError("--skip-existing: expected -o, there are no files to be skipped")
    if len(formats) > 1:
        raise UsageError(f"--format {','.join(formats)}: expected -o DIR for several formats")
    if many and formats[0] not in _STREAMS:
        raise UsageError(f"--format {formats[0]}: expected -o DIR for several files")


def _jobs(
    inputs: list[Input], formats: tuple[str, ...], output: Path, *, is_folder: bool
) -> list[Job]:
    owners: dict[str, Input] = {}
    sources = {os.path.realpath(i.path): i for i in inputs}
    jobs: list[Job] = []
    for i in inputs:
        if i.error is not None:
            jobs.append(Job(i.path, i.error))
            continue
        targets = {
            f: output / i.name.with_suffix(f".{f}") if is_folder else output for f in formats
        }
        for target in targets.values():
            place = os.path.realpath(target)
            if place in sources:
                raise UsageError(f"{target}: the output would overwrite the input")
            owner = owners.setdefault(place, i)
            if os.path.realpath(owner.path) != os.path.realpath(i.path):
                raise UsageError(
                    f"{target}: would be the output of both {owner.path} and {i.path}; "
                    "rename one, or give them an own output folder each"
                )
        if all(owners[os.path.realpath(t)] is i for t in targets.values()):
            jobs.append(Job(i.path, targets=targets))
    return jobs


def _prepare(folder: Path, *, make: bool) -> None:
    """Make the folder and see that it can be written to, before a model is loaded."""
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(0, "no such folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(0, "no permission")
    except OSError as error:
        message = f"{folder}: cannot write into the folder: {error.strerror}"
        raise SystemAccessError(message) from None


def write(target: Path, text: str) -> None:
    """Write a file whole: into a new one beside it that takes its name in the end.

    What stood there before stays until then. A link is followed; a device or pipe is written to.

    Raises:
        SystemAccessError: it cannot be written; caused by the system's own error.
    """
    data = text.encode()
    try:
        if os.path.exists(target) and not os.path.isfile(target):  # noqa: PTH110, PTH113
            with open(target, "wb") as file:  # noqa: PTH123
                file.write(data)
            return
        place = os.path.realpath(target)
        os.makedirs(os.path.dirname(place), exist_ok=True)  # noqa: PTH103, PTH120
        _replace(place, data)
    except OSError as error:
        message = f"{target}: cannot write the file: {error.strerror}"
        raise SystemAccessError(message) from error


def _replace(place: str, data: bytes) -> None:
    part = os.path.join(os.path.dirname(place), f".asr-{os.urandom(6).hex()}.part")  # noqa: PTH118, PTH120
    try:
        with open(part, "xb") as file:  # noqa: PTH123
            file.write(data)
        os.replace(part, place)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):  # never made: the first error is the one to tell
            os.unlink(part)  # noqa: PTH108
        raise
