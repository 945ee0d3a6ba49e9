"""What can happen to a long run: signals at any moment, full disks, odd names, no network."""

import ctypes
import errno
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from conftest import ROOT

import asr
from asr.cli import signals

TRACED = {str(ROOT / "asr/cli" / name) for name in ("outputs.py", "batch.py", "tell.py")}
ENDS = {signal.SIGINT: 130, signal.SIGTERM: 143}


def tree(folder):
    """Files below a folder and their content, hidden ones too; JSON without its wall time."""
    return {
        p.relative_to(folder): re.sub(rb'"wall_s": [\d.e-]+', b"", p.read_bytes())
        for p in folder.rglob("*")
        if p.is_file()
    }


@pytest.fixture
def words(tmp_path, short_clip):
    """A folder of five short clips."""
    folder = tmp_path / "words"
    folder.mkdir()
    for n in range(5):
        (folder / f"{n}.wav").symlink_to(short_clip)
    return folder


# Signals.


class Lines:
    """Counts lines that run in the files that write and tell, and acts before one of them."""

    def __init__(self, at, act):
        self.count, self.at, self.act, self.lock = 0, at, act, threading.Lock()

    def __call__(self, frame, event, _):
        if event == "call":
            return self if frame.f_code.co_filename in TRACED else None
        if event == "line":
            with self.lock:
                self.count += 1
                now = self.count == self.at
            if now:
                self.act()
        return self


@pytest.fixture
def run_and_act(cli):
    """Run a command, and act before the n-th line of the files that write and tell."""

    def run(at, act, *arguments):
        lines = Lines(at, act)
        previous = sys.gettrace()
        threading.settrace(lines)
        sys.settrace(lines)
        try:
            return cli(*arguments), lines.count
        finally:
            sys.settrace(previous)
            threading.settrace(None)

    return run


@pytest.mark.parametrize("jobs", [1, 4])
@pytest.mark.parametrize("number", ENDS, ids=lambda n: n.name)
def test_a_signal_at_any_moment_leaves_whole_files_only(run_and_act, words, tmp_path, jobs, number):
    """Seeded moments between two lines of our code: the exit code, no trace, no part of a file.

    And --skip-existing does the rest: both runs together leave what one undisturbed run does.
    """
    command = ["transcribe", words, "--format", "txt,json", "-q", "--jobs", jobs]
    clean, count = run_and_act(-1, None, *command, "-o", tmp_path / "clean")
    assert (clean.code, count > 200) == (0, True)
    expected = tree(tmp_path / "clean")
    dice = random.Random(f"{jobs} {number}")
    codes = set()
    for moment in sorted(dice.sample(range(1, count), 5)):
        out = tmp_path / f"out{moment}"
        done, _ = run_and_act(moment, lambda: os.kill(os.getpid(), number), *command, "-o", out)
        codes.add(done.code)
        assert done.code in (0, ENDS[number]), (moment, done)
        assert (done.out, done.err) == ("", ""), moment
        assert all(expected[name] == content for name, content in tree(out).items()), moment
        assert run_and_act(-1, None, *command, "-o", out, "--skip-existing")[0].code == 0
        assert expected == tree(out), moment
    assert ENDS[number] in codes


