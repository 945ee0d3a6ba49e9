"""Measures a model folder on the test split and prints the table of the model card.

The clips go through `asr`'s own pipeline, greedy and without hints. Word errors are those of what
was heard; `withheld` tells how many texts the folder's rejection thresholds do not show, and clips
without words count as right when no text is shown. `--fp32` measures the unquantised network too.
The test split is for reporting; choices are made on the validation sets of the training log.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from asr.phrases import PhraseList
from asr.recognizer import Recognizer
from asr.text import join_segments
from audio import SAMPLE_RATE
from corpus import DIGITS, SPLITS_FILE, Splits, read_table
from scoring import Score, score, wilson_interval
from synthesise import speak_held_out
from goals import target_of
from testsets import TestSets, Utterance, unseen_share

BUILT_IN = Path(__file__).parents[2] / "asr" / "builtin" / "tiny-en"
LIST_OF = ("FSDD digits (theo), as cut", "FSDD digits (theo), padded")
"""Sets that are also heard with the list of the ten digits."""
INT8_LOSS_LIMIT = 0.5
"""Percent points that int8 may lose."""


@dataclass(frozen=True)
class Heard:
    """What came out for one clip.

    Attributes:
        name: where the clip comes from.
        said: what is said in it.
        text: what was heard, shown or not.
        shown: what the pipeline shows.
    """

    name: str
    said: str
    text: str
    shown: str


class Listener:
    """The pipeline, with or without the list of ten digits."""

    def __init__(self, folder: Path) -> None:
        self._recognizer = Recognizer.load(folder, threads=1)
        vocabulary = self._recognizer.layout.vocabulary
        self._digits = PhraseList(DIGITS, vocabulary)

    def __call__(self, said: Utterance, digits: bool = False) -> Heard:
        """Greedy, or the likeliest digit, which is shown if the list's defaults accept it."""
        transcript = self._recognizer.transcribe(
            said.waveform, sample_rate=SAMPLE_RATE, phrases=self._digits if digits else None
        )
        # What is withheld stays in the segments.
        text = join_segments(segment.text for segment in transcript.segments)
        return Heard(said.name, said.text, text, transcript.text)


Results = dict[str, list[Heard]]


def hear_all(folder: Path, sets: TestSets) -> Results:
    """Every test set by name; sets of single digits a second time with the list of ten."""
    listener = Listener(folder)
    results: Results = {}
    for name, make in sets.makers.items():
        utterances = list(make())
        results[name] = [listener(said) for said in utterances]
        if name in LIST_OF:
            results[f"{name}, list of ten"] = [listener(said, digits=True) for said in utterances]
    return results


def score_of(heard: list[Heard]) -> Score:
    """Errors of what was heard."""
    return score([(one.said, one.text) for one in heard])


def share(right: int, total: int) -> str:
    """A percentage with its 95 % Wilson interval."""
    low, high = wilson_interval(right, total)
    return f"{100 * right / max(1, total):.1f} ({low:.1f}-{high:.1f})"


def table(results: Results, fp32: Results | None) -> list[str]:
    """One line per test set, and how many targets are met."""
    heads = ["test set", "clips", "words", "100 - WER % (95 %)", "clips right % (95 %)"]
    heads += ["withheld %", "target", "met"] + (["int8 - fp32"] if fp32 else [])
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    met = []
    for name, heard in results.items():
        result, target = score_of(heard), target_of(name)
        empty = sum(not one.shown for one in heard)
        withheld = sum(bool(one.text) and not one.shown for one in heard)
        verdict = ""
        if target:
            figure = target.reached(result, 100 * empty / max(1, len(heard)))
            met.append(figure >= target.percent)
            verdict = "yes" if met[-1] else f"no, {target.percent - figure:.1f} short"
        cells = [name, str(result.clips), str(result.words)]
        if result.words:
            words = share(max(0, result.words - result.errors), result.words)
            cells += [words, share(result.exact, result.clips)]
        else:
            cells += ["-", f"empty: {share(empty, len(heard))}"]
        cells += [f"{100 * withheld / max(1, len(heard)):.1f}", str(target or ""), verdict]
        if fp32:
            cells.append(f"{loss(result, score_of(fp32[name])):+.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", f"{sum(met)} of {len(met)} targets met."]
    if fp32:
        worst = max(-loss(score_of(results[name]), score_of(fp32[name])) for name in results)
        verdict = "met" if worst <= INT8_LOSS_LIMIT else "not met"
        lines.append(
            f"Most that int8 loses against fp32: {max(0.0, worst):.1f} points "
            f"(limit {INT8_LOSS_LIMIT:g}): {verdict}."
        )
    return lines


