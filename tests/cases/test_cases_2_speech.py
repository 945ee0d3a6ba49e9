"""Rows 25 to 34: speech, and what is none. Numbers: README.md."""

import json
from pathlib import Path

import fakes
import numpy as np
import pytest
import soundfile
import test_cli
import test_golden
import test_languages

from asr import audio

RATE = 16000
GOLDEN = Path(__file__).parents[2] / "golden" / "audio"
VALIDATOR = fakes.schema_validator()


def level(samples, db):
    """At so many dB of full scale (RMS)."""
    samples = np.asarray(samples, np.float64)
    return (samples / np.sqrt(np.mean(samples**2)) * 10 ** (db / 20)).astype(np.float32)


def white(seconds=3, seed=7):
    return np.random.default_rng(seed).standard_normal(int(RATE * seconds))


def pink(seconds=3):
    spectrum = np.fft.rfft(white(seconds))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    return np.fft.irfft(spectrum)


def hum(seconds=3, hz=50):
    t = np.arange(int(RATE * seconds)) / RATE
    return np.sin(2 * np.pi * hz * t) + 0.3 * np.sin(6 * np.pi * hz * t)


def clicks(seconds=3):
    samples = np.zeros(RATE * seconds, np.float32)
    samples[:: RATE // 2] = 0.8
    return samples


@pytest.fixture(scope="module")
def samples(clip):
    return soundfile.read(clip, dtype="float32")[0]


@pytest.mark.parametrize("seconds", [10, 40])
def test_case_025_nothing_left_after_cutting(cli, tmp_path, seconds):
    """Zeros: an empty transcript that the schema describes, language null, exit 0."""
    soundfile.write(tmp_path / "x.wav", np.zeros(RATE * seconds), RATE)
    done = cli("transcribe", tmp_path / "x.wav", "--json", "-q")
    line = json.loads(done.out)
    VALIDATOR.validate(line)
    assert (done.code, line["segments"], line["language"], line["text"]) == (0, [], None, "")


BLANK = {
    "zeros": clicks() * 0,
    "DC": clicks() * 0 + np.float32(0.1),
    "-90 dBFS": level(white(), -90),
}


@pytest.mark.parametrize("name", BLANK)
def test_case_026_blank_audio(recognizer, name):
    """The text is a string, and an empty one."""
    assert recognizer.transcribe(BLANK[name], sample_rate=RATE).text == ""


NOISE = {
    "hum 50": level(hum(), -30), "hum 60": level(hum(hz=60), -30), "clicks": clicks(),
    **{f"white {db}": level(white(), db) for db in (-60, -40, -20)},
    **{f"pink {db}": level(pink(), db) for db in (-60, -40, -20)},
}  # fmt: skip


@pytest.mark.parametrize("name", NOISE)
def test_case_027_no_stock_phrase_on_noise(recognizer, name):
    """Noise is no speech."""
    assert recognizer.transcribe(NOISE[name], sample_rate=RATE).no_speech


def test_case_027_silence_behind_speech_adds_nothing(recognizer, samples):
    """A second of speech, four of faint noise: the tokens of the speech."""
    speech = soundfile.read(GOLDEN / "computer-slt.wav", dtype="float32")[0]
    for tail in (np.zeros(4 * RATE, np.float32), level(white(4), -60)):
        found = recognizer.transcribe(np.concatenate([speech, tail]), sample_rate=RATE)
        assert found.text == recognizer.transcribe(speech, sample_rate=RATE).text


def repeats(text, most=3):
    """An n-gram of three words or more that stands more than ``most`` times in a row."""
    words = text.split()
    for n in range(3, len(words) // 2 + 1):
        for start in range(len(words) - n * (most + 1) + 1):
            gram = words[start : start + n]
            if words[start : start + n * (most + 1)] == gram * (most + 1):
                return gram
    return None


def test_case_028_no_loops(recognizer):
    """Three times a word is three words; hum and a chord for a minute are no phrase."""
    word = soundfile.read(GOLDEN / "seven-slt.wav", dtype="float32")[0]
    found = recognizer.transcribe(np.concatenate([word] * 3), sample_rate=RATE)
    assert found.text == "seven seven seven"
    t = np.arange(60 * RATE) / RATE
    chord = sum(np.sin(2 * np.pi * hz * t) * (1 + np.sin(t * hz / 40)) for hz in (220, 277, 330))
    for sound in (level(hum(60), -25), level(chord, -20)):
        assert repeats(recognizer.transcribe(sound, sample_rate=RATE).text) is None
    assert repeats("a b c a b c a b c a b c") == ["a", "b", "c"]


def test_case_029_long_sound_drops_and_doubles_nothing(recognizer, samples):
    """72 s of one clip, without a pause to spare: every word, in order, once; pieces of 30 s."""
    said = recognizer.transcribe(samples, sample_rate=RATE).text
    one = np.pad(samples, (0, 4800))
    found = recognizer.transcribe(np.concatenate([one] * 22), sample_rate=RATE)
    expected = (said.split()) * 22
    wrong = sum(a != b for a, b in zip(found.text.split(), expected, strict=False))
    assert len(found.text.split()) == len(expected)
    assert wrong <= len(expected) // 50
    assert max(s.end_s - s.start_s for s in found.segments) <= 30


@pytest.mark.parametrize("name", ["computer-slt", "alexa-rms", "stop-awb"])
def test_case_030_speech_from_the_first_sample_to_the_last(recognizer, name):
    """Trimmed to its voiced bounds a clip keeps its first and last word."""
    whole = soundfile.read(GOLDEN / f"{name}.wav", dtype="float32")[0]
    voiced = np.flatnonzero(np.abs(whole) > 0.02)
    found = recognizer.transcribe(whole[voiced[0] : voiced[-1] + 1], sample_rate=RATE)
    assert found.text == recognizer.transcribe(whole, sample_rate=RATE).text


def test_case_030_the_first_row_is_the_first_frame_three_times_more(recognizer):
    """LFR: three copies of frame 0, then frames 0 to 3: nothing of the beginning is lost."""
    frames = recognizer.front_end.fbank(audio.read(fakes.hiss(4000), RATE))
    stacked = recognizer.front_end.lfr(frames).values[0].reshape(7, 80)
    first = frames.values
    assert np.array_equal(stacked, first[[0, 0, 0, 0, 1, 2, 3]])


@pytest.mark.parametrize("name", ["transcribe_me", "sentence-slt"])
def test_case_031_the_tokens_of_a_reference_front_end(recognizer, name):
    """The same network behind funasr-onnx's features gives the same tokens."""
    test_golden.test_equal_features_give_the_words_of_funasr_onnx(recognizer, name)


def test_case_033_a_mistyped_language(cli, clip):
    """`zn` is no auto: exit 2, with the one that was meant."""
    done = cli("transcribe", clip, "--language", "zn")
    test_cli.failed(done, 2, "unknown language 'zn'", "did you mean 'zh'")


@pytest.mark.parametrize("heard", ["yue", "ja", "ko"])
def test_case_034_a_tag_within_the_languages_allowed(heard):
    """Chinese that sounds like a neighbour's: zh or en, whatever the network prefers."""
    recognizer = test_languages.hearing(heard, likes=["ja" if heard != "ja" else "ko", "zh"])
    found = recognizer.transcribe(fakes.hiss(RATE), sample_rate=RATE, language=("zh", "en"))
    assert found.language in {"zh", "en"}
