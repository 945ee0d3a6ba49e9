"""asr.text: ids become text with times; prompt rows become fields, by row."""

import io

import fakes
import numpy as np
import pytest
import sentencepiece
from hypothesis import example, given
from hypothesis import strategies as st

import asr
from asr import layouts, text
from asr.text import Vocabulary, is_unspaced, join_segments

ID = fakes.ID
VOCABULARY = Vocabulary(fakes.PIECES)
BUILTIN = layouts.open_layout(fakes.BUILTIN).vocabulary
TAGS = [i for i in range(len(BUILTIN)) if BUILTIN.tag(i)]
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def say(*pieces, prompts=(0, 0, 0, 0), audio_s=1000.0, itn=False, **decoded):
    """Transcribe pieces of the fake vocabulary."""
    ids = [ID[p] for p in pieces]
    rows = [ID[p] if isinstance(p, str) else p for p in prompts]
    return text.transcribe(
        fakes.decoded(ids, prompts=rows, **decoded),
        VOCABULARY,
        audio_s=audio_s,
        requested_itn=itn,
    )


def words(transcript):
    return [w.text for s in transcript.segments for w in s.words]


def tokens(transcript):
    return [t for s in transcript.segments for w in s.words for t in w.tokens]


# Fields: by row.

TAG_OF = {"language": "en", "emotion": "HAPPY", "event": "Speech", "itn": "woitn"}


def fields(transcript):
    return transcript.language, transcript.emotion, transcript.event, transcript.itn


def test_the_four_prompt_rows_are_the_four_fields():
    """Row 0 is the language, 1 the emotion, 2 the event, 3 whether ITN was applied."""
    found = say("▁hello", prompts=[f"<|{t}|>" for t in TAG_OF.values()])
    assert fields(found) == ("en", "HAPPY", "Speech", False)
    assert found.text == "hello"


@pytest.mark.parametrize("missing", range(4))
def test_a_row_without_a_tag_moves_no_other_field(missing):
    """A prompt row that decodes to blank is a field without a value, never a lost word.

    Tools that skip four tokens, or read tags by position, lose a word here.
    """
    prompts = [f"<|{t}|>" for t in TAG_OF.values()]
    prompts[missing] = 0
    expected = ["en", "HAPPY", "Speech", False]
    expected[missing] = None
    found = say("▁hello", "s", prompts=prompts)
    assert tuple(expected) == fields(found)
    assert found.text == "hellos"


@pytest.mark.parametrize("row", range(4))
def test_a_word_in_a_prompt_row_is_neither_field_nor_text(row):
    """What stands in a prompt row is no speech, even when it is a word."""
    prompts = [0, 0, 0, 0]
    prompts[row] = "▁hello"
    found = say("▁you", prompts=prompts)
    assert fields(found) == (None, None, None, None)
    assert found.text == "you"


@pytest.mark.parametrize("tag", ["<|en|>", "<|HAPPY|>", "<|BGM|>", "<|withitn|>"])
def test_tags_in_speech_rows_are_neither_text_nor_fields(tag):
    """Only rows decide: a tag among the speech rows is dropped and changes no field."""
    found = say("▁hello", tag, "▁you", tag, prompts=("<|zh|>", "<|NEUTRAL|>", 0, "<|woitn|>"))
    assert (found.text, words(found)) == ("hello you", ["hello", "you"])
    assert fields(found) == ("zh", "NEUTRAL", None, False)


def test_only_tags_is_no_text():
    """A clip that holds an event and no words is an empty text, not an index error."""
    found = say("<|BGM|>", "<|Speech|>")
    assert (
        found.text, found.no_speech, found.reason, found.segments,
    ) == ("", True, "silence", ())  # fmt: skip


@pytest.mark.parametrize(
    "pieces", [("<no>",), ("<|", "No", "|>"), ("▁hello", "<|", "s", "|>")], ids="".join
)
def test_text_that_looks_like_a_tag_is_text(pieces):
    """Tags are single pieces of the token list; spelling one out is speech."""
    assert "".join(pieces).replace("▁", "") == say(*pieces).text


