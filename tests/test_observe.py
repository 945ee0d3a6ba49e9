"""asr.observe: observers look at every step from outside and never touch a value."""

import copy
import io
import re
import warnings
from pathlib import Path

import fakes
import numpy as np
import pytest
import soundfile

import asr
from asr import audio, observe
from asr.observe import SILENT, STAGES, Dump, Timer, clip_name, with_dump, write_record
from asr.records import Features

PIPELINE = ["read", "resample", "fbank", "lfr", "cmvn", "bind", "infer", "decode", "text"]


class Recorder:
    """Remembers what each step returned: a copy, since a later stage may use a value up."""

    def __init__(self):
        self.values = {}

    def step(self, name, function, *arguments):
        value = function(*arguments)
        self.values[name] = copy.deepcopy(value)
        return value


# Silent and Timer.


@pytest.mark.parametrize("observer", [SILENT, Timer()], ids=["Silent", "Timer"])
def test_a_step_returns_what_the_function_returns(observer):
    """The very same object: no copy, no wrapper."""
    value = object()
    assert observer.step("read", lambda x: x, value) is value


@pytest.mark.parametrize("observer", [SILENT, Timer()], ids=["Silent", "Timer"])
def test_an_exception_passes_through(observer):
    """An observer neither hides nor changes a failure."""
    error = asr.AudioError("x")

    def fail():
        raise error

    with pytest.raises(asr.AudioError) as seen:
        observer.step("read", fail)
    assert seen.value is error


def test_a_timer_records_steps_in_order():
    """Names in the order the steps ended, with whole nanoseconds."""
    timer = Timer()
    for name in ("read", "fbank", "read"):
        timer.step(name, lambda: None)
    assert [name for name, _ in timer.steps_ns] == ["read", "fbank", "read"]
    assert all(isinstance(ns, int) and ns >= 0 for _, ns in timer.steps_ns)


def test_a_timer_measures_the_step_alone(monkeypatch):
    """Two clock reads, one right before and one right after the function."""
    ticks = iter([1000, 1750])
    monkeypatch.setattr(observe.time, "perf_counter_ns", lambda: next(ticks))
    timer = Timer()
    timer.step("infer", lambda: None)
    assert timer.steps_ns == [("infer", 750)]


def test_taking_hands_steps_over_once():
    """What was taken is not seen again by the next call."""
    timer = Timer()
    timer.step("read", lambda: None)
    assert [n for n, _ in timer.take()] == ["read"]
    assert timer.take() == []


def test_the_pipeline_is_its_stages_in_order(recognizer, clip):
    """A timed call shows each stage once, in the order of the contract."""
    timer = Timer()
    recognizer.transcribe(clip, observer=timer)
    names = [name for name, _ in timer.take()]
    assert names == PIPELINE
    assert names == [s for s in STAGES if s in names]


def test_loading_is_its_phases_in_order():
    """A timed load shows each phase once."""
    timer = Timer()
    asr.Recognizer.load(threads=1, observer=timer)
    assert [name for name, _ in timer.take()] == [
        "layout", "front_end", "model_read", "session_create",
    ]  # fmt: skip


# Dump.


