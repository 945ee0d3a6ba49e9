"""asr.cli: text on stdout, all else on stderr, and an exit code that says what happened."""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time

import fakes
import numpy as np
import pytest
import soundfile
from conftest import COMMAND

import asr
from asr.cli import main, timings

VALIDATOR = fakes.schema_validator()
STAGES = ["read", "resample", "fbank", "lfr", "cmvn", "bind", "infer", "decode", "text"]
LOAD = ["python_start", "command_line", "import", "layout", "front_end", "model_read",
        "session_create", "weight_prepare"]  # fmt: skip


@pytest.fixture(scope="session")
def texts(recognizer, clip, short_clip):
    return {c: recognizer.transcribe(c).text for c in (clip, short_clip)}


@pytest.fixture
def silence(tmp_path):
    path = tmp_path / "silence.wav"
    soundfile.write(path, np.zeros(2 * 16000), 16000)
    return path


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


# Text.


def test_stdout_is_the_text_and_nothing_else(cli, clip, texts):
    """One file: the text, a line break, nothing on stderr, 0."""
    assert cli("transcribe", clip) == (0, texts[clip] + "\n", "")


def test_the_command_is_the_same_as_a_process(asr_process, clip, texts):
    """What the tests call in this process is what a user runs."""
    assert asr_process("transcribe", clip) == (0, texts[clip] + "\n", "")


def test_several_files_are_lines_of_file_and_text(cli, clip, short_clip, texts):
    """With several files each line says whose text it is, in the order asked."""
    done = cli("transcribe", short_clip, clip, short_clip)
    assert done == (0, "".join(f"{c}\t{texts[c]}\n" for c in (short_clip, clip, short_clip)), "")


def test_no_speech_is_an_empty_line_and_a_word_on_stderr(cli, silence):
    """Silence is a result: exit 0, an empty text on stdout, the reason on stderr."""
    done = cli("transcribe", silence)
    assert (done.code, done.out) == (0, "\n")
    assert done.err.splitlines()[0] == f"asr: {silence}: no text (silence)"


@pytest.mark.parametrize("length", [1, 159, 400, 1361])
def test_too_short_is_told_too(cli, tmp_path, length):
    """A clip below a tenth of a second is no error either."""
    path = tmp_path / "x.wav"
    soundfile.write(path, np.full(length, 0.1), 16000)
    done = cli("transcribe", path)
    assert (done.code, done.out) == (0, "\n")
    assert done.err.splitlines()[0] == f"asr: {path}: no text (too_short)"


def test_itn_that_the_model_ignores_is_told_on_stderr(cli, clip):
    """A model that answers without ITN is a warning; the text still comes."""
    done = cli("transcribe", clip, "--itn")
    assert done.code == 0
    assert done.err in ("", f"asr: {clip}: warning: itn_not_honoured\n")
    assert cli("transcribe", clip, "--no-itn").err == ""


def test_a_relative_path_and_a_path_with_blanks(cli, clip, tmp_path, monkeypatch, texts):
    """Paths are used as they are given."""
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "測試 clip.wav").write_bytes(clip.read_bytes())
    monkeypatch.chdir(tmp_path)
    done = cli("transcribe", "a b/測試 clip.wav", "--json")
    assert (done.code, lines(done.out)[0]["source"]) == (0, "a b/測試 clip.wav")
    assert lines(done.out)[0]["text"] == texts[clip]


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_name_that_is_no_utf8_is_printed_somehow(asr_process, clip, texts, tmp_path, options):
    """A file name of raw bytes is transcribed like any other and never an internal error."""
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    path.write_bytes(clip.read_bytes())
    strict = {"PYTHONIOENCODING": "utf-8:strict"}  # as in any locale but C
    done = asr_process("transcribe", path, path, *options, env=strict)
    assert (done.code, done.err) == (0, "")
    assert [texts[clip]] * 2 == [
        line["text"] if options else line.split("\t")[1]
        for line in (lines(done.out) if options else done.out.splitlines())
    ]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_cannot_show_a_character_is_no_internal_error(
    asr_process, clip, tmp_path, encoding
):
    """With another encoding on stdout the run ends well, and JSON says the same as ever."""
    path = tmp_path / "測試é.wav"
    path.write_bytes(clip.read_bytes())
    other = {"PYTHONIOENCODING": encoding}
    done = asr_process("transcribe", path, path, env=other)
    assert (done.code, len(done.out.splitlines())) == (0, 2)
    done = asr_process("transcribe", path, "--json", env=other)
    source = json.loads(done.out.encode("utf-8", "surrogateescape"))["source"]
    assert (done.code, source) == (0, str(path))