@pytest.mark.parametrize(
    ("tag", "requested", "warnings"),
    [
        ("<|withitn|>", True, ()),
        ("<|woitn|>", False, ()),
        ("<|woitn|>", True, ("itn_not_honoured",)),
        ("<|withitn|>", False, ("itn_not_honoured",)),
        (0, True, ()),
        ("<|en|>", True, ()),
    ],
)
def test_a_network_that_ignores_itn_is_told(tag, requested, warnings):
    """Row 3 answers what was asked for; another answer is a warning, none is not."""
    found = say("▁hello", prompts=(0, 0, 0, tag), itn=requested)
    assert warnings == found.warnings


def test_nospeech_in_row_0_is_silence():
    """The network's own verdict: no language, no text, whatever the speech rows hold."""
    found = say("▁hello", prompts=("<|nospeech|>", "<|NEUTRAL|>", "<|BGM|>", "<|woitn|>"))
    assert (
        found.text, found.language, found.event, found.reason,
    ) == ("", None, "BGM", "silence")  # fmt: skip
    assert found.no_speech
    assert found.confidence is None


# Byte pieces.


def byte_pieces(value):
    return [f"<0x{b:02X}>" for b in value]


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=8))
@example("测")
@example("😀é")
def test_byte_pieces_are_joined_before_decoding(spelled):
    """A character spelled byte by byte is that character, in one word with its neighbours."""
    found = say("▁v", *byte_pieces(spelled.encode()), "s")
    assert f"v{spelled}s" == found.text


def test_bytes_of_one_character_are_one_token_from_first_to_last():
    """Three bytes are one unit: it begins with the first and ends with the last."""
    found = say(*byte_pieces("测".encode()), spans=[(0, 1), (3, 5), (9, 10)])
    [token] = tokens(found)
    assert (token.text, token.start_s, token.end_s) == ("测", 0.0, 0.57)


def test_a_run_of_bytes_ends_at_a_piece():
    """Bytes separated by a piece do not make a character together."""
    first, second = byte_pieces("é".encode())
    assert f"hello{REPLACEMENT}s{REPLACEMENT}" == say("▁hello", first, "s", second).text


@given(st.binary(min_size=1, max_size=9))
@example(b"\xe4\xb8")
@example(b"\xff\xfe")
@example(b"ok\xe6")
def test_bytes_that_are_no_utf8_are_replaced_never_raised(value):
    """Half a character is a replacement mark; the words around it stay, no error is raised."""
    found = say("▁hello", *byte_pieces(value), "▁you")
    assert found.text.startswith("hello")
    assert found.text.endswith(" you")
    try:
        value.decode()
    except UnicodeDecodeError:
        assert REPLACEMENT in found.text
    else:
        assert f"hello{value.decode()} you" == found.text


@pytest.mark.parametrize("value", [b" ", b"\t", b"\n", b"  \n"])
def test_bytes_that_are_only_blanks_are_no_word(value):
    """A run of white space has nothing to hear: no empty word, no segment without text."""
    found = say(*byte_pieces(value))
    assert (found.text, found.segments, found.no_speech) == ("", (), True)
    assert words(say("▁hello", *byte_pieces(value), "▁you")) == ["hello", "you"]


# Words.


@pytest.mark.parametrize(
    ("pieces", "text", "expected"),
    [
        (["▁hello", "▁wor", "ld"], "hello world", ["hello", "world"]),
        (["▁meet", "▁you"], "meet you", ["meet", "you"]),
        (["▁meet", "▁", "you"], "meet you", ["meet", "you"]),
        (["No", "1"], "No1", ["No1"]),
        (["▁hello", ",", "▁wor", "ld", "."], "hello, world.", ["hello,", "world."]),
        (["▁you", "'", "s"], "you's", ["you's"]),
        (["测", "试"], "测试", ["测", "试"]),
        (["▁测", "试", "。"], "测试。", ["测", "试", "。"]),
        (["▁v", "ad", "测", "试"], "vad测试", ["vad", "测", "试"]),
        (["测", "试", "▁v", "ad"], "测试 vad", ["测", "试", "vad"]),
        (["测", "v", "ad"], "测vad", ["测", "vad"]),
        (["カ", "ナ"], "カナ", ["カ", "ナ"]),
        (["▁안녕", "하세요", "▁저는"], "안녕하세요 저는", ["안녕하세요", "저는"]),
        (["▁ñ", "é"], "ñé", ["ñé"]),
    ],
    ids=lambda v: "".join(v) if isinstance(v, list) else "",
)
def test_words_are_what_the_script_calls_words(pieces, text, expected):
    """A marker opens a word; so does each character of a script without spaces; Korean has them."""
    vocabulary = Vocabulary([*fakes.PIECES, "you", "v"])
    ids = [vocabulary.pieces.index(p) for p in pieces]
    found = _transcribe(ids, vocabulary)
    assert (text, expected) == (found.text, words(found))


