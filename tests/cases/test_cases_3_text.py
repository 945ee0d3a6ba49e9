"""Rows 35 to 55: decoding, text, times and subtitle files. Numbers: README.md."""

import json
import re
from pathlib import Path

import fakes
import numpy as np
import pytest
import soundfile
import test_formats_timed
import test_punctuation
import test_rust_ctc
import test_text
from test_text import say, words

from asr import formats

RATE = 16000
NETWORKS = Path(__file__).parents[1] / "networks"
VALIDATOR = fakes.schema_validator()


@pytest.fixture(scope="module")
def long_wav(clip, tmp_path_factory):
    """A minute and a half of speech with pauses."""
    samples = soundfile.read(clip, dtype="float32")[0]
    rng = np.random.default_rng(3)
    parts = [np.pad(samples, (0, int(rng.integers(4000, 32000)))) for _ in range(22)]
    path = tmp_path_factory.mktemp("long") / "long.wav"
    soundfile.write(path, np.concatenate(parts), RATE)
    return path


def test_case_035_runs_collapse_before_blanks_go():
    """`a a blank a b b` is `a a b`: by runs, never by the set of ids."""
    found = fakes.recognizer(
        fakes.rows(["▁hello", "▁hello", None, "▁hello", "▁you", "▁you"])
    ).transcribe(fakes.hiss(RATE), sample_rate=RATE)
    assert found.text == "hello hello you"
    for backend in test_rust_ctc.BACKENDS:
        test_rust_ctc.test_equals_the_oracle(backend)


def test_case_036_many_clips_in_any_order(recognizer, clip, short_clip):
    """0.3, 3 and 12 s: each clip's text is its own, whichever came before."""
    samples = soundfile.read(clip, dtype="float32")[0]
    word = soundfile.read(short_clip, dtype="float32")[0]
    clips = [word[: RATE * 3 // 10], samples, np.tile(samples, 4)]
    alone = [recognizer.transcribe(c, sample_rate=RATE).text for c in clips]
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0, 1]):
        assert [recognizer.transcribe(clips[n], sample_rate=RATE).text for n in order] == [
            alone[n] for n in order
        ]
    assert all(alone[1:])


@pytest.mark.parametrize("name", [p.name for p in sorted(NETWORKS.iterdir()) if p.is_dir()])
@pytest.mark.parametrize("itn", [True, False])
def test_case_039_itn_that_does_not_come_back(name, itn, short_clip):
    """Of every export: row 3 answers what was asked, or a warning says that it does not."""
    import asr

    found = asr.Recognizer.load(NETWORKS / name, threads=1).transcribe(short_clip, itn=itn)
    honoured = found.itn is None or found.itn == itn
    assert ("itn_not_honoured" in found.warnings) != honoured


def test_case_039_a_network_that_answers_without_itn():
    """Asked with, answered without: the text it gave, and a warning."""
    recognizer = test_punctuation.two_passes(["▁hello"], ["▁you"], row_3="<|woitn|>")
    found = test_punctuation.hear(recognizer, itn=True)
    assert (found.text, found.warnings) == ("you", ("itn_not_honoured",))


def test_case_040_three_modes():
    """A list of spoken numbers: as spoken, in digits with marks, as spoken with marks."""
    spoken = ["▁hello", "测", "试"]
    recognizer = test_punctuation.two_passes(spoken, ["▁hello", ",", "1", "。"])
    texts = [test_punctuation.hear(recognizer, itn=mode).text for mode in (False, True)]
    assert texts == ["hello测试", "hello,1。"]
    assert test_punctuation.hear(recognizer).text == "hello,测试。"


def test_case_041_the_space_between_two_english_words():
    """`meet you`, never `meetyou`: spaces come from the pieces' markers."""
    assert say("▁meet", "▁you").text == "meet you"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["fifty pieces", "of gold"], "fifty pieces of gold"),
        (["今日は", "いい天気"], "今日はいい天気"),
    ],
)
def test_case_042_how_pieces_join(texts, expected):
    """With a space, unless both neighbours are written without."""
    test_text.test_segments_join_with_a_space_unless_both_neighbours_are_cjk(texts, expected)


