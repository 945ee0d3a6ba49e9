"""Observers look at every step of the pipeline from outside and never touch a value.

The pipeline calls ``observer.step(name, function, *arguments)`` and uses what comes back.
What only a dump needs is imported when one is written.
"""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

T = TypeVar("T")

DUMP_VARIABLE = "ASR_DUMP"

#: The contract's stages in order; a dump file's number is the stage's place in this list.
STAGES = (
    "read",
    "resample",
    "vad",
    "fbank",
    "lfr",
    "cmvn",
    "bind",
    "infer",
    "decode",
    "text",
    "write",
)


class Observer(Protocol):
    """Anything that can stand beside the pipeline."""

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Call ``function(*arguments)`` and return what it returns."""
        ...


class Silent:
    """Only call: what every run uses unless somebody looks."""

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Call ``function(*arguments)``."""
        return function(*arguments)


SILENT = Silent()


class Timer:
    """Two clock reads around each step.

    Attributes:
        steps_ns: list of (name, wall nanoseconds) in the order the steps ended.
    """

    def __init__(self) -> None:
        self.steps_ns: list[tuple[str, int]] = []

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Call ``function(*arguments)`` between two clock reads."""
        start_ns = time.perf_counter_ns()
        value = function(*arguments)
        self.steps_ns.append((name, time.perf_counter_ns() - start_ns))
        return value

    def take(self) -> list[tuple[str, int]]:
        """Hand over the steps seen since the last time."""
        steps, self.steps_ns = self.steps_ns, []
        return steps


class Dump:
    """Write what each step of one call returned, after the inner observer has finished with it.

    Files are ``FOLDER/CLIP/NN-stage.npz`` with the record's fields as arrays; the second block or
    piece of long sound is ``NN-stage.2.npz``. A dump that cannot be written is one warning for the
    whole run, never a failure.

    Args:
        folder: where to write; created if missing.
        inner: the observer that calls (and maybe times) the step.
        warn: told once, in one line, when writing fails.
        broken: folders that failed; shared by the calls of one recogniser, so that none of them
            tries and warns again.
    """

    def __init__(
        self,
        folder: Path,
        inner: Observer,
        warn: Callable[[str], None],
        broken: set[Path] | None = None,
    ) -> None:
        self._folder = folder
        self._inner = inner
        self._warn = warn
        self._clip = "clip"
        self._seen: dict[str, int] = {}
        self._broken = set() if broken is None else broken

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Let the inner observer run the step, then write its result."""
        value = self._inner.step(name, function, *arguments)
        if name in STAGES and self._folder not in self._broken:
            try:
                self._write(name, value)
            except OSError as error:
                self._broken.add(self._folder)
                self._warn(
                    f"{self._folder}: dump stopped at stage {name} ({error.strerror or error}); "
                    f"transcription goes on without {DUMP_VARIABLE}"
                )
        return value

    def _write(self, name: str, value: object) -> None:
        if name == "read" and not self._seen:
            self._clip = _folder_for(self._folder, getattr(value, "source", "clip"))
            for old in (self._folder / self._clip).glob("[0-9][0-9]-*.npz"):
                old.unlink()  # an earlier dump of this clip may have had more pieces
        if not hasattr(value, "__dataclass_fields__") and not isinstance(value, Mapping):
            return  # a list of pieces: each shows itself in the stages that follow
        self._seen[name] = self._seen.get(name, 0) + 1
        piece = f".{self._seen[name]}" if self._seen[name] > 1 else ""
        number = STAGES.index(name) + 1
        write_record(self._folder / self._clip / f"{number:02d}-{name}{piece}.npz", value)


def clip_name(source: str) -> str:
    """Turn a source's name into a folder name: ``talks/a b.wav`` becomes ``a_b``."""
    import re

    name = re.sub(r"[^\w.-]", "_", Path(source).stem).strip(".")
    return name or "clip"


def _folder_for(dump: Path, source: str) -> str:
    """The clip's folder: a second clip of the same name, from elsewhere, becomes ``name-2``."""
    import zipfile

    import numpy as np

    name, number = clip_name(source), 1
    while True:
        folder = name if number == 1 else f"{name}-{number}"
        first = dump / folder / f"{STAGES.index('read') + 1:02d}-read.npz"
        if not first.exists():
            return folder
        try:
            with first.open("rb") as file:
                known = str(np.load(file)["source"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            known = source  # left behind by a dump that broke off: write over it
        if known == source:
            return folder
        number += 1


def write_record(path: Path, value: object) -> None:
    """Write a record's fields, or a mapping of named arrays, as one ``.npz`` file.

    The archive is built in memory and written with a single call: a dump must never become the
    per-value writer that once made a 220 ms pipeline take 550 ms.

    Args:
        path: the file; its folder is created.
        value: a record, or a mapping of names to arrays.

    Raises:
        OSError: the folder or file cannot be written.
    """
    import dataclasses
    import io

    import numpy as np

    if isinstance(value, Mapping):
        fields = dict(value)
    else:
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}  # type: ignore[arg-type]
    arrays = {
        name: np.asarray(v if isinstance(v, np.ndarray | int | float | str) else repr(v))
        for name, v in fields.items()
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(buffer.getbuffer())


def with_dump(
    observer: Observer, warn: Callable[[str], None], broken: set[Path] | None = None
) -> Observer:
    """Add a Dump when, and only when, the environment variable ``ASR_DUMP`` names a folder."""
    folder = os.environ.get(DUMP_VARIABLE)
    if not folder:
        return observer
    return Dump(Path(folder), observer, warn, broken)
