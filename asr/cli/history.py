"""``asr history``: runs kept, compared, and searched for the commit that made it slower."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from asr.history.index import Index
    from asr.history.store import Store


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "history",
        help="keep runs of asr bench; find the commit and the stage that made it slower",
        description="Keep records of asr bench, in a folder or on a branch, and ask about them.",
        epilog=(
            "examples:\n"
            "  asr history add run.json                 keep a run\n"
            "  asr history steps                        when did it become slower, and by what\n"
            "  asr history show 'warm/5 s/total'        one number over time\n"
            "  asr history backfill v1.0..HEAD          measure commits of the past\n"
            "\n"
            "What counts as a step, and what is never compared: docs/history.md"
        ),
        formatter_class=Help,
    )
    parser.fill = _add_commands
    parser.set_defaults(run=run)


def _add_commands(parser: argparse.ArgumentParser) -> None:
    places = argparse.ArgumentParser(add_help=False)
    group = places.add_argument_group("where the history is")
    group.add_argument(
        "--store", metavar="DIR", help="a folder of records (default: benchmarks/history)"
    )
    group.add_argument("--branch", metavar="NAME", help="a branch, such as asr-history, instead")
    group.add_argument(
        "--repo", metavar="DIR", default=".",
        help="the clone that has the branch, and knows the order of commits (default: here)",
    )  # fmt: skip
    # A parser of its own kind: asr.cli's waits for options that these have at once.
    commands = parser.add_subparsers(
        dest="history", metavar="COMMAND", required=True, parser_class=argparse.ArgumentParser
    )

    def command(name: str, function: Callable[..., int], told: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = commands.add_parser(
            name, help=told, description=f"{told[0].upper()}{told[1:]}.", parents=[places],
            formatter_class=Help,
        )  # fmt: skip
        made.set_defaults(act=function)
        return made

    made = command("add", _add, "keep records")
    made.add_argument("records", nargs="+", metavar="RECORD", help="files of asr bench -o")
    command("list", _list, "one line per run")
    made = command("show", _show, "one number over time")
    made.add_argument("metric", metavar="METRIC", help="such as 'warm/5 s/total'; * and ? match")
    made = command("compare", _compare, "two runs side by side")
    for name in ("a", "b"):
        made.add_argument(name, metavar=name.upper(), help="start of a run or commit, or a label")
    made.add_argument("--metric", metavar="PATTERN", help="others than the totals")
    made = command("steps", _steps, "find when it became slower or faster, and which stage did it")
    made.add_argument("--metric", metavar="PATTERN", help="others than the totals")
    made.add_argument("--smallest", type=float, metavar="PERCENT", default=3.0,
                      help="steps smaller than this are not told (default: 3)")  # fmt: skip
    made.add_argument("--json", action="store_true", help="one JSON object")
    made = command("prune", _prune, "drop raw samples of old runs, keep their summaries")
    made.add_argument("--days", type=int, metavar="N", default=90, help="default: 90")
    made = command("export", _export, "the history for other programs")
    made.add_argument("--form", choices=("csv", "json", "bencher", "benchmark-action"),
                      default="csv", help="csv and json: all runs; others: the newest")  # fmt: skip
    made.add_argument("--metric", metavar="PATTERN", default="*", help="these alone")
    made.add_argument("-o", "--output", metavar="FILE", help="instead of stdout")
    _add_backfill(command("backfill", _backfill, "build and measure commits of the past"))


def _add_backfill(made: argparse.ArgumentParser) -> None:
    made.add_argument("range", metavar="A..B", help="commits after A, up to B")
    made.add_argument("--every", type=_positive, default=1, metavar="N", help="each N-th of them")
    made.add_argument("--rounds", type=_positive, default=3, metavar="N",
                      help="runs per commit (default: 3)")  # fmt: skip
    made.add_argument("--model", metavar="DIR|NAME", help="as for asr transcribe")
    made.add_argument("--workload", metavar="FILE", help="as for asr bench")
    made.add_argument("--threads", type=_positive, metavar="N", help="as for asr transcribe")
    made.add_argument("--pin", metavar="CORES", help="stay on these, such as 0,1")


def _positive(word: str) -> int:
    from asr.cli.bench import _positive as positive

    return positive(word)


def run(options: argparse.Namespace) -> int:
    """Open the store, do what was asked."""
    from pathlib import Path

    from asr.history.store import DEFAULT, Folder, open_store

    store: Store
    if options.act in (_add, _backfill) and not options.branch:
        store = Folder(Path(options.store or DEFAULT))  # made when something is written
    else:
        store = open_store(options.store, options.branch, Path(options.repo))
    code: int = options.act(options, store)
    return code


def _index(options: argparse.Namespace, store: Store) -> Index:
    from pathlib import Path

    from asr.history.index import Index
    from asr.history.store import commit_order

    return Index(store, commit_order(Path(options.repo)))


def _add(options: argparse.Namespace, store: Store) -> int:
    from pathlib import Path

    from asr.history import keep
    from asr.history.index import unfit

    added, old = keep.add(store, [Path(name) for name in options.records])
    for one in added:
        why = unfit(one)
        print(f"added {one.run_id}" + (f": listed, in no step: {why}" if why else ""))
    if old:
        print(f"{old} there already")
    return 0


def _list(options: argparse.Namespace, store: Store) -> int:
    from asr.bench.report import table

    rows = [["utc", "run", "commit", "label", "machine", "line", "segment", "noise", "samples", ""]]
    rows += [
        [r["utc"], r["run_id"], r["sha"][:9], r["label"], r["fingerprint"][:8], r["line"],
         r["era"], r["noise"], str(r["samples"] or "dropped"), r["fit"]]
        for r in _index(options, store).runs()
    ]  # fmt: skip
    print(table(rows))
    return 0


def _show(options: argparse.Namespace, store: Store) -> int:
    from asr.cli.history_tables import series_text

    print(series_text(_index(options, store), options.metric))
    return 0


def _compare(options: argparse.Namespace, store: Store) -> int:
    from asr.cli.history_tables import compared_text

    index = _index(options, store)
    print(compared_text(index, options.a, options.b, options.metric))
    return 0


def _steps(options: argparse.Namespace, store: Store) -> int:
    from asr.cli.history_tables import steps_text
    from asr.errors import UsageError
    from asr.history.steps import look

    index = _index(options, store)
    seen = look(index, options.metric, options.smallest / 100)
    if not seen.looked_at:
        raise UsageError(
            f"{options.metric or 'the store'}: expected runs with such a metric, found none"
        )
    if options.json:
        import dataclasses
        import json

        print(json.dumps(dataclasses.asdict(seen)))
    else:
        print(steps_text(seen))
    return 0


def _prune(options: argparse.Namespace, store: Store) -> int:
    import datetime

    from asr.history import keep

    now = datetime.datetime.now(datetime.timezone.utc)
    number, saved = keep.prune(store, now - datetime.timedelta(days=options.days))
    print(f"samples of {number} runs dropped, {saved / 1e6:.1f} MB")
    return 0


def _export(options: argparse.Namespace, store: Store) -> int:
    from pathlib import Path

    from asr.cli.outputs import write
    from asr.history.export import FORMS

    text = FORMS[options.form](_index(options, store), options.metric)
    if options.output:
        write(Path(options.output), text)
    else:
        print(text, end="")
    return 0


def _backfill(options: argparse.Namespace, store: Store) -> int:
    import tempfile
    from pathlib import Path

    from asr.bench import clips, installs
    from asr.bench.plan import Plan
    from asr.cli.bench import _cores
    from asr.history import backfill, keep
    from asr.history.store import commits_of
    from asr.hub import DEFAULT_MODEL

    repo = Path(options.repo)
    shas = commits_of(repo, options.range)[:: options.every]
    built = [installs.from_revision(sha[:12], repo.absolute(), _progress) for sha in shas]
    plan = Plan(
        model=options.model or DEFAULT_MODEL,
        threads=options.threads,
        pin=_cores(options.pin) if options.pin else None,
    )
    number = 0
    with tempfile.TemporaryDirectory(prefix="asr-history-") as folder:
        manifest = Path(options.workload) if options.workload else clips.DEFAULT
        workload = clips.load(manifest, Path(folder))
        turns = backfill.Turns(rounds=options.rounds)
        for one in backfill.run(built, workload, plan, turns, _progress):
            keep.add_runs(store, [one])
            number += 1
    print(f"{number} runs of {len(built)} commits added; now: asr history steps")
    return 0


def _progress(message: str) -> None:
    print(f"asr history: {message}", file=sys.stderr)