@pytest.fixture
def dumped(recognizer, clip, tmp_path, monkeypatch):
    """A transcript made with ASR_DUMP set, and the folder of its clip."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path / "dump"))
    found = recognizer.transcribe(clip)
    return found, tmp_path / "dump" / clip.stem


def test_a_dump_has_a_file_per_stage_with_the_records_fields(dumped):
    """NN-name.npz: NN is the stage's place in the contract, arrays are the record's fields."""
    _, folder = dumped
    expected = {
        "01-read.npz": {"samples", "sample_rate_hz", "source"},
        "02-resample.npz": {"samples", "sample_rate_hz", "source"},
        "04-fbank.npz": {"values", "frame_shift_s"},
        "05-lfr.npz": {"values", "frame_shift_s"},
        "06-cmvn.npz": {"values", "frame_shift_s"},
        "07-bind.npz": {"speech", "speech_lengths", "language", "textnorm"},
        "08-infer.npz": {"values", "frame_shift_s", "prompt_frames"},
        "09-decode.npz": set(asr.Decoded.__dataclass_fields__),
        "10-text.npz": set(asr.Transcript.__dataclass_fields__),
    }
    found = {p.name: set(np.load(p).files) for p in sorted(folder.iterdir())}
    assert expected == found


def test_dumped_values_are_those_of_the_pipeline(recognizer, clip, dumped):
    """A dump is exactly what the stage returned, bit by bit."""
    _, folder = dumped
    seen = Recorder()
    recognizer.transcribe(clip, observer=seen)
    for name in ("fbank", "lfr", "cmvn", "infer"):
        with np.load(folder / f"{STAGES.index(name) + 1:02d}-{name}.npz") as stored:
            assert np.array_equal(seen.values[name].values, stored["values"])
            assert seen.values[name].values.dtype == stored["values"].dtype
    with np.load(folder / "10-text.npz") as stored:
        assert seen.values["text"].text == str(stored["text"])


def test_a_dump_changes_nothing(recognizer, clip, dumped):
    """Text, times and confidences are equal with the dump on and off."""
    with_it, _ = dumped
    without = recognizer.transcribe(clip)
    assert without.segments == with_it.segments
    assert without.text == with_it.text


def test_dumps_are_outside_the_timed_intervals(tmp_path):
    """The inner timer has finished before a dump begins to write."""
    timer = Timer()
    order = []
    dump = Dump(tmp_path, timer, order.append)
    dump._write = lambda name, value: order.append((name, [n for n, _ in timer.steps_ns], value))
    assert dump.step("read", lambda: 7) == 7
    assert order == [("read", ["read"], 7)]


def test_only_stages_of_the_contract_are_dumped(tmp_path):
    """Load phases and other steps leave no file."""
    dump = Dump(tmp_path / "d", SILENT, print)
    dump.step("session_create", lambda: object())
    assert not (tmp_path / "d").exists()


def test_without_the_variable_there_is_no_dump(monkeypatch, tmp_path):
    """Unset or empty, the observer is the one that was given."""
    assert with_dump(SILENT, print) is SILENT
    monkeypatch.setenv("ASR_DUMP", "")
    assert with_dump(SILENT, print) is SILENT
    monkeypatch.setenv("ASR_DUMP", str(tmp_path))
    assert isinstance(with_dump(SILENT, print), Dump)


class CountingFile(io.FileIO):
    """Counts what reaches the operating system."""

    writes = 0

    def write(self, data):
        type(self).writes += 1
        return super().write(data)


@pytest.fixture
def count_writes(monkeypatch):
    """Count the writes of a call to files opened by path; every way in Python ends in FileIO."""

    def opened(path, mode="r", *_args, **_options):
        assert "b" in mode
        return CountingFile(path, mode.replace("b", ""))

    def count(function):
        CountingFile.writes = 0
        with monkeypatch.context() as patch:
            patch.setattr(io, "open", opened)
            patch.setattr("builtins.open", opened)
            function()
        return CountingFile.writes

    return count


@pytest.mark.parametrize("rows", [1, 300, 3000])
def test_a_dump_file_takes_at_most_eight_writes_per_array(tmp_path, count_writes, rows):
    """However long the clip: a dump is no per-value writer."""
    value = Features(np.zeros((rows, 560), np.float32), 0.06)
    writes = count_writes(lambda: write_record(tmp_path / "x.npz", value))
    assert 1 <= writes <= 8
    assert np.array_equal(value.values, np.load(tmp_path / "x.npz")["values"])


def test_a_planted_per_value_writer_is_noticed(tmp_path, count_writes):
    """The counter of the test above sees every single write."""

    def per_value():
        with (tmp_path / "x.npz").open("wb", buffering=0) as file:
            for value in np.zeros(100, np.float32):
                file.write(value.tobytes())

    assert count_writes(per_value) == 100


@pytest.mark.parametrize(
    ("value", "arrays"),
    [
        (Features(np.ones((2, 3), np.float32), 0.06), {"values", "frame_shift_s"}),
        ({"a": np.arange(3), "b": 1}, {"a", "b"}),
        ({}, set()),
    ],
)
def test_a_record_or_a_mapping_becomes_arrays(tmp_path, value, arrays):
    """Fields by name, and no pickled objects: any NumPy can read a dump."""
    write_record(tmp_path / "new" / "folder" / "x.npz", value)
    with np.load(tmp_path / "new" / "folder" / "x.npz", allow_pickle=False) as stored:
        assert arrays == set(stored.files)
        assert all(stored[name].dtype != object for name in stored.files)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("talks/a b.wav", "a_b"),
        ("array", "array"),
        ("x.tar.wav", "x.tar"),
        ("测试.wav", "测试"),
        ("a:b*c?.wav", "a_b_c_"),
        ("", "clip"),
    ],
)
def test_a_clips_folder_is_its_name_made_safe(source, expected):
    """Letters of any script stay, everything else becomes an underscore."""
    assert expected == clip_name(source)


@pytest.mark.parametrize("source", ["..", ".", "...wav", "a/../..", "/", "x/..wav", "\udce9.wav"])
def test_a_clips_folder_never_leaves_the_dump(source):
    """No name of a clip makes a dump land beside its folder."""
    name = clip_name(source)
    assert name not in ("", ".", "..")
    assert re.fullmatch(r"[\w.-]+", name)
    assert Path("/dump", name).resolve().parent == Path("/dump")


def test_clips_of_one_name_in_two_folders_do_not_overwrite_each_other(
    tmp_path, monkeypatch, recognizer, clip, short_clip
):
    """a/x.wav and b/x.wav are two clips: the second must not silently replace the first."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path / "dump"))
    for folder, source in (("a", clip), ("b", short_clip)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.wav").write_bytes(source.read_bytes())
        recognizer.transcribe(tmp_path / folder / "x.wav")
    assert len(list((tmp_path / "dump").rglob("01-read.npz"))) == 2


# A dump that cannot be written.


def test_a_dump_that_fails_warns_once_and_stops():
    """One line, naming folder, stage and cause; the values still pass; nothing is tried again."""
    said, tried = [], []
    dump = Dump(Path("/no/where"), SILENT, said.append)

    def fail(name, _value):
        tried.append(name)
        raise OSError(28, "No space left on device")

    dump._write = fail
    assert [dump.step(name, lambda n=name: n) for name in PIPELINE] == PIPELINE
    assert tried == ["read"]
    assert len(said) == 1
    assert re.fullmatch(r"/no/where: .*stage read \(No space left on device\).*", said[0])


def test_the_api_tells_a_failed_dump_as_a_warning(recognizer, clip, tmp_path, monkeypatch):
    """In a program of the user's own it is one RuntimeWarning, and the text comes out."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("ASR_DUMP", str(tmp_path / "file" / "dump"))
    with pytest.warns(RuntimeWarning, match="Not a directory") as seen:
        found = recognizer.transcribe(clip)
    assert len(seen) == 1
    assert found.text


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"something else"])
def test_what_an_earlier_dump_left_behind_does_no_harm(
    recognizer, clip, tmp_path, monkeypatch, content
):
    """A dump cut off by a full disk is replaced or left alone; the next run does not fail on it."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path))
    expected = recognizer.transcribe(clip).text
    for file in (tmp_path / clip.stem).iterdir():
        file.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert expected == recognizer.transcribe(clip).text


def test_dumping_a_clip_again_replaces_its_files(recognizer, clip, tmp_path, monkeypatch):
    """The same file twice is the same clip: its folder is used again, not one beside it."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path))
    for _ in range(3):
        recognizer.transcribe(clip)
    assert [p.name for p in tmp_path.iterdir()] == [clip.stem]


def warned_once(done, expected):
    assert (done.code, done.out) == (0, expected)
    assert [line for line in done.err.splitlines() if "dump" in line] == done.err.splitlines()
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("files", [1, 3])
def test_a_forbidden_dump_folder_is_one_warning_and_exit_0(
    asr_process, recognizer, clip, short_clip, tmp_path, files
):
    """A path the system refuses: the text is printed, one line is said, whatever the number."""
    (tmp_path / "file").touch()
    clips = [clip, short_clip, clip][:files]
    texts = [recognizer.transcribe(c).text for c in clips]
    expected = [f"{c}\t{t}\n" for c, t in zip(clips, texts, strict=True)]
    warned_once(
        asr_process("transcribe", *clips, env={"ASR_DUMP": str(tmp_path / "file" / "dump")}),
        "".join(expected) if files > 1 else texts[0] + "\n",
    )


#: A process whose files can hold so many bytes: for a writer that is a full disk.
FULL = """
import resource, sys
from asr.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0}))
sys.exit(main())
"""


@pytest.mark.parametrize("limit", [0, 1000, 100_000])
def test_a_full_disk_is_one_warning_and_exit_0(asr_process, recognizer, clip, tmp_path, limit):
    """Wherever the space ends, one line is said, once, and the text comes out."""
    done = asr_process(
        "transcribe", clip, "--repeat", "3",
        env={"ASR_DUMP": str(tmp_path / "dump")},
        program=FULL.format(limit),
    )  # fmt: skip
    warned_once(done, recognizer.transcribe(clip).text + "\n")


def test_a_full_disk_is_one_warning_for_several_files(asr_process, short_clip, tmp_path):
    """Clips may meet the full disk at different stages; still it is one line for the whole run."""
    sound = audio.resample(audio.read(short_clip, None), 8000)
    soundfile.write(tmp_path / "8k.wav", sound.samples, 8000)
    size = 40_000  # the samples fit at 8 kHz, not at 16: one clip fails at resample, one at read
    done = asr_process(
        "transcribe", tmp_path / "8k.wav", short_clip,
        env={"ASR_DUMP": str(tmp_path / "dump")},
        program=FULL.format(size),
    )  # fmt: skip
    assert done.code == 0
    assert len(done.out.splitlines()) == 2
    assert len(done.err.splitlines()) == 1


AUDIT = """
import os, sys
opened = []
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = {"os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink",
            "os.truncate", "os.chmod", "shutil.copyfile", "tempfile.mkstemp", "tempfile.mkdtemp",
            "socket.connect", "socket.bind", "subprocess.Popen", "os.system", "os.exec"}

