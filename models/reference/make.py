#!/usr/bin/env python3
"""Make SenseVoice networks with random weights, by the public tools' own code.

FunASR's package builds the network from a SenseVoice config.yaml and exports it with its own
exporter and quantiser; the same weights are written the way sherpa-onnx's script does. So the
graphs are those that users hold, only the weights mean nothing. See README.md.
"""

import argparse
import json
import logging
import os
import shutil
import sys
from importlib import metadata
from pathlib import Path

import combinations
import graphs
import network
import numpy as np
import tiny_files
import torch
from combinations import Combination
from layout_funasr import FunasrExporter
from layout_sherpa import export as export_sherpa
from source import Source

PACKAGES = ("torch", "funasr", "onnx", "onnxruntime", "onnxscript", "sentencepiece")
#: Seed, gain and blank bias, so that both sizes answer with blanks and pieces of a clear margin.
WEIGHTS = {
    "tiny": {"seed": 0, "head_gain": 8.0, "blank_bias": 8.0},
    "full": {"seed": 0, "head_gain": 8.0, "blank_bias": 16.0},
}
#: Calls whose scores torch computes: rows of features, language row, ITN row of the prompt.
CALLS = ((1, 0, 15), (7, 4, 14), (33, 3, 15))


def main() -> int:
    """Make what the command line asks for."""
    options = parse_arguments()
    logging.disable(logging.INFO)
    options.out.mkdir(parents=True, exist_ok=True)
    work = options.work or options.out / "work"
    source = open_source(options, work)
    model = network.build(source.config, len(source.pieces), **WEIGHTS[options.size])
    if options.size == "tiny":
        write_expected(model, options.out / "expected.npz")
    funasr = None
    records = []
    for combination in choose(options):
        folder = options.out / combination.name
        note = folder / "record.json"  # full size: this one is complete, do not make it again
        if note.is_file():
            record = json.loads(note.read_text())
        else:
            if funasr is None and combination.layout == "funasr":
                funasr = FunasrExporter(model, source, work / "funasr")
            record = make(combination, model, source, funasr, folder)
            if options.size == "full":
                note.write_text(json.dumps(record) + "\n")
        records.append(record)
        print(row(record), flush=True)
    whole = {"versions": {p: metadata.version(p) for p in PACKAGES}, "networks": records}
    (options.out / "networks.json").write_text(json.dumps(whole, indent=1) + "\n")
    if not options.work:
        shutil.rmtree(work)
    return 0


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=WEIGHTS, required=True)
    parser.add_argument("--out", type=Path, required=True, help="one folder per network is made")
    parser.add_argument(
        "--source",
        type=Path,
        default=os.environ.get("ASR_SENSEVOICE_FILES"),
        help="full size: SenseVoice's config.yaml, configuration.json, am.mvn, *.bpe.model "
        "(default: $ASR_SENSEVOICE_FILES); the tiny size brings its own",
    )
    parser.add_argument("--work", type=Path, help="keep intermediate files here")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="try every combination")
    which.add_argument("--only", nargs="+", metavar="NAME", help="these, by folder name")
    return parser.parse_args()


def choose(options: argparse.Namespace) -> tuple[Combination, ...]:
    """The combinations to make."""
    if options.all:
        return combinations.ALL
    if options.only:
        names = {c.name: c for c in combinations.ALL}
        if unknown := [n for n in options.only if n not in names]:
            sys.exit(f"expected names like {combinations.ALL[0].name}, found {unknown[0]}")
        return tuple(names[n] for n in options.only)
    return combinations.REPRESENTATIVE if options.size == "tiny" else combinations.PUBLISHED


def open_source(options: argparse.Namespace, work: Path) -> Source:
    """Our own files for the tiny size, SenseVoice's for the full one."""
    if options.size == "tiny":
        tiny_files.write(work / "source")
        return Source(work / "source")
    if options.source is None or not (options.source / "config.yaml").is_file():
        sys.exit(f"expected --source with SenseVoice's config.yaml, found {options.source}")
    return Source(options.source)


def make(
    combination: Combination,
    model: torch.nn.Module,
    source: Source,
    funasr: FunasrExporter | None,
    folder: Path,
) -> dict[str, object]:
    """Export one network, compare it with torch, and say what came out."""
    shutil.rmtree(folder, ignore_errors=True)
    with graphs.exporter(combination.exporter):
        if combination.layout == "funasr":
            funasr.export(folder, head=combination.head, opset=combination.opset)
        else:
            export_sherpa(model, source, folder, opset=combination.opset)
    paths = [folder / name for name in combination.networks]
    for path in paths:
        graphs.strip_notes(path)
    fp32, int8 = (compare(path, model, combination.head) for path in paths)
    return {
        **vars(combination),
        "folder": folder.name,
        "opset_made": graphs.opset_of(paths[0]),
        "fp32_largest_error": fp32[0],
        "int8_equal_rows": int8[1],
        "files": {p.name: graphs.describe(p) for p in sorted(folder.glob("model*"))},
    }


def calls(dim: int = 560) -> list[tuple[np.ndarray, int, int]]:
    """Seeded features float32 (rows, dim), language row, ITN row."""
    random = np.random.default_rng(0)
    return [
        (random.standard_normal((rows, dim)).astype(np.float32), language, itn)
        for rows, language, itn in CALLS
    ]


def compare(path: Path, model: torch.nn.Module, head: str) -> tuple[float, float]:
    """Largest difference from torch's scores, and share of rows with the same best id."""
    errors, same = [], []
    for call in calls():
        expected = network.scores(model, *call)
        if head == "log_softmax":
            expected = torch.from_numpy(expected).log_softmax(-1).numpy()
        found = graphs.scores(path, *call)
        errors.append(float(np.abs(found - expected).max()))
        same.extend(found.argmax(-1) == expected.argmax(-1))
    return max(errors), float(np.mean(same))


def write_expected(model: torch.nn.Module, path: Path) -> None:
    """Write the logits that torch computes for the seeded features."""
    arrays = {f"logits_{i}": network.scores(model, *call) for i, call in enumerate(calls())}
    arrays["calls"] = np.array(CALLS, np.int32)
    np.savez_compressed(path, **arrays)


def row(record: dict) -> str:
    """A line of the table in README.md."""
    asked, made = record["opset"], record["opset_made"]
    sizes = " + ".join(f"{f['bytes'] / 1e6:.2f}" for f in record["files"].values())
    return (
        f"| {record['layout']} | {record['exporter']} | {record['head']} | {asked} | {made} | "
        f"{record['fp32_largest_error']:.1e} | {100 * record['int8_equal_rows']:.0f} % | {sizes} |"
    )


if __name__ == "__main__":
    sys.exit(main())
