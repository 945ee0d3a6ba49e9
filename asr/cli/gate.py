"""``asr gate``: is this version slower, larger, or wrong? With proof, or not at all."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from asr.gate.findings import Comparison, Verdict


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "gate",
        help="judge this version against its parent, a reference and a budget",
        description=(
            "Measure this version against its parent commit and the reference commit, or read\n"
            "records, and judge: speed by stage, memory, sizes, texts. What looks slower is\n"
            "measured once more before it is called a regression."
        ),
        epilog=(
            "exit codes: 0 pass, 10 regression confirmed, 11 budget exceeded, 12 text changed,\n"
            "            13 inconclusive with --require-verdict, 14 nothing comparable with\n"
            "            --require-baseline, 15 noisy or unfit with --strict;\n"
            "            if several apply: 12, 11, 10, 15, 14, 13"
        ),
        formatter_class=Help,
    )
    parser.fill = _add_options
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--against",
        action="append",
        metavar="REV|WHEEL|DIR",
        help="instead of parent and reference; may be given several times",
    )
    parser.add_argument(
        "--pairs",
        action="append",
        metavar="FILE",
        help="judge these records (asr bench --against) instead of measuring",
    )
    parser.add_argument(
        "--record", metavar="FILE", help="hold this record (asr bench) against the budget"
    )
    parser.add_argument("--quick", action="store_true", help="two lengths of clips, few minutes")
    parser.add_argument("--model", metavar="DIR|NAME", help="as for asr transcribe")
    parser.add_argument("--workload", metavar="FILE", help="as for asr bench")
    parser.add_argument(
        "--pin", metavar="CORES", help="stay on these, such as 0,1 (default: the last allowed one)"
    )
    parser.add_argument(
        "--budget", metavar="FILE", help="margins and promises (default: benchmarks/budget.toml)"
    )
    parser.add_argument(
        "--accepted",
        metavar="DIR",
        help="signed-off slowdowns (default: benchmarks/accepted)",
    )
    parser.add_argument("--strict", action="store_true", help="refuse noise and unfit builds")
    parser.add_argument("--require-verdict", action="store_true", help="refuse open questions")
    parser.add_argument("--require-baseline", action="store_true", help="refuse to compare nothing")
    told = parser.add_argument_group("what is told, and where")
    told.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    told.add_argument(
        "--annotations", action="store_true", help="GitHub annotations instead of the table"
    )
    told.add_argument("--markdown", metavar="FILE", help="for a job summary or a pull request")
    told.add_argument("--junit", metavar="FILE", help="JUnit XML")
    told.add_argument("--bencher", metavar="FILE", help="Bencher Metric Format")
    told.add_argument("--benchmark-action", metavar="FILE", help="customSmallerIsBetter JSON")
    told.add_argument("--save", metavar="DIR", help="keep the pairs that were measured")


def run(options: argparse.Namespace) -> int:
    """Measure or read, judge, tell."""
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory(prefix="asr-gate-") as folder:
        verdict = _verdict(options, Path(folder))
    code = verdict.exit_code(
        strict=options.strict,
        require_verdict=options.require_verdict,
        require_baseline=options.require_baseline,
    )
    _tell(options, verdict, code)
    return code


def _verdict(options: argparse.Namespace, work: Path) -> Verdict:
    import datetime
    from pathlib import Path

    from asr.bench import record
    from asr.gate import sides
    from asr.gate.accepted import read_accepted
    from asr.gate.budget import Budget, read_budget
    from asr.gate.findings import Comparison
    from asr.gate.verdict import judge

    root = sides.checkout()
    base = root or Path()
    file = Path(options.budget or base / "benchmarks" / "budget.toml")
    budget = read_budget(file) if options.budget or file.exists() else Budget()
    folder = Path(options.accepted or base / "benchmarks" / "accepted")
    accepted = read_accepted(folder, datetime.datetime.now(datetime.timezone.utc).date())
    alone = record.read_bench(options.record) if options.record else None
    locked = None
    comparisons: list[Comparison] = []
    if options.pairs:
        for name in options.pairs:
            pairs = record.read_pairs(name)
            label = pairs.a.label if len(pairs.a.label) < 40 else pairs.a.label[:7]
            told = label if len(options.pairs) == 1 else f"{label} in {name}"
            comparisons.append(Comparison(told, pairs))
    elif alone is None or options.against:
        comparisons, locked = _measure(options, root, work, budget.margins)
    return judge(
        comparisons,
        budget,
        record=alone,
        locked=locked,
        accepted=accepted,
        brought=sides.brought(root),
    )


def _measure(
    options: argparse.Namespace,
    root: Path | None,
    work: Path,
    margins: Any,  # noqa: ANN401
) -> tuple[list[Comparison], dict[str, bool]]:
    from dataclasses import replace
    from pathlib import Path

    from asr.bench import clips, record
    from asr.errors import UsageError
    from asr.gate import lock, measure, sides

    if root is None and not options.against:
        raise UsageError("expected a git clone of asr-rtf, or --against, --pairs or --record")
    effort = replace(
        measure.QUICK if options.quick else measure.FULL,
        pin=_cores(options.pin),
        model=options.model,
    )
    (work / "clips").mkdir()
    manifest = Path(options.workload) if options.workload else clips.DEFAULT
    workload = clips.load(manifest, work / "clips")
    others = (
        [
            sides.named(name, work / f"against-{i}", _progress)
            for i, name in enumerate(options.against)
        ]
        if options.against
        else sides.usual(root, _progress)  # type: ignore[arg-type]
    )
    judged = sides.judged(work, root, _progress)
    locked = lock.heard_as_expected(judged, workload, options.model, effort.pin)
    found = measure.compare_all(others, judged, workload, effort, margins, _progress)
    if options.save:
        Path(options.save).mkdir(parents=True, exist_ok=True)
        for comparison in found:
            if comparison.pairs:
                name = comparison.against.replace(" ", "-").replace("/", "-")
                record.write(comparison.pairs, Path(options.save) / f"{name}.json")
    return found, locked


def _cores(word: str | None) -> tuple[int, ...]:
    """One core: times of stages are steadier there, and a second thread shows at once."""
    import os

    from asr.errors import UsageError

    allowed = os.sched_getaffinity(0)
    if word is None:
        return (max(allowed),)
    try:
        cores = tuple(sorted({int(n) for n in word.split(",")}))
    except ValueError:
        raise UsageError(f"--pin: expected core numbers such as 0,1, found {word!r}") from None
    if not set(cores) <= allowed:
        listed = ",".join(map(str, sorted(allowed)))
        raise UsageError(f"--pin: this process may use the cores {listed}")
    return cores


def _progress(message: str) -> None:
    print(f"asr gate: {message}", file=sys.stderr)


def _tell(options: argparse.Namespace, verdict: Verdict, code: int) -> None:
    """Every form that was asked for."""
    from asr.gate.outputs import (
        action,
        annotations,
        bencher,
        junit,
        markdown,
        plain,
        table,
    )

    forms: list[tuple[str | None, Callable[[Verdict], str]]] = [
        (options.markdown, markdown.text),
        (options.junit, junit.text),
        (options.bencher, bencher.text),
        (options.benchmark_action, action.text),
    ]
    for name, form in forms:
        if name:
            _write(name, form(verdict))
    if options.json:
        print(plain.text(verdict, code))
    elif options.annotations:
        print(annotations.text(verdict))
    else:
        print(table.text(verdict))


def _write(name: str, text: str) -> None:
    from pathlib import Path

    from asr.errors import SystemAccessError

    try:
        Path(name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise SystemAccessError(f"{name}: cannot be written: {error.strerror}") from None
