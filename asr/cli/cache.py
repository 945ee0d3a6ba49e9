"""``asr cache``: the prepared networks on this machine."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

    from asr.optimize.cache import Entry


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "cache",
        help="list or remove networks prepared for this CPU",
        description="Look after the networks that first loads have prepared for this CPU.",
        epilog=(
            "list    every prepared network, with its size and what was done to it\n"
            "clean   remove all of them; the next load of a model prepares its network again\n"
            "\n"
            "They live in $ASR_CACHE/prepared, else $XDG_CACHE_HOME/asr/prepared, else\n"
            "~/.cache/asr/prepared, and take at most 4 GB: the oldest make room for a new one."
        ),
        formatter_class=Help,
    )
    parser.add_argument("action", choices=("list", "clean"), metavar="ACTION", help="list or clean")
    parser.add_argument("--json", action="store_true", help="list: one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do what was asked.

    Returns:
        0.
    """
    from asr.errors import UsageError
    from asr.optimize import cache

    if options.action == "clean":
        if options.json:
            raise UsageError("--json belongs to asr cache list, not to clean")
        freed = cache.clean(
            lambda: print("asr: a network is being prepared; waiting", file=sys.stderr)
        )
        print(f"freed {freed / 1e6:.0f} MB in {cache.folder()}")
        return 0
    rows = [_facts(entry) for entry in cache.entries()]
    if options.json:
        import json

        print(json.dumps({"folder": str(cache.folder()), "networks": rows}, ensure_ascii=False))
        return 0
    for row in rows:
        done = row["left"] or ", ".join([*row["passes"], "prepacked"])
        print(f"{row['bytes'] / 1e6:6.0f} MB  {row['network']}")
        print(f"           {row['runtime']}: {done}")
        for name, reason in row["left_out"].items():
            print(f"           {name} left out: {reason}")
    print(f"{sum(row['bytes'] for row in rows) / 1e6:6.0f} MB in {cache.folder()}")
    return 0


def _facts(entry: Entry) -> dict[str, Any]:
    record = entry.record
    return {
        "network": record["source"],
        "folder": str(entry.folder),
        "bytes": entry.disk_bytes,
        "runtime": record["runtime"],
        "cpu": record["cpu"],
        "passes": [step["name"] for step in record["passes"] if step["kept"]],
        "left_out": {step["name"]: step["reason"] for step in record["passes"] if not step["kept"]},
        "left": entry.left,
        "scores": record["scores"] and record["scores"]["verdict"],
        "made_s": record["made_s"],
        "wall_s": record["wall_s"],
    }
