"""The account: every native call and every block of memory of a call, each with its reason.

A TOML file. ``[[calls]]`` names ``stage``, ``call`` and ``times``; ``[[blocks]]`` names ``stage``,
``where`` and ``bytes``; ``[[results]]`` says how many ``bytes`` a stage's result takes in memory of
its own; ``[[rust]]`` says how many bytes a Rust ``call`` may allocate, ``at_most``;
``[[unlocked]]`` names each ``call`` that lets go of the interpreter lock. All need a ``reason``.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from asr.errors import MissingToolError, SystemAccessError, UsageError

_FIELDS: dict[str, dict[str, type]] = {
    "calls": {"stage": str, "call": str, "times": int},
    "blocks": {"stage": str, "where": str, "bytes": int},
    "results": {"stage": str, "bytes": int},
    "rust": {"call": str, "at_most": int},
    "unlocked": {"call": str},
}


def read(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Read an account.

    Raises:
        UsageError: no TOML, an unknown table, a field missing or of another type, no reason.
        SystemAccessError: the file cannot be read.
        MissingToolError: Python is older than 3.11, which brought a TOML reader.
    """
    try:
        import tomllib
    except ImportError:
        raise MissingToolError(
            f"{path}: accounts need Python 3.11 or newer (its tomllib); install that"
        ) from None
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the account: {error.strerror}") from None
    except ValueError as error:
        raise UsageError(f"{path}: expected an account in TOML, found {error}") from None
    for name, rows in tables.items():
        if name not in _FIELDS or not isinstance(rows, list):
            known = ", ".join(f"[[{table}]]" for table in _FIELDS)
            raise UsageError(f"{path}: expected {known}, found {name}")
        for number, row in enumerate(rows, 1):
            for field, kind in {**_FIELDS[name], "reason": str}.items():
                if not isinstance(row.get(field), kind) or row[field] == "":
                    raise UsageError(
                        f"{path}: [[{name}]] number {number}: expected {field} "
                        f"({kind.__name__}), found {row.get(field)!r}"
                    )
    return {name: tables.get(name, []) for name in _FIELDS}


def differences(
    account: dict[str, list[dict[str, Any]]], summary: dict[str, Any]
) -> list[str]:  # fmt: skip
    """Compare a profile with an account.

    Args:
        account: from ``read``.
        summary: from ``asr.profile.summary.summarise``.

    Returns:
        one line for each thing that is not as the account says; empty when all is explained.
    """
    found = _calls(account["calls"], summary["calls"])
    found += _blocks(account["blocks"], summary["blocks"])
    made = {stage["stage"]: stage["made_bytes"] for stage in summary["stages"]}
    results: Counter[str] = Counter()
    for row in account["results"]:
        results[row["stage"]] += row["bytes"]
    found += [
        f"{stage}: expected a result of {results[stage]} bytes in memory of its own, "
        f"found {made.get(stage, 0)}"
        for stage in dict.fromkeys([*made, *results])
        if made.get(stage, 0) != results[stage]
    ]
    if summary["counts_rust"]:
        found += _rust(account["rust"], summary["calls"])
    released = {call["call"]: call["lock_released"] for call in summary["calls"]}
    found += [
        f"{row['call']}: expected the interpreter lock released, it was held"
        for row in account["unlocked"]
        if not released.get(row["call"])
    ]
    return found


def _calls(expected: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[str]:
    wanted: Counter[tuple[str, str]] = Counter()
    for row in expected:
        wanted[row["stage"], row["call"]] += row["times"]
    found = Counter({(call["stage"], call["call"]): call["times"] for call in calls})
    return [
        f"{key[0]}: expected {wanted[key]} calls of {key[1]}, found {found[key]}"
        for key in dict.fromkeys([*wanted, *found])
        if wanted[key] != found[key]
    ]


def _blocks(expected: list[dict[str, Any]], blocks: list[dict[str, Any]]) -> list[str]:
    def sums(rows: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
        result: Counter[tuple[str, str]] = Counter()
        for row in rows:
            result[row["stage"], row["where"]] += row["bytes"]
        return result

    wanted, found = sums(expected), sums(blocks)
    # A block is seen with the few objects that Python makes around it.
    return [
        f"{stage}: expected {wanted[stage, where]} bytes allocated in {where}, "
        f"found {found[stage, where]}"
        for stage, where in dict.fromkeys([*wanted, *found])
        if abs(wanted[stage, where] - found[stage, where]) > 1024
    ]


def _rust(expected: list[dict[str, Any]], calls: list[dict[str, Any]]) -> list[str]:
    allowed = {row["call"]: row["at_most"] for row in expected}
    return [
        f"{call['call']}: expected at most {allowed.get(call['call'], 0)} bytes allocated in Rust, "
        f"found {call['rust_bytes']}"
        for call in calls
        if call["rust_bytes"] > allowed.get(call["call"], 0)
    ]