# Errors.


def failed(done, code, *said):
    """An exit code and one line on stderr, which begins with the program's name."""
    assert done.code == code
    assert re.fullmatch(r"asr: .*\n", done.err)
    assert all(part in done.err for part in said)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("nope.wav", None, "not found"),
        ("empty.wav", b"", "0 bytes"),
        ("six.wav", b"RIFF\1\0", "expected a sound file"),
        ("cut.wav", 43, ""),
        ("head.wav", 44, ""),
        ("picture.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "expected a sound file"),
        ("notes.txt", b"not a sound\n", "expected a sound file"),
        ("program", b"\x7fELF" + b"\0" * 1000, "expected a sound file"),
    ],
)
def test_bad_audio_is_exit_3_and_one_line(cli, clip, tmp_path, name, content, said):
    """Whatever is no sound: one line with the path, no trace, nothing on stdout."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(clip.read_bytes()[:content] if isinstance(content, int) else content)
    done = cli("transcribe", path)
    failed(done, 3, str(path), said)
    assert done.out == ""


def test_a_folder_is_exit_3(cli, tmp_path):
    """A folder is no sound."""
    failed(cli("transcribe", tmp_path), 3, "found a folder")


def test_what_the_system_forbids_is_exit_5(cli, tmp_path):
    """A link to itself cannot be opened: the system's refusal, not bad sound."""
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    failed(cli("transcribe", tmp_path / "loop.wav"), 5, "cannot read")


@pytest.mark.parametrize("model", ["nope", "damaged"])
def test_a_bad_model_is_exit_4(cli, clip, tmp_path, model):
    """One line, nothing on stdout."""
    if model == "damaged":
        model = fakes.model_folder(tmp_path)
        (model / "am.mvn").write_text("<Nnet>")
    done = cli("transcribe", clip, "--model", model)
    failed(done, 4, str(model))
    assert done.out == ""


@pytest.mark.parametrize("name", ["model_quant.onnx", "config.yaml", "am.mvn", "tokens.json"])
@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\n", b"", b"<ht"])
def test_a_damaged_model_file_is_exit_4_in_a_process(cli, clip, tmp_path, name, content):
    """Every file of the model, through the command: exit 4, one line naming the file."""
    folder = fakes.model_folder(tmp_path)
    (folder / name).write_bytes(content)
    failed(cli("inspect", folder), 4, str(folder / name))
    failed(cli("transcribe", clip, "--model", folder), 4, str(folder / name))


def test_one_bad_file_does_not_stop_the_others(cli, clip, short_clip, tmp_path, texts):
    """The good ones are printed, each bad one is a line, the code is the first bad one's."""
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    done = cli("transcribe", clip, tmp_path / "nope.wav", tmp_path / "loop.wav", short_clip)
    assert done.code == 3
    assert done.out == "".join(f"{c}\t{texts[c]}\n" for c in (clip, short_clip))
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [
        str(tmp_path / "nope.wav"), str(tmp_path / "loop.wav"),
    ]  # fmt: skip


