"""Rows 58 to 73: memory, threads, models, numbers; and what reading others' code found."""

import gc
import subprocess
import sys
import threading
from pathlib import Path

import fakes
import numpy as np
import pytest
import soundfile
import test_golden
import test_layouts
import test_recognizer
import test_rust_frontend
from test_rust_frontend import BACKENDS, fbank, noise

import asr
from asr import audio

RATE = 16000
GOLDEN = Path(__file__).parents[2] / "golden" / "audio"


def test_case_058_no_call_of_the_network_hears_more_than_30_s(clip):
    """Attention grows with the square of the length: three minutes are several calls."""
    samples = np.tile(soundfile.read(clip, dtype="float32")[0], 60)
    recognizer = fakes.recognizer(lambda x: fakes.rows(["▁hello"] * x["speech"].shape[1]))
    found = recognizer.transcribe(samples, sample_rate=RATE)
    rows = [call["speech"].shape[1] for call in recognizer.engine.calls]
    assert max(rows) * 0.06 <= 30
    assert len(found.segments) == len(rows) >= 6


def test_case_059_eight_threads_on_one_recogniser(recognizer, clip, short_clip):
    """8 threads x 20 clips give what one thread gives."""
    test_recognizer.test_eight_threads_share_a_recogniser(recognizer, clip, short_clip)


def test_case_060_a_recogniser_freed_during_a_call(short_clip):
    """The call under way keeps what it needs, and the next recogniser is sound."""
    samples = audio.read(short_clip)
    expected = asr.Recognizer.load(threads=1).transcribe(samples).text
    for _ in range(5):
        recognizer = asr.Recognizer.load(threads=1)
        begun, found = threading.Event(), []

        class Begun:
            def step(self, name, function, *arguments, begun=begun):
                if name == "infer":
                    begun.set()
                return function(*arguments)

        def call(recognizer, watch, found=found):
            found.append(recognizer.transcribe(samples, observer=watch).text)

        worker = threading.Thread(target=call, args=(recognizer, Begun()))
        worker.start()
        assert begun.wait(30)
        del recognizer
        gc.collect()
        worker.join(30)
        assert found == [expected]


def test_case_060_a_call_that_was_cancelled(recognizer, short_clip):
    """Given up between two steps: the next call gives what it gave before."""
    expected = recognizer.transcribe(short_clip).text

    class Stop:
        def step(self, name, function, *arguments):
            if name == "decode":
                raise KeyboardInterrupt
            return function(*arguments)

    for _ in range(20):
        with pytest.raises(KeyboardInterrupt):
            recognizer.transcribe(short_clip, observer=Stop())
    assert recognizer.transcribe(short_clip).text == expected


ROUNDS = """
import sys
from concurrent.futures import ThreadPoolExecutor
import asr

def resident_mb():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6

recognizer = asr.Recognizer.load(threads=1)
with ThreadPoolExecutor(4) as pool:
    for n in range(25):
        list(pool.map(recognizer.transcribe, sys.argv[1:] * 4))
        if n == 4:
            warm_mb = resident_mb()
print(resident_mb() - warm_mb)
"""


def test_case_061_memory_of_parallel_calls(short_clip):
    """Four threads, twenty rounds after five to get warm: flat."""
    done = subprocess.run(
        [sys.executable, "-c", ROUNDS, short_clip], capture_output=True, check=True, timeout=60
    )
    assert float(done.stdout) < 8


