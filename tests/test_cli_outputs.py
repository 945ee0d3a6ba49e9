"""asr transcribe: many files in, output files whole or absent, nothing overwritten, in order."""

import errno
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import fakes
import pytest
from conftest import COMMAND, ROOT

import asr
from asr.cli import batch, inputs, outputs
from asr.errors import AudioError

ALL = ("txt", "json", "srt", "vtt", "tsv", "lrc")
VALIDATOR = fakes.schema_validator()


@pytest.fixture(scope="module")
def texts(recognizer, clip, short_clip):
    return [recognizer.transcribe(c).text for c in (clip, short_clip)]


@pytest.fixture
def calls(tmp_path, clip, short_clip, monkeypatch):
    """A folder of calls, also the working folder: a, b, sub/a, sub/c, and what is no sound."""
    folder = tmp_path / "calls"
    for name, source in {
        "b.wav": clip, "a.wav": short_clip, "sub/c.WAV": clip, "sub/a.wav": clip,
        ".hidden.wav": clip, ".git/x.wav": clip,
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(source.read_bytes())
    (folder / "notes.txt").write_text("no sound")
    monkeypatch.chdir(tmp_path)
    return Path("calls")


@pytest.fixture
def heard(monkeypatch):
    """Names of the files that the network heard, as they began; ``on`` acts before one."""
    names, on = [], {}
    original, lock = asr.Recognizer.transcribe, threading.Lock()

    def transcribe(self, source, **options):
        with lock:
            names.append(Path(source).name)
        on.get(Path(source).name, lambda: None)()
        return original(self, source, **options)

    monkeypatch.setattr(asr.Recognizer, "transcribe", transcribe)
    return types.SimpleNamespace(names=names, on=on)


def tree(folder):
    """Files below a folder and their content."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def without_times(written):
    return {n: re.sub(rb'"wall_s": [\d.e-]+', b"", c) for n, c in written.items()}


def raise_(error):
    raise error


# Which files.


def test_a_folder_is_searched_with_all_below(cli, calls, texts):
    """Sound files by name, sorted, hidden ones left out; each line says whose text it is."""
    found = cli("transcribe", calls)
    names = ["calls/a.wav", "calls/b.wav", "calls/sub/a.wav", "calls/sub/c.WAV"]
    expected = [texts[1], texts[0], texts[0], texts[0]]
    assert found == (0, "".join(f"{n}\t{t}\n" for n, t in zip(names, expected, strict=True)), "")


def test_patterns_that_no_shell_expanded(cli, calls, texts):
    """`*`, `?`, `[...]` and `**`, sorted; a file whose name looks like a pattern is that file."""
    assert cli("transcribe", "calls/?.wav").out.count("\n") == 2
    assert cli("transcribe", "calls/**/a.wav").out == (
        f"calls/a.wav\t{texts[1]}\ncalls/sub/a.wav\t{texts[0]}\n"
    )
    (calls / "a.wav").rename("x[1].wav")
    assert cli("transcribe", "x[1].wav") == (0, texts[1] + "\n", "")


def test_one_file_of_a_folder_is_named_like_several(cli, calls, texts):
    """The shape of the output does not depend on how many files a folder holds today."""
    assert cli("transcribe", "calls/b*").out == f"calls/b.wav\t{texts[0]}\n"


def test_what_matches_nothing_is_exit_3_and_stops_nothing(cli, calls, texts):
    """An empty folder and an idle pattern are failures of their own."""
    Path("empty").mkdir()
    done = cli("transcribe", "empty", "no*.wav", calls / "b.wav")
    assert (done.code, done.out) == (3, f"calls/b.wav\t{texts[0]}\n")
    first, second, *summary = done.err.splitlines()
    assert "found a folder without any" in first
    assert "no*.wav: expected a pattern" in second
    assert summary == ["asr: 2 of 3 files failed:", *(f"asr:   {m[5:]}" for m in (first, second))]


def test_an_empty_name_is_no_folder(cli, calls, heard):
    """An unset variable in a script does not transcribe the folder one is in."""
    done = cli("transcribe", "", "-o", "out/")
    assert (done.code, heard.names) == (3, [])
    assert done.err == "asr: '': expected the name of a sound file, found nothing\n"


def test_a_folder_that_cannot_be_searched_is_told(tmp_path, monkeypatch):
    """A part of the tree that the system hides is a failure, not a smaller result."""

    def walk(top, onerror):
        onerror(PermissionError(13, "Permission denied", f"{top}/secret"))
        yield str(top), [], ["a.wav"]

    monkeypatch.setattr(inputs.os, "walk", walk)
    found, many = inputs.expand([str(tmp_path)])
    assert many
    assert [i.path.name for i in found] == ["a.wav", "secret"]
    assert found[1].error.exit_code == 5
    assert "Permission denied" in str(found[1].error)


# Output files.


def test_every_format_of_every_file(cli, calls, texts):
    """A folder of outputs mirrors the folder of inputs; each format is a file; stdout is empty."""
    done = cli("transcribe", calls, "-o", "out", "--format", ",".join(ALL))
    assert (done.code, done.out) == (0, "")
    assert set(tree(Path("out"))) == {
        f"{n}.{f}" for n in ("a", "b", "sub/a", "sub/c") for f in ALL
    }  # fmt: skip
    assert Path("out/b.txt").read_text() == texts[0] + "\n"
    line = json.loads(Path("out/b.json").read_text())
    VALIDATOR.validate(line)
    assert line["source"] == "calls/b.wav"
    assert Path("out/b.srt").read_text().endswith("six seven eight nine\n")
    assert Path("out/b.vtt").read_text().startswith("WEBVTT\n\n00:00:00.0")


def test_a_log_has_a_plain_line_per_file(cli, calls):
    """Without a terminal: no bar, no carriage return, one line when a file is through."""
    done = cli("transcribe", calls, "-o", "out", "--format", "txt,srt")
    assert done.err.splitlines()[0] == "asr: 1/4 calls/a.wav: out/a.txt, out/a.srt"
    assert (len(done.err.splitlines()), "\r" in done.err) == (4, False)
    assert cli("transcribe", calls, "-o", "out", "-q").err == ""


@pytest.mark.parametrize(("name", "start"), [
    ("x.srt", "1\n00:"), ("x.vtt", "WEBVTT"), ("x.json", '{"schema"'), ("x", "one two"),
    ("x.text", "one two"),
])  # fmt: skip
def test_one_file_goes_to_one_file(cli, clip, tmp_path, name, start):
    """-o FILE for one input; its extension names the format where no --format does."""
    assert cli("transcribe", clip, "-o", tmp_path / name) == (0, "", "")
    assert (tmp_path / name).read_text().startswith(start)


def test_a_folder_for_one_file(cli, clip, tmp_path):
    """A folder that exists, a name that ends with a slash, or several formats: NAME.EXT inside."""
    assert cli("transcribe", clip, "-o", tmp_path).code == 0
    assert cli("transcribe", clip, "-o", f"{tmp_path}/new/", "--format", "srt").code == 0
    assert cli("transcribe", clip, "-o", tmp_path / "two", "--format", "srt,tsv").code == 0
    stem = clip.stem
    assert {f"{stem}.txt", f"new/{stem}.srt", f"two/{stem}.srt", f"two/{stem}.tsv"} == set(
        tree(tmp_path)
    )


@pytest.mark.parametrize("name", ALL)
def test_a_format_on_stdout_is_what_the_file_would_be(cli, clip, tmp_path, name):
    """Without -o the single format of a single file goes to stdout; `-o -` says so too."""
    cli("transcribe", clip, "--format", name, "-o", tmp_path / "x")
    done = cli("transcribe", clip, "--format", name, "-o", "-")
    assert (done.code, done.err) == (0, "")
    assert without_times({"": done.out.encode()}) == without_times({"": tree(tmp_path)["x"]})


def test_several_files_as_lines_of_json(cli, calls):
    """--format json on stdout is JSON Lines, like --json."""
    a, b = (cli("transcribe", calls, o) for o in ("--json", "--format=json"))
    assert (a.code, b.code) == (0, 0)
    assert without_times({"": a.out.encode()}) == without_times({"": b.out.encode()})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--format", "srt,vtt"], "several formats"),
        (["--format", "doc"], "expected some of"),
        (["--format", ""], "expected some of"),
        (["--format", "srt", "--json"], "not allowed"),
        (["--json", "-o", "out"], "--json prints to stdout"),
        (["--skip-existing"], "expected -o"),
        (["--words"], "expected --format tsv"),
        (["--rich", "emoji", "--json"], "expected --format txt"),
        (["--rich", "colour"], "invalid choice"),
        (["--jobs", "0"], "whole number"),
        (["--jobs", "2", "--timings"], "expected --jobs 1"),
        (["--split-channels", "--channel", "1"], "not allowed"),
        (["--split-channels", "--timings"], "expected no --split-channels"),
        (["--split-channels", "--rich", "emoji"], "expected no --split-channels"),
        (["--language", "en", "--languages", "en"], "not allowed"),
        (["--languages", "zh,zn"], "unknown language 'zn': expected one of auto, zh, en"),
        (["--languages", "auto"], "'auto' is no language: expected some of zh, en"),
        (["--languages", ""], "unknown language ''"),
        (["--itn", "--punct-only"], "not allowed"),
        (["calls/b.wav", "--format", "srt"], "expected -o DIR for several files"),
        (["calls/b.wav", "-o", "calls/notes.txt"], "expected a folder"),
        (["calls/b.wav", "-o", "all.srt"], "expected a folder"),
        (["--format", "srt,vtt", "-o", "all.srt"], "expected a folder"),
        (["calls/sub/a.wav", "-o", "out"], "would be the output of both calls/a.wav and calls/sub"),
        (["-o", "calls/a.wav"], "would overwrite the input"),
        (["-o", "link.wav"], "would overwrite the input"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_any_work(cli, calls, heard, arguments, said):
    """Exit 2, nothing heard, nothing written: no option is ignored, no file overwritten."""
    Path("link.wav").symlink_to("calls/a.wav")
    before = tree(Path())
    done = cli("transcribe", "calls/a.wav", *arguments)
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert (heard.names, tree(Path())) == ([], before)


def test_the_same_file_twice_is_one_output(cli, calls, heard):
    """A file named beside its folder is no quarrel between two inputs."""
    assert cli("transcribe", calls, "calls/a.wav", "./calls/b.wav", "-o", "out").code == 0
    assert heard.names == ["a.wav", "b.wav", "a.wav", "c.WAV"]


def test_two_sounds_of_one_name_are_refused(cli, calls, heard):
    """calls/a.wav and calls/a.flac would both be a.txt: exit 2 names both and the file."""
    (calls / "a.flac").write_bytes(b"")
    done = cli("transcribe", calls, "-o", "out")
    assert done.code == 2
    assert all(n in done.err for n in ("out/a.txt", "calls/a.wav", "calls/a.flac"))
    assert not Path("out").exists()


def test_an_output_is_readable_by_others_and_follows_links(cli, clip, tmp_path):
    """The file's mode is the umask's, not a temporary file's; a link stays a link."""
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "x.txt").symlink_to("real.txt")
    assert cli("transcribe", clip, "-o", tmp_path / "x.txt").code == 0
    assert (tmp_path / "x.txt").is_symlink()
    umask = os.umask(0)
    os.umask(umask)
    mode = stat.S_IMODE((tmp_path / "real.txt").stat().st_mode)
    assert mode == 0o666 & ~umask
    assert (tmp_path / "real.txt").read_text().startswith("one two")