def _transcribe(ids, vocabulary, audio_s=1000.0, **decoded):
    return text.transcribe(
        fakes.decoded(ids, **decoded), vocabulary, audio_s=audio_s, requested_itn=False
    )


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        (["▁"], ""),
        (["▁", "▁"], ""),
        (["▁", "s"], "s"),
        (["▁hello", "▁"], "hello"),
        (["▁hello", "▁", "<|en|>", "s"], "hello s"),
        (["▁", "测"], "测"),
    ],
    ids="".join,
)
def test_a_marker_alone_belongs_to_what_follows(pieces, expected):
    """A lone word marker is a space before the next piece, and nothing at the end."""
    found = say(*pieces)
    assert (expected, expected.split()) == (found.text, words(found))
    assert found.no_speech == (not expected)


@given(st.lists(st.integers(1, len(fakes.PIECES) - 1), max_size=20))
def test_concatenated_words_are_the_text_without_spaces(ids):
    """One entry per unit and nothing beside them: words, tokens and text say the same."""
    found = _transcribe(ids, VOCABULARY)

    def squeeze(parts):
        return "".join("".join(parts).split())

    assert squeeze(found.text) == squeeze(words(found))
    assert squeeze(found.text) == squeeze(t.text for t in tokens(found))
    assert all(words(found))
    assert bool(found.text) == (not found.no_speech) == (found.reason is None)


@given(st.lists(st.sampled_from([i for i in range(1, len(BUILTIN)) if i not in TAGS])))
@example([ID_HE := BUILTIN.pieces.index("he"), BUILTIN.pieces.index("▁"), ID_HE])
@example([1, ID_HE, 2, ID_HE])
def test_text_of_the_builtin_model_is_what_sentencepiece_says(ids):
    """Our detokenising is SentencePiece's own, for any ids that are no tags (0 is blank)."""
    expected = _builtin_processor().decode(ids)
    assert expected.strip() == _transcribe(ids, BUILTIN).text


def _builtin_processor(loaded=[]):  # noqa: B006 - loaded once
    if not loaded:
        path = fakes.BUILTIN / "tiny-en.bpe.model"
        loaded.append(sentencepiece.SentencePieceProcessor(model_file=str(path)))
    return loaded[0]


@pytest.fixture(scope="module")
def byte_processor(tmp_path_factory):
    """A SentencePiece model of many scripts with byte pieces, trained here in a second."""
    lines = ["hello world how are you", "测试一下今天天气", "안녕하세요 저는 한국", "カタカナ"] * 9
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=330, model_type="bpe",
        byte_fallback=True, hard_vocab_limit=False, minloglevel=2, num_threads=1,
        character_coverage=0.98,
    )  # fmt: skip
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@given(st.data())
def test_text_with_bytes_is_what_sentencepiece_says(byte_processor, data):
    """Bytes included, where they are UTF-8; where not, both put replacement marks there."""
    size = byte_processor.vocab_size()
    ids = data.draw(st.lists(st.integers(1, size - 1) | st.integers(3, 258), max_size=30))
    vocabulary = Vocabulary(byte_processor.id_to_piece(list(range(size))))
    expected, found = byte_processor.decode(ids), _transcribe(ids, vocabulary).text

    assert _one_mark(expected.strip()) == _one_mark(found)


def _one_mark(s):
    """SentencePiece marks each bad byte, Python each bad sequence: both are one mark here."""
    while REPLACEMENT * 2 in s:
        s = s.replace(REPLACEMENT * 2, REPLACEMENT)
    return s


@given(st.text(max_size=20))
def test_spelling_text_with_bytes_gives_it_back(byte_processor, spelled):
    """Any text that SentencePiece can encode comes back as SentencePiece decodes it."""
    ids = byte_processor.encode(spelled)
    vocabulary = Vocabulary(byte_processor.id_to_piece(list(range(byte_processor.vocab_size()))))
    assert byte_processor.decode(ids).strip() == _transcribe(ids, vocabulary).text


