"""Makes a model folder know what it does not know: confidence that is calibrated, and rejection.

1. Writes the clips of the validation and the test split with a manifest, once.
2. Divides the network's scores by the temperature at which confidence is closest to truth on the
   validation words. No text changes by it, nor does anything else at run time.
3. Lets `asr evaluate` choose the rejection thresholds on the validation split and report both on
   the test split; its `rejection.json` goes into the model folder.

Of every validation set at most `CLIPS_PER_SET` clips are heard, so that no corpus decides alone.
For the temperature a set's words count as often as the test split has such words, since half of
those stand in long sentences; how many there are is all that is read of the test split for that.
A second run finds a temperature near 1. Needs `onnx`, and `asr` on the path.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import soundfile
from onnx import numpy_helper

from asr import ctc, text
from asr.evaluate.calibration import calibrate
from asr.evaluate.hear import HeardWord, compare
from asr.evaluate.manifest import Row, read_manifest
from asr.recognizer import Recognizer
from asr.records import Audio, Logits
from audio import SAMPLE_RATE
from corpus import SPLITS_FILE, Splits
from testsets import TestSets, Utterance

CLIPS_PER_SET = 150
STAND_IN = {"LJSpeech sentences": "speechocean762 sentences"}
"""Test sets without a validation set of their own, and what resembles them most."""
SUBSET = "- "
"""Sets whose names begin so are part of another."""
TEMPERATURES = np.round(np.arange(0.7, 2.01, 0.05), 2)
ASR = [sys.executable, "-c", "from asr.cli import run_and_exit; run_and_exit()"]


def chosen(utterances: list[Utterance], split: str) -> list[Utterance]:
    """All test clips; of a validation set a random part, the same for every model."""
    if split == "test":
        return utterances
    order = np.random.default_rng(0).permutation(len(utterances))[:CLIPS_PER_SET]
    return [utterances[index] for index in order]


def write_clips(data: Path, synthetic: Path, splits: Splits, folder: Path) -> Path:
    """Write every utterance as float32 WAV; returns the manifest, which is written last."""
    lines = ["path\ttranscript\tsource\tsplit"]
    for split in ("dev", "test"):
        (folder / split).mkdir(parents=True, exist_ok=True)
        sets = TestSets(data, synthetic, splits, split).makers
        for number, (name, make) in enumerate(sets.items()):
            if name.startswith(SUBSET):
                continue
            for index, said in enumerate(chosen(list(make()), split)):
                path = f"{split}/{number:02d}-{index:04d}.wav"
                soundfile.write(folder / path, said.waveform, SAMPLE_RATE, subtype="FLOAT")
                lines.append(f"{path}\t{said.text}\t{name}\t{split}")
    manifest = folder / "manifest.tsv"
    manifest.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return manifest


class Keep:
    """An observer that keeps the scores of a call."""

    def __init__(self) -> None:
        self.logits: Logits | None = None

    def step(self, name, function, *arguments):  # noqa: ANN001, ANN201 - as asr.observe says
        """Call ``function(*arguments)``."""
        value = function(*arguments)
        if name == "infer":
            self.logits = value
        return value


def copies(rows: Sequence[Row]) -> dict[str, int]:
    """How often a word of each validation set counts."""
    counts: dict[str, Counter[str]] = {"dev": Counter(), "test": Counter()}
    for row in rows:
        counts[row.split][kind(row.source)] += len(row.transcript.split())
    said = counts["dev"]
    return {name: max(1, round(counts["test"][name] / said[name])) for name in said if said[name]}


def kind(source: str) -> str:
    """The set without its voice, or the one that stands in for it."""
    name = STAND_IN.get(source, source)
    return "device phrases" if name.startswith("device phrases") else name


def best_temperature(model: Path, manifest: Path) -> tuple[float, dict[float, float]]:
    """The temperature of the least calibration error on the validation words, and all errors."""
    recognizer = Recognizer.load(model)
    layout = recognizer.layout
    words: dict[float, list[HeardWord]] = {float(t): [] for t in TEMPERATURES}
    rows = read_manifest(manifest).rows
    weight = copies(rows)
    for row in rows:
        if row.split != "dev":
            continue
        samples, rate = soundfile.read(manifest.parent / row.path, dtype="float32")
        keep = Keep()
        heard = recognizer.transcribe(Audio(samples, rate, row.path), observer=keep)
        if keep.logits is None:
            continue
        for temperature, found in words.items():
            values = keep.logits.values / np.float32(temperature)
            decoded = ctc.greedy(
                Logits(values, keep.logits.frame_shift_s, keep.logits.prompt_frames),
                blank_id=layout.blank_id,
            )
            transcript = text.transcribe(
                decoded, layout.vocabulary, audio_s=heard.audio_s, offset_s=0.0, requested_itn=False
            )
            found += compare(row, transcript).heard * weight.get(kind(row.source), 1)
    errors = {temperature: calibrate(found).ece or 0.0 for temperature, found in words.items()}
    return min(errors, key=lambda t: (errors[t], abs(t - 1))), errors


def divide_scores(path: Path, temperature: float) -> None:
    """Divide what a network's last layer gives, by its constants alone: weights and bias.

    The layer is `MatMul` and `Add`; quantised, `MatMulInteger`, `Cast`, `Mul` by scales, and `Add`.
    """
    model = onnx.load(path)
    makers = {name: node for node in model.graph.node for name in node.output}
    constants = {constant.name: constant for constant in model.graph.initializer}
    pending, scaled = [model.graph.output[0].name], []
    while pending:
        node = makers[pending.pop()]
        known = [name for name in node.input if name in constants]
        if node.op_type == "Add" and known:
            scaled += known
            pending += [name for name in node.input if name in makers]
        elif node.op_type == "MatMul" and known:
            scaled += known
        elif node.op_type == "Mul" and known:  # scale of the input times scales of the weights
            scaled += known
        elif node.op_type == "Mul":  # sums of products times scales: only the scales are ours
            pending += [n for n in node.input if makers[n].op_type == "Mul"]
        else:
            raise ValueError(f"{path}: expected a linear last layer, found {node.op_type}")
    if len(scaled) != 2:
        raise ValueError(f"{path}: expected weights and bias of the last layer, found {scaled}")
    for name in scaled:
        values = numpy_helper.to_array(constants[name])
        divided = (values / temperature).astype(values.dtype)
        constants[name].CopyFrom(numpy_helper.from_array(divided, name))
    onnx.save(model, path)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="manifest of the corpora (TSV)")
    parser.add_argument("--synthetic", type=Path, required=True, help="synthesise.py's manifest")
    parser.add_argument("--model", type=Path, required=True, help="the model folder to change")
    parser.add_argument("--out", type=Path, required=True, help="clips (0.7 GB) and the report")
    parser.add_argument("--splits", type=Path, default=SPLITS_FILE)
    parser.add_argument("--max-right-rejected", type=float, default=2, metavar="PERCENT")
    options = parser.parse_args()
    manifest = options.out / "manifest.tsv"
    if not manifest.exists():
        write_clips(options.data, options.synthetic, Splits(options.splits), options.out)
    temperature, errors = best_temperature(options.model, manifest)
    print("calibration error by temperature:", {t: round(e, 4) for t, e in errors.items()})
    print(f"scores are divided by {temperature}")
    for name in ("model_quant.onnx", "model.onnx"):
        if temperature != 1 and (options.model / name).exists():
            divide_scores(options.model / name, temperature)
    report = options.out / "report"
    subprocess.run(
        [*ASR, "evaluate", str(manifest), "--model", str(options.model), "--calibrate-on", "dev",
         "--split", "test", "--out", str(report),
         "--max-right-rejected", str(options.max_right_rejected)],
        check=True,
    )  # fmt: skip
    shutil.copy(report / "rejection.json", options.model / "rejection.json")


if __name__ == "__main__":
    main()
