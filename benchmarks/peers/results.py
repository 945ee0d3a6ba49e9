"""The recorded result: one JSON file, written again after every row, so that a run can go on."""

import datetime
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contenders import ENTRIES, PROGRAMS, ROOT
from rows import Row, Samples

from asr.bench import machine
from asr.bench.stats import Interval, median_interval, ratio_interval
from asr.errors import RecordError

SCHEMA = "asr-peers/1"
RECORDED = ROOT / "benchmarks" / "results" / "peers.json"

_VERSIONS = """
import importlib.metadata as m, json, sys
print(json.dumps({name: m.version(name) for name in sys.argv[1:]}))
"""


@dataclass(slots=True)
class Result:
    """What was measured, where, with what.

    Attributes:
        facts: machine, versions, networks, commit.
        rows: key -> what was asked for, and ``samples``.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> "Result":
        """Read one.

        Raises:
            RecordError: no such result.
        """
        try:
            told = {SCHEMA: json.loads(path.read_text(encoding="utf-8"))}
            whole = told[told[SCHEMA]["schema"]]
            return cls(whole["facts"], whole["rows"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{path}: expected a result of {SCHEMA}, found {error!r}") from None

    def write(self, path: Path) -> None:
        """Write it whole, then rename."""
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        told = {"schema": SCHEMA, "facts": self.facts, "rows": self.rows}
        part.write_text(json.dumps(told, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(path)

    def add(self, row: Row, samples: Samples, noise: Mapping[str, object]) -> None:
        """Keep a row; numbers to seven digits."""
        rounded = {
            name: {m: [float(f"{v:.7g}") for v in values] for m, values in measures.items()}
            for name, measures in samples.items()
        }
        self.rows[row.key] = {
            "kind": row.kind,
            "seconds": row.seconds,
            "threads": row.threads,
            "noise": dict(noise),
            "samples": rounded,
        }

    def values(self, row: str, name: str, measure: str = "wall_ns") -> list[float]:
        """One number per round; empty where nothing was measured."""
        samples: Samples = self.rows.get(row, {}).get("samples", {})
        return list(samples.get(name, {}).get(measure, ()))

    def median(self, row: str, name: str, measure: str = "wall_ns") -> Interval | None:
        """Median with its interval, or None."""
        values = self.values(row, name, measure)
        return median_interval(values) if values else None

    def ratio(self, row: str, over: str, under: str, measure: str = "wall_ns") -> Interval | None:
        """Median of ``over`` / ``under`` over rounds, with its interval, or None."""
        a, b = self.values(row, under, measure), self.values(row, over, measure)
        count = min(len(a), len(b))
        return ratio_interval(a[:count], b[:count]) if count else None

    def peaks(self, cores: int = 1) -> dict[str, float]:
        """The best that the probe found; empty without one."""
        samples: Samples = self.rows.get("limit", {}).get("samples", {})
        name = "1 core" if cores == 1 else f"{cores} cores"
        return {measure: max(values) for measure, values in samples.get(name, {}).items()}


def facts_here(networks: Mapping[str, object]) -> dict[str, Any]:
    """What a result says about where it was measured; no host name, no path."""
    git = ["git", "-C", str(ROOT)]
    commit = _said([*git, "rev-parse", "HEAD"])
    dirty = bool(_said([*git, "status", "--porcelain", "--untracked-files=no"]))
    return {
        "utc": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit + (" with changes" if dirty else ""),
        "machine": machine.fields(),
        "versions": {name: _versions(name) for name in PROGRAMS},
        "networks": dict(networks),
        "entries": {name: entry.says for name, entry in ENTRIES.items()},
    }


def _versions(name: str) -> dict[str, str]:
    program = PROGRAMS[name]
    told = _said([str(program.python), "-c", _VERSIONS, *program.packages])
    return dict(json.loads(told)) if told else {}


def _said(command: Sequence[str]) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ
        ).stdout.strip()
    except OSError:
        return ""
