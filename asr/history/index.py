"""All runs of a store in SQLite, in memory: questions are asked in SQL."""

import dataclasses
import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from asr.bench.plain import from_plain, to_plain
from asr.bench.record import BENCH_SCHEMA, Bench
from asr.errors import RecordError, UsageError
from asr.history.metrics import Value, values_of
from asr.history.store import Store

#: Fields of a machine that an update changes: another value is another fingerprint, on the same
#: hardware.
_SOFTWARE = ("kernel", "libc", "python")
#: Of the options, those that decide what is measured, not how often.
_WHAT = ("threads", "pin", "language", "itn", "page_cache", "idle_s", "evict_bytes", "workload")

_SCHEMA = """
create table runs(
    run_id text primary key, name text, utc text, position integer, sha text, label text,
    fingerprint text, line text, era text, around text, noise text, fit text, samples integer);
-- Commits in their order, then the runs of commits that nobody knows the order of.
create view ordered as select *, row_number() over (
    order by position is null, position, utc, run_id) as place from runs;
create table measured(run_id text, metric text, value real, error real, unit text);
"""


@dataclass(frozen=True, slots=True)
class Point:
    """One number of one run, with what a reader of a table or chart wants to know of the run.

    Attributes:
        run_id: of the run.
        utc: when it ended.
        sha: commit, or empty.
        label: the user's name for the run, or empty.
        value: in `unit`.
        error: standard error as a share of the value; 0 where the run cannot say.
        unit: ns, bytes or rtf.
        line: what is measured, where: hardware, model's name, options.
        era: with the same software around it, model file and texts: only runs of one era are
            compared.
        fit: why the run says nothing about its commit; empty when it does.
    """

    run_id: str
    utc: str
    sha: str
    label: str
    value: float
    error: float
    unit: str
    line: str
    era: str
    fit: str


class Index:
    """Ask about the runs of a store.

    Args:
        store: read once.
        order: commit -> place in the history; runs of commits that it does not know are ordered
            by time after their like. Empty orders all runs by time.

    Raises:
        RecordError: a file of the store is no record.
    """

    def __init__(self, store: Store, order: Mapping[str, int] | None = None) -> None:
        self.database = sqlite3.connect(":memory:")
        self.database.row_factory = sqlite3.Row
        self.database.executescript(_SCHEMA)
        self._order = order or {}
        for name, text in store.files():
            self._add(name, read_light(text, name), text)

    def _add(self, name: str, run: Bench, text: str) -> None:
        around = surroundings(run)
        line = hashlib.sha256(json.dumps(line_of(run), sort_keys=True).encode()).hexdigest()[:8]
        era = hashlib.sha256(json.dumps([line, around], sort_keys=True).encode()).hexdigest()[:8]
        sha = run.git.sha if run.git else ""
        row = (run.run_id, name, run.utc, self._order.get(sha), sha, run.label or "",
               run.machine.fingerprint, line, era, json.dumps(around), run.noise.class_,
               unfit(run), text.count('{"state"'))  # fmt: skip
        try:
            self.database.execute(f"insert into runs values({','.join('?' * len(row))})", row)
        except sqlite3.IntegrityError:
            raise RecordError(f"{name}: expected a run_id of its own, found it twice") from None
        self.database.executemany(
            "insert into measured values(?,?,?,?,?)",
            [(run.run_id, *dataclasses.astuple(value)) for value in values_of(run)],
        )

    def runs(self) -> list[sqlite3.Row]:
        """All runs in their order."""
        return self.database.execute("select * from ordered order by place").fetchall()

    def metrics(self, pattern: str) -> list[str]:
        """Names that match a pattern of ``*`` and ``?``, in the order of records."""
        rows = self.database.execute(
            "select metric from measured where metric glob ? group by metric order by min(rowid)",
            (pattern,),
        )
        return [row["metric"] for row in rows]

    def points(self, metric: str, line: str | None = None) -> list[Point]:
        """A metric over time: by line, then in order."""
        rows = self.database.execute(
            "select run_id, utc, sha, label, value, error, unit, line, era, fit "
            "from measured join ordered using(run_id) where metric = ? and line = ifnull(?, line) "
            "order by line, place",
            (metric, line),
        )
        return [Point(**dict(row)) for row in rows]

    def values(self, run_id: str) -> dict[str, Value]:
        """Every number of a run by its metric."""
        rows = self.database.execute(
            "select metric, value, error, unit from measured where run_id = ?", (run_id,)
        )
        return {row["metric"]: Value(**dict(row)) for row in rows}

    def find(self, word: str) -> sqlite3.Row:
        """The newest run that a word names: the start of a run's id or commit, or a label.

        Raises:
            UsageError: it names none.
        """
        rows = self.database.execute(
            "select * from runs where label = ?1 or (length(?1) > 3 and "
            "(run_id glob ?1 || '*' or sha glob ?1 || '*')) order by utc desc limit 1", (word,)
        ).fetchall()  # fmt: skip
        if not rows:
            raise UsageError(
                f"{word}: expected the start of a run or commit (4 digits or more) or a label, "
                "found no such run; see: asr history list"
            )
        found: sqlite3.Row = rows[0]
        return found


