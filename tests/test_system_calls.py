"""What a transcription asks of the operating system, seen by strace."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
CLIP = HERE.parent / "golden/audio/transcribe_me.wav"
WRITING = re.compile(r"O_WRONLY|O_RDWR|O_CREAT")


def strace(command, out, **environment):
    """Run a command under strace; return its result and the calls as (name, arguments, result)."""
    clean = {k: v for k, v in os.environ.items() if k not in ("ASR_DUMP", "CI")}
    result = subprocess.run(
        ["strace", "-f", "-o", out, *command],
        capture_output=True,
        text=True,
        check=True,
        env=clean | environment,
    )
    lines = out.read_text().splitlines()
    found = (re.match(r"\d+ +(\w+)\((.*)\) += (.*)", line) for line in lines)
    return result, [m.groups() for m in found if m]


def call_in_words(name, arguments, result):
    """A call as the committed list spells it."""
    if name == "read":
        return f"read {result}"
    if name == "openat":
        what = "clip" if str(CLIP) in arguments else arguments
        return f"open {what} " + ("read-only" if not WRITING.search(arguments) else "for writing")
    if name == "newfstatat":
        return "fstat" if '""' in arguments else f"stat {arguments}"
    return name


def warm_calls(tmp_path, **environment):
    """The calls of the third transcription in one process."""
    command = [sys.executable, HERE / "system/driver.py", CLIP]
    _, calls = strace(command, tmp_path / "trace", **environment)
    marks = {a: i for i, (_, a, _) in enumerate(calls) if "/mark-" in a}
    (start,) = (i for a, i in marks.items() if "/mark-2" in a)
    (end,) = (i for a, i in marks.items() if "/mark-3" in a)
    return [call_in_words(*call) for call in calls[start + 1 : end]]


def committed_calls():
    entries = tomllib.loads((HERE / "system/warm_calls.toml").read_text())["calls"]
    assert all(entry["reason"] for entry in entries)
    return [entry["call"] for entry in entries for _ in range(entry.get("times", 1))]


def test_a_warm_transcription_makes_the_committed_calls_and_no_other(tmp_path):
    """Exactly the calls of tests/system/warm_calls.toml, in that order."""
    assert committed_calls() == warm_calls(tmp_path)


def test_a_planted_per_value_writer_is_caught(tmp_path):
    """The comparison above fails when someone writes each value of the features by itself."""
    calls = warm_calls(tmp_path, PLANT="1", PLANT_FILE=str(tmp_path / "values"))
    assert calls != committed_calls()
    assert calls.count("write") >= 80


def test_a_run_opens_nothing_for_writing(tmp_path):
    """From start to exit no file is opened for writing, made, renamed or sent anywhere."""
    command = [Path(sys.executable).parent / "asr", "transcribe", CLIP]
    strace(command, tmp_path / "first")  # byte-compiles what was never imported before
    result, calls = strace(command, tmp_path / "trace")
    opened = [a for name, a, _ in calls if name in ("open", "openat") and WRITING.search(a)]
    assert opened == []
    changing = {"creat", "mkdir", "mkdirat", "rename", "renameat2", "unlink", "unlinkat", "chmod",
                "ftruncate", "socket", "connect", "sendto"}  # fmt: skip
    assert [name for name, _, _ in calls if name in changing] == []
    written = [
        a for name, a, _ in calls if name in ("write", "writev") and a.startswith(("1,", "2,"))
    ]
    assert [result.stdout] == ["one two three four five six seven eight nine\n"]
    assert written == [r'1, "one two three four five six seve"..., 45']
    assert result.stderr == ""


def test_a_run_with_dumps_opens_dumps_only(tmp_path):
    """With ASR_DUMP set, what is opened for writing is the dump files, one write each."""
    command = [Path(sys.executable).parent / "asr", "transcribe", CLIP]
    folder = tmp_path / "dump"
    _, calls = strace(command, tmp_path / "trace", ASR_DUMP=str(folder))
    opened = [a for name, a, _ in calls if name == "openat" and WRITING.search(a)]
    stages = ["01-read", "02-resample", "04-fbank", "05-lfr", "06-cmvn", "07-bind", "08-infer",
              "09-decode", "10-text"]  # fmt: skip
    assert [re.search(r"(\d\d-\w+)\.npz", a)[1] for a in opened] == stages
    writes = [a for name, a, _ in calls if name == "write" and not a.startswith(("1,", "2,"))]
    assert len(writes) <= 8 * len(stages)
