"""asr profile: everything a warm call does is in the account, and what is hidden is found."""

import gc
import itertools
import json
import re
import sys
import time
import tracemalloc
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from asr import ctc, frontend, recognizer, records
from asr.engines import ort
from asr.errors import SystemAccessError, UsageError
from asr.layouts import base
from asr.observe import STAGES
from asr.profile import account, natives, trace
from asr.profile.run import profile
from asr.profile.summary import summarise

ROOT = Path(__file__).parent.parent
ACCOUNT = ROOT / "tests/system/native_calls.toml"
SCHEMA = json.loads((ROOT / "docs/profile.schema.json").read_text(encoding="utf-8"))
RATE = 16000
SAMPLES = np.random.default_rng(0).standard_normal(4 * RATE).astype(np.float32) * 0.01


def check(record, part="summary"):
    """Fail unless the schema describes the record."""
    schema = SCHEMA if part is None else {**SCHEMA["$defs"][part], "$defs": SCHEMA["$defs"]}
    jsonschema.Draft202012Validator(schema).validate(record)


@pytest.fixture(scope="module")
def seen(clip):
    """A warm call of the built-in model on one thread."""
    return profile(str(clip), threads=1)


def unexplained(clip):
    """What the account does not explain of a call as the code is now."""
    return account.differences(account.read(ACCOUNT), summarise(profile(str(clip), threads=1)))


def test_the_account_explains_a_warm_call(seen):
    """Each native call, each block of memory and each lock of the call has its line."""
    assert account.differences(account.read(ACCOUNT), summarise(seen)) == []


def test_nothing_is_copied(seen):
    """From file to text no array is copied in Python.

    Two are allocated, 16-bit samples to decode into and the floats that they become, and a buffer.
    """
    total = summarise(seen)["total"]
    assert total["copied_bytes"] == 0
    assert total["allocated_bytes"] == pytest.approx(96_160 + 192_320 + 32_768, abs=2048)


# ------------------------------------------------- a change that hides something in the path


def copied_array(monkeypatch):
    """np.array(x) where x would do."""
    real = frontend.FrontEnd.lfr
    monkeypatch.setattr(
        frontend.FrontEnd,
        "lfr",
        lambda self, f: real(self, records.Features(np.array(f.values), f.frame_shift_s)),
    )


def temporary_of_an_operator(monkeypatch):
    """Arithmetic, which calls no function that the profile hook sees."""
    real = ctc.greedy
    monkeypatch.setattr(
        ctc,
        "greedy",
        lambda logits, blank_id: real(
            records.Logits(logits.values * 1, logits.frame_shift_s, logits.prompt_frames),
            blank_id=blank_id,
        ),
    )


def strided_features(monkeypatch):
    """Features that do not lie in one piece: the runtime has to copy them within its call."""
    real, wide = ort.OrtEngine.run, np.zeros((1, 1000, 1120), np.float32)

    def run(self, inputs):
        (name,) = (n for n, value in inputs.items() if value.ndim == 3)
        rows = inputs[name].shape[1]
        wide[:, :rows, ::2] = inputs[name]
        return real(self, {**inputs, name: wide[:, :rows, ::2]})

    monkeypatch.setattr(ort.OrtEngine, "run", run)


def second_run(monkeypatch):
    """The network asked twice."""
    real = ort.OrtEngine.run
    monkeypatch.setattr(
        ort.OrtEngine, "run", lambda self, inputs: (real(self, inputs), real(self, inputs))[1]
    )


def waiting(monkeypatch):
    """A wait for nothing."""
    real = base.Binding.bind
    monkeypatch.setattr(
        base.Binding, "bind", lambda *arguments: (time.sleep(0), real(*arguments))[1]
    )


def result_not_in_place(monkeypatch):
    """CMVN into new memory."""
    real = frontend._rust_fe.cmvn

    class Half:
        """The Rust half with another cmvn."""

        cmvn = staticmethod(lambda values, *rest: real(values.copy(), *rest))

        def __getattr__(self, name):
            return getattr(frontend_half, name)

    frontend_half = frontend._rust_fe
    monkeypatch.setattr(frontend, "_rust_fe", Half())


def second_read(monkeypatch):
    """The sound decoded twice."""
    real = recognizer.audio.Reader.head

    def twice(self, limit_s):
        real(recognizer.audio.Reader(path), limit_s)
        return real(self, limit_s)

    path = str(ROOT / "golden/audio/transcribe_me.wav")
    monkeypatch.setattr(recognizer.audio.Reader, "head", twice)


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (copied_array, "lfr: expected 0 calls of numpy.array, found 1"),
        (copied_array, r"lfr: expected 0 bytes allocated in numpy.array, found 95\d\d\d"),
        (temporary_of_an_operator, r"decode: expected 0 bytes allocated in .*, found 86\d\d\d"),
        (
            strided_features,
            r"infer: expected 0 bytes allocated in onnxruntime.run, found 112\d\d\d",
        ),
        (second_run, "infer: expected 1 calls of onnxruntime.run, found 2"),
        (waiting, "bind: expected 0 calls of time.sleep, found 1"),
        (result_not_in_place, "cmvn: expected a result of 0 bytes in memory .*, found 112000"),
        (second_read, "read: expected 1 calls of libsndfile.sf_readf_short, found 2"),
    ],
)
def test_what_is_hidden_in_the_path_is_found(clip, monkeypatch, plant, expected):
    """A planted copy, run, wait or read is named with its stage and size."""
    plant(monkeypatch)
    found = unexplained(clip)
    assert any(re.fullmatch(expected, line) for line in found), found


