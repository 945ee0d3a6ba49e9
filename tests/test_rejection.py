"""asr.rejection: a model folder's thresholds withhold texts that are not sure enough."""

import json
import shutil
from dataclasses import replace

import pytest
from conftest import ROOT

import asr
from asr import rejection
from asr.errors import LayoutError
from asr.rejection import Thresholds


def test_a_folder_without_thresholds_shows_everything(tmp_path, recognizer, clip):
    """No file, no rejection."""
    assert rejection.read(tmp_path) is None
    transcript = recognizer.transcribe(clip)
    assert rejection.apply(transcript, None) is transcript


@pytest.mark.parametrize(
    ("confidence", "entropy", "accepted"),
    [(0.5, 1.0, True), (0.49, 1.0, False), (0.5, 1.01, False), (None, None, False)],
)
def test_both_thresholds_must_be_met(confidence, entropy, accepted):
    """The bounds themselves are good enough."""
    assert Thresholds(0.5, 1.0).accept(confidence, entropy) is accepted
    assert Thresholds(0.0, None).accept(confidence, entropy) is (confidence is not None)


def test_what_is_written_is_read(tmp_path):
    """The file of asr evaluate --out goes into a model folder as it is."""
    for thresholds in (Thresholds(0.25, 1.5), Thresholds(0, None)):
        (tmp_path / "rejection.json").write_text(thresholds.to_json(chosen_on=["dev"]))
        assert rejection.read(tmp_path) == thresholds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "expected JSON"),
        ("[1]", "schema asr-rejection/2"),
        ({}, "word_confidence: expected 0 to 1, found None"),
        ({"word_confidence": 1.1}, "found 1.1"),
        ({"word_confidence": True}, "found True"),
        ({"word_confidence": "0.5"}, "found '0.5'"),
        ({"word_confidence": 0.5, "entropy": -1}, "entropy: expected null or nats"),
        ({"word_confidence": float("nan")}, "found nan"),
    ],
)
def test_damaged_thresholds_are_a_damaged_model(tmp_path, text, message):
    """Never shown as if there were none."""
    if isinstance(text, dict):
        text = json.dumps({"schema": rejection.SCHEMA_ID, **text})
    (tmp_path / "rejection.json").write_text(text)
    with pytest.raises(LayoutError, match=message):
        rejection.read(tmp_path)


@pytest.fixture
def strict(tmp_path):
    """The built-in model with thresholds that nothing reaches."""
    folder = tmp_path / "strict"
    shutil.copytree(ROOT / "asr/builtin/tiny-en", folder)
    (folder / "rejection.json").write_text(Thresholds(1.0, 0.0).to_json())
    return folder


def test_a_withheld_text(strict, clip, recognizer):
    """Empty text, rejected, the reason; what was heard stays in the segments."""
    heard, withheld = (r.transcribe(clip) for r in (recognizer, asr.Recognizer.load(strict)))
    assert (withheld.text, withheld.rejected, withheld.reason) == ("", True, "low_confidence")
    assert not withheld.no_speech
    assert replace(withheld, wall_s=0.0) == replace(heard.withheld(), wall_s=0.0)
    assert all(segment.rejected for segment in withheld.segments)
    assert withheld.shown == ()


def test_one_doubtful_word_withholds_the_text(recognizer, clip):
    """The bound is on the least sure word, not on the mean of all."""
    heard = recognizer.transcribe(clip)
    least = rejection.least_word(heard)
    words = [word.confidence for segment in heard.segments for word in segment.words]
    assert least == min(words) < heard.confidence
    between = Thresholds((least + heard.confidence) / 2, None)
    assert rejection.apply(heard, between).rejected
    assert not rejection.apply(heard, Thresholds(least, None)).rejected


def test_the_command_tells_why(cli, strict, clip):
    """An empty line on stdout, the reason on stderr, exit 0."""
    done = cli("transcribe", clip, "--model", strict)
    assert (done.code, done.out) == (0, "\n")
    assert done.err.startswith(f"asr: {clip}: no text (low_confidence)\n")
