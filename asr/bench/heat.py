"""Whether a board kept its clock: temperature, and what firmware and kernel held down."""

from pathlib import Path

from asr.bench.record import Heat

#: Of the Raspberry Pi's firmware: now, and 16 bits higher since the board was started.
BITS = {0: "under-voltage", 1: "frequency capped", 2: "throttled", 3: "soft temperature limit"}
_SINCE_START = 16


class Watch:
    """Looks from its making on.

    Args:
        root: where ``sys`` is mounted.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._celsius = _celsius(root)

    def finish(self) -> Heat | None:
        """Look again; None on a machine that tells none of it."""
        end = _celsius(self._root)
        bits, held = _throttled(self._root), _held(self._root)
        if self._celsius is None and bits is None and held is None:
            return None
        return Heat(self._celsius, end, bits, held)


def words(heat: Heat) -> list[str]:
    """What held the clock down, or may have; nothing where nothing did."""
    bits = heat.throttled_bits or 0
    now = [word for bit, word in BITS.items() if bits >> bit & 1]
    before = [
        f"{word} since the board was started"
        for bit, word in BITS.items()
        if bits >> _SINCE_START >> bit & 1 and word not in now
    ]
    return [*now, *before, *(["clock held down by the kernel"] if heat.clock_held else [])]


def _celsius(root: Path) -> float | None:
    """The hottest zone."""
    found = [_number(p) for p in (root / "sys/class/thermal").glob("thermal_zone*/temp")]
    known = [value for value in found if value is not None]
    return max(known) / 1000 if known else None


def _throttled(root: Path) -> int | None:
    """The firmware's bits; the folder's name has the chip's address in it."""
    for path in sorted((root / "sys/devices/platform").glob("soc*/*firmware/get_throttled")):
        value = _number(path, base=16)
        if value is not None:
            return value
    return None


def _held(root: Path) -> bool | None:
    """Whether the kernel cools by a lower clock at this moment."""
    states = []
    for folder in (root / "sys/class/thermal").glob("cooling_device*"):
        kind = _text(folder / "type").lower()
        if "cpufreq" in kind:
            states.append(_number(folder / "cur_state"))
    known = [state for state in states if state is not None]
    return any(known) if known else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def _number(path: Path, base: int = 10) -> int | None:
    try:
        return int(_text(path), base)
    except ValueError:
        return None