def test_a_strided_array_is_copied_once_and_a_contiguous_one_never():
    """What a caller hands over is borrowed if it lies in one piece; a copy is seen in read."""
    contiguous = summarise(profile(SAMPLES[: 2 * RATE], sample_rate=RATE, threads=1))
    strided = summarise(profile(SAMPLES[::2], sample_rate=RATE, threads=1))
    read = [s["stages"][0] for s in (contiguous, strided)]
    assert [row["stage"] for row in read] == ["read", "read"]
    assert (read[0]["copied_bytes"], read[0]["lent_bytes"]) == (0, 8 * RATE)
    assert read[1]["copied_bytes"] == pytest.approx(8 * RATE, abs=1024)
    assert read[1]["made_bytes"] == 8 * RATE


# ------------------------------------------------------------------- the account as a file


def test_every_line_of_the_account_has_a_reason():
    """Reasons are sentences, not fillers."""
    rows = [row for table in account.read(ACCOUNT).values() for row in table]
    assert len(rows) > 40
    assert all(len(row["reason"]) > 8 for row in rows)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("[[calls", UsageError, "expected an account in TOML"),
        ("[[cals]]\n", UsageError, r"expected \[\[calls\]\].*found cals"),
        ('[[unlocked]]\ncall = "f"\n', UsageError, "number 1: expected reason .str."),
        ('[[results]]\nstage = "x"\nbytes = "1"\nreason = "r"\n', UsageError, "bytes .int.*'1'"),
        (None, SystemAccessError, "cannot read the account"),
    ],
)
def test_a_wrong_account_is_refused(tmp_path, text, error, message):
    """The file, the place and what was expected are named."""
    path = tmp_path / "account.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(error, match=message):
        account.read(path)


@pytest.mark.parametrize(
    ("table", "row", "expected"),
    [
        ("calls", {"stage": "text", "call": "numpy.dot", "times": 1}, "text: expected 1 calls of"),
        ("blocks", {"stage": "text", "where": "f", "bytes": 5000}, "text: expected 5000 bytes"),
        ("results", {"stage": "vad", "bytes": 4}, "vad: expected a result of 4 bytes"),
        ("unlocked", {"call": "rust_fe.gone"}, "rust_fe.gone: expected the interpreter lock"),
    ],
)
def test_what_the_account_promises_must_happen(seen, table, row, expected):
    """An account that has outlived the code is as wrong as code that outgrew the account."""
    lines = account.read(ACCOUNT)
    lines[table].append({**row, "reason": "planted"})
    (found,) = account.differences(lines, summarise(seen))
    assert found.startswith(expected)


# -------------------------------------------------------------------- trace, stacks, summary


def test_the_trace_holds_stages_calls_nodes_memory_and_threads(seen):
    """What Perfetto shows: each kind of event, nested in its stage, on one clock."""
    found = trace.chrome(seen)
    check(found, None)
    events = found["traceEvents"]
    by_kind = {kind: [e for e in events if e["cat"] == kind] for kind in {e["cat"] for e in events}}
    stages = {e["name"]: e for e in by_kind["stage"]}
    assert list(stages) == [stage for stage in STAGES if stage in stages]
    assert {"read", "fbank", "infer", "text"} <= set(stages)
    ends = [(e["ts"], e["ts"] + e["dur"]) for e in stages.values()]
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(ends))
    assert ends[-1][1] <= found["otherData"]["total"]["profiled_ms"] * 1000
    (run,) = (e for e in by_kind["native"] if e["name"] == "onnxruntime.run")
    nodes = by_kind["node"]
    assert len(nodes) > 100
    slack_us = 200  # the runtime tells whole microseconds of another clock
    assert run["ts"] - slack_us <= min(e["ts"] for e in nodes)
    assert max(e["ts"] + e["dur"] for e in nodes) <= run["ts"] + run["dur"] + slack_us
    read = stages["read"]
    blocks = by_kind["allocation"]
    assert len(blocks) == 2
    assert all(read["ts"] < block["ts"] < read["ts"] + read["dur"] for block in blocks)
    names = {e["args"]["name"] for e in by_kind["__metadata"] if e["name"] == "thread_name"}
    assert "main" in names