def hook(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if (flags or 0) & WRITING or any(c in "wax+" for c in mode or ""):
            opened.append(f"{event} {path} {mode} {flags}")
    elif event in CHANGING:
        opened.append(f"{event} {arguments}")

sys.addaudithook(hook)
from asr.cli import main
code = main()
print("\\n".join(opened), end="", file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_without_the_variable_nothing_is_opened_for_writing(asr_process, clip, options, tmp_path):
    """The whole run, imports included, opens nothing for writing, renames and removes nothing."""
    done = asr_process("transcribe", clip, *options, program=AUDIT, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert list(tmp_path.iterdir()) == []


def test_the_audit_sees_a_dump(asr_process, clip, tmp_path):
    """The hook of the test above does notice files that are written."""
    done = asr_process("transcribe", clip, program=AUDIT, env={"ASR_DUMP": str(tmp_path / "dump")})
    assert done.code == 0
    assert "04-fbank.npz" in done.err


def test_observing_does_not_change_the_answer(recognizer, clip):
    """Silent, timed, recorded: the same words, times and confidences."""
    expected = recognizer.transcribe(clip).segments
    for observer in (SILENT, Timer(), Recorder()):
        assert expected == recognizer.transcribe(clip, observer=observer).segments


def test_a_dump_follows_the_variable_call_by_call(recognizer, clip, tmp_path, monkeypatch):
    """Setting and unsetting it between two calls of one process does what it says."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path / "one"))
    recognizer.transcribe(clip)
    monkeypatch.delenv("ASR_DUMP")
    before = sorted(p.stat().st_mtime_ns for p in tmp_path.rglob("*.npz"))
    recognizer.transcribe(clip)
    assert before == sorted(p.stat().st_mtime_ns for p in tmp_path.rglob("*.npz"))


def test_each_piece_of_long_sound_is_dumped(tmp_path, monkeypatch):
    """Blocks and pieces are numbered from the second on; a new clip starts again at the first."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path))
    recognizer = fakes.recognizer(fakes.rows(["▁hello"]))
    for seconds, last in ((70, 4), (45, 3)):
        samples = np.tile(fakes.hiss(16000), seconds)
        recognizer.transcribe(samples, sample_rate=16000, vad=False, piece_s=20)
        names = {p.name for p in (tmp_path / "array").iterdir()}
        assert {"04-fbank.npz", "04-fbank.2.npz", f"10-text.{last}.npz"} <= names
        assert ("01-read.2.npz" in names) == ("02-resample.2.npz" in names) == (seconds > 65)
    assert "04-fbank.6.npz" not in names


def test_a_fake_run_is_dumped_too(tmp_path, monkeypatch):
    """A dump needs nothing of the engine: any recogniser can be looked at."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fakes.recognizer(fakes.rows(["▁hello", None])).transcribe(
            fakes.hiss(16000), sample_rate=16000
        )
    assert len(list((tmp_path / "array").iterdir())) == len(PIPELINE)