def loss(int8: Score, fp32: Score) -> float:
    """How many points of 100 - WER int8 wins (negative: loses); of exact clips without words."""
    if int8.words:
        return fp32.word_error_percent - int8.word_error_percent
    return int8.exact_percent - fp32.exact_percent


def describe_errors(results: Results, seed: int = 1) -> list[str]:
    """Ten random clips as they came out, and the commonest confusions of every set."""
    rng = np.random.default_rng(seed)
    lines = ["", "Ten random test clips, as they came out:"]
    spoken = [(name, one) for name, heard in results.items() for one in heard if one.said]
    for index in rng.permutation(len(spoken))[:10]:
        name, one = spoken[index]
        lines.append(f"- {name}: `{one.said}` -> `{one.text}`")
    lines += ["", "Commonest errors:"]
    for name, heard in results.items():
        wrong = Counter(
            f"{one.said or '(none)'} -> {one.text or '(none)'}"
            for one in heard
            if one.said != one.text
        )
        common = ", ".join(f"`{pair}` {count}" for pair, count in wrong.most_common(6))
        lines.append(f"- {name}: {common or 'none'}")
    return lines


def with_network(folder: Path, network: Path, target: Path) -> Path:
    """A copy of the model folder with another network, without its thresholds."""
    for file in folder.iterdir():
        if file.suffix != ".onnx" and file.is_file():
            shutil.copy(file, target)
    shutil.copy(network, target / "model_quant.onnx")
    return target


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="manifest of the corpora (TSV)")
    parser.add_argument("--model", type=Path, default=BUILT_IN, help="model folder; the built-in")
    parser.add_argument("--fp32", type=Path, help="the same network before quantisation (ONNX)")
    parser.add_argument(
        "--synthetic", type=Path, help="synthesise.py's manifest; without it the test is spoken now"
    )
    parser.add_argument("--splits", type=Path, default=SPLITS_FILE)
    parser.add_argument("--details", type=Path, help="write every clip's text there, as JSON")
    parser.add_argument("--report", type=Path, help="write what is printed there, too")
    options = parser.parse_args()
    splits = Splits(options.splits)
    with tempfile.TemporaryDirectory() as temporary:
        spoken = Path(temporary) / "spoken"
        synthetic = options.synthetic or speak_held_out(splits, spoken)
        sets = TestSets(options.data, synthetic, splits)
        results = hear_all(options.model, sets)
        fp32 = None
        if options.fp32:
            other = Path(temporary) / "fp32"
            other.mkdir()
            fp32 = hear_all(with_network(options.model, options.fp32, other), sets)
        rows = [row for row in read_table(synthetic) if row["split"] == "test"]
        unseen = unseen_share(synthetic)
    words = {word for row in rows for word in row["transcript"].split()}
    report = [*table(results, fp32), *describe_errors(results), ""]
    report.append(
        f"Device phrases: {len(words)} distinct words, {unseen:.0f} % of the sentences absent from "
        "training."
    )
    print("\n".join(report))
    if options.report:
        options.report.write_text("\n".join(report) + "\n", encoding="utf-8")
    if options.details:
        details = {
            name: [[one.name, one.said, one.text, one.shown] for one in heard]
            for name, heard in results.items()
        }
        options.details.write_text(json.dumps(details, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
