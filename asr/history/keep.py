"""Into a store, and what is dropped from it in time."""

import datetime
import json
from collections.abc import Sequence
from pathlib import Path

from asr.bench import record
from asr.bench.record import Bench, dumps
from asr.history.index import read_light
from asr.history.store import Store, name_of

#: Days for which raw samples are kept.
DAYS = 90


def add(store: Store, paths: Sequence[Path]) -> tuple[list[Bench], int]:
    """Keep records.

    Returns:
        those that are new, and how many were there already.

    Raises:
        SystemAccessError: a file cannot be read, or the store not written.
        RecordError: a file is no asr-bench record; then nothing is kept.
    """
    return add_runs(store, [record.read_bench(path) for path in paths])


def add_runs(store: Store, runs: Sequence[Bench]) -> tuple[list[Bench], int]:
    """The same of runs in memory."""
    there = {name.rpartition("-")[2] for name, _ in store.files()}
    new = {run.run_id: run for run in runs if f"{run.run_id}.json" not in there}
    if new:
        why = f"{len(new)} {'run' if len(new) == 1 else 'runs'} added"
        store.write({name_of(run): dumps(run) for run in new.values()}, why)
    return list(new.values()), len(runs) - len(new)


def prune(store: Store, before: datetime.datetime) -> tuple[int, int]:
    """Drop the raw samples of runs that ended before.

    Returns:
        number of runs, and of bytes that their files are smaller by.

    Raises:
        RecordError: a file of the store is no record.
        SystemAccessError: the store cannot be written.
    """
    texts, saved = {}, 0
    for name, text in store.files():
        run = read_light(text, name)
        ended = datetime.datetime.fromisoformat(run.utc.replace("Z", "+00:00"))
        if ended < before and json.loads(text)["samples"]:
            texts[name] = dumps(run)
            saved += len(text.encode()) - len(texts[name].encode())
    if texts:
        store.write(texts, f"Samples of {len(texts)} runs dropped, summaries kept")
    return len(texts), saved
