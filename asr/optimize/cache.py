"""Prepared networks on this machine: where they lie, which of them may be trusted, how many.

A folder per network, runtime and CPU. One is made whole under another name and then renamed, so
what has its name is complete. Nothing is trusted that another user could have written. Most loads
only look a network up: what making or removing one needs is imported there.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.errors import SystemAccessError
from asr.hub import models_folder
from asr.hub.store import digest, held, settle, told

SCHEMA = "asr-prepared/1"
NETWORK, RECORD = "model.onnx", "prepared.json"

#: All prepared networks together; the oldest make room.
LIMIT_BYTES = 4 << 30

_PART, _LOCK, _KNOWN = ".part-", ".lock", "known"
#: A file that changed so lately may change again without another time stamp.
_SETTLED_NS = 2_000_000_000
_ENDS_BYTES = 1 << 16


def folder() -> Path:
    """Where prepared networks lie: beside the pulled models.

    Raises:
        SystemAccessError: there is no home directory.
    """
    return models_folder().parent / "prepared"


# ------------------------------------------------------------------ which file is it


def stamp(path: Path) -> dict[str, Any]:
    """What changes when a file is written: its place, size, times, first and last bytes.

    Raises:
        SystemAccessError: the file cannot be read.
    """
    with told(path, "read"), path.open("rb") as file:
        facts = os.fstat(file.fileno())
        ends = hashlib.sha256(file.read(_ENDS_BYTES))
        file.seek(max(0, facts.st_size - _ENDS_BYTES))
        ends.update(file.read(_ENDS_BYTES))
    return {
        "device": facts.st_dev,
        "inode": facts.st_ino,
        "bytes": facts.st_size,
        "modified_ns": facts.st_mtime_ns,
        "changed_ns": facts.st_ctime_ns,
        "ends_sha256": ends.hexdigest(),
    }


def sha256(network: Path) -> tuple[str, bool]:
    """The checksum of a network file, and whether it was noted.

    A note is believed only if the file's whole stamp is as it was; else the file is read.

    Raises:
        SystemAccessError: the file cannot be read.
    """
    now = stamp(network)
    path = _note_of(network)
    try:
        known = json.loads(path.read_text(encoding="utf-8")) if _is_ours(path) else {}
        if known["stamp"] == now:
            return str(known["sha256"]), True
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return digest(network), False


def note(network: Path, checksum: str) -> None:
    """Keep a network's checksum, so that it need not be read whole again.

    Where that cannot be written, the next load reads it whole.
    """
    now = stamp(network)
    if time.time_ns() - now["changed_ns"] < _SETTLED_NS:
        return
    path = _note_of(network)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        part.write_text(json.dumps({"stamp": now, "sha256": checksum}), encoding="utf-8")
        part.chmod(0o600)
        settle(part, path)


def _note_of(network: Path) -> Path:
    place = hashlib.sha256(os.fsencode(network.resolve())).hexdigest()
    return folder() / _KNOWN / f"{place[:32]}.json"


# ------------------------------------------------------------------ what is there


@dataclass(frozen=True, slots=True)
class Entry:
    """A prepared network, or the note that a network was left alone.

    Attributes:
        folder: where it lies.
        record: what was done; ``left`` in it says why nothing was.
    """

    folder: Path
    record: dict[str, Any]

    @property
    def network(self) -> Path:
        """The prepared file."""
        return self.folder / NETWORK

    @property
    def left(self) -> str | None:
        """Why the network was left as it is; None where it was prepared."""
        return self.record.get("left")

    @property
    def disk_bytes(self) -> int:
        """Bytes of its files."""
        return sum(int(file["bytes"]) for file in self.record["files"].values())


def key(checksum: str, *variant: str) -> str:
    """The name of an entry: the network, and all that decides what is made of it."""
    rest = hashlib.sha256("\n".join(variant).encode()).hexdigest()
    return f"{checksum[:24]}-{rest[:16]}"


def find(name: str) -> Entry | None:
    """The entry of a key; None unless it is whole, unchanged and written by this user.

    Raises:
        SystemAccessError: others may write into the cache.
    """
    place = folder()
    if not place.is_dir():
        return None
    _refuse_foreign(place)
    return _read(place / name)


def _refuse_foreign(place: Path) -> None:
    if not _is_ours(place.resolve(), folder=True):
        raise SystemAccessError(
            f"{place}: expected a folder that this user owns and nobody else can write, found "
            "another; chmod go-w it, or set ASR_CACHE to one that is"
        )


def entries() -> list[Entry]:
    """All that may be used, oldest first."""
    try:
        places = [p for p in folder().iterdir() if not p.name.startswith(".") and p.name != _KNOWN]
    except OSError:
        return []
    found = [entry for entry in map(_read, places) if entry is not None]
    return sorted(found, key=lambda entry: float(entry.record["made_s"]))


def _read(place: Path) -> Entry | None:
    record = place / RECORD
    if not (_is_ours(place, folder=True) and _is_ours(record)):
        return None
    try:
        facts = json.loads(record.read_text(encoding="utf-8"))
        if facts["schema"] != SCHEMA or facts["key"] != place.name:
            return None
        for name, known in facts["files"].items():
            if not _is_ours(place / name) or stamp(place / name) != known:
                return None
        float(facts["made_s"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Entry(place, facts)


def _is_ours(path: Path, *, folder: bool = False) -> bool:
    """Whether a file is there, no link, and nobody else could have written it."""
    try:
        facts = path.lstat()
    except OSError:
        return False
    kind = stat.S_ISDIR if folder else stat.S_ISREG
    return kind(facts.st_mode) and facts.st_uid == os.geteuid() and not facts.st_mode & 0o022


# ------------------------------------------------------------------ writing


@contextmanager
def locked(waiting: Callable[[], None]) -> Iterator[None]:
    """Be the only one who writes; the system takes the lock back when a process dies.

    Args:
        waiting: called once if another process holds it.

    Raises:
        SystemAccessError: the folder cannot be written, or others may write into it.
    """
    place = folder()
    with told(place, "write"):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_foreign(place)
    path = place / _LOCK
    with told(path, "write"):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with held(descriptor, path, waiting):
        yield


def new_part(name: str, need_bytes: int) -> Path:
    """Make room and an empty folder to prepare a network in; call with the lock held.

    What a killed process left is removed: who holds the lock is the only one at work.

    Raises:
        SystemAccessError: there is no room, or the folder cannot be written.
    """
    import shutil

    place = folder()
    with told(place, "write"):
        for old in place.glob(f"{_PART}*"):
            remove(old)
        _delete(place / name)  # damaged, stale or foreign: find() has refused it
        for entry in entries():
            if sum(e.disk_bytes for e in entries()) + need_bytes > LIMIT_BYTES:
                shutil.rmtree(entry.folder)
        free = shutil.disk_usage(place).free
        if need_bytes > free or need_bytes > LIMIT_BYTES:
            raise SystemAccessError(
                f"{place}: expected room for {need_bytes / 1e6:.0f} MB, found "
                f"{min(free, LIMIT_BYTES) / 1e6:.0f} MB"
            )
        part = place / f"{_PART}{name}.{os.getpid()}"
        part.mkdir(mode=0o700)
    return part


def finish(part: Path, name: str, facts: dict[str, Any]) -> Entry:
    """Write the record and give a prepared network its name.

    Raises:
        SystemAccessError: it cannot be written.
    """
    with told(part, "write"):
        files = sorted(p for p in part.iterdir())
        for file in files:
            file.chmod(0o600)
            settle(file, file)
        record = {"schema": SCHEMA, "key": name, "made_s": time.time(), **facts}
        record["files"] = {file.name: stamp(file) for file in files}
        (part / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        (part / RECORD).chmod(0o600)
        final = part.parent / name
        part.replace(final)
    return Entry(final, record)


def _delete(path: Path) -> None:
    import shutil

    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove(place: Path) -> None:
    """Remove a folder of the cache, if it is there; whoever has its files open keeps them."""
    import shutil

    shutil.rmtree(place, ignore_errors=True)


def clean(waiting: Callable[[], None]) -> int:
    """Remove every prepared network, and what was left of others.

    Returns:
        the bytes that were freed.

    Raises:
        SystemAccessError: something cannot be removed.
    """
    place = folder()
    if not place.is_dir():
        return 0
    with locked(waiting), told(place, "remove"):
        freed = sum(p.stat().st_size for p in place.rglob("*") if p.is_file())
        for child in place.iterdir():
            if child.name != _LOCK:
                _delete(child)
    return freed
