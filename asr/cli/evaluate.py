"""``asr evaluate``: how well a model hears a manifest of clips."""

from __future__ import annotations

import argparse
import sys
import time

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

    from asr.evaluate.manifest import Manifest
    from asr.evaluate.report import Evaluation
    from asr.recognizer import Recognizer

#: Lines that could not be evaluated and are named on stderr; --json and --out name all.
_LISTED = 10


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "evaluate",
        help="word errors, calibration and rejection on a manifest of clips",
        description="Hear a manifest of clips; print word errors, calibration and rejection.",
        epilog=(
            "MANIFEST is tab-separated text with a header. Columns: path and transcript; source,\n"
            "speaker, split, language, text_normalization (withitn) where there are any.\n"
            "A path is a file, or archive.tar:member; a missing file a/b.wav is looked for in\n"
            "a.tar. An empty transcript says that nobody speaks.\n"
            "Lines that cannot be evaluated are listed and stop nothing; the exit code is that of\n"
            "the first of them."
        ),
        formatter_class=Help,
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="clips and what is said in them")
    parser.add_argument(
        "--model", metavar="DIR|NAME", help="as for asr transcribe (default: tiny-en)"
    )
    parser.add_argument(
        "--root", metavar="DIR", help="where paths start (default: the manifest's folder)"
    )
    parser.add_argument(
        "--split",
        nargs="+",
        metavar="SPLIT",
        help="report these splits (default: test if there is one, otherwise all)",
    )
    parser.add_argument(
        "--calibrate-on",
        "--choose-threshold-on",
        nargs="+",
        metavar="SPLIT",
        help="choose thresholds of confidence and entropy on these splits; report what they do",
    )
    parser.add_argument(
        "--max-right-rejected",
        type=_percent,
        metavar="PERCENT",
        help="of the right texts, how many a threshold may withhold (default: 5)",
    )
    parser.add_argument(
        "--language", default="auto", metavar="LANG", help="hint for lines that name none"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="as for asr transcribe")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="write report.html, plots, clips.tsv, evaluation.json, rejection.json",
    )
    parser.set_defaults(run=run)


def _percent(word: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to 100, found {word!r}")
    return value / 100


def run(options: argparse.Namespace) -> int:
    """Hear the manifest and tell.

    Returns:
        0, or the exit code of the first line that could not be evaluated.
    """
    from pathlib import Path

    from asr.errors import UsageError
    from asr.evaluate import files, rejection, report
    from asr.evaluate.clips import Clips
    from asr.evaluate.hear import hear
    from asr.evaluate.libraries import require
    from asr.evaluate.manifest import read_manifest
    from asr.hub import DEFAULT_MODEL
    from asr.recognizer import Recognizer

    # Refuse before the first clip is heard.
    require("rapidfuzz.distance.Levenshtein")
    if options.out:
        require("matplotlib.figure")
    if options.max_right_rejected is not None and not options.calibrate_on:
        raise UsageError("--max-right-rejected needs --calibrate-on: it guides that choice")
    manifest = read_manifest(Path(options.manifest))
    splits = _splits(manifest, options)
    chosen_on = options.calibrate_on or []
    rows = [row for row in manifest.rows if not splits or row.split in {*splits, *chosen_on}]
    if not rows and not manifest.failures:
        raise UsageError(f"{manifest.path}: expected at least one clip, found none")
    recognizer = Recognizer.load(options.model or DEFAULT_MODEL, threads=options.threads)
    recognizer.layout.language_id(options.language)
    if options.out:
        files.make_folder(Path(options.out))
    with Clips(Path(options.root) if options.root else manifest.path.parent) as clips:
        progress = _Progress(len(rows))
        heard, failures = hear(
            recognizer, rows, clips, language=options.language, progress=progress.step
        )
        progress.end()
    reported = [clip for clip in heard if not splits or clip.row.split in splits]
    own = recognizer.layout.rejection
    verdict = report.judge(own, reported) if own else None
    if chosen_on:
        validation = [clip for clip in heard if clip.row.split in chosen_on]
        cost = 0.05 if options.max_right_rejected is None else options.max_right_rejected
        thresholds = rejection.choose(validation, cost)
        if thresholds:
            verdict = report.judge(
                thresholds, reported, validation=validation, chosen_on=chosen_on,
                max_right_rejected=cost,
            )  # fmt: skip
        else:
            print(
                f"asr: no threshold chosen: split {' '.join(chosen_on)} needs texts heard right "
                "and texts heard wrong",
                file=sys.stderr,
            )
    evaluation = report.evaluate(
        reported,
        manifest=options.manifest,
        model=_model(recognizer, options.model or DEFAULT_MODEL),
        splits=splits,
        failures=sorted((*manifest.failures, *failures), key=lambda failure: failure.line),
        verdict=verdict,
    )
    _tell(evaluation, options)
    return next((failure.exit_code for failure in evaluation.failures), 0)


def _splits(manifest: Manifest, options: argparse.Namespace) -> list[str]:
    """The splits to report; none when the manifest names none."""
    from asr.errors import UsageError

    known = manifest.splits()
    chosen_on = options.calibrate_on or []
    for name in (*(options.split or ()), *chosen_on):
        if name not in known:
            raise UsageError(
                f"{manifest.path}: no line of split {name!r}, found {', '.join(known) or 'none'}"
            )
    splits = options.split or (["test"] if "test" in known and "test" not in chosen_on else [])
    if not splits and chosen_on:
        splits = [name for name in known if name not in chosen_on]
    both = sorted(set(splits) & set(chosen_on))
    if both or (chosen_on and not splits):
        raise UsageError(
            f"{manifest.path}: split {', '.join(both or chosen_on)} cannot both choose a "
            "threshold and show what it is worth; name another with --split"
        )
    return list(splits)


def _model(recognizer: Recognizer, name: str) -> dict[str, str]:
    layout = recognizer.layout
    return {
        "name": str(name).rstrip("/").rsplit("/", 1)[-1],
        "layout": layout.kind,
        "network": f"{layout.network.name}, {layout.network.stat().st_size / 1e6:.1f} MB",
        "engine": recognizer.engine.description,
    }


class _Progress:
    """Tells how far it is on stderr: one line that changes on a terminal, tenths otherwise."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._done = 0
        self._told_s = 0.0
        self._terminal = sys.stderr.isatty()

    def step(self) -> None:
        """One more clip is done."""
        self._done += 1
        done, total = self._done, self._total
        if self._terminal:
            now_s = time.monotonic()
            if now_s - self._told_s > 0.1:
                self._told_s = now_s
                print(f"\r{done} of {total} clips", end="", file=sys.stderr, flush=True)
        elif total >= 100 and done * 10 // total > (done - 1) * 10 // total:
            print(f"{done} of {total} clips", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the terminal's line empty for what follows."""
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _tell(evaluation: Evaluation, options: argparse.Namespace) -> None:
    from pathlib import Path

    if options.json:
        import json

        from asr.evaluate.report import to_json

        print(json.dumps(to_json(evaluation), ensure_ascii=False, allow_nan=False))
    else:
        from asr.evaluate.table import lines

        print("\n".join(lines(evaluation)))
    if options.out:
        from asr.evaluate import files

        page = files.write(Path(options.out), evaluation)[0]
        print(f"asr: see {page}", file=sys.stderr)
    for failure in evaluation.failures[:_LISTED]:
        print(f"asr: {options.manifest}: line {failure.line}: {failure.reason}", file=sys.stderr)
    more = len(evaluation.failures) - _LISTED
    if more > 0:
        print(f"asr: {options.manifest}: and {more} more lines", file=sys.stderr)