# Segments.

PIECES_OF_TEXT = st.lists(
    st.sampled_from(["fifty pieces", "of gold", "今日は", "天気。", "", "안녕"])
)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], ""),
        (["", "a", ""], "a"),
        (["fifty pieces", "of gold"], "fifty pieces of gold"),
        (["今日は", "いい天気"], "今日はいい天気"),
        (["你好。", "再见"], "你好。再见"),
        (["你好", "hello"], "你好 hello"),
        (["hello", "你好"], "hello 你好"),
        (["안녕", "하세요"], "안녕 하세요"),
        (["ends.", "Next"], "ends. Next"),
    ],
)
def test_segments_join_with_a_space_unless_both_neighbours_are_cjk(texts, expected):
    """Latin words are never glued; scripts without spaces never get one."""
    assert expected == join_segments(texts)


@given(PIECES_OF_TEXT)
def test_joining_loses_nothing(texts):
    """Joined text without spaces is the parts without spaces; never two spaces, none outside."""
    joined = join_segments(texts)
    assert "".join(texts).replace(" ", "") == joined.replace(" ", "")
    assert "  " not in joined
    assert joined.strip() == joined


@given(PIECES_OF_TEXT, PIECES_OF_TEXT)
def test_joining_in_two_steps_is_joining_at_once(left, right):
    """Where a stream was cut does not change its text."""
    assert join_segments([*left, *right]) == join_segments(
        [join_segments(left), join_segments(right)]
    )


@pytest.mark.parametrize("character", "测試カなー。、「」\uff08\uff09！々〇𠀀")
def test_scripts_without_spaces(character):
    """Ideographs, kana, their punctuation and full-width forms are written without spaces."""
    assert is_unspaced(character)


@pytest.mark.parametrize("character", "aZé1.,!?안ñЖαا😀 ")
def test_scripts_with_spaces(character):
    """Latin, Cyrillic, Greek, Arabic, Hangul and ASCII punctuation are not."""
    assert not is_unspaced(character)


# Times and confidence.


def test_a_token_begins_half_a_row_before_its_first_row():
    """LFR row i is centred on fbank frame 6 i: row i spans 60 i - 30 to 60 i + 30 ms, from 0."""
    found = say("▁hello", "▁you", spans=[(0, 1), (10, 13)])
    assert [(t.start_s, t.end_s) for t in tokens(found)] == [(0.0, 0.03), (0.57, 0.75)]


@given(st.data())
def test_times_grow_and_stay_within_the_audio(data):
    """Starts and ends never go back, never leave the source, and each end follows its start."""
    gaps = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=10))
    spans, end = [], 0
    for gap, length in gaps:
        spans.append((end + gap, end + gap + length))
        end = spans[-1][1]
    ids = data.draw(
        st.lists(st.integers(1, len(fakes.PIECES) - 1), min_size=len(spans), max_size=len(spans))
    )
    samples = data.draw(st.integers(960 * max(end - 1, 0) + 400, 960 * end + 4000))
    rate = data.draw(st.sampled_from([16000, 44100, 11025]))
    audio_s = round(samples * rate / 16000) / rate
    found = _transcribe(ids, VOCABULARY, audio_s=audio_s, spans=spans)
    times = [t for token in tokens(found) for t in (token.start_s, token.end_s)]
    assert sorted(times) == times
    assert all(0 <= t <= audio_s for t in times)
    for part in (*found.segments, *(w for s in found.segments for w in s.words), *tokens(found)):
        assert part.start_s < part.end_s
    for segment in found.segments:
        assert segment.start_s == segment.words[0].start_s
        assert segment.end_s == segment.words[-1].end_s


def test_no_end_lies_beyond_an_audio_of_many_digits():
    """Rounding must not move an end past the source: at 44.1 kHz lengths have many digits."""
    audio_s = 44123 / 44100  # 1.000521541...
    found = say("▁hello", spans=[(0, 40)], audio_s=audio_s)
    assert found.segments[0].end_s <= audio_s


