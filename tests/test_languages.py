"""asr.languages: a text in one of the languages allowed, at the price of a second call at most."""

import shutil
from pathlib import Path

import fakes
import numpy as np
import pytest

import asr
from asr import audio
from asr.languages import Languages

NETWORKS = Path(__file__).parent / "networks"
SECOND = fakes.hiss(16000)
ROWS = {"auto": 0, "zh": 3, "en": 4, "yue": 7, "ja": 11, "ko": 12}


def hearing(heard, likes=(), spoken="▁hello"):
    """A recogniser that hears a language in row 0, likes some less, and obeys no prompt.

    The word it hears tells which prompt row it was asked with.
    """

    def answer(inputs):
        asked = int(inputs["language"][0])
        word = spoken if asked == 0 else ("▁wor" if asked == ROWS["en"] else "测")
        values = fakes.rows([word, None], (f"<|{heard}|>", *fakes.PROMPTS[1:]))
        for number, name in enumerate(likes):
            values[0, fakes.ID[f"<|{name}|>"]] = 9 - number
        return values

    made = fakes.recognizer(answer)
    object.__setattr__(made.layout, "language_ids", {**ROWS, "nospeech": 13})
    return made


def asked(recognizer):
    return [int(call["language"][0]) for call in recognizer.engine.calls]


def test_a_language_that_is_allowed_stands():
    """Heard freely, found inside: one call, and the text of that call."""
    recognizer = hearing("en", likes=["zh"])
    found = recognizer.transcribe(SECOND, sample_rate=16000, language=("zh", "en"))
    assert (found.text, found.language, asked(recognizer)) == ("hello", "en", [ROWS["auto"]])


@pytest.mark.parametrize(
    ("allowed", "best", "text"), [(("zh", "en"), "zh", "测"), (("en", "ko"), "en", "wor")]
)
def test_another_language_is_heard_again_with_the_best_allowed(allowed, best, text):
    """Cantonese where only these can be: the runner-up among them is asked for, and reported."""
    recognizer = hearing("yue", likes=["ja", "zh", "en"])
    found = recognizer.transcribe(SECOND, sample_rate=16000, language=iter(allowed))
    assert (found.text, found.language) == (text, best)
    assert asked(recognizer) == [ROWS["auto"], ROWS[best]]


def test_a_row_without_a_language_is_settled_too():
    """Blank in row 0 is no language: the best of those allowed is."""
    recognizer = hearing("Speech", likes=["en"])
    assert recognizer.transcribe(SECOND, sample_rate=16000, language=["en"]).language == "en"
    assert asked(recognizer) == [0, 4]


def test_silence_stays_silence():
    """`nospeech` is no language: nobody is asked to hear words in a pause."""
    recognizer = hearing("nospeech", likes=["en"])
    found = recognizer.transcribe(SECOND, sample_rate=16000, language=("zh", "en"))
    assert (found.text, found.language, found.reason) == ("", None, "silence")
    assert asked(recognizer) == [0]


def test_each_piece_of_long_sound_is_settled_by_itself():
    """Two people, two languages: no piece decides for another."""
    recognizer = hearing("yue", likes=["zh"])
    found = recognizer.transcribe(
        fakes.hiss(16000 * 40), sample_rate=16000, language=("zh",), vad=False
    )
    assert len(found.segments) >= 2
    assert asked(recognizer) == [0, 3] * len(found.segments)


@pytest.mark.parametrize("language", ["auto", "en"])
def test_without_a_set_nothing_is_asked_twice(language):
    """No option, no price: one call with the prompt that was named."""
    recognizer = hearing("yue", likes=["en"])
    assert recognizer.transcribe(SECOND, sample_rate=16000, language=language).language == "yue"
    assert asked(recognizer) == [ROWS[language]]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["zn"], "unknown language 'zn'.*did you mean 'zh'"),
        (["en", "auto"], "'auto' is no language: expected some of zh, en, yue, ja, ko"),
        (["nospeech"], "'nospeech' is no language"),
        ([], "found none"),
    ],
)
def test_what_is_no_language_is_refused_before_the_file_is_read(names, said, tmp_path):
    """A mistyped set is a usage error with the list, never the whole set."""
    for method in (hearing("en").transcribe, hearing("en").transcribe_channels):
        with pytest.raises(asr.UsageError, match=said):
            method(tmp_path / "nope.wav", language=names)


def test_the_built_in_model_needs_no_second_call(recognizer, clip, cli, monkeypatch):
    """English among those allowed: the same text; a language it lacks is refused with its list."""
    free = recognizer.transcribe(clip)
    found = recognizer.transcribe(clip, language=("zh", "en"))
    assert (free.text, free.language) == (found.text, found.language)
    done = cli("transcribe", clip, "--languages", "en,ja")
    assert done.code == 2
    assert "unknown language 'ja': expected one of auto, zh, en" in done.err
    assert cli("transcribe", clip, "--languages", "en,zh").out == free.text + "\n"


@pytest.mark.parametrize("name", [p.name for p in sorted(NETWORKS.iterdir()) if p.is_dir()])
def test_a_real_graph_is_settled_by_its_own_scores(name, short_clip, tmp_path):
    """Every exporter's network: the answer is that of the best allowed language's own prompt.

    The oracle takes the scores of the free pass from the engine, not from the code under test.
    """
    shutil.copytree(NETWORKS / name, tmp_path / name)
    recognizer = asr.Recognizer.load(tmp_path / name, threads=1)
    layout, front_end = recognizer.layout, recognizer.front_end
    sound = audio.resample(audio.read(short_clip), 16000)
    features = front_end.cmvn(front_end.lfr(front_end.fbank(sound)))
    binding = layout.connect(recognizer.engine.inputs, recognizer.engine.outputs)
    tensors = binding.bind(features, layout.language_ids["auto"], layout.itn_ids[False])
    row = binding.unbind(recognizer.engine.run(tensors), 0.06).values[0]
    allowed = ("ja", "ko", "zh")
    scores = {lang: row[list(layout.vocabulary.pieces).index(f"<|{lang}|>")] for lang in allowed}
    best = max(scores, key=scores.get)
    expected = recognizer.transcribe(short_clip, language=best)
    found = recognizer.transcribe(short_clip, language=allowed)
    assert found.text == expected.text != recognizer.transcribe(short_clip).text
    assert found.language in (None, best)  # random weights: row 0 may hold no tag


def test_ties_and_order():
    """The set is ordered as it was named only where scores tie; ids need not be in order."""
    languages = Languages({7: "en", 3: "zh"}, 5)
    row = np.zeros(9, np.float32)
    row[[3, 8]] = 1, 2
    assert languages.settle(row) == ("zh", False)
    row[3] = 3
    assert languages.settle(row) == ("zh", True)
    row[5] = 4
    assert languages.settle(row)[1] is True