def test_case_043_tags_without_words():
    """Only an event: an empty text, no exception, in every format."""
    found = say(*["<|BGM|>", "<|Speech|>"], prompts=[fakes.ID[p] for p in fakes.PROMPTS])
    assert (found.text, found.segments) == ("", ())
    for name in formats.NAMES:
        assert "BGM" not in formats.render(found, name, source="x")


@pytest.mark.parametrize("pieces", [["▁hello", "<|BGM|>", "▁you"], ["<|en|>", "▁hello", "▁you"]])
def test_case_044_a_tag_deletes_only_itself(pieces):
    """What stands before a tag stays."""
    assert say(*pieces).text == "hello you"


def test_case_045_text_that_looks_like_a_tag():
    """`<|no|>` spelled out is text, and has its times: they come from ids, not from the text."""
    found = say("▁hello", "<|", "No", "|>")
    assert found.text == "hello<|No|>"
    assert "".join(w.text for w in words_of(found)) == found.text
    assert formats.render(found, "txt", source="x", rich="tags").endswith("hello<|No|>\n")


def words_of(transcript):
    return [w for s in transcript.segments for w in s.words]


@pytest.mark.parametrize("option", ["--hotwords", "--hotword", "--beam-size"])
def test_case_048_an_option_that_does_nothing(cli, clip, option):
    """What is not implemented is refused, never accepted and ignored."""
    done = cli("transcribe", clip, option, "x")
    assert (done.code, done.out) == (2, "")
    assert f"unrecognized arguments: {option}" in done.err


@pytest.mark.parametrize("pieces", [["▁v", "ad", "测", "试"], ["▁hello", ",", "1", "测试", "。"]])
def test_case_049_a_time_for_each_unit(pieces):
    """Mixed scripts, digits and marks: words concatenated are the text without spaces."""
    found = say(*pieces)
    assert "".join(words(found)) == found.text.replace(" ", "")
    assert all(w.start_s < w.end_s for w in words_of(found))


def test_case_050_word_times_of_long_sound(recognizer, long_wav):
    """Monotone and within the file."""
    found = recognizer.transcribe(long_wav)
    times = [t for w in words_of(found) for t in (w.start_s, w.end_s)]
    assert len(times) > 300
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= found.audio_s


CUE = re.compile(r"(\d\d):(\d\d):(\d\d)[,.](\d{3}) --> (\d\d):(\d\d):(\d\d)[,.](\d{3})")


@pytest.mark.parametrize("name", ["srt", "vtt"])
def test_case_053_subtitles_of_long_sound(recognizer, long_wav, name):
    """Cues that begin before they end, in order, apart, within the file, with a text each."""
    found = recognizer.transcribe(long_wav)
    cues = (test_formats_timed.srt if name == "srt" else test_formats_timed.vtt)(found)
    assert len(cues) > 20
    times = [t for start, end, *_ in cues for t in (start, end)]
    assert times == sorted(times)
    assert all(start < end and all(lines) for start, end, lines in cues)
    assert times[-1] <= found.audio_s * 1000
    written = formats.render(found, name, source="x")
    assert len(CUE.findall(written)) == len(cues)


def test_case_054_the_last_cue_ends_with_the_sound(recognizer, clip, cli):
    """No 99:59:59: without word times a cue ends with its stretch; two durations, two fields."""
    test_formats_timed.test_a_segment_without_words_ends_with_itself()
    line = json.loads(cli("transcribe", clip, "--json").out)
    assert line["audio_s"] == 3.005
    assert line["wall_s"] != line["audio_s"]


def test_case_055_times_are_numbers_of_one_unit(cli, clip):
    """Seconds as floats, never strings: the schema holds every line to it."""
    line = json.loads(cli("transcribe", clip, "--json").out)
    VALIDATOR.validate(line)
    word = line["segments"][0]["words"][0]
    assert {type(word["start_s"]), type(word["end_s"])} == {float}
