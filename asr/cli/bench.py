"""``asr bench``: how fast, in which state, how sure; and against another version."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from asr.bench.clips import Workload
    from asr.bench.record import Bench, Pairs


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "bench",
        help="measure: four RTFs, every stage, cold to warm; or against another version",
        description=(
            "Measure this machine with 1 s to 78 s of speech: fresh processes, calls after a\n"
            "rest or with emptied caches, warm calls. Tables go to stdout, progress to stderr."
        ),
        epilog=(
            "Exit codes: 12 a text is not the expected one, 15 --strict and the machine is noisy.\n"
            "What every number contains: docs/bench.md"
        ),
        formatter_class=Help,
    )
    parser.fill = _add_options
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", metavar="DIR|NAME", help="model folder, or a name (default: tiny-en)"
    )
    parser.add_argument(
        "--engine", action="append", metavar="NAME",
        help="as for asr transcribe; given twice, the second is measured against the first",
    )  # fmt: skip
    parser.add_argument(
        "--workload", metavar="FILE", help="clips to measure, a .tsv file (default: five shipped)"
    )
    parser.add_argument("--threads", type=_positive, metavar="N", help="as for asr transcribe")
    parser.add_argument(
        "--no-optimize", action="store_true", help="run the network as its file has it"
    )
    parser.add_argument("--pin", type=_cores, metavar="CORES", help="stay on these, such as 0,1")
    parser.add_argument("--language", default="auto", metavar="LANG", help="as for asr transcribe")
    parser.add_argument("--itn", action="store_true", help="as for asr transcribe")
    parser.add_argument(
        "--warm-up", "--warmup", type=_count, metavar="N",
        help="calls per clip that are not counted (default: 3)",
    )  # fmt: skip
    parser.add_argument(
        "--repeat", type=_positive, metavar="N",
        help="warm calls per clip (default: until half the 95 %% interval of every length is at "
        "most 1.5 %%, or --seconds are over); with --against, calls per process (default: 6)",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, metavar="S", help="limit of that (default: 40)")
    parser.add_argument("--cold", type=_positive, metavar="N", help="fresh processes (default: 5)")
    parser.add_argument(
        "--idle", type=float, metavar="S", help="seconds of rest before an idle call (default: 2)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the order of clips (default: 0)")
    parser.add_argument(
        "--drop-page-cache", action="store_true",
        help="make the system forget model and libraries before each fresh process",
    )  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="fewer of everything, within 40 s")
    parser.add_argument(
        "--strict", action="store_true",
        help="refuse a debug build, uncommitted changes (2), a noisy machine (15)",
    )  # fmt: skip
    parser.add_argument(
        "--hyperfine", action="store_true", help="let hyperfine time whole processes as well"
    )
    parser.add_argument("--label", metavar="TEXT", help="a name for the record")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the record there, as JSON")
    _add_against(parser)
    _add_hosts(parser)


def _add_against(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("against another version")
    group.add_argument(
        "--against", metavar="REV|WHEEL|DIR",
        help="take turns with a commit, a wheel or a checkout, and give ratios",
    )  # fmt: skip
    group.add_argument(
        "--pairs", type=_positive, metavar="N", help="pairs per clip (default: as --mde needs)"
    )
    group.add_argument(
        "--mde", type=float, metavar="PERCENT",
        help="slowdown of a warm call that must not be missed (default: 3)",
    )  # fmt: skip
    group.add_argument(
        "--max-minutes", type=float, metavar="M",
        help="no more pairs than fit in (default: 10)",
    )  # fmt: skip


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("two hosts of one bundle")
    group.add_argument(
        "--host", action="append", choices=("python", "edge"),
        help="both: the same bundle, runtime and threads; with --threads, --cold, --idle, "
        "--repeat (warm calls), --quick",
    )  # fmt: skip
    group.add_argument(
        "--edge", metavar="PROGRAM", help="asr-edge (default: as make edge built it)"
    )


def _positive(word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {word!r}")
    return int(word)


def _count(word: str) -> int:
    return 0 if word == "0" else _positive(word)


def _cores(word: str) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(n) for n in word.split(",")}))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected core numbers such as 0,1, found {word!r}"
        ) from None


def run(options: argparse.Namespace) -> int:
    """Measure, print, write the record; then judge."""
    import tempfile
    from pathlib import Path

    from asr.bench import clips, record
    from asr.cli import bench_pairs, bench_tables

    _check(options)
    if options.host:
        return _hosts(options)
    with tempfile.TemporaryDirectory(prefix="asr-bench-") as folder:
        manifest = Path(options.workload) if options.workload else clips.DEFAULT
        workload = clips.load(manifest, Path(folder))
        found: Bench | Pairs
        if _in_pairs(options):
            found = _against(options, workload, Path(folder))
            text = bench_pairs.pairs_text(found)
        else:
            found = _alone(options, workload)
            text = bench_tables.bench_text(found)
    if options.output:
        record.write(found, options.output)
    print(text)
    return _verdict(found, strict=options.strict)


def _in_pairs(options: argparse.Namespace) -> bool:
    """Whether two versions, or two engines, take turns."""
    return bool(options.against) or len(options.engine or ()) > 1


#: Options that say nothing about the other kind of measurement.
_ALONE_ONLY = ("no_optimize", "warm_up", "seconds", "cold", "idle", "seed", "drop_page_cache",
               "quick", "hyperfine", "label")  # fmt: skip
_AGAINST_ONLY = ("pairs", "mde", "max_minutes")
_NOT_HOSTS = ("against", "engine", "no_optimize", "language", "itn", "pin", "warm_up", "seconds",
              "seed", "drop_page_cache", "hyperfine", "label")  # fmt: skip


def _check(options: argparse.Namespace) -> None:
    """Refuse before minutes are spent on it."""
    import os

    from asr import _rust_fe
    from asr.bench import installs, machine
    from asr.engines import named
    from asr.errors import NoisyError, SystemAccessError, UsageError

    if options.host:
        for name in _NOT_HOSTS:
            if getattr(options, name) not in (None, False, "auto"):
                raise UsageError(f"--{name.replace('_', '-')}: not used with --host")
    elif options.edge:
        raise UsageError("--edge: needs --host python --host edge")
    if len(options.engine or ()) > (1 if options.against else 2):
        raise UsageError("--engine: expected two at most, and one with --against: a comparison "
                         "changes one thing")  # fmt: skip
    for name in options.engine or ():
        named.check(name)
    pairs = "--against, or --engine twice"
    unfit, why = (_ALONE_ONLY, "not used with") if _in_pairs(options) else (_AGAINST_ONLY, "needs")
    for name in unfit:
        if getattr(options, name) not in (None, False):
            raise UsageError(f"--{name.replace('_', '-')}: {why} {pairs}")
    if options.pin and not set(options.pin) <= os.sched_getaffinity(0):
        allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        raise UsageError(f"--pin: this process may use the cores {allowed}")
    if options.output:
        folder = os.path.dirname(os.path.abspath(options.output))  # noqa: PTH100, PTH120
        if not os.access(folder, os.W_OK):
            raise SystemAccessError(f"{options.output}: cannot write into its folder")
    if not options.strict:
        return
    profile = _rust_fe.build_info()["profile"]
    if profile != "release":
        raise UsageError(f"--strict: expected a release build, found {profile}; run: make dev")
    git = installs.running().git
    if git is not None and git.dirty:
        raise UsageError("--strict: expected a clean checkout, found uncommitted changes")
    governor = machine.fields()["governor"]
    if governor not in ("performance", "unknown"):
        raise NoisyError(
            f"--strict: expected the frequency governor 'performance', found {governor!r}; "
            "run: cpupower frequency-set -g performance"
        )


def _alone(options: argparse.Namespace, workload: Workload) -> Bench:
    from dataclasses import replace

    from asr.bench import installs
    from asr.bench.plan import Plan
    from asr.bench.run import Run
    from asr.hub import DEFAULT_MODEL

    plan = Plan(
        model=options.model or DEFAULT_MODEL,
        threads=options.threads,
        pin=options.pin,
        repeat=options.repeat,
        language=options.language,
        itn=options.itn,
        drop_page_cache=options.drop_page_cache,
        hyperfine=options.hyperfine,
        label=options.label,
        optimize=not options.no_optimize,
    )
    if options.quick:
        plan = plan.quick()
    asked = {"cold": options.cold, "idle_s": options.idle, "warm_s": options.seconds,
             "warm_up": options.warm_up, "seed": options.seed}  # fmt: skip
    plan = replace(plan, **{name: value for name, value in asked.items() if value is not None})
    install = replace(installs.running(), engine=(options.engine or [None])[0])
    return Run(plan, workload, _progress, install).measure()


def _against(options: argparse.Namespace, workload: Workload, folder: Path) -> Pairs:
    from dataclasses import replace

    from asr.bench import installs, versus

    asked = versus.Asked(
        model=options.model,
        threads=options.threads,
        pin=options.pin,
        repeat=options.repeat or 6,
        language=options.language,
        itn=options.itn,
        pairs=options.pairs,
        mde=(options.mde or 3.0) / 100,
        max_s=60 * (options.max_minutes or 10.0),
    )
    here = installs.snapshot(folder / "b")
    if options.against:
        a, b = installs.find(options.against, folder / "a", _progress), here
        if options.engine:
            a, b = (replace(side, engine=options.engine[0]) for side in (a, b))
    else:
        a, b = (replace(here, label=engine, engine=engine) for engine in options.engine)
    return versus.compare(a, b, workload, asked, _progress)


def _hosts(options: argparse.Namespace) -> int:
    import tempfile
    from pathlib import Path

    from asr.bench import clips
    from asr.cli import bench_hosts

    with tempfile.TemporaryDirectory(prefix="asr-bench-") as folder:
        manifest = Path(options.workload) if options.workload else clips.DEFAULT
        workload = clips.load(manifest, Path(folder))
        return bench_hosts.run(options, workload, Path(folder), _progress)


def _progress(message: str) -> None:
    print(f"asr bench: {message}", file=sys.stderr)


def _verdict(found: Bench | Pairs, *, strict: bool) -> int:
    """12 before 15: other text is worse than a loud machine."""
    from asr.bench.record import Bench
    from asr.errors import NoisyError, TextChangedError

    wrong = [
        clip.id
        for clip in found.clips
        if not (clip.text_as_expected if hasattr(clip, "text_as_expected") else clip.text_same)
    ]
    if wrong:
        whose = "the expected text" if isinstance(found, Bench) else "the same text from both"
        raise TextChangedError(
            f"{', '.join(wrong)}: expected {whose}, found another: these times do not count"
        )
    if strict and found.noise.class_ == "noisy":
        raise NoisyError("--strict: the machine was too noisy for these times to count")
    return 0
