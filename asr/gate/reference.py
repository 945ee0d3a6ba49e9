"""benchmarks/reference.toml: the commit that every later one is held against.

Against its parent alone, ten commits of +2 % each pass. The reference stays where it is until
somebody signs for moving it, so their sum shows.
"""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from asr.errors import RecordError
from asr.gate.files import check_keys, parse_toml, read_toml, signed

_KEYS: dict[str, type | tuple[type, ...]] = {
    "sha": str, "date": date, "reason": str, "signed_off_by": str,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reference:
    """One entry.

    Attributes:
        sha: commit, 40 hexadecimal digits.
        date: of the decision.
        reason: why the reference stands here.
        signed_off_by: who says so.
    """

    sha: str
    date: date
    reason: str
    signed_off_by: str


def read_reference(path: Path, before: str | None = None) -> Reference | None:
    """The entry in force: the last one.

    Args:
        path: the file.
        before: its text in the parent commit; the file may only grow.

    Returns:
        None when there is no file.

    Raises:
        SystemAccessError: it cannot be read.
        RecordError: an entry is incomplete, or an old one was changed or taken away.
    """
    if not path.exists():
        return None
    entries = _entries(read_toml(path), str(path))
    if before is not None:
        old = _entries(parse_toml(before, f"{path} of the parent"), str(path))
        if entries[: len(old)] != old:
            raise RecordError(
                f"{path}: expected the entries of the parent commit and maybe one more, found an "
                "old one changed: the reference moves by a new signed entry"
            )
    return entries[-1]


def _entries(table: dict[str, Any], place: str) -> list[Reference]:
    rows = table.get("reference", [])
    if set(table) != {"reference"} or not isinstance(rows, list) or not rows:
        raise RecordError(f"{place}: expected [[reference]] entries and nothing else")
    for row in rows:
        check_keys(row, _KEYS, place)
        signed(row, tuple(_KEYS), place)
        if len(row["sha"]) != 40:
            raise RecordError(f"{place}: expected a sha of 40 digits, found {row['sha']!r}")
    return [Reference(**row) for row in rows]
