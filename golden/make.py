"""Write golden/expected from the pinned references; never from our own code.

    python golden/make.py            write the expected dumps
    python golden/make.py --check    make them again elsewhere; exit 12 unless every byte is equal

Run in the environment of golden/requirements.txt. The files have the format of our own dumps
(ASR_DUMP), so `golden/compare.py` compares the two.
"""

import argparse
import io
import json
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from golden import float64, references, signals

ROOT = Path(__file__).resolve().parents[1]
EXPECTED = ROOT / "golden" / "expected"
FORMAT_VERSION = 1
FBANK_SHIFT_S = 0.010
LFR_SHIFT_S = 0.060
PROMPT_FRAMES = 4


def write_npz(path: Path, arrays: dict[str, Any]) -> None:
    """Write arrays as .npz with the same bytes every time: sorted names, no clock."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(arrays):
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(arrays[name]), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, buffer.getvalue())


def shrink(difference: np.ndarray) -> np.ndarray:
    """Round to 2^-20 (a millionth of a log-mel), which makes small differences compressible."""
    return (np.rint(difference * 2.0**20) / 2.0**20).astype(np.float32)


def make_features(
    case: dict[str, Any], funasr: references.FunAsr, folder: Path, stamp: dict[str, Any]
) -> str:
    """Write the front end's steps of one case; return a summary for the screen."""
    samples = signals.samples_of(case)
    steps = case.get("steps", ["fbank"])
    fbank = references.knf_fbank(samples)
    exact = float64.fbank(samples)
    funasr_fbank, lfr, cmvn = funasr.features(samples)
    if not np.array_equal(fbank, funasr_fbank):
        raise SystemExit(f"{case}: kaldi-native-fbank and funasr-onnx's front end disagree")
    every = slice(None, None, case.get("rows", 1))
    arrays = {"values": fbank[every], "float64_minus_values": shrink((exact - fbank)[every])}
    if "rows" in case:
        arrays["rows"] = np.arange(len(fbank), dtype=np.int32)[every]
        arrays["num_frames"] = len(fbank)
    write_npz(folder / "04-fbank.npz", {**arrays, "frame_shift_s": FBANK_SHIFT_S, **stamp})
    if "lfr" in steps:
        write_npz(folder / "05-lfr.npz", {"values": lfr, "frame_shift_s": LFR_SHIFT_S, **stamp})
    if "cmvn" in steps:
        write_npz(folder / "06-cmvn.npz", {"values": cmvn, "frame_shift_s": LFR_SHIFT_S, **stamp})
    apart = np.abs(exact - fbank).max(initial=0.0)
    return f"{len(fbank):5d} frames, references differ by {apart:.1e}"


def make_words(
    case: dict[str, Any],
    funasr: references.FunAsr,
    folder: Path,
    stamp: dict[str, Any],
    facts: dict[str, Any],
) -> str:
    """Write scores, decoding and text of one speech clip; return a summary for the screen."""
    samples = signals.samples_of(case)
    logits, ids, text = funasr.transcribe(samples)
    prompt = {"frame_shift_s": LFR_SHIFT_S, "prompt_frames": PROMPT_FRAMES}
    if "infer" in case["steps"]:
        write_npz(folder / "08-infer.npz", {"values": logits, **prompt, **stamp})
    decoded = float64.greedy(logits, PROMPT_FRAMES)
    write_npz(folder / "09-decode.npz", {**decoded, **prompt, **stamp})
    tags = text[: text.rindex("|>") + 2]
    report = {
        "ids": ids,
        "raw_text": text,
        "tags": tags,
        "text": text[len(tags) :].strip(),
        "words": case["words"],
        **facts,
        "samples_sha256": stamp["samples_sha256"],
        "references": json.loads(stamp["references"]),
        "format_version": FORMAT_VERSION,
    }
    path = folder / "text.json"
    path.write_text(json.dumps(report, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    right = "right" if report["text"] == case["words"] else f"said: {case['words']}"
    return f"{report['text']!r} ({right}){'' if facts['stable'] else ' NOT STABLE'}"


def make(folder: Path) -> None:
    """Write all cases below a folder."""
    cases = signals.load_cases()
    references_json = json.dumps(references.versions(), sort_keys=True)
    funasr = references.FunAsr(ROOT / cases["model"])
    model_sha256 = signals.model_digest(ROOT / cases["model"])
    for case in cases["speech"] + cases["signal"]:
        name = signals.name_of(case)
        samples = signals.samples_of(case)
        stamp = {
            "format_version": FORMAT_VERSION,
            "references": references_json,
            "samples_sha256": signals.digest(samples),
        }
        summary = make_features(case, funasr, folder / name, stamp)
        if "decode" in case.get("steps", ()):
            stable = funasr.is_stable(samples, **cases["stability"])
            facts = {"stable": stable, "model_sha256": model_sha256}
            summary += ", " + make_words(case, funasr, folder / name, stamp, facts)
        print(f"{name:24} {summary}")


def check() -> int:
    """Make everything again and compare bytes; return the exit code."""
    with tempfile.TemporaryDirectory() as scratch:
        make(Path(scratch))
        listing = [
            {p.relative_to(top).as_posix(): p.read_bytes() for p in top.rglob("*") if p.is_file()}
            for top in (EXPECTED, Path(scratch))
        ]
    committed, made = listing
    names = sorted(committed.keys() | made.keys())
    different = [name for name in names if committed.get(name) != made.get(name)]
    for name in different:
        states = {(True, True): "different bytes", (False, True): "not committed"}
        state = states.get((name in committed, name in made), "no longer made")
        print(f"golden/expected/{name}: {state}")
    total = sum(map(len, made.values()))
    print(f"{len(made)} files, {total / 1e6:.2f} MB, {len(different)} differ from golden/expected")
    return 12 if different else 0


def main() -> int:
    """Parse arguments, write or check."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if parser.parse_args().check:
        return check()
    with tempfile.TemporaryDirectory(dir=EXPECTED.parent) as scratch:
        make(Path(scratch) / "expected")
        shutil.rmtree(EXPECTED, ignore_errors=True)
        (Path(scratch) / "expected").rename(EXPECTED)
    return 0


if __name__ == "__main__":
    sys.exit(main())
