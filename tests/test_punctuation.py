"""asr.punctuation: marks and case from the text with digits, words from the text without."""

import fakes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr.punctuation import MARKS, spread

PAIRS = [
    # Nothing but marks and case differs.
    ("hello world", "Hello, world.", "Hello, world."),
    ("i'm fine thanks", "I'm fine, thanks!", "I'm fine, thanks!"),
    ("你好吗我很好", "你好吗?我很好。", "你好吗?我很好。"),
    ("カナです", "カナです。", "カナです。"),
    ("안녕 하세요", "안녕 하세요?", "안녕 하세요?"),
    # Numbers in digits: the mark behind the number goes behind its last word.
    ("i'm twenty three okay", "I'm 23, okay?", "I'm twenty three, okay?"),
    ("twenty three people came", "23 people came.", "twenty three people came."),
    ("it costs three point five dollars ok", "It costs $3.5, OK.",
     "It costs three point five dollars, OK."),
    ("one thousand two hundred yes", "1,200, yes.", "one thousand two hundred, yes."),
    ("at ten thirty sharp", "At 10:30, sharp.", "At ten thirty, sharp."),
    ("one two three", "1, 2, 3.", "one, two, three."),
    ("twenty-three is prime", "23 is prime.", "twenty-three is prime."),
    ("气温二十三度百分之五十的人", "气温23度,50%的人。", "气温二十三度,百分之五十的人。"),
    ("二零二三年五月一号", "2023年5月1号。", "二零二三年五月一号。"),
    ("三点一四和五", "3.14、和5。", "三点一四、和五。"),
    ("vad测试完成了", "VAD测试,完成了。", "VAD测试,完成了。"),
    # Words that only one of them has.
    ("well uh yes", "Well, yes.", "Well, uh yes."),
    ("yes", "So, yes.", "yes."),
    ("hello hello", "Hello.", "Hello. hello"),
    # A full stop of an abbreviation is none of a sentence.
    ("mister smith came", "Mr. Smith came.", "mister Smith came."),
    ("see the doctor", "See the Dr.", "See the doctor."),
    # What is there already stays, once.
    ("hello, world", "Hello, world.", "Hello, world."),
    ("the boys' house", "The boys', house.", "The boys', house."),
    # Pairs are not taken; nothing to take; nothing to give it to.
    ("he said yes", "He said: “Yes.”", "He said: Yes."),
    ("hello", "hello", "hello"),
    ("hello", "", "hello"),
    ("", "Hello.", ""),
    ("...", "Hello.", "..."),
]  # fmt: skip


def bare(text):
    return "".join(c.lower() for c in text if c not in MARKS)


@pytest.mark.parametrize(("plain", "written", "expected"), PAIRS)
def test_pairs(plain, written, expected):
    """What a reader would write by hand."""
    assert "".join(spread(plain, written)) == expected


ALPHABET = "abC2 3.,?!'’-%一二三。,?カー안 \u0301İß"


@given(st.text(ALPHABET, max_size=40), st.text(ALPHABET, max_size=40))
def test_without_marks_and_case_it_is_the_plain_text(plain, written):
    """Whatever the other text says, no letter, digit or blank is added, lost or moved."""
    pieces = spread(plain, written)
    assert len(pieces) == len(plain)
    assert bare("".join(pieces)) == bare(plain)


@given(st.lists(st.sampled_from(["a", "bc", "d'e", "2"]), min_size=1, max_size=8), st.data())
def test_a_text_that_only_lost_its_marks_and_case_gets_them_back(words, data):
    """The way there and back: every mark, in its place."""
    marks = data.draw(st.lists(st.sampled_from(["", ",", ".", "?!"]), min_size=8, max_size=8))
    upper = data.draw(st.lists(st.booleans(), min_size=8, max_size=8))
    written = " ".join(
        (w.upper() if up else w) + m for w, m, up in zip(words, marks, upper, strict=False)
    )
    assert "".join(spread(bare(written), written)) == written


# Through the pipeline.