def kill_once_begun(folder, words, jobs, number, delay_s):
    """Start the program, wait until it has made its folder, wait more, send a signal."""
    program = Path(sys.executable).parent / "asr"
    command = [program, "transcribe", words, "-o", folder, "-q", "--jobs", jobs, "--repeat", "3"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not folder.exists() and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(delay_s)
        process.send_signal(number)
        _, err = process.communicate(timeout=30)
    return process.returncode, err


@pytest.mark.parametrize("number", ENDS, ids=lambda n: n.name)
def test_a_signal_while_libraries_load_is_no_bug_of_ours(words, tmp_path, number):
    """NumPy and ONNX Runtime turn an interrupted import into an ImportError; nobody sees that."""
    found = kill_once_begun(tmp_path / "out", words, "1", number, 0.0)
    assert found == (ENDS[number], "")
    assert tree(tmp_path / "out") == {}


@pytest.mark.system
@pytest.mark.parametrize("jobs", ["1", "4"])
def test_a_process_ends_cleanly_at_many_moments(words, tmp_path, jobs, short_clip, recognizer):
    """25 seeded moments from the first folder to the end, by both signals."""
    text = recognizer.transcribe(short_clip).text + "\n"
    dice = random.Random(jobs)
    codes = []
    for n in range(25):
        number = dice.choice(list(ENDS))
        code, err = kill_once_begun(tmp_path / f"{n}", words, jobs, number, dice.uniform(0, 2))
        codes.append(code)
        assert (code in (0, ENDS[number]), err) == (True, "")
        written = tree(tmp_path / f"{n}")
        assert set(map(str, written)) <= {f"{k}.txt" for k in range(5)}
        assert set(written.values()) <= {text.encode()}
    print(f"jobs {jobs}: exit codes {sorted(codes)}")


@pytest.mark.parametrize("number", ENDS, ids=lambda n: n.name)
def test_the_program_leaves_at_once_while_it_loads(monkeypatch, number):
    """Not so a program that only calls main(): its process is not ours to end."""
    left = []

    def leave(code):
        left.append(code)
        raise SystemExit(code)

    monkeypatch.setattr(signals.os, "_exit", leave)
    for is_program, expected in ((True, SystemExit), (False, KeyboardInterrupt)):
        monkeypatch.setattr(signals, "is_program", is_program)
        with pytest.raises(expected), signals.heeded(), signals.at_once():  # noqa: PT012
            os.kill(os.getpid(), number)
            time.sleep(5)
    assert left == [ENDS[number]]


def test_what_fails_after_a_signal_failed_because_of_it(cli, words, tmp_path, monkeypatch):
    """An import that was interrupted while a file is heard is not told as an error of that file."""

    def interrupted(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        except KeyboardInterrupt:
            raise ImportError("initialization failed") from None

    monkeypatch.setattr(asr.Recognizer, "transcribe", interrupted)
    assert cli("transcribe", words, "-o", tmp_path / "out") == (143, "", "")


def test_handlers_of_the_calling_program_are_left_alone(cli, clip):
    """Who calls main() from a program with its own handlers keeps them, during and after."""
    seen = []
    mine = lambda *_: None  # noqa: E731
    previous = signal.signal(signal.SIGTERM, mine)
    try:
        assert cli("transcribe", clip).code == 0
        seen.append(signal.getsignal(signal.SIGTERM))
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert cli("transcribe", clip).code == 0
    assert [mine, signal.SIG_DFL] == [*seen, signal.getsignal(signal.SIGTERM)]


# Disks.


def limit_files():
    """No file of this process may grow beyond 300 bytes: what a quota does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))


def bind_to_permissions():
    """As root: may still read everything, but write only where permissions say so."""
    if os.geteuid() == 0:
        cap_dac_override, pr_capbset_drop = 1, 24
        if ctypes.CDLL(None).prctl(pr_capbset_drop, cap_dac_override, 0, 0, 0):
            raise OSError("cannot give up a capability")


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_a_file_that_cannot_grow_is_exit_5_and_no_half_file(asr_process, words, tmp_path, jobs):
    """The system's own refusal in the middle of a write: JSON is too long for it, text is not."""
    out = tmp_path / "out"
    done = asr_process(
        "transcribe", words, "-o", out, "--format", "txt,json", "-q", "--jobs", jobs,
        preexec_fn=limit_files,
    )  # fmt: skip
    assert done.code == 5
    lines = done.err.splitlines()
    assert f"asr: {out}/0.json: cannot write the file: {os.strerror(errno.EFBIG)}" in lines
    assert {p.suffix for p in tree(out)} <= {".txt"}
    assert all(content.endswith(b"\n") for content in tree(out).values())


@pytest.mark.parametrize("made", [True, False], ids=["the folder", "its parent"])
def test_a_read_only_folder_is_exit_5(asr_process, words, tmp_path, made):
    """Permissions, as a user without special rights meets them: one line, before any work."""
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    out = folder if made else folder / "new"
    try:
        done = asr_process("transcribe", words, "-o", out, preexec_fn=bind_to_permissions)
    finally:
        folder.chmod(0o755)
    assert (done.code, done.out, tree(folder)) == (5, "", {})
    assert re.fullmatch(rf"asr: {out}: cannot write into the folder: .*ermission.*\n", done.err)


# Names.

NAMES = {
    "newline": "a\nb.wav",
    "tab": "a\tb.wav",
    "leading dash": "-rf.wav",
    "option": "--json.wav",
    "no UTF-8": os.fsdecode(b"caf\xe9\xff.wav"),
    "emoji": "😀👨‍👩‍👧.wav",
    "combining": "e\u0301\u0323.wav",
    "right to left": "\u202eevil.wav",
    "pattern": "[a]*?.wav",
    "quotes": "a'b\"c$d`e\\f.wav",
    "blanks": "  .wav",
    "long": "n" * 251 + ".wav",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_is_a_name(cli, short_clip, recognizer, tmp_path, monkeypatch, name):
    """Odd names are read, written and told like any other: on stdout, in JSON, in a folder."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / name).symlink_to(short_clip)
    monkeypatch.chdir(folder)
    text = recognizer.transcribe(short_clip).text + "\n"
    assert cli("transcribe", f"./{name}" if name.startswith("-") else name) == (0, text, "")
    done = cli("transcribe", folder / name, "--json")
    (line,) = done.out.splitlines()
    assert (done.code, done.err, json.loads(line)["text"]) == (0, "", text.strip())
    assert cli("transcribe", folder, "-o", tmp_path / "out", "-q") == (0, "", "")
    found = [(path.name, content.decode()) for path, content in tree(tmp_path / "out").items()]
    assert found == [(Path(name).with_suffix(".txt").name, text)]
    (folder / name).unlink()
    (folder / name).write_bytes(b"no sound")
    done = cli("transcribe", folder / name)
    assert (done.code, len(done.err.splitlines())) == (3, 1)


# Network.


def test_no_command_touches_the_network(asr_process, clip, tmp_path):
    """No socket is made, no name looked up: by transcribe, inspect, evaluate, models list and path.

    Python's own audit events; test_system_calls.py sees the same of the libraries, by strace.
    """
    (tmp_path / "clips.tsv").write_text(f"path\ttranscript\n{clip}\tone two\n")
    program = (
        "import sys\n"
        "def hook(event, _):\n"
        "    if event.startswith('socket.') or event.startswith('urllib.'):\n"
        "        sys.stderr.write(f'network: {event}\\n')\n"
        "sys.addaudithook(hook)\n"
        "from asr.cli import main\n"
        "sys.exit(main())"
    )
    for arguments in (
        ["transcribe", clip],
        ["inspect", "tiny-en"],
        ["evaluate", tmp_path / "clips.tsv"],
        ["models", "list"],
        ["models", "path", "tiny-en"],
    ):
        done = asr_process(*arguments, program=program)
        assert done.code == 0, done
        assert "network:" not in done.err
    planted = program.replace("from asr.cli", "import socket; socket.socket(); from asr.cli")
    assert "network: socket.__new__" in asr_process("models", "list", program=planted).err
