"""Write asr/bench/workload/default.tsv: joins, hashes, seconds, and what the built-in model hears.

    .venv/bin/python benchmarks/make_workload.py

The clips are copies of golden/audio. A text is what this build of the pipeline hears today; whether
that is right is what golden/ and the column `words` are for.
"""

import csv
import hashlib
import sys
import tempfile
from pathlib import Path

from asr.bench import clips
from asr.recognizer import Recognizer

WORDS = {
    "seven-slt": "seven",
    "digits-rms": "four two eight six",
    "digits-awb": "nine eight seven six five",
    "transcribe_me": "one two three four five six seven eight nine",
}
SEVEN, RMS, AWB, COUNT = WORDS
#: id -> the clips in it, 0.4 s of silence between them.
JOINS = {
    "one-word": [SEVEN],
    "count-and-digits": [COUNT, RMS],
    "fifteen": [COUNT, AWB, RMS, COUNT, AWB, SEVEN],
    "thirty": [COUNT, AWB, RMS, COUNT, AWB, COUNT, RMS, SEVEN, COUNT, AWB, COUNT],
    "long": [COUNT, AWB, RMS, COUNT, SEVEN, COUNT] * 5,
}
GAP = " + 0.4 + "


def main() -> int:
    """Write the manifest; return the exit code."""
    recognizer = Recognizer.load(threads=1)
    network = hashlib.sha256(recognizer.layout.network.read_bytes()).hexdigest()[:16]
    rows = [["id", "file", "sha256", "seconds", "words", f"text {network}"]]
    folder = clips.DEFAULT.parent
    with tempfile.TemporaryDirectory() as work:
        for name, parts in JOINS.items():
            data = clips.joined(GAP.join(f"{p}.wav" for p in parts).split(" + "), folder)
            path = Path(work) / f"{name}.wav"
            if len(parts) == 1:
                data = (folder / f"{parts[0]}.wav").read_bytes()
            path.write_bytes(data)
            heard = recognizer.transcribe(path)
            words = " ".join(WORDS[p] for p in parts)
            print(f"{name:<18} {heard.audio_s:6.2f} s  CER "
                  f"{clips.error_rate(words, heard.text):.3f}")  # fmt: skip
            rows.append([name, GAP.join(f"{p}.wav" for p in parts),
                         hashlib.sha256(data).hexdigest(), f"{heard.audio_s:.4f}", words,
                         heard.text])  # fmt: skip
    with clips.DEFAULT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
