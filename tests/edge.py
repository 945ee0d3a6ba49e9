"""What the tests of asr-edge share: running it, and comparing what it says with Python."""

import json
import os
import struct
import subprocess
import wave
from pathlib import Path

import numpy as np
import pytest

from asr.bench.hosts import runtime_library
from asr.formats import to_json

ROOT = Path(__file__).resolve().parents[1]
EDGE = ROOT / "deploy/edge"
PROGRAM = ROOT / "target/release/asr-edge"
CLIP = ROOT / "golden/audio/transcribe_me.wav"
WORDS = "one two three four five six seven eight nine"
#: Confidence, entropy, times: Python and Rust add up in different orders.
CLOSE = 1e-5


def environment(folder, **more):
    ours = ("ASR_DUMP", "ASR_BUNDLE", "ORT_DISABLE_TELEMETRY")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "ORT_DYLIB_PATH": str(runtime_library()), "ASR_BUNDLE": str(folder), **more}


def edge(folder, *arguments, stdin=b"", **more):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin, capture_output=True, env=environment(folder, **more), check=False,
    )  # fmt: skip


def heard(folder, *arguments, **more):
    done = edge(folder, "--json", "--threads", 1, *arguments, **more)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def python(recognizer, path, **asked):
    return json.loads(to_json(recognizer.transcribe(path, **asked), str(path)))


def assert_same(ours, theirs, place=""):
    """The same members in the same order, text to the letter, numbers to 1e-5."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), place
        for name in theirs:
            if name != "wall_s":
                assert_same(ours[name], theirs[name], f"{place}.{name}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), place
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{place}[{number}]")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=CLOSE), place
    else:
        assert ours == theirs, place


def write_wav(path, samples, rate=16000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(np.asarray(samples).astype("<i2").tobytes())
    return path


def write_float(path, samples, rate=16000):
    """Signals of the golden cases are float32; a WAV file can hold them as they are."""
    data = samples.astype("<f4").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16,
                       3, 1, rate, 4 * rate, 4, 32, b"data", len(data))  # fmt: skip
    path.write_bytes(head + data)
    return path


def samples_of(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")