def test_a_token_span_is_its_run():
    """A token held over five rows lasts five rows."""
    [token] = tokens(say("▁hello", spans=[(3, 8)]))
    assert token.end_s - token.start_s == pytest.approx(0.3)


def with_log_probs(ids, log_probs, entropies):
    decoded = fakes.decoded(ids)
    object.__setattr__(decoded, "log_probs", np.array(log_probs, np.float32))
    object.__setattr__(decoded, "entropies", np.array(entropies, np.float32))
    return text.transcribe(decoded, VOCABULARY, audio_s=100.0, requested_itn=False)


def test_confidence_is_the_geometric_mean_and_entropy_the_mean():
    """Word, segment and file: exp of the mean log-probability, mean entropy, over all tokens."""
    found = with_log_probs(
        [ID["▁wor"], ID["ld"], ID["▁you"]], np.log([0.5, 0.125, 0.8]), [0.1, 0.3, 0.5]
    )
    first, second = found.segments[0].words
    assert (first.confidence, first.entropy) == pytest.approx((0.25, 0.2))
    assert (second.confidence, second.entropy) == pytest.approx((0.8, 0.5))
    whole = (0.5 * 0.125 * 0.8) ** (1 / 3), 0.3
    assert whole == pytest.approx((found.confidence, found.entropy))
    assert whole == pytest.approx((found.segments[0].confidence, found.segments[0].entropy))


def test_a_character_of_bytes_is_as_sure_as_all_its_bytes():
    """The unit of several byte pieces takes the mean log-probability and entropy of all."""
    ids = [ID[p] for p in byte_pieces("é".encode())]
    [token] = tokens(with_log_probs(ids, np.log([0.9, 0.4]), [0.2, 0.6]))
    assert (token.confidence, token.entropy) == pytest.approx((0.6, 0.4))


@given(st.lists(st.floats(-20, 0, width=32), min_size=1, max_size=8))
def test_confidences_are_probabilities(log_probs):
    """Every confidence lies in 0 to 1, certainty included."""
    found = with_log_probs([ID["▁hello"]] * len(log_probs), log_probs, [0.0] * len(log_probs))
    assert all(0 < t.confidence <= 1 for t in tokens(found))
    assert 0 < found.confidence <= 1 + 1e-12


def test_without_tokens_there_is_a_no_speech_score_and_no_confidence():
    """Silence: confidence and entropy are None, the score is the mean blank probability."""
    found = _transcribe([], VOCABULARY, log_prob=float(np.log(0.75)))
    assert (found.confidence, found.entropy) == (None, None)
    assert found.no_speech_score == pytest.approx(0.75)


def test_with_tokens_there_is_a_confidence_and_no_score():
    """A transcript has either, never both."""
    found = say("▁hello")
    assert found.no_speech_score is None
    assert found.confidence == pytest.approx(np.exp(-0.1))


def test_an_id_outside_the_token_list_is_named():
    """A network with more columns than pieces is told with both numbers, not an IndexError."""
    decoded = fakes.decoded([len(fakes.PIECES) + 3])
    with pytest.raises(
        asr.DecodeError, match=rf"below {len(fakes.PIECES)} .* found {len(fakes.PIECES) + 3}"
    ):
        text.transcribe(decoded, VOCABULARY, audio_s=1.0, requested_itn=False)


@pytest.mark.parametrize(
    ("piece", "tag", "byte", "surface"),
    [
        ("<|en|>", "en", None, ""),
        ("<0xE4>", None, 0xE4, "<0xE4>"),
        ("<s>", None, None, ""),
        ("</s>", None, None, ""),
        ("▁hello", None, None, "▁hello"),
        ("<no>", None, None, "<no>"),
        ("<|", None, None, "<|"),
    ],
)
def test_what_a_piece_means_is_read_from_its_spelling(piece, tag, byte, surface):
    """A tag, a byte, a control piece or text: one meaning each."""
    found = VOCABULARY.tag(ID[piece]), VOCABULARY.byte(ID[piece]), VOCABULARY.surface(ID[piece])
    assert (tag, byte, surface) == found


def test_a_vocabulary_knows_its_size_and_tags():
    """Length and tags of the token list, for checks against the network."""
    assert len(VOCABULARY) == len(fakes.PIECES)
    assert VOCABULARY.has_tag("ko")
    assert not VOCABULARY.has_tag("hello")