def test_a_name_that_is_no_utf8_has_outputs_too(cli, clip, tmp_path):
    """Raw bytes in a name go into the output's name as they are."""
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    path.write_bytes(clip.read_bytes())
    assert cli("transcribe", path, "-o", tmp_path / "out", "--format", "srt,json").code == 0
    assert sorted(os.listdir(os.fsencode(tmp_path / "out"))) == [b"caf\xe9.json", b"caf\xe9.srt"]  # noqa: PTH208


def test_timings_go_into_json_files(cli, clip, tmp_path):
    """With --timings the JSON file has them and the table is on stderr, as without -o."""
    done = cli("transcribe", clip, "-o", tmp_path / "x.json", "--timings", "--repeat", "2")
    assert "unaccounted" in done.err
    line = json.loads((tmp_path / "x.json").read_text())
    VALIDATOR.validate(line)
    assert line["timings"]["rtf"]["rtf_warm"]["value"] > 0


def test_rich_text_and_words(cli, clip, tmp_path, texts):
    """--rich changes txt alone, --words tsv alone."""
    tags = cli("transcribe", clip, "--rich", "tags").out
    assert re.fullmatch(r"(<\|\w+\|>)+" + texts[0] + "\n", tags)
    assert cli("transcribe", clip, "--rich", "emoji").out == texts[0] + "\n"
    done = cli("transcribe", clip, "--format", "tsv", "--words")
    assert [row.split("\t")[2] for row in done.out.splitlines()[1:]] == texts[0].split()


