"""Reading the gate's TOML files: which keys, which types, one line when something is wrong."""

import sys
from datetime import date, datetime
from pathlib import Path
from typing import Any

from asr.errors import RecordError, SystemAccessError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def read_toml(path: Path) -> dict[str, Any]:
    """Read a file.

    Raises:
        SystemAccessError: it cannot be read.
        RecordError: it is not TOML.
    """
    try:
        return parse_toml(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read it: {error.strerror}") from None


def parse_toml(text: str, place: str) -> dict[str, Any]:
    """Parse a text; raises RecordError naming ``place``."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise RecordError(f"{place}: expected TOML, found {error}") from None


def check_keys(
    table: dict[str, Any], known: dict[str, type | tuple[type, ...]], place: str
) -> None:
    """Refuse unknown keys and values of another type: a typing mistake must not lift a limit.

    Raises:
        RecordError: with the key and what is known.
    """
    for key, value in table.items():
        if key not in known:
            raise RecordError(f"{place}: expected one of {', '.join(known)}, found the key {key!r}")
        if not isinstance(value, known[key]) or isinstance(value, bool | datetime):
            raise RecordError(f"{place}: {key}: expected {_name(known[key])}, found {value!r}")


def signed(table: dict[str, Any], needed: tuple[str, ...], place: str) -> None:
    """Demand keys that somebody must have filled in.

    Raises:
        RecordError: one is missing or empty.
    """
    for key in needed:
        if not str(table.get(key, "")).strip():
            raise RecordError(f"{place}: expected {key!r}: nothing is accepted without it")


def _name(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    names = {float: "a number", int: "a number", str: "a text", date: "a date", dict: "a table"}
    return names[kinds[0]]
