"""Bring a model onto this machine: every file checked before it gets its name."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from asr.errors import SourceError, SystemAccessError, UsageError
from asr.hub import RECORD, builtin_models, sources, store, transfer
from asr.hub.manifest import Distribution, File, Model, Source, human_size
from asr.hub.sources import Expected
from asr.hub.transfer import AttemptError

NOTICE = "NOTICE"

#: What is known of a file that a pull brought which then did not reach its end.
_UNRECORDED = {"source": "an earlier pull", "checked_against": "manifest"}


class Watcher(Protocol):
    """Sees a pull from outside."""

    def say(self, line: str) -> None:
        """Take something that a person wants to know."""

    def progress(self, file: str, have: int, size: int) -> None:
        """Take that ``have`` of ``size`` bytes of a file are there."""


class _Silent:
    def say(self, line: str) -> None:
        """Drop it."""

    def progress(self, file: str, have: int, size: int) -> None:
        """Drop it."""


def pull(
    name: str,
    *,
    accept: Callable[[Model], None],
    hub: str | None = None,
    layout: str | None = None,
    watcher: Watcher = _Silent(),  # noqa: B008 - it has no state
) -> Path:
    """Bring a model onto this machine, or what is missing or damaged of it.

    Args:
        name: of the manifest.
        accept: shown the model before anything is fetched; raises to refuse its licence. Not
            called for a model that is already here.
        hub: ``modelscope`` or ``hf``; None asks one after the other.
        layout: which export; None takes the one that is here, else the manifest's first.
        watcher: is told what happens.

    Returns:
        the model's folder.

    Raises:
        LayoutError: no such name.
        UsageError: the model has no such source or layout, or another layout of it is here.
        SourceError: no source gave the right bytes.
        SystemAccessError: the folder cannot be written, or the disk is too full.
    """
    model = store.model_of(name)
    if name in builtin_models():
        watcher.say(f"{name} is built in: nothing to pull")
        return store.here(name)
    _choose(model, layout, hub)  # refuse before anybody reads a licence
    if store.state_of(name) != store.PULLED:
        accept(model)
    waiting = f"{name}: waiting for another process that works on it"
    with store.locked(name, lambda: watcher.say(waiting)):
        record = store.read_record(name) or {}
        here = record.get("layout")
        if here and layout and here != layout:
            raise UsageError(
                f"{name}: its {here} export is on this machine; asr models remove {name} first"
            )
        distribution = _choose(model, layout or here, hub)
        _Pull(model, distribution, hub, record, watcher).run()
    return store.here(name)


def _choose(model: Model, layout: str | None, hub: str | None) -> Distribution:
    offers = {d.layout: d for d in model.distributions}
    if layout is not None and layout not in offers:
        raise UsageError(f"{model.name}: expected a layout of {', '.join(offers)}, found {layout}")
    distribution = offers[layout] if layout else model.distributions[0]
    hubs = sorted({source.hub for file in distribution.files for source in file.sources})
    if hub is not None and hub not in hubs:
        raise UsageError(
            f"{model.name}: expected a source of {', '.join(hubs)}, found {hub} "
            f"({distribution.layout} export)"
        )
    return distribution


class _Pull:
    """One pull, with the lock held.

    Args:
        model: what to bring.
        distribution: which files.
        hub: the only hub to ask, or None.
        record: of an earlier pull, or empty.
        watcher: is told what happens.
    """

    def __init__(
        self,
        model: Model,
        distribution: Distribution,
        hub: str | None,
        record: dict[str, Any],
        watcher: Watcher,
    ) -> None:
        self.model = model
        self.distribution = distribution
        self.hub = hub
        self.before: dict[str, Any] = record.get("files", {})
        self.watcher = watcher
        self.folder = store.folder_of(model.name)
        self.failed: set[str] = set()

    def run(self) -> None:
        """Check what is there, bring the rest, and write the record last."""
        with store.told(self.folder, "write"):
            self.folder.mkdir(parents=True, exist_ok=True)
        entries: dict[str, Any] = {}
        missing = []
        for file in self.distribution.files:
            if entry := self._kept(file):
                entries[file.path] = entry
            else:
                missing.append(file)
        if not missing and self.before.keys() == entries.keys():
            self.watcher.say(f"{self.model.name} is on this machine and whole: nothing to pull")
            return
        with store.told(self.folder, "write"):
            (self.folder / RECORD).unlink(missing_ok=True)
            self._clear_other_layouts()
        self._check_room(missing)
        for file in missing:
            entries[file.path] = self._bring(file)
        store.write_text(self.folder / NOTICE, _notice(self.model, entries))
        record = {
            "name": self.model.name,
            "layout": self.distribution.layout,
            "licence": self.model.licence.name,
            "files": {file.path: entries[file.path] for file in self.distribution.files},
        }
        store.write_text(self.folder / RECORD, json.dumps(record, indent=1) + "\n")

    def _kept(self, file: File) -> dict[str, Any] | None:
        """The entry of a file that is here and right."""
        entry = self.before.get(file.path) or _UNRECORDED
        known = file.sha256 or entry.get("sha256")
        path = self.folder / file.path
        if not known or not path.is_file() or store.digest(path) != known:
            return None
        return {"bytes": path.stat().st_size, "sha256": known, **entry}

    def _clear_other_layouts(self) -> None:
        """Delete what an interrupted pull of another export left: a folder has one layout."""
        mine = {file.path for file in self.distribution.files}
        for other in self.model.distributions:
            for name in {file.path for file in other.files} - mine:
                (self.folder / name).unlink(missing_ok=True)
                (self.folder / (name + store.PART)).unlink(missing_ok=True)

    def _check_room(self, missing: list[File]) -> None:
        there = sum(transfer.length(self._part(file)) for file in missing)
        needed = sum(file.size for file in missing) - there
        with store.told(self.folder, "look at"):
            free = shutil.disk_usage(self.folder).free
        if free < needed:
            raise SystemAccessError(
                f"{self.folder}: expected {human_size(needed)} of free space, found "
                f"{human_size(free)}; make room, or set ASR_CACHE to a folder on another disk"
            )

    def _part(self, file: File) -> Path:
        return self.folder / (file.path + store.PART)

    def _bring(self, file: File) -> dict[str, Any]:
        """Ask one source after the other."""
        reasons: list[str] = []
        for source in sources.in_order(file, self.hub, self.failed):
            if reasons:
                self.watcher.say(f"{file.path}: {reasons[-1]}; asking {source.hub}")
            try:
                return self._fetch(file, source)
            except AttemptError as error:
                self.failed.add(source.hub)
                reasons.append(f"{source.hub}: {error}")
        raise SourceError(
            f"{file.path}: no source gave it ({'; '.join(reasons)}); when the network is right, "
            f"run asr models pull {self.model.name} again: it goes on where it stopped"
        )

    def _fetch(self, file: File, source: Source) -> dict[str, Any]:
        expected = sources.expected(source, file)
        final = self.folder / file.path
        if not (final.is_file() and store.digest(final, expected.algorithm) == expected.digest):
            self._download(file, sources.file_url(source, file.path), expected)
        return {
            "bytes": expected.size,
            "sha256": file.sha256 or store.digest(final),
            "source": str(source),
            "checked_against": expected.origin,
        }

    def _download(self, file: File, url: str, expected: Expected) -> None:
        """Fetch a file, and give it its name once its checksum is right."""
        part = self._part(file)
        resumed = transfer.length(part) > 0
        while True:
            transfer.fetch(
                url,
                part,
                expected.size,
                lambda have, size: self.watcher.progress(file.path, have, size),
            )
            found = store.digest(part, expected.algorithm)
            if found == expected.digest:
                break
            with store.told(part, "remove"):
                part.unlink()
            if not resumed:
                raise AttemptError(
                    f"expected {expected.algorithm} {expected.digest}, found {found} at {url}; "
                    "the file was not kept"
                )
            resumed = False  # the beginning may have been another version: once from scratch
        with store.told(part, "rename"):
            store.settle(part, self.folder / file.path)


def _notice(model: Model, entries: dict[str, Any]) -> str:
    """The attribution that must go wherever the model goes."""
    origins = sorted({str(entry["source"]) for entry in entries.values()})
    return (
        f"{model.name}\n\n{model.licence.text}\n"
        f"The files of this folder came from: {', '.join(origins)}.\n"
    )


def hubs() -> tuple[str, ...]:
    """The names that ``hub`` may have."""
    return tuple(sources.ENDPOINTS)
