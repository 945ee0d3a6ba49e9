"""Energy counters of the processor (RAPL) or the board (hwmon), where they may be read."""

from pathlib import Path
from typing import Literal

_RAPL = Path("/sys/class/powercap")
_HWMON = Path("/sys/class/hwmon")


class Meter:
    """Counts from its making on.

    Args:
        rapl: the kernel's folder of RAPL zones.
        hwmon: the kernel's folder of sensors.

    Attributes:
        source: who measures; None where nobody can, or the user may not read it.
    """

    def __init__(self, rapl: Path = _RAPL, hwmon: Path = _HWMON) -> None:
        self.source: Literal["rapl", "board"] | None = "rapl"
        # Zones below a package, such as intel-rapl:0:1, are part of it.
        self._counters = [p / "energy_uj" for p in sorted(rapl.glob("*rapl:[0-9]"))]
        self._start = self._read()
        if not self._start:
            self.source = "board"
            self._counters = sorted(hwmon.glob("*/energy*_input"))
            self._start = self._read()
        if not self._start:
            self.source = None

    def _read(self) -> list[int]:
        """Microjoules of each counter; none when one of them cannot be read."""
        try:
            return [int(p.read_text(encoding="ascii")) for p in self._counters]
        except (OSError, ValueError):
            return []

    def joules(self) -> float | None:
        """Joules since the start; None where nobody measures."""
        now = self._read()
        if self.source is None or len(now) != len(self._start):
            return None
        return (
            sum(
                (end - start) % self._range_uj(path)
                for path, start, end in zip(self._counters, self._start, now, strict=True)
            )
            / 1e6
        )

    def _range_uj(self, path: Path) -> int:
        """Where the counter begins again at 0."""
        try:
            return int((path.parent / "max_energy_range_uj").read_text(encoding="ascii")) + 1
        except (OSError, ValueError):
            return 2**63
