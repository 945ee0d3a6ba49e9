"""Measure ours against the peers at full size, print the table, judge the targets.

    make peers                         environments, networks, every row, about half an hour
    make peers PEERS="--rows 'warm-5.6s*' --pairs 7"
    .venv/bin/python benchmarks/peers/compare.py --list

A run can be stopped and goes on where it was: each finished row is in the result, and a row that is
there is not measured again (--again does). The work folder keeps networks and sounds, 1.5 GB.

Contenders take turns, a process each, so that what disturbs the machine disturbs all of them; every
ratio is a median over rounds with a 95 % bootstrap interval, and a target is kept only if the
interval's worse end keeps it. The judged clock is wall time; --clock cpu judges by CPU time, for a
machine on which other work runs.

Exit codes: 0 every target kept, 11 one is missed, 14 one was not measured.
"""

import argparse
import fnmatch
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).with_name("workers")))

import judge
import networks
import page_of
import plot
import readme
import results
import rows
import tables
from contenders import PROGRAMS, ROOT

from asr.bench.noise import Listener, spread
from asr.errors import AsrError, MissingToolError


def parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="compare.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--networks", type=Path, metavar="DIR", default=ROOT / "target/reference-full",
        help="full-size reference networks (default: target/reference-full)",
    )  # fmt: skip
    parser.add_argument(
        "--work", type=Path, metavar="DIR", default=ROOT / "target/peers",
        help="folder for networks made from them, and sounds (default: target/peers)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.json", default=results.RECORDED,
        help="the result; .md and .svg beside it (default: benchmarks/results/peers.json)",
    )  # fmt: skip
    parser.add_argument(
        "--rows", nargs="+", metavar="PATTERN", default=["*"],
        help="only rows whose key fits one, such as 'warm-*'; --list shows the keys",
    )  # fmt: skip
    parser.add_argument(
        "--contenders", nargs="+", metavar="PATTERN", default=["*"],
        help="only these, such as 'ours/*' sherpa-onnx; for trying things out",
    )  # fmt: skip
    parser.add_argument("--again", action="store_true", help="measure rows that are there already")
    parser.add_argument("--pairs", type=int, default=15, metavar="N", help="rounds (default: 15)")
    parser.add_argument(
        "--processes", type=int, default=15, metavar="N",
        help="rounds of fresh processes (default: 15)",
    )  # fmt: skip
    parser.add_argument(
        "--long-rounds", type=int, default=3, metavar="N",
        help="rounds of the 10-minute file (default: 3)",
    )  # fmt: skip
    parser.add_argument(
        "--pin", type=lambda w: [int(n) for n in w.split(",")], metavar="CORES",
        help="keep all contenders on these cores (default: any)",
    )  # fmt: skip
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="that is judged")
    parser.add_argument("--list", action="store_true", help="list rows and minutes, measure none")
    parser.add_argument(
        "--readme", action="store_true",
        help="measure nothing: write README's section anew from the recorded result",
    )  # fmt: skip
    return parser


def main() -> int:
    """Measure what is missing, write, print, judge."""
    options = parser().parse_args()
    wanted = [
        replace(row, names=tuple(n for n in row.names if _fits(n, options.contenders)))
        for row in rows.plan(options.pairs, options.processes, options.long_rounds)
        if _fits(row.key, options.rows)
    ]
    if options.list:
        for row in wanted:
            print(f"{row.key:<18} {row.minutes:4.1f} min  {len(row.names)} contenders, "
                  f"{row.rounds} rounds")  # fmt: skip
        print(f"{sum(row.minutes for row in wanted):.0f} minutes in all")
        return 0
    if options.readme:
        readme.write(results.Result.read(results.RECORDED))
        return 0
    try:
        result = _measure(options, wanted)
    except AsrError as error:
        print(f"compare.py: {error}", file=sys.stderr)
        return error.exit_code
    judged = judge.judge(result, clock=options.clock)
    text = page_of.page(result, judged, options.clock)
    options.output.with_suffix(".md").write_text(text, encoding="utf-8")
    options.output.with_suffix(".svg").write_text(plot.svg(result, options.clock), encoding="utf-8")
    print(text)
    print(tables.targets(judged))
    return judge.exit_code(judged)


def _fits(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _measure(options: argparse.Namespace, wanted: list[rows.Row]) -> results.Result:
    for name, program in PROGRAMS.items():
        if not program.python.exists():
            raise MissingToolError(
                f"{name}: expected its environment {program.environment}, found none; "
                "run: make peers-environments"
            )
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    networks.prepare(options.networks, work)
    networks.prepare_edge(work)
    networks.build_lele(work)
    done = options.output.exists()
    result = results.Result.read(options.output) if done else results.Result()
    for row in wanted:
        if row.key in result.rows and not options.again:
            continue
        if not result.facts:
            result.facts = results.facts_here(networks.facts(work))
        result.facts["clock"] = options.clock
        print(f"compare.py: {row.key}, about {row.minutes:.1f} min", file=sys.stderr)
        start_s, listener = time.monotonic(), Listener()
        samples = rows.measure(row, work, options.pin)
        spreads = [spread(m["wall_ns"]) for m in samples.values() if "wall_ns" in m]
        noise = listener.finish(spreads, repeated=False)
        minutes = (time.monotonic() - start_s) / 60
        result.add(row, samples, {
            "class": noise.class_, "probe_ratio": round(noise.probe_ratio, 3),
            "steal_share": round(noise.steal_share, 4), "load_1min": os.getloadavg()[0],
            "minutes": round(minutes, 2),
        })  # fmt: skip
        result.write(options.output)
        print(f"compare.py: {row.key} took {minutes:.1f} min", file=sys.stderr)
    return result


if __name__ == "__main__":
    sys.exit(main())