# Failures.


def test_one_bad_file_never_stops_the_rest(cli, calls):
    """Every good file has its output; the failures are listed again at the end."""
    (calls / "b.wav").write_bytes(b"no sound")
    (calls / "loop.wav").symlink_to("loop.wav")
    for jobs in (1, 3):
        done = cli("transcribe", calls, "-o", f"out{jobs}", "-q", "--jobs", jobs)
        assert done.code == 3
        assert set(tree(Path(f"out{jobs}"))) == {"a.txt", "sub/a.txt", "sub/c.txt"}
        lines = done.err.splitlines()
        assert lines[2] == "asr: 2 of 5 files failed:"
        assert [line.replace("asr:   ", "asr: ") for line in lines[3:]] == lines[:2]


def test_our_bug_with_one_file_stops_no_other(cli, calls, heard):
    """An exception that nobody planned is exit 70 and a line; the other files are transcribed."""
    heard.on["b.wav"] = lambda: raise_(ZeroDivisionError("planted"))
    done = cli("transcribe", calls, "-o", "out")
    assert done.code == 70
    assert set(tree(Path("out"))) == {"a.txt", "sub/a.txt", "sub/c.txt"}
    assert "internal error, please report it: ZeroDivisionError: planted" in done.err
    assert done.err.splitlines()[-1] == "asr:   planted"


