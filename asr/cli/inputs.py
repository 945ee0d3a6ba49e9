"""What the user named -> the files to transcribe: folders, patterns, files, in a fixed order."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath

from asr.errors import AsrError, AudioError, SystemAccessError

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from collections.abc import Iterator

#: Names that a folder is searched for; a file that is named itself may have any.
EXTENSIONS = frozenset(
    {".wav", ".wave", ".w64", ".rf64", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff",
     ".aifc", ".au", ".snd", ".caf", ".m4a", ".mp4", ".aac", ".webm", ".mkv", ".mov", ".wma",
     ".amr", ".3gp"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Input:
    """A file to transcribe.

    Attributes:
        path: as it is opened and named in messages.
        name: what its outputs are called under a folder, extension included: the file's name, or
            its path below the folder that the user named.
        error: why there is nothing to open; None for a file.
    """

    path: Path
    name: PurePath
    error: AsrError | None = None


def expand(words: list[str]) -> tuple[list[Input], bool]:
    """Find the files.

    Args:
        words: files, folders (searched with all below, hidden ones left out), or patterns that no
            shell has expanded: ``*``, ``?``, ``[...]``, ``**`` for all folders below.

    Returns:
        The inputs in the order named, each folder and pattern sorted, and whether one of the words
        was a folder or pattern. What cannot be found or searched is an input with an error.
    """
    found: list[Input] = []
    many = False
    for word in words:
        path = Path(word)
        if not word:  # an unset variable of a script, not the folder one is in
            error = AudioError("'': expected the name of a sound file, found nothing")
            found.append(Input(path, path, error))
        elif path.is_dir():
            many = True
            found += _below(path)
        elif not set("*?[").isdisjoint(word) and not os.path.lexists(path):
            many = True
            found += _matching(word)
        else:
            found.append(Input(path, PurePath(path.name)))
    return found, many


def _below(folder: Path) -> Iterator[Input]:
    """Sound files below a folder, its own first; links to folders are not followed."""
    refused: list[OSError] = []
    empty = True
    for parent, folders, files in os.walk(folder, onerror=refused.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and os.path.splitext(name)[1].lower() in EXTENSIONS:  # noqa: PTH122
                empty = False
                path = Path(parent, name)
                yield Input(path, path.relative_to(folder))
    for error in refused:
        empty = False
        place = Path(error.filename)
        message = f"{place}: cannot search the folder: {error.strerror}"
        yield Input(place, PurePath(place.name), SystemAccessError(message))
    if empty:
        message = (
            f"{folder}: expected a sound file, or a folder that holds some; "
            "found a folder without any"
        )
        yield Input(folder, PurePath(folder.name), AudioError(message))


def _matching(pattern: str) -> Iterator[Input]:
    import glob

    names = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - keeps the name as written
    files = [Path(name) for name in names if not Path(name).is_dir()]
    if not files:
        message = f"{pattern}: expected a pattern of sound files, found no file that matches"
        yield Input(Path(pattern), PurePath(pattern), AudioError(message))
    above = _above(pattern)
    for path in files:
        yield Input(path, path.relative_to(above))


def _above(pattern: str) -> Path:
    """The folder in front of the first part with a wildcard: names of outputs start below it."""
    parts = Path(pattern).parts
    fixed = next(i for i, part in enumerate(parts) if not set("*?[").isdisjoint(part))
    return Path(*parts[:fixed])
