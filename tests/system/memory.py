"""Transcribe clips of random length in one process and print its memory as it goes, as JSON.

    python tests/system/memory.py CLIP [CLIPS]

Lengths are seeded, 0.05 to 12 s, as in a day of commands and dictation; memory is what the kernel
counts as resident (VmRSS), in kB, after every 50 clips.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np

from asr import Recognizer, audio


def resident_kb() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def main() -> None:
    samples = audio.read(sys.argv[1]).samples
    clips = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    longest = samples
    while len(longest) < 12 * 16000:
        longest = np.concatenate([longest, samples])
    recognizer = Recognizer.load(threads=1)
    dice = random.Random(2000)
    found = []
    for count in range(1, clips + 1):
        length = int(16000 * 0.05 * (12 / 0.05) ** dice.random())
        if count == 1:
            length = 12 * 16000  # the longest belongs to the warm-up
        recognizer.transcribe(longest[:length], sample_rate=16000)
        if count % 50 == 0:
            found.append(resident_kb())
    print(json.dumps(found))


main()