def two_passes(plain, written, *, row_3="<|withitn|>"):
    """A recogniser that answers with other pieces when ITN is asked for."""

    def answer(inputs):
        with_itn = int(inputs["textnorm"][0]) == 14
        prompts = (*fakes.PROMPTS[:3], row_3 if with_itn else "<|woitn|>")
        pieces = [p for piece in (written if with_itn else plain) for p in (piece, None)]
        return fakes.rows(pieces, prompts)

    return fakes.recognizer(answer)


def hear(recognizer, itn="punctuation", **options):
    return recognizer.transcribe(fakes.hiss(16000), sample_rate=16000, itn=itn, **options)


PLAIN = ["▁hello", "测", "试", "▁v", "ad"]
WRITTEN = ["▁hello", ",", "1", "测", "试", "。", "▁v", "ad", "."]


def test_the_words_of_one_pass_get_the_marks_of_the_other():
    """Text, segment and words agree; times, tokens and confidence are those of the plain pass."""
    recognizer = two_passes(PLAIN, WRITTEN)
    plain, found = hear(recognizer, itn=False), hear(recognizer)
    assert found.text == found.segments[0].text == "hello,测试。 vad."
    assert [w.text for w in found.segments[0].words] == ["hello,", "测", "试。", "vad."]
    for before, after in zip(plain.segments[0].words, found.segments[0].words, strict=True):
        assert (before.start_s, before.end_s, before.tokens) == (
            after.start_s, after.end_s, after.tokens,
        )  # fmt: skip
    assert (found.confidence, found.itn, found.warnings) == (plain.confidence, False, ())
    assert [int(c["textnorm"][0]) for c in recognizer.engine.calls] == [15, 15, 14]


def test_three_modes_are_three_texts():
    """In words without marks, in words with marks, in digits with marks."""
    recognizer = two_passes(["▁hello", "▁you"], ["▁hello", ",", "1", "."])
    assert hear(recognizer, itn=False).text == "hello you"
    assert hear(recognizer).text == "hello, you."
    assert hear(recognizer, itn=True).text == "hello,1."


@pytest.mark.parametrize(
    ("written", "row_3", "warnings"),
    [
        (PLAIN, "<|withitn|>", ("no_punctuation",)),
        ([], "<|withitn|>", ("no_punctuation",)),
        (PLAIN, "<|woitn|>", ("itn_not_honoured",)),
        (WRITTEN, "<|woitn|>", ("itn_not_honoured",)),
        (PLAIN, "<|Speech|>", ("no_punctuation",)),
    ],
)
def test_a_model_that_cannot_says_so(written, row_3, warnings):
    """The plain text stays, with a warning that tells which way it failed."""
    found = hear(two_passes(PLAIN, written, row_3=row_3))
    assert found.warnings == warnings
    assert bare(found.text) == "hello测试 vad"


def test_silence_is_not_asked_twice():
    """Nothing heard, nothing to punctuate."""
    recognizer = two_passes([], WRITTEN)
    assert (hear(recognizer).reason, len(recognizer.engine.calls)) == ("silence", 1)


def test_the_settled_language_is_that_of_both_passes():
    """The second pass is asked in the language that the first one settled on."""
    recognizer = two_passes(PLAIN, WRITTEN)
    assert hear(recognizer, language=["zh"]).language == "zh"
    assert [int(c["language"][0]) for c in recognizer.engine.calls] == [0, 3, 3]


def test_a_phrase_list_has_its_own_labels(recognizer, clip, tmp_path, cli):
    """Beside a list there is no text to punctuate: refused, not ignored."""
    (tmp_path / "phrases.txt").write_text("seven\n")
    done = cli("transcribe", clip, "--punct-only", "--phrases", tmp_path / "phrases.txt")
    assert (done.code, done.out) == (2, "")
    assert "punctuation: expected no phrase list" in done.err


def test_the_command_says_what_it_costs(cli, clip):
    """--help names the price; the built-in model, which has no punctuation, warns."""
    assert "runs the network twice" in cli("transcribe", "--help").out
    done = cli("transcribe", clip, "--punct-only")
    assert (done.code, done.out) == (0, cli("transcribe", clip).out)
    assert "warning: " in done.err
