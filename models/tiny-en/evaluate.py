"""Measures an exported model folder on the test split and prints the table of the model card.

Greedy decoding, no phrase list, language auto. `--fp32` measures the fp32 file beside the int8
one. The test split is for reporting; choices are made on the validation sets of the training log.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np

from closed_list import ClosedList
from corpus import DIGITS, SPLITS_FILE, Splits, read_table
from model_folder import FP32_FILE, INT8_FILE, ExportedModel
from scoring import Score, score, wilson_interval
from testsets import TestSets, Utterance, unseen_share

TARGETS = {
    "Speech Commands words": "clips >= 93",
    "FSDD digits (theo), as cut": "clips >= 92",
    "FSDD digits (theo), padded": "closed list: clips >= 97",
    "digit strings 3-6 (theo)": "words >= 98",
    "command strings 2-5": "words >= 90",
    "wake words, held-out clips": "clips >= 98",
    "'(hey) computer', other corpus": "clips >= 80",
    "speechocean762 sentences": "words >= 55 (WER <= 45)",
    "noise, held-out recordings": "clips >= 98 empty",
    "hum, clicks, silence (generated)": "clips >= 98 empty",
}
PHRASE_TARGET = "words >= 92"
DIGIT_SETS = ("FSDD digits (theo), as cut", "FSDD digits (theo), padded")


def hear(model: ExportedModel, utterances: list[Utterance]) -> tuple[list[str], list[str]]:
    """Greedy texts, and the best of the ten digits by CTC score (for single digits)."""
    digits = ClosedList([model.pieces.encode(word) for word in DIGITS])
    texts, closed = [], []
    for utterance in utterances:
        logits = model.logits(utterance.waveform)
        texts.append(model.text(logits))
        if utterance.text in DIGITS:
            closed.append(DIGITS[digits.best(logits)])
    return texts, closed


def row_of(name: str, result: Score) -> str:
    """One line of the table: 100 - WER and exact clips, both with 95 % Wilson intervals."""
    right_words = max(0, result.words - result.errors)
    low_words, high_words = wilson_interval(right_words, result.words)
    low, high = wilson_interval(result.exact, result.clips)
    words = "-"
    if result.words:
        accuracy = 100 - result.word_error_percent
        words = f"{accuracy:.1f} ({low_words:.1f}-{high_words:.1f})"
    target = PHRASE_TARGET if name.startswith("device phrases") else TARGETS.get(name, "")
    exact = f"{result.exact_percent:.1f} ({low:.1f}-{high:.1f})"
    return f"| {name} | {result.clips} | {result.words} | {words} | {exact} | {target} |"


def evaluate(model: ExportedModel, sets: TestSets) -> tuple[list[str], dict[str, list]]:
    """Table lines, and every (name, said, heard) by set."""
    lines = [
        "| test set | clips | words | 100 - WER % (95 %) | clips right % (95 %) | target |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    details = {}
    for name, make in sets.makers.items():
        utterances = list(make())
        texts, closed = hear(model, utterances)
        said = [utterance.text for utterance in utterances]
        lines.append(row_of(name, score(list(zip(said, texts, strict=True)))))
        if name in DIGIT_SETS:
            result = score(list(zip(said, closed, strict=True)))
            lines.append(row_of("- closed list of ten digits", result))
        details[name] = [(u.name, u.text, text) for u, text in zip(utterances, texts, strict=True)]
    return lines, details


def describe_errors(details: dict[str, list], seed: int = 1) -> list[str]:
    """Ten random clips as they came out, and the commonest confusions of short sets."""
    rng = np.random.default_rng(seed)
    lines = ["", "Ten random test clips, as heard:"]
    everything = [(name, *item) for name, items in details.items() for item in items if item[1]]
    for index in rng.permutation(len(everything))[:10]:
        name, _, said, heard = everything[index]
        lines.append(f"- {name}: `{said}` -> `{heard}`")
    for name, items in details.items():
        wrong = Counter(
            f"{said or '(none)'} -> {heard or '(none)'}"
            for _, said, heard in items
            if said != heard
        )
        common = ", ".join(f"`{pair}` {count}" for pair, count in wrong.most_common(6))
        lines.append(f"- commonest errors, {name}: {common or 'none'}")
    return lines


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="manifest of the corpora (TSV)")
    parser.add_argument("--synthetic", type=Path, required=True, help="synthesise.py's manifest")
    parser.add_argument("--model", type=Path, required=True, help="the exported model folder")
    parser.add_argument("--splits", type=Path, default=SPLITS_FILE)
    parser.add_argument("--fp32", action="store_true", help="measure the fp32 file too")
    parser.add_argument("--details", type=Path, help="write every clip's text there, as JSON")
    parser.add_argument("--report", type=Path, help="write what is printed there, too")
    options = parser.parse_args()
    sets = TestSets(options.data, options.synthetic, Splits(options.splits))
    test_rows = [row for row in read_table(options.synthetic) if row["split"] == "test"]
    words = {word for row in test_rows for word in row["transcript"].split()}
    report, everything = [], {}
    for file_name in (INT8_FILE, FP32_FILE) if options.fp32 else (INT8_FILE,):
        lines, details = evaluate(ExportedModel(options.model, file_name), sets)
        report += [f"## {file_name}", "", *lines, *describe_errors(details), ""]
        everything[file_name] = details
    report.append(
        f"Device phrases: {len(words)} distinct words, {unseen_share(options.synthetic):.0f} % of "
        "the sentences absent from training."
    )
    print("\n".join(report))
    if options.report:
        options.report.write_text("\n".join(report) + "\n", encoding="utf-8")
    if options.details:
        options.details.write_text(json.dumps(everything, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main()
