"""Measure how long a fresh process takes to say a clip, against the least it could take.

    .venv/bin/python benchmarks/cold_start.py [--pairs 21] [--json FILE]

Wall time of `asr transcribe CLIP` (a 3 s clip, the built-in model) over wall time of `python -c
"import numpy, onnxruntime"`, and of `asr --help` over `python -c "import argparse"`, in
interleaved pairs of one interpreter. ONNX Runtime's telemetry is off on both sides: ours never
starts it, and with it the base would look slower than it is. Exit code 11 when an upper 95 %
bound exceeds its limit.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from asr.bench import machine
from asr.bench.measure import Command, abba
from asr.bench.report import table

ROOT = Path(__file__).resolve().parents[1]
QUIET = {"ORT_DISABLE_TELEMETRY": "1"}
CLIP = ROOT / "golden" / "audio" / "transcribe_me.wav"


def main() -> int:
    """Measure both pairs, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--clip", type=Path, default=CLIP)
    parser.add_argument("--asr", type=Path, default=Path(sys.executable).parent / "asr")
    parser.add_argument("--max-transcribe", type=float, default=1.8, metavar="X")
    parser.add_argument("--max-help", type=float, default=1.5, metavar="X")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every time of every pair")
    options = parser.parse_args()

    python, asr = sys.executable, str(options.asr)
    races = [
        (
            "asr transcribe",
            (asr, "transcribe", str(options.clip)),
            (python, "-c", "import numpy, onnxruntime"),
            options.max_transcribe,
        ),
        ("asr --help", (asr, "--help"), (python, "-c", "import argparse"), options.max_help),
    ]
    record = {"machine": machine.fields(), "unit": "wall ms", "races": {}}
    print("{cpu}, {cores} cores, Python {python}".format(**record["machine"]))
    rows = [["command", "ms", "least", "ms", "ratio", "95 % interval", "limit", ""]]
    over = False
    for name, command, base, limit in races:
        race = abba(Command(base, QUIET), Command(command, QUIET), options.pairs, warm_up=1)
        ratio = race.ratio("wall_ns")
        least, ours = ([s.wall_ns / 1e6 for s in side] for side in (race.a, race.b))
        over = over or ratio.high > limit
        rows.append(
            [
                name,
                f"{np.median(ours):.1f}",
                base[-1],
                f"{np.median(least):.1f}",
                f"{ratio.median:.2f}",
                f"{ratio.low:.2f} - {ratio.high:.2f}",
                f"{limit:g}",
                "TOO SLOW" if ratio.high > limit else "ok",
            ]
        )
        record["races"][name] = {
            "times": ours,
            "least": least,
            "ratio": [ratio.median, ratio.low, ratio.high],
        }
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 11 if over else 0


if __name__ == "__main__":
    sys.exit(main())