def test_the_summary_of_many_failures_is_short(capsys):
    """Fifty are listed, the rest are counted."""
    jobs = [outputs.Job(Path(f"{n}.wav"), failure=f"{n}.wav: bad") for n in range(60)]
    batch.summary(jobs, 60)
    lines = capsys.readouterr().err.splitlines()
    assert (lines[0], lines[-1]) == ("asr: 60 of 60 files failed:", "asr:   and 10 more")
    assert len(lines) == 52


@pytest.mark.parametrize("target", ["calls/notes.txt/out/", "nowhere/x.txt"])
def test_a_place_that_cannot_be_written_is_exit_5_before_any_work(cli, calls, heard, target):
    """One line with the path; no model is loaded for nothing."""
    done = cli("transcribe", "calls/a.wav", "-o", target)
    assert (done.code, done.out, heard.names) == (5, "", [])
    assert re.fullmatch(r"asr: \S+: cannot write into the folder: .*\n", done.err)


def test_a_folder_without_permission_is_exit_5_before_any_work(cli, clip, tmp_path, monkeypatch):
    """What the system would refuse at the end is refused at the beginning."""
    monkeypatch.setattr(outputs.os, "access", lambda *_: False)
    done = cli("transcribe", clip, "-o", tmp_path / "x.txt")
    assert (done.code, tree(tmp_path)) == (5, {})
    assert done.err == f"asr: {tmp_path}: cannot write into the folder: no permission\n"


