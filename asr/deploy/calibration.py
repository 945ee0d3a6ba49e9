"""What is known about a Cortex-A76: reads ``calibration.toml``, derives what follows from it."""

import math
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from asr.deploy.macs import Work, of_shape
from asr.errors import UsageError

FILE = Path(__file__).with_name("calibration.toml")


@dataclass(frozen=True, slots=True)
class Board:
    """A board.

    Attributes:
        name: as on the command line.
        cores: of the kind that counts.
        ghz: their clock.
        cache_mb: the last level.
        peak_gb_per_s: of the memory, by its data sheet.
        copy_gb_per_s: what one thread was seen to copy.
    """

    name: str
    cores: int
    ghz: float
    cache_mb: float
    peak_gb_per_s: float
    copy_gb_per_s: float

    def weight_pass_s(self, weight_bytes: int) -> tuple[float, float]:
        """Reading the weights once: the least time, the usual one; none if the cache holds them."""
        if weight_bytes <= self.cache_mb * 1e6:
            return 0.0, 0.0
        return weight_bytes / (self.peak_gb_per_s * 1e9), weight_bytes / (self.copy_gb_per_s * 1e9)


class _Counted(NamedTuple):
    """A call whose instructions were counted."""

    size: float
    overhead: float
    error_share: float


def _size(work: Work, rows: int) -> float:
    """Where a call stands among the counted ones: the logarithm of its MACs."""
    return math.log(work.int8.at(rows) + work.fp32.at(rows))


class Calibration:
    """The committed numbers.

    Args:
        tables: as the file has them.
    """

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables
        self.core: str = tables["core"]["name"]
        self.int8_rate: float = tables["core"]["int8_macs_per_cycle"]
        self.fp32_rate: float = tables["core"]["fp32_macs_per_cycle"]
        self.stage_ipc: float = tables["stages"]["instructions_per_cycle"]

    @property
    def checks(self) -> list[dict[str, Any]]:
        """Published times that nothing here was fitted to."""
        return list(self._tables["check"])

    @property
    def boards(self) -> dict[str, Board]:
        """By name."""
        return {name: Board(name, **table) for name, table in self._tables["boards"].items()}

    def shape(self, name: str) -> tuple[Work, dict[str, Any]]:
        """A network that need not be here: what it multiplies, and its table.

        Raises:
            UsageError: there is none of that name.
        """
        shapes = self._tables["shapes"]
        if name not in shapes:
            raise UsageError(f"--shape: expected {', '.join(shapes)}, found {name}")
        table = dict(shapes[name])
        sizes = {k: v for k, v in table.items() if k != "weight_mb"}
        return of_shape(**sizes), table

    def peak_cycles(self, int8: float, fp32: float) -> float:
        """Cycles of one core for these products, if it did nothing else and never waited."""
        return int8 / self.int8_rate + fp32 / self.fp32_rate

    def mix_cycles(self, work: Work, rows: int) -> float:
        """Cycles of one core for all instructions of a call at their peak rates.

        The overhead over ``peak_cycles`` was counted for some calls; others take it from those of
        the same precision that are nearest in MACs, in proportion to the logarithm.
        """
        points = self._counted[work.precision]
        overhead = np.interp(
            _size(work, rows), [p.size for p in points], [p.overhead for p in points]
        )
        return float(overhead) * self.peak_cycles(work.int8.at(rows), work.fp32.at(rows))

    def error_share(self, work: Work, rows: int) -> float:
        """How wrong an estimate may be: as of the counted call that is nearest in MACs."""
        size = _size(work, rows)
        nearest = min(self._counted[work.precision], key=lambda p: abs(p.size - size))
        return nearest.error_share

    @cached_property
    def _counted(self) -> dict[str, list[_Counted]]:
        """By precision, smallest call first."""
        found: dict[str, list[_Counted]] = {"int8": [], "fp32": []}
        for entry in self._tables["counted"]:
            work, rows = self.shape(entry["shape"])[0], entry["rows"]
            peak = self.peak_cycles(work.int8.at(rows), work.fp32.at(rows))
            point = _Counted(_size(work, rows), entry["cycles"] / peak, entry["error_share"])
            found[work.precision].append(point)
        return {precision: sorted(points) for precision, points in found.items()}

    def efficiency(self, precision: str) -> float:
        """Share of the instruction-mix bound that one core keeps on a board."""
        if precision == "fp32":
            return float(self._tables["assumed"]["fp32_efficiency"])
        published = self._tables["published"]
        work, rows = self.shape(published["bound_of"])[0], published["bound_rows"]
        bound = (work.int8.at(rows) + work.fp32.at(rows)) / self.mix_cycles(work, rows)
        kept = published["gmac_per_s"] / published["rtf"][0] / published["ghz"]
        return float(kept / bound)

    def network_cycles(self, work: Work, rows: int) -> float:
        """Cycles that a call of a network is estimated to take one core of a board."""
        return self.mix_cycles(work, rows) / self.efficiency(work.precision)

    def speed_up(self, cores: int) -> float:
        """Of so many cores over one, as published."""
        rtf = self._tables["published"]["rtf"]
        return float(rtf[0] / rtf[cores - 1])

    def stage_instructions(self, audio_s: float, scores: int) -> float:
        """Instructions of the Rust stages: front end of some sound, decoding of so many scores."""
        table = self._tables["stages"]
        return float(table["front_end_per_s"] * audio_s + table["decode_per_score"] * scores)


def load(path: Path = FILE) -> Calibration:
    """Read the committed file."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return Calibration(tomllib.loads(path.read_text(encoding="utf-8")))
