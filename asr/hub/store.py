"""The folders of pulled models: what is in them, who may change them, whether they are whole."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from asr.errors import AsrError, LayoutError, SystemAccessError, UsageError
from asr.hub import (
    RECORD,
    builtin_models,
    did_you_mean,
    installed_model,
    known_models,
    models_folder,
)
from asr.hub.manifest import BUILT_IN, MODELS, OWN_CARD, Model

BUILT_IN_STATE, PULLED, PARTIAL, ABSENT = "built in", "pulled", "incomplete", "not pulled"
PART = ".part"


def model_of(name: str) -> Model:
    """What is known of a name.

    Raises:
        LayoutError: no such name; the message lists them.
    """
    if name in builtin_models():
        return BUILT_IN.get(name) or Model(name, (), OWN_CARD)
    if name in MODELS:
        return MODELS[name]
    names = ", ".join(known_models())
    raise LayoutError(f"{name}: expected one of {names}{did_you_mean(name)}")


def folder_of(name: str) -> Path:
    """Where a pulled model is, or would be."""
    return models_folder() / name


def here(name: str) -> Path:
    """The folder of a model that is on this machine.

    Raises:
        LayoutError: no such name, or not pulled; the message says what to do.
    """
    model = model_of(name)
    folder = installed_model(name)
    if folder is None:
        raise LayoutError(f"{name} is not on this machine: {model.advice}")
    return folder


def state_of(name: str) -> str:
    """One of the four states above."""
    if name in builtin_models():
        return BUILT_IN_STATE
    folder = folder_of(name)
    with told(folder, "look into"):
        if (folder / RECORD).is_file():
            return PULLED
        return PARTIAL if folder.is_dir() else ABSENT


def size_on_disk(folder: Path) -> int:
    """Bytes of the files in a folder; 0 where there is none."""
    with told(folder, "look into"):
        return sum(p.stat().st_size for p in folder.iterdir()) if folder.is_dir() else 0


# ------------------------------------------------------------------ the record of a pull


def read_record(name: str) -> dict[str, Any] | None:
    """What was pulled; None where nothing was, or its record cannot be understood."""
    try:
        record = json.loads((folder_of(name) / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        return None
    except OSError as error:
        raise SystemAccessError(
            f"{folder_of(name) / RECORD}: cannot read the file: {error.strerror}"
        ) from None
    return record if isinstance(record, dict) and isinstance(record.get("files"), dict) else None


def write_text(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    part = path.with_name(path.name + PART)
    with told(path, "write"):
        part.write_text(text, encoding="utf-8")
        settle(part, path)


def settle(part: Path, final: Path) -> None:
    """Give a file its name, once its bytes are on the disk."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    part.replace(final)


# ------------------------------------------------------------------ one at a time


@contextmanager
def locked(name: str, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a model's lock, which the system takes back when a process dies.

    Args:
        name: of the model.
        waiting: called once if another process holds it.

    Raises:
        SystemAccessError: the folder of the models cannot be written.
    """
    path = models_folder() / f".{name}.lock"
    with told(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    with held(descriptor, path, waiting):
        yield


@contextmanager
def held(descriptor: int, path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an open lock file alone, and close it; the system frees it when a process dies.

    Args:
        descriptor: of the file.
        path: the file, for messages.
        waiting: called once if another process holds it.

    Raises:
        SystemAccessError: it cannot be locked.
    """
    import fcntl

    try:
        with told(path, "lock"):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove(name: str, waiting: Callable[[], None]) -> int:
    """Delete a pulled model, or what an interrupted pull left of it.

    Returns:
        the bytes that were freed; 0 where nothing was there.

    Raises:
        LayoutError: no such name.
        UsageError: the model is built in.
        SystemAccessError: the folder cannot be deleted.
    """
    import shutil

    model_of(name)
    if name in builtin_models():
        raise UsageError(f"{name} is part of this package and cannot be removed")
    folder = folder_of(name)
    if state_of(name) == ABSENT:
        return 0
    with locked(name, waiting), told(folder, "remove"):
        freed = size_on_disk(folder)
        (folder / RECORD).unlink(missing_ok=True)  # half a folder must not look like a whole one
        if folder.exists():
            shutil.rmtree(folder)
        return freed


# ------------------------------------------------------------------ checksums


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, in hexadecimal.

    Args:
        path: the file.
        algorithm: ``sha256``, or ``git-sha1``: SHA-1 of a Git blob, header in front.

    Raises:
        SystemAccessError: the file cannot be read.
    """
    with told(path, "read"), path.open("rb") as file:
        if algorithm == "git-sha1":
            state = hashlib.sha1(usedforsecurity=False)
            state.update(b"blob %d\0" % os.fstat(file.fileno()).st_size)
        else:
            state = hashlib.sha256()
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def verify(name: str) -> list[tuple[str, str | None]]:
    """Hash every file of a model again.

    Returns:
        each file with what is wrong with it, or None.

    Raises:
        LayoutError: no such name, or not on this machine.
        UsageError: a built-in model of a package whose installer left no checksums.
    """
    folder = here(name)
    expected = _installed_digests(name) if name in builtin_models() else _pulled_digests(name)
    return [(file, _problem(folder / file, sha256)) for file, sha256 in expected.items()]


def _problem(path: Path, sha256: str) -> str | None:
    if not path.is_file():
        return "expected the file, found nothing"
    found = digest(path)
    return None if found == sha256 else f"expected sha256 {sha256}, found {found}"


def _pulled_digests(name: str) -> dict[str, str]:
    record = read_record(name)
    if record is None:
        raise LayoutError(
            f"{folder_of(name) / RECORD}: expected the record of a pull, found something else; "
            f"asr models pull {name} writes it again"
        )
    pinned = {
        file.path: file.sha256
        for distribution in MODELS[name].distributions
        if distribution.layout == record.get("layout")
        for file in distribution.files
    }
    return {
        file: pinned.get(file) or str(entry["sha256"]) for file, entry in record["files"].items()
    }


def _installed_digests(name: str) -> dict[str, str]:
    """What the installer of a wheel recorded."""
    import base64
    from importlib import metadata

    folder = ("asr", "builtin", name)
    digests = {
        path.name: base64.urlsafe_b64decode(path.hash.value + "==").hex()
        for path in metadata.files("asr-rtf") or []
        if path.parts[:3] == folder and path.hash and path.hash.mode == "sha256"
    }
    if not digests:
        raise UsageError(
            f"{name} is built in, and this package was not installed from a wheel, whose list of "
            "checksums is needed; in a checkout `git status` tells"
        )
    return digests


@contextmanager
def told(path: Path, action: str) -> Iterator[None]:
    """Say which file the system would not let us use.

    Raises:
        SystemAccessError: in the place of any OSError inside.
    """
    try:
        yield
    except OSError as error:
        if isinstance(error, AsrError):
            raise
        raise SystemAccessError(f"{path}: cannot {action} it: {error.strerror or error}") from None