def test_a_file_that_cannot_be_written_leaves_the_old_one(cli, calls, monkeypatch):
    """Exit 5, one line, the name kept by its old content, no part of a file left, others done."""
    Path("out").mkdir()
    Path("out/b.txt").write_text("old")
    original = os.replace

    def replace(part, place):
        if place.endswith("/b.txt"):
            raise OSError(errno.EIO, "Input/output error")
        original(part, place)

    monkeypatch.setattr(os, "replace", replace)
    done = cli("transcribe", calls, "-o", "out", "-q")
    assert done.code == 5
    assert done.err.splitlines()[0] == "asr: out/b.txt: cannot write the file: Input/output error"
    assert set(tree(Path("out"))) == {"a.txt", "b.txt", "sub/a.txt", "sub/c.txt"}
    assert Path("out/b.txt").read_text() == "old"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_ends_the_run_and_keeps_what_is_done(cli, calls, heard, monkeypatch, jobs):
    """Nothing more can be written: stop, exit 5; what was written stays whole."""
    original = os.replace

    def replace(part, place):
        if not place.endswith("/a.txt"):
            raise OSError(errno.ENOSPC, "No space left on device")
        original(part, place)

    monkeypatch.setattr(os, "replace", replace)
    done = cli("transcribe", calls, "-o", "out", "-q", "--jobs", jobs)
    assert done.code == 5
    assert done.err.count("cannot write the file: No space left on device") == 2  # told, summed up
    assert "stopped after 2 of 4 files" in done.err
    assert set(tree(Path("out"))) <= {"a.txt", "sub/a.txt"}
    if jobs == 1:
        assert heard.names == ["a.wav", "b.wav"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_a_device_is_written_to_and_never_replaced(cli, clip):
    """-o /dev/full is a full disk, not a file of that name; /dev/null takes everything."""
    done = cli("transcribe", clip, "-o", "/dev/full")
    assert done.code == 5
    assert done.err == "asr: /dev/full: cannot write the file: No space left on device\n"
    assert cli("transcribe", clip, "-o", "/dev/null") == (0, "", "")
    assert all(stat.S_ISCHR(os.stat(f"/dev/{n}").st_mode) for n in ("full", "null"))  # noqa: PTH116


# Some at a time.


def test_results_do_not_depend_on_jobs(cli, calls, heard):
    """Text, order and files are the same one by one and three at a time, slow first file or not."""
    alone = cli("transcribe", calls, "--jobs", 1)
    heard.on["a.wav"] = lambda: time.sleep(0.1)
    assert cli("transcribe", calls, "--jobs", 3) == alone
    for jobs in (1, 3):
        cli("transcribe", calls, "-o", f"out{jobs}", "--format", ",".join(ALL), "--jobs", jobs)
    assert without_times(tree(Path("out1"))) == without_times(tree(Path("out3")))


def test_notes_and_errors_stay_with_their_file(cli, calls):
    """Also with jobs, what is told on stderr comes in the order of the inputs."""
    (calls / "b.wav").write_bytes(b"no sound")
    alone = cli("transcribe", calls, "calls/*.wav")
    assert alone.code == 3
    assert cli("transcribe", calls, "calls/*.wav", "--jobs", 4) == alone


def test_jobs_wait_in_a_queue_of_bounded_length():
    """However slow the first of many files is, not all others are heard before it is told."""
    jobs = [outputs.Job(Path(f"{n}")) for n in range(200)]
    begun, free = [], threading.Event()

    def hear(job, _observer):
        begun.append(job)
        if job is jobs[0]:
            free.wait(5)
        return int(job.path.name)

    results = batch.in_order(jobs, hear, 2)
    threading.Timer(0.2, lambda: (begun.append(len(begun)), free.set())).start()
    assert [code for _, code in results] == list(range(200))
    assert next(n for n in begun if isinstance(n, int)) <= 10


# Going on.


def test_skip_existing_goes_on_where_a_run_ended(cli, calls, heard):
    """Only what is missing is heard; a format that is missing is added, the other left as it is."""
    Path("out").mkdir()
    Path("out/b.txt").write_text("mine")
    done = cli("transcribe", calls, "-o", "out", "--skip-existing")
    assert (done.code, heard.names) == (0, ["a.wav", "a.wav", "c.WAV"])
    assert "asr: 2/4 calls/b.wav: skipped, its output exists" in done.err.splitlines()
    assert Path("out/b.txt").read_text() == "mine"
    heard.names.clear()
    done = cli("transcribe", calls / "b.wav", "-o", "out", "--format", "txt,srt", "--skip-existing")
    assert (done.code, heard.names) == (0, ["b.wav"])
    assert Path("out/b.txt").read_text() == "mine"
    assert Path("out/b.srt").read_text().startswith("1\n")


def test_nothing_left_loads_no_model(cli, calls, monkeypatch):
    """A second run over a finished folder costs nothing."""
    assert cli("transcribe", calls, "-o", "out", "-q").code == 0
    monkeypatch.setattr(asr.Recognizer, "load", lambda *_, **__: raise_(AssertionError("loaded")))
    assert cli("transcribe", calls, "-o", "out", "-q", "--skip-existing") == (0, "", "")


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_keeps_what_is_finished(cli, calls, heard, jobs):
    """Ctrl-C: exit 130, whole files only, and --skip-existing does the rest."""
    heard.on["c.WAV"] = lambda: raise_(KeyboardInterrupt)
    done = cli("transcribe", calls, "-o", "out", "-q", "--jobs", jobs)
    assert (done.code, done.out, done.err) == (130, "", "")
    assert set(tree(Path("out"))) == {"a.txt", "b.txt", "sub/a.txt"}
    heard.on.clear()
    heard.names.clear()
    assert cli("transcribe", calls, "-o", "out", "-q", "--skip-existing").code == 0
    assert (heard.names, len(tree(Path("out")))) == (["c.WAV"], 4)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_signal_itself_ends_a_run_over_many_files(clip, tmp_path, jobs):
    """SIGINT while files are heard: 130, no trace, no part of a file, what is there is whole."""
    for n in range(40):
        (tmp_path / f"{n:02}.wav").symlink_to(clip)
    (tmp_path / "slow.wav").symlink_to(clip)
    command = [
        "transcribe",
        tmp_path,
        "-o",
        tmp_path / "out",
        "-q",
        "--jobs",
        jobs,
        "--repeat",
        "30",
    ]
    with subprocess.Popen([*COMMAND, *command], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 30
        while not (tmp_path / "out/00.txt").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")
    written = tree(tmp_path / "out")
    assert 1 <= len(written) <= 40
    assert all(n.endswith(".txt") and c.startswith(b"one two") for n, c in written.items())


def test_finished_results_are_told_when_interrupted():
    """Results that wait behind a slow file are printed when the user ends the run."""
    jobs = [outputs.Job(Path(f"{n}")) for n in range(3)]
    told, slow = [], threading.Event()

    def hear(job, observer):
        if job is jobs[0]:
            slow.wait(5)
            observer.step("infer", told.append, "never")
        if job is jobs[2]:
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            threading.Timer(0.4, slow.set).start()
        job.say(told.append, job.path.name)
        return 0

    results = batch.in_order(jobs, hear, 2)
    with pytest.raises(KeyboardInterrupt):
        next(results)
    assert told == ["1", "2"]


# Progress.


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes a stream a terminal; to be called by the test itself."""
    return lambda stream: monkeypatch.setattr(stream, "isatty", lambda: True)


def test_a_terminal_shows_one_line_that_is_written_anew(cli, calls, terminal, monkeypatch):
    """Without rich: the line is emptied before a message and at the end."""
    terminal(sys.stderr)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    (calls / "b.wav").write_bytes(b"no sound")
    err = cli("transcribe", calls, "-o", "out").err
    shown = re.findall(r"\r\x1b\[K([^\r\n]*)", err)
    assert [s for s in shown if s and not s.startswith("asr:")] == [
        "0/4", "1/4 a.wav", "2/4 b.wav", "3/4 a.wav", "4/4 c.WAV",
    ]  # fmt: skip
    assert "\r\x1b[Kasr: calls/b.wav: expected a sound file" in err
    assert "\r\x1b[Kasr: 1 of 4 files failed:" in err


def test_no_progress_between_texts_on_the_same_terminal(cli, calls, terminal):
    """Texts on the terminal show how far it is; so does quiet, and one file."""
    terminal(sys.stderr)
    terminal(sys.stdout)
    assert cli("transcribe", calls).err == ""
    assert cli("transcribe", calls, "-o", "out", "--quiet").err == ""
    assert cli("transcribe", calls / "a.wav", "-o", "out").err == ""


def test_rich_shows_a_bar_where_it_is_installed(cli, calls, terminal, monkeypatch):
    """The bar is on stderr, counts every file, and is stopped when the run fails."""
    terminal(sys.stderr)
    seen = []

    class Bar:
        def __init__(self, **options):
            assert options["console"] == "stderr"

        def __getattr__(self, name):
            return lambda *arguments, **options: seen.append((name, options.get("total")))

    console = types.SimpleNamespace(Console=lambda stderr: "stderr" if stderr else "stdout")
    monkeypatch.setitem(sys.modules, "rich", types.ModuleType("rich"))
    monkeypatch.setitem(sys.modules, "rich.console", console)
    monkeypatch.setitem(sys.modules, "rich.progress", types.SimpleNamespace(Progress=Bar))
    assert cli("transcribe", calls, "-o", "out") == (0, "", "")
    assert seen == [("add_task", 4), ("start", None), *[("advance", None)] * 4, ("stop", None)]
    monkeypatch.setattr(asr.Recognizer, "transcribe", lambda *_, **__: raise_(KeyboardInterrupt))
    assert cli("transcribe", calls, "-o", "out").code == 130
    assert seen[-1] == ("stop", None)


def test_quiet_hides_notes_but_no_error(cli, tmp_path):
    """-q: no "no text", no warnings; a failure is told."""
    import numpy as np
    import soundfile

    soundfile.write(tmp_path / "silence.wav", np.zeros(16000), 16000)
    assert cli("transcribe", tmp_path / "silence.wav", "-q") == (0, "\n", "")
    assert cli("transcribe", tmp_path / "no.wav", "-q").err.startswith("asr: ")


# The rest.


def test_one_file_on_stdout_loads_no_code_for_files(asr_process, clip):
    """What a plain run does not use is not imported: formats, thread pools, patterns."""
    program = "import sys\nfrom asr.cli import main\nmain()\nprint(*sys.modules, file=sys.stderr)"
    loaded = set(asr_process("transcribe", clip, program=program).err.split())
    assert loaded.isdisjoint(
        {"asr.formats", "asr.formats.cues", "rich", "concurrent.futures.thread"}
    )


def test_a_job_remembers_a_failure_without_words():
    """The summary always has something to say."""
    job = outputs.Job(Path("x.wav"))
    job.fail(AudioError())
    assert (job.failure, job.hopeless) == ("AudioError", False)


PAGE = (ROOT / "docs/output.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^ {4}(asr .*)", PAGE, re.M)


@pytest.mark.parametrize("command", SHOWN)
def test_the_pages_commands_work(command, calls):
    """Every command of docs/output.md exits 0 where calls/, talk.wav and call.wav are."""
    for name in ("talk.wav", "call.wav"):
        Path(name).write_bytes((calls / "b.wav").read_bytes())
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout or "-o" in command


def test_the_page_names_every_option_and_format(cli):
    """What --help offers for output is explained on the page."""
    for word in (*ALL, "-o", "--skip-existing", "--words", "--rich", "--jobs", "-q", "--format",
                 "--split-channels", "--channel", "--languages", "--punct-only",
                 "--itn"):  # fmt: skip
        assert f"`{word}" in PAGE
