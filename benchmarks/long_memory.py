"""Peak memory and time of long recordings, each in a process of its own.

    python benchmarks/long_memory.py --minutes 10 120

A recording is made on disk, a golden clip about every 20 s over a noise floor, then heard. Peak
memory is the kernel's (VmHWM), the import of NumPy and ONNX Runtime included.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile

CLIP = Path(__file__).resolve().parents[1] / "golden/audio/transcribe_me.wav"
RATE = 16000
HEAR = """
import json, sys, time
from asr import Recognizer
from asr.observe import Timer
recognizer = Recognizer.load(threads=1)
recognizer.transcribe(sys.argv[2])
timer = Timer()
start = time.process_time()
found = recognizer.transcribe(sys.argv[1], vad=sys.argv[3] == "vad", observer=timer)
cpu_s = time.process_time() - start
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
stages = {}
for name, ns in timer.steps_ns:
    stages[name] = stages.get(name, 0) + ns / 1e9
print(json.dumps({
    "peak_mib": int(status["VmHWM"].split()[0]) / 1024,
    "audio_s": found.audio_s, "wall_s": found.wall_s, "cpu_s": cpu_s,
    "vad_share": stages.get("vad", 0) / found.wall_s,
    "words": sum(len(s.words) for s in found.segments),
}))
"""


def record(path: Path, minutes: float, gap_s: float) -> int:
    """Write a recording of so many minutes, a minute at a time; return the words said in it."""
    clip, _ = soundfile.read(CLIP, dtype="float32")
    rng = np.random.default_rng(0)
    floor = (rng.standard_normal(60 * RATE) * 3e-4).astype(np.float32)
    left, wait, said = int(minutes * 60 * RATE), 0, 0
    with soundfile.SoundFile(path, "w", RATE, 1, "PCM_16", format="RF64") as file:
        while left:
            block = floor[: min(left, len(floor))].copy()
            while wait + len(clip) < len(block):
                block[wait : wait + len(clip)] += clip
                said += 9
                wait += len(clip) + int(rng.uniform(0.5, 1.5) * gap_s * RATE)
            wait = max(0, wait - len(block))
            file.write(block)
            left -= len(block)
    return said


def hear(path: Path, *, vad: bool = True) -> dict[str, float]:
    """Hear a recording in a fresh process, behind a short clip that warms it up."""
    done = subprocess.run(
        [sys.executable, "-c", HEAR, path, CLIP, "vad" if vad else "all"],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def main() -> None:
    """Print a line per recording."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, nargs="+", default=[10, 120])
    parser.add_argument("--gap-s", type=float, default=20, help="mean pause between two clips")
    parser.add_argument("--no-vad", action="store_true")
    options = parser.parse_args()
    print("minutes  peak MiB  RTF wall  RTF CPU  CPU s per hour  vad share  words heard / said")
    for minutes in options.minutes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "long.wav")
            said = record(path, minutes, options.gap_s)
            found = hear(path, vad=not options.no_vad)
        rtf = found["cpu_s"] / found["audio_s"]
        print(
            f"{minutes:7g}{found['peak_mib']:10.1f}{found['wall_s'] / found['audio_s']:10.4f}"
            f"{rtf:9.4f}{3600 * rtf:16.1f}{100 * found['vad_share']:9.0f} %"
            f"{found['words']:7g} / {said}",
            flush=True,
        )


if __name__ == "__main__":
    main()