@pytest.mark.parametrize("wrong", ["another network", "pointer", "truncated"])
def test_case_065_a_wrong_model_file(tmp_path, cli, clip, wrong):
    """Which was expected, which was found, what to do; exit 4, no trace, no loop."""
    folder = fakes.model_folder(tmp_path)
    path = fakes.network_of(folder)
    content = {
        "another network": fakes.network(names=["a", "b", "c", "d", "e"]),
        "pointer": test_layouts.POINTER,
        "truncated": path.read_bytes()[: path.stat().st_size // 2],
    }[wrong]
    path.write_bytes(content)
    done = cli("transcribe", clip, "--model", folder)
    assert (done.code, done.out, done.err.count("\n")) == (4, "", 1)
    advice = {"another network": "expected a SenseVoice network", "pointer": "git lfs pull"}
    assert str(path) in done.err
    assert advice.get(wrong, "") in done.err


def test_case_066_a_provider_that_is_not_there(cli, clip, recognizer):
    """No provider is asked for and silently replaced: there is one, and it is named."""
    done = cli("transcribe", clip, "--provider", "xnnpack")
    assert (done.code, done.out) == (2, "")
    assert "unrecognized arguments: --provider" in done.err
    assert "CPU" in recognizer.engine.description


def test_case_067_four_jobs(cli, tmp_path, clip, short_clip):
    """The lines of one job, in their order."""
    for n in range(6):
        (tmp_path / f"{n}.wav").write_bytes((clip if n % 2 else short_clip).read_bytes())
    one, four = (cli("transcribe", tmp_path, "--jobs", n) for n in (1, 4))
    assert one == four
    assert one.out.count("\n") == 6


def test_case_068_the_same_features_every_time(recognizer, clip):
    """No dither: five times the same bits."""
    sound = audio.read(clip)
    found = {recognizer.front_end.fbank(sound).values.tobytes() for _ in range(5)}
    assert len(found) == 1
    assert not hasattr(recognizer.layout.front_end, "dither")


def test_case_069_one_scale(recognizer, clip):
    """float in ±1 and int16 have the same features; ±32768 as floats is refused, not heard."""
    samples = soundfile.read(clip, dtype="int16")[0]
    features = recognizer.front_end.fbank
    plain = features(audio.read(samples / np.float32(32768), RATE)).values
    assert np.array_equal(plain, features(audio.read(samples, RATE)).values)
    with pytest.raises(asr.AudioError, match="division, by 32768"):
        audio.read(samples.astype(np.float32), RATE)


@pytest.mark.parametrize("length", range(400, 2001, 79))
def test_case_070_the_number_of_frames(recognizer, length):
    """Edges are snipped: 1 + (N - 400) // 160."""
    sound = audio.read(np.zeros(length, np.float32), RATE)
    assert len(recognizer.front_end.fbank(sound).values) == 1 + (length - 400) // 160


@pytest.mark.parametrize("backend", BACKENDS)
def test_case_071_every_cpu_path_hears_the_same(backend):
    """The text of each golden clip is the reference's on every SIMD path that this CPU has."""
    recognizer = asr.Recognizer.load(threads=1, backend=backend)
    best = asr.Recognizer.load(threads=1)
    for clip in sorted(GOLDEN.glob("*.wav"))[::3]:
        assert recognizer.transcribe(clip).text == best.transcribe(clip).text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("length", [400, 401, 559, 700, 2345])
def test_case_073_what_memory_held_before_does_not_matter(backend, length):
    """A call whose scratch was full of NaN and one whose scratch was not give the same bits."""
    front_end, samples = fbank(backend), noise(length)
    expected = fbank(backend).compute(samples)
    with np.errstate(all="ignore"):
        poison = np.full(length, np.finfo(np.float32).max, np.float32)
        front_end.compute(poison)
    found = front_end.compute(samples)
    assert np.isfinite(found).all()
    assert np.array_equal(found, expected)


# Found by reading other programs' code, without a public report: numbered from 101.


def test_case_103_the_last_rows_are_read(recognizer, clip):
    """Scores have four rows more than the features: a token in the very last one is heard."""
    values = fakes.rows([None, None, "▁hello", "▁you"])
    found = fakes.recognizer(values).transcribe(fakes.hiss(RATE), sample_rate=RATE)
    assert found.text == "hello you"
    assert fakes.recognizer(fakes.rows(["▁you"])).transcribe(clip).text == "you"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("length", [0, 1, 240, 241, 399])
def test_case_104_no_frame_of_less_than_a_window(backend, length):
    """(N - 400) / 160 is negative: it is no frame, not one of memory behind the buffer."""
    test_rust_frontend.test_frame_count(backend, length, 0)


def test_case_105_english_as_a_reference_hears_it(recognizer):
    """The shown text of a sample is checked against an independent front end's, clip by clip."""
    test_golden.test_equal_features_give_the_words_of_funasr_onnx(recognizer, "sentence-slt")


def test_case_106_an_argument_is_used_or_refused(recognizer, clip):
    """A misspelled keyword is an error; `itn` reaches the network's prompt."""
    with pytest.raises(TypeError, match="use_itn"):
        recognizer.transcribe(clip, use_itn=True)
    asked = fakes.recognizer(fakes.rows(["▁hello"]))
    for itn in (True, False):
        asked.transcribe(clip, itn=itn)
    assert [int(c["textnorm"][0]) for c in asked.engine.calls] == [14, 15]