def read_light(text: str, place: str) -> Bench:
    """A record without its samples: they are most of it, and no history needs them.

    Raises:
        RecordError: the text is no asr-bench record.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise RecordError(f"{place}: expected a record in JSON, found {error}") from None
    if not isinstance(value, dict) or value.get("schema") != BENCH_SCHEMA:
        raise RecordError(f"{place}: expected {BENCH_SCHEMA}, found another file")
    return from_plain(Bench, {**value, "samples": []}, place)


def line_of(run: Bench) -> list[Any]:
    """What is measured and where: the same words, the same line in a chart."""
    options = to_plain(run.options)
    hardware = {k: v for k, v in run.machine.fields.items() if k not in _SOFTWARE}
    # A machine that does not say what it is has nothing but its fingerprint.
    return [hardware or run.machine.fingerprint, run.model.name, {k: options.get(k) for k in _WHAT}]


def surroundings(run: Bench) -> dict[str, str]:
    """What no commit of ours decides, yet times depend on; a change starts a new segment."""
    fields = run.machine.fields
    return {
        "fingerprint": run.machine.fingerprint,
        **{name: str(fields[name]) for name in _SOFTWARE if name in fields},
        "onnxruntime": run.tool.onnxruntime,
        "numpy": run.tool.numpy,
        **({"Rust compiler": run.tool.rust} if run.tool.rust else {}),
        "SIMD path": run.tool.backend,
        "engine": run.options.engine,
        "network": run.model.network_sha256[:12],
        "recipe": run.model.recipe_sha256[:12],
        "tokens": run.model.tokens_sha256[:12],
        "clips": hashlib.sha256("".join(c.sha256 for c in run.clips).encode()).hexdigest()[:12],
    }


def unfit(run: Bench) -> str:
    """Why a run says nothing about its commit; empty when it does."""
    wrong = [clip.id for clip in run.clips if not clip.text_as_expected]
    if wrong:
        return f"other text: {', '.join(wrong)}"
    if run.tool.profile == "debug":
        return "debug build"
    return "uncommitted changes" if run.git is not None and run.git.dirty else ""


def differences(a: str, b: str) -> list[str]:
    """What differs between two runs' surroundings, in words.

    Args:
        a: column ``around`` of one run.
        b: of the other.
    """
    before, after = json.loads(a), json.loads(b)
    names = [n for n in {**before, **after} if n != "fingerprint" and before.get(n) != after.get(n)]
    if not names and before["fingerprint"] != after["fingerprint"]:
        names = ["fingerprint"]
    return [f"{n} {before.get(n, '-')} -> {after.get(n, '-')}" for n in names]


def segments(points: Sequence[Point]) -> list[list[Point]]:
    """Points of one line by era, in the order in which the eras began."""
    found: dict[str, list[Point]] = {}
    for point in points:
        found.setdefault(point.era, []).append(point)
    return list(found.values())