def test_an_unknown_language_is_exit_2_with_a_suggestion(cli, tmp_path):
    """A typing mistake is told at once, before the first file is opened."""
    failed(cli("transcribe", tmp_path / "nope.wav", "--language", "eng"), 2, "did you mean 'en'")
    failed(cli("transcribe", tmp_path / "nope.wav", "--language", "unknown"), 2, "expected one of")
    failed(cli("transcribe", "a.wav", "b.wav", "--language", "xx"), 2, "unknown language 'xx'")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["transcribe"],
        ["inspect"],
        ["transcribe", "x.wav", "--nonsense"],
        ["transcribe", "x.wav", "--hotwords", "a"],
        ["transcribe", "x.wav", "--threads", "0"],
        ["transcribe", "x.wav", "--threads", "-1"],
        ["transcribe", "x.wav", "--threads", "two"],
        ["transcribe", "x.wav", "--threads", "1.5"],
        ["transcribe", "x.wav", "--repeat", "0"],
        ["transcribe", "x.wav", "--repeat", "²"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2_with_the_usage(cli, arguments):
    """What cannot be meant is refused with a hint, never ignored."""
    done = cli(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("usage: asr")


@pytest.mark.parametrize("threads", ["0", "-1", "100000000000"])
def test_impossible_threads_are_exit_2(cli, clip, threads):
    """A number of threads that cannot be, in either command."""
    assert cli("inspect", "tiny-en", "--threads", threads).code == 2
    assert cli("transcribe", clip, "--threads", threads).code == 2


def test_a_text_that_changes_is_exit_12(cli, clip, monkeypatch):
    """Repeated calls must agree: a faster run with other text is not faster."""
    answers = iter(["one", "one", "two"])
    original = asr.Recognizer.transcribe

    def transcribe(self, *args, **options):
        import dataclasses

        return dataclasses.replace(original(self, *args, **options), text=next(answers))

    monkeypatch.setattr(asr.Recognizer, "transcribe", transcribe)
    done = cli("transcribe", clip, "--repeat", "3")
    failed(done, 12, str(clip), "'one'", "'two'")


def test_our_own_bug_is_exit_70_with_a_line_to_report(cli, clip, monkeypatch):
    """An exception nobody planned: one line with its kind and place, no trace unless asked for."""

    def fail(*_args, **_options):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(asr.Recognizer, "transcribe", fail)
    failed(cli("transcribe", clip), 70, "internal error", "ZeroDivisionError: division by zero")
    monkeypatch.setenv("ASR_TRACEBACK", "1")
    done = cli("transcribe", clip)
    assert done.code == 70
    assert "Traceback (most recent call last)" in done.err


def test_interrupting_is_exit_130(cli, clip, monkeypatch):
    """Ctrl-C ends the run without a trace."""

    def interrupt(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(asr.Recognizer, "transcribe", interrupt)
    assert cli("transcribe", clip) == (130, "", "")


def test_ctrl_c_stops_a_long_run(clip):
    """The signal itself, in the middle of many calls: 130 and no trace."""
    heed = signal.getsignal(signal.SIGINT)  # a background job of a shell is told to ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with subprocess.Popen(
        [*COMMAND, "transcribe", clip, "--repeat", "100000"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        signal.signal(signal.SIGINT, heed)
        try:
            process.stdout.readline()  # the first call is through
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=20)
        finally:
            process.kill()
    assert (process.returncode, err) == (130, "")


# Where the output goes.


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_reader_that_has_gone_is_no_error_message(clip, options):
    """`asr ... | head -0` ends quietly: no trace, no complaint at exit."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*COMMAND, "transcribe", clip, clip, *options],
            stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert done.stderr == ""
    assert done.returncode in (0, 141)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_a_full_disk_behind_stdout_is_exit_5(clip, options):
    """Text that could not be written is not a success, and it is one line."""
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [*COMMAND, "transcribe", clip, *options],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.returncode == 5
    assert re.fullmatch(r"asr: .*No space left on device.*\n", done.stderr)


def test_a_closed_stdout_is_no_internal_error(clip):
    """`asr ... >&-`: there is nowhere to write to, which is not our bug."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *COMMAND, "transcribe", clip],
        stderr=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode in (0, 5)
    assert "internal error" not in done.stderr


def test_a_closed_stderr_puts_no_message_into_the_text(silence, tmp_path):
    """`asr ... 2>&-`: what has nowhere to go must not land between the lines of text."""
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *COMMAND, "transcribe", silence,
         tmp_path / "nope.wav"],
        stdout=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, f"{silence}\t\n")


# JSON.


def test_json_is_a_line_per_file_that_the_schema_describes(
    cli, clip, short_clip, silence, texts, tmp_path
):
    """JSON Lines, valid, in order; a bad file is missing there and told on stderr."""
    done = cli("transcribe", clip, tmp_path / "no.wav", silence, short_clip, "--json")
    found = lines(done.out)
    for line in found:
        VALIDATOR.validate(line)
    assert [line["source"] for line in found] == [str(clip), str(silence), str(short_clip)]
    assert [line["text"] for line in found] == [texts[clip], "", texts[short_clip]]
    assert [line["reason"] for line in found] == [None, "silence", None]
    assert "timings" not in found[0]
    assert done.code == 3


def test_json_says_how_long_the_audio_is_and_how_long_it_took(cli, clip):
    """Two fields: the length of the source, and the time spent; both in seconds."""
    before = time.perf_counter()
    [line] = lines(cli("transcribe", clip, "--json").out)
    assert line["audio_s"] == soundfile.info(clip).duration
    assert 0 < line["wall_s"] < time.perf_counter() - before


def test_json_words_are_the_text(cli, clip, texts):
    """One entry with times per word; joined they are the text."""
    [line] = lines(cli("transcribe", clip, "--json").out)
    words = [w for s in line["segments"] for w in s["words"]]
    assert " ".join(w["text"] for w in words) == texts[clip]
    assert all(0 <= w["start_s"] < w["end_s"] <= line["audio_s"] for w in words)


# Timings.


@pytest.fixture(scope="module")
def timed(asr_process, clip):
    done = asr_process("transcribe", clip, clip, "--json", "--timings", "--repeat", "9")
    assert (done.code, done.err) == (0, "")
    found = lines(done.out)
    for line in found:
        VALIDATOR.validate(line)
    return [line["timings"] for line in found]


def adds_up(rows):
    return sum(ms for name, ms in rows.items() if name != "total") == pytest.approx(rows["total"])


def test_rows_of_timings_add_up_to_the_total(timed):
    """Load, cold call, warm calls: every table closes, `unaccounted` included."""
    for record in timed:
        assert adds_up(record["first"])
        assert adds_up(record["warm"])
    assert adds_up(timed[0]["load"])


def test_every_phase_and_stage_has_its_row(timed):
    """Import, model read, session creation and weight preparation are rows of their own."""
    assert [*LOAD, "total", "unaccounted"] == sorted(
        timed[0]["load"], key=[*LOAD, "total", "unaccounted"].index
    )
    for record in timed:
        assert [*STAGES, "unaccounted", "total"] == [n for n in record["warm"] if n != "write"]
        assert len(record["samples"]) == 9


def test_a_process_is_cold_only_once(timed):
    """The second file has no load, and no rtf_process."""
    assert timed[0]["load"]["total"] > 0
    assert timed[1]["load"] is None
    assert set(timed[0]["rtf"]) == {"rtf_process", "rtf_first", "rtf_warm", "rtf_infer"}
    assert set(timed[1]["rtf"]) == {"rtf_first", "rtf_warm", "rtf_infer"}


def test_each_rtf_is_its_span_over_the_source(timed):
    """Milliseconds of the named span over seconds of audio, with its boundary."""
    first, warm, load = timed[0]["first"], timed[0]["warm"], timed[0]["load"]
    spans = {
        "rtf_process": load["total"] + first["total"],
        "rtf_first": first["total"] - first.get("write", 0),
        "rtf_warm": warm["total"],
        "rtf_infer": warm["infer"],
    }
    for name, entry in timed[0]["rtf"].items():
        expected = spans[name] / 1000 / timed[0]["audio_s"]
        assert (name, expected) == (name, pytest.approx(entry["value"]))


def test_unaccounted_is_at_most_two_percent_of_a_warm_call(timed):
    """The stages see all of a warm call: median over the calls, on a clip of three seconds."""
    shares = [
        1 - sum(ms for name, ms in call["stages"].items() if name != "write") / call["wall"]
        for record in timed
        for call in record["samples"][1:]
    ]
    assert 0 <= statistics.median(shares) <= 0.02


def record_of(calls):
    """What the command makes of calls that were timed like this (nanoseconds)."""
    made = fakes.recognizer(fakes.rows([]))
    return timings.collect(made, 3.0, None, calls)


def test_unaccounted_is_what_the_calls_left_unaccounted():
    """Medians of single rows do not add up; their mismatch is no time that anybody spent.

    In each of these calls exactly 1 ms is unaccounted, whichever stage was slow.
    """

    def call(read_ms, infer_ms):
        steps = [("read", int(read_ms * 1e6)), ("infer", int(infer_ms * 1e6))]
        return int((read_ms + infer_ms + 1) * 1e6), steps

    record = record_of([call(90, 90), call(10, 40), call(40, 10), call(30, 30)])
    assert adds_up(record["warm"])
    assert record["warm"]["unaccounted"] == pytest.approx(1)


@pytest.mark.parametrize("order", [[10, 900, 20], [900, 10, 20], [20, 10, 900]])
def test_the_warm_call_is_the_median_one(order):
    """One call that was disturbed changes nothing; the first call is not among them."""
    calls = [(ms * 1_000_000, [("infer", ms * 500_000)]) for ms in (5000, *order)]
    record = record_of(calls)
    assert record["first"]["total"] == 5000
    assert record["warm"]["total"] == 20
    assert record["warm"]["infer"] == 10
    assert record["rtf"]["rtf_warm"]["value"] == pytest.approx(20 / 3000)


def test_preparing_weights_is_a_part_of_the_session_as_measured(monkeypatch):
    """The two rows together are the measured step: nothing is counted twice, nothing negative."""
    monkeypatch.setattr(timings, "_weight_preparation_ms", lambda _: 2.0)
    names = ["import", "layout", "front_end", "model_read", "session_create"]
    made = fakes.recognizer(fakes.rows([]))
    for session_ms, expected in ((5, (3, 2)), (1, (0, 1))):
        steps = [(name, session_ms * 1_000_000) for name in names]
        wall = 5 * session_ms * 1_000_000 + 250_000
        calls = [(1_000_000, [("read", 1_000_000)])]
        load = timings.collect(made, 3.0, (wall, steps), calls)["load"]
        assert adds_up(load)
        assert (load["session_create"], load["weight_prepare"]) == pytest.approx(expected)
        assert load["unaccounted"] == pytest.approx(0.25)


def test_writing_is_no_part_of_a_warm_call():
    """`write` happens once, after the first call: it adds to that call's total alone."""
    calls = [
        (1_000_000, [("read", 900_000), ("write", 500_000)]),
        (1_000_000, [("read", 900_000)]),
    ]
    record = record_of(calls)
    assert record["first"]["total"] == 1.5
    assert record["first"]["unaccounted"] == pytest.approx(0.1)
    assert "write" not in record["warm"]
    assert record["rtf"]["rtf_first"]["value"] == pytest.approx(1 / 3000)


def test_one_call_has_no_warm_rows(cli, clip):
    """Without a second call nothing is called warm."""
    [line] = lines(cli("transcribe", clip, "--json", "--timings", "--repeat", "1").out)
    VALIDATOR.validate(line)
    assert line["timings"]["warm"] == {}
    assert set(line["timings"]["rtf"]) == {"rtf_process", "rtf_first"}


def test_a_failed_file_leaves_no_times_to_the_next(cli, clip, tmp_path, monkeypatch):
    """Steps of a call that failed belong to no other file."""
    short = tmp_path / "short.wav"
    soundfile.write(short, np.zeros(100), 16000)
    original = asr.Recognizer._infer

    def fail(self, *arguments):
        original(self, *arguments)
        raise asr.EngineError("the network failed to run: planted")

    monkeypatch.setattr(asr.Recognizer, "_infer", fail)
    done = cli("transcribe", clip, short, "--timings", "--json")
    assert done.code == 4
    [line] = lines(done.out)
    assert set(line["timings"]["samples"][0]["stages"]) == {"read"}
    assert line["timings"]["first"]["unaccounted"] >= 0


def test_timings_are_a_table_on_stderr(cli, clip, texts):
    """People read a table: header, a row per phase and stage, the RTFs; stdout stays the text."""
    done = cli("transcribe", clip, "--timings", "--repeat", "3")
    assert (done.code, done.out) == (0, texts[clip] + "\n")
    rows = [line.split("  ")[0] for line in done.err.splitlines()]
    for name in ("interpreter start", "import", "model read", "session creation",
                 "weight preparation", *STAGES, "write", "unaccounted", "total",
                 "rtf_process", "rtf_first", "rtf_warm", "rtf_infer"):  # fmt: skip
        assert name in [row.split(" 0.")[0].strip() for row in rows]
    assert "median of 2" in done.err


def test_shares_of_the_table_are_a_hundred_percent(cli, clip):
    """The printed shares of both columns add up."""
    err = cli("transcribe", clip, "--timings").err.splitlines()
    table = [re.findall(r"([\d.]+) +([\d.-]+) %", line.replace("-  ", "")) for line in err]
    total = next(i for i, line in enumerate(err) if line.startswith("total"))
    cold = [row[0] for row in table[2:total] if row]
    assert sum(float(share) for _, share in cold) == pytest.approx(100, abs=2)


def test_timings_of_silence_and_of_too_little(cli, silence, tmp_path):
    """A clip without text, and one without any time to divide by, have times too."""
    short = tmp_path / "short.wav"
    soundfile.write(short, np.zeros(100), 16000)
    done = cli("transcribe", silence, short, "--timings", "--json")
    assert done.code == 0
    for line in lines(done.out):
        VALIDATOR.validate(line)


def test_repeating_prints_once(cli, clip, texts):
    """However often a file is transcribed, its text is printed once."""
    assert cli("transcribe", clip, "--repeat", "4") == (0, texts[clip] + "\n", "")


# inspect.


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_inspect_tells_what_a_model_is(cli, options):
    """Layout, recipe, tensors, tokens, engine, threads, SIMD path, build profile."""
    done = cli("inspect", "tiny-en", *options, "--threads", "1")
    assert (done.code, done.err) == (0, "")
    for fact in ("funasr", "16000 Hz", "hamming", "7/6", "speech", "ctc_logits", "400",
                 "ONNX Runtime", "threads", "SIMD path", "release"):  # fmt: skip
        assert fact in done.out
    if options:
        assert len(lines(done.out)) == 1


# Start-up.


def modules_after(asr_process, *arguments):
    program = (
        "import sys\nfrom asr.cli import main\ntry:\n    main()\n"
        "except SystemExit:\n    pass\nprint(*sorted(sys.modules), file=sys.stderr)"
    )
    return set(asr_process(*arguments, program=program).err.split())


@pytest.mark.parametrize("arguments", [["--help"], ["transcribe", "--help"], ["inspect", "-h"]])
def test_help_loads_nothing_heavy(asr_process, arguments):
    """Help costs what argparse costs: no NumPy, no runtime, not even our own Rust module."""
    loaded = modules_after(asr_process, *arguments)
    assert "argparse" in loaded
    assert loaded.isdisjoint({"numpy", "onnxruntime", "soundfile", "asr._rust_fe", "yaml", "json"})


def test_a_run_loads_only_what_it_uses(asr_process, clip):
    """librosa, scipy, numba and friends never load on the way from a file to text."""
    loaded = modules_after(asr_process, "transcribe", clip)
    assert {"numpy", "soundfile"} <= loaded
    assert loaded.isdisjoint(
        {"librosa", "scipy", "numba", "torch", "matplotlib", "pandas", "sklearn", "soxr",
         "sentencepiece", "onnx", "difflib", "asr.bench", "asr.formats"}
    )  # fmt: skip


def test_version_names_version_and_build(cli):
    """What a bug report needs: version, profile, target."""
    done = cli("--version")
    assert done.code == 0
    assert re.fullmatch(r"asr \d+\.\d+\.\d+\S* \((release|debug) build, \S+\)\n", done.out)


def test_help_tells_all_of_the_contract(cli):
    """Each command is listed, and the exit codes a user of these commands can meet."""
    done = cli("--help")
    assert done.code == 0
    assert "transcribe" in done.out
    assert "inspect" in done.out
    assert re.search(r"exit codes: 0 .*2 .*3 .*4 .*5 .*7.*70.*130", done.out, re.DOTALL)


def test_main_takes_its_arguments_from_the_command_line(monkeypatch, capsys):
    """The console script calls it without arguments."""
    monkeypatch.setattr(sys, "argv", ["asr", "--version"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 0
    assert capsys.readouterr().out.startswith("asr ")