def test_folded_stacks_add_up(seen):
    """Each line is a stack and its own microseconds; together they are what the call took."""
    lines = trace.folded(seen).splitlines()
    assert all(re.fullmatch(r"asr;[^ ]+ \d+", line) for line in lines)
    whole_us = sum(int(line.rpartition(" ")[2]) for line in lines)
    outermost = [one for one in seen.watch.slices if len(one.stack) == 1]
    call_us = sum(one.end_ns - one.start_ns for one in outermost) / 1000
    assert whole_us == pytest.approx(call_us, rel=0.05)
    assert any(line.startswith("asr;") and ";onnxruntime.run;Softmax" in line for line in lines)


def test_the_summary_closes(seen):
    """Stages and what lies between them are the whole call, and the schema describes it all."""
    summary = summarise(seen)
    check(summary)
    assert summary["text"].split()[0] == "one"
    for column, whole in (("plain_ms", "plain_ms"), ("profiled_ms", "profiled_ms"),
                          ("native_calls", "native_calls")):  # fmt: skip
        assert sum(row[column] for row in summary["stages"]) == pytest.approx(
            summary["total"][whole]
        )
    assert summary["total"]["outside_model_ms"] < summary["total"]["plain_ms"]
    assert sum(row["times"] for row in summary["operators"]) == len(seen.nodes)


def test_what_looked_before_looks_again():
    """A profiler and a memory tracer that were at work go on afterwards."""
    tracemalloc.start()
    sys.setprofile(print_nothing)
    try:
        profile(SAMPLES, sample_rate=RATE, threads=1)
        assert sys.getprofile() is print_nothing
        assert tracemalloc.is_tracing()
    finally:
        sys.setprofile(None)
        tracemalloc.stop()


def print_nothing(*_):
    """A profile hook."""


def test_a_garbage_collection_is_no_part_of_the_call(clip):
    """It comes when it likes, and calls whoever asked to be told: the account would flicker."""

    def told(*_):
        time.perf_counter()

    before = gc.get_threshold()
    gc.callbacks.append(told)
    gc.set_threshold(1)
    try:
        assert unexplained(clip) == []
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(told)
    assert gc.isenabled()


def test_libraries_are_as_they_were_after_a_profile(seen):
    """Nothing stays wrapped."""
    import soundfile
    import soxr

    assert not isinstance(soundfile._snd, natives._Door)
    assert not isinstance(soxr.soxr_ext, natives._Door)
    assert sys.getprofile() is None
    assert not tracemalloc.is_tracing()


def test_resampling_is_seen():
    """soxr's functions are of a kind that the profile hook does not see; they are there."""
    summary = summarise(profile(SAMPLES, sample_rate=2 * RATE, threads=1))
    assert next(c["library"] for c in summary["calls"] if c["stage"] == "resample") == "soxr"


# ------------------------------------------------------------------------ the command itself


def test_the_command_writes_what_was_asked_for(cli, clip, tmp_path):
    """Tables on stdout; a trace and stacks only where named; 0 with an account that explains."""
    done = cli("profile", clip, "--threads", 1, "-o", tmp_path / "t.json", "--folded",
               tmp_path / "f.txt", "--account", ACCOUNT)  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert "native calls" in done.out
    assert "outside the model" in done.out
    assert re.search(r"under the hook .* ms \(x \d", done.out)
    check(json.loads((tmp_path / "t.json").read_text()), None)
    assert "asr.recognizer:Recognizer._run;read" in (tmp_path / "f.txt").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"t.json", "f.txt"}


def test_the_command_fails_when_something_is_unexplained(cli, clip, monkeypatch):
    """Exit code 10, one line on stderr for each."""
    second_run(monkeypatch)
    done = cli("profile", clip, "--threads", 1, "--account", ACCOUNT)
    assert done.code == 10
    assert f"asr: {ACCOUNT}: infer: expected 1 calls of onnxruntime.run, found 2" in done.err


def test_a_cold_profile_shows_the_load(cli, short_clip):
    """--cold has the load phases in front of the stages."""
    summary = json.loads(cli("profile", short_clip, "--cold", "--json").out)
    check(summary)
    names = [row["stage"] for row in summary["stages"]]
    assert names[:5] == ["layout", "front_end", "model_read", "session_create", "read"]
    assert summary["state"] == "cold"
    assert summary["stages"][2]["allocated_bytes"] > 1_000_000  # the network's bytes


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["missing.wav"], 3, "missing.wav"),
        (["-"], 2, "standard input"),
        (["CLIP", "--threads", "0"], 2, "threads: expected 1 or more"),
        (["CLIP", "--model", "no-such-model"], 4, "no-such-model"),
        (["CLIP", "--account", "missing.toml"], 5, "missing.toml"),
        (["CLIP", "-o", f"{ACCOUNT}/place.json"], 5, "native_calls.toml"),
    ],
)
def test_a_wrong_argument_is_one_line(cli, clip, arguments, code, message):
    """The contract's exit codes, the value named."""
    done = cli("profile", *(clip if a == "CLIP" else a for a in arguments))
    assert done.code == code
    assert done.err.count("\n") == 1
    assert message in done.err
