"""asr.formats: subtitles and tables that every player and spreadsheet can read."""

import dataclasses
import html
import re
import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from asr import formats, text
from asr.formats import cues
from asr.records import Segment, Token, Word

CLOCK = r"(\d\d+):([0-5]\d):([0-5]\d)[{}](\d\d\d)"
SRT_CUE = re.compile(rf"(\d+)\n{CLOCK.format(',')} --> {CLOCK.format(',')}\n((?:.+\n)+)")
VTT_CUE = re.compile(rf"(){CLOCK.format('.')} --> {CLOCK.format('.')}\n((?:.+\n)+)")


def made(*segments, audio_s=10.0, **fields):
    """A transcript of segments, each a list of (blank before, word, start_s, end_s)."""
    parts = []
    for words in segments:
        record = tuple(
            Word(w, start, end, 0.9, 0.1, (Token(w, start, end, 0.9, 0.1),))
            for _, w, start, end in words
        )
        line = "".join(blank + w for blank, w, _, _ in words).strip()
        parts.append(Segment(line, words[0][2], words[-1][3], 0.9, 0.1, record))
    heard = text.from_segments(tuple(parts), reason=None, audio_s=audio_s)
    return dataclasses.replace(heard, wall_s=0.5, **fields)


def spoken(line, *, step_s=0.3, start_s=0.0, audio_s=None):
    """A transcript of one segment: a word per blank-separated part, step_s each."""
    words = [
        (" " if n else "", w, start_s + n * step_s, start_s + (n + 1) * step_s)
        for n, w in enumerate(line.split())
    ]
    return made(words, audio_s=audio_s or words[-1][3] + 1)


def parsed(written, pattern):
    """(number, start ms, end ms, lines) of each cue; nothing in the file may be anything else."""
    found, at = [], 0
    while at < len(written):
        match = pattern.match(written, at)
        assert match, f"no cue at {written[at : at + 80]!r}"
        h, m, s, ms, h2, m2, s2, ms2 = map(int, match.groups()[1:9])
        start, end = ((h * 60 + m) * 60 + s) * 1000 + ms, ((h2 * 60 + m2) * 60 + s2) * 1000 + ms2
        found.append((match[1], start, end, match[10].splitlines()))
        at = match.end()
        if at < len(written):
            assert written[at] == "\n"
            at += 1
    return found


def srt(transcript):
    found = parsed(formats.render(transcript, "srt", source="x"), SRT_CUE)
    assert [n for n, *_ in found] == [str(n + 1) for n in range(len(found))]
    return [c[1:] for c in found]


def vtt(transcript):
    head, _, body = formats.render(transcript, "vtt", source="x").partition("\n")
    assert head == "WEBVTT"
    assert not body or body[0] == "\n"
    assert not re.search(r"&(?!amp;|lt;|gt;)|<", body)
    return [
        (start, end, [html.unescape(line) for line in lines])
        for _, start, end, lines in parsed(body[1:], VTT_CUE)
    ]


def lrc(transcript):
    written = formats.render(transcript, "lrc", source="x")
    found = [re.fullmatch(r"\[(\d\d+):([0-5]\d)\.(\d\d)\](.+)", x) for x in written.splitlines()]
    return [(int(m[1]) * 60000 + int(m[2]) * 1000 + int(m[3]) * 10, m[4]) for m in found]


def tsv(transcript, **options):
    head, *rows = formats.render(transcript, "tsv", source="x", **options).split("\n")[:-1]
    assert head == "start\tend\ttext"
    return [(int(a), int(b), line) for a, b, line in (row.split("\t") for row in rows)]


def width(line):
    """Columns of a terminal."""
    return sum(
        0 if unicodedata.category(c) in ("Mn", "Me", "Cf")
        else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in line
    )  # fmt: skip


def solid(line):
    """The text without blanks: what no format may lose or add to."""
    return re.sub(r"[\s\x00-\x1f\x7f-\x9f]", "", line)


# Laws.

LETTERS = st.sampled_from(
    [*"abcXYZ019'.,?!&<>-", "é", "e\u0301", "測", "試", "。", ",", "「", "」", "カ", "ー", "ッ",
     "안", "ß", "😊", "\u200d", "\n", "\t", "\r\n", "\x00", "\u2028", "-->", "<b>", "{", "[0:1.00]"]
)  # fmt: skip
RAW_WORDS = st.one_of(
    st.lists(LETTERS, min_size=1, max_size=8).map("".join),
    st.builds(lambda some, n: "".join(some) * n, st.lists(LETTERS, max_size=4), st.integers(9, 40)),
    st.sampled_from(["one", "seven", "hello", "測", "試", "。", "1", "3.5", "안녕하세요"]),
).filter(str.strip)
GAPS = st.sampled_from([0.0, 0.0, 0.03, 0.06, 0.3, 0.9999, 1.0, 2.5, 12.0])
LENGTHS = st.sampled_from([0.0, 0.0004, 0.06, 0.06, 0.18, 0.5, 3.0, 8.0])


@st.composite
def transcripts(draw, words=RAW_WORDS, *, blanks=("", " "), lengths=LENGTHS, wild=True):
    """Segments of any words, lengths and pauses; wild ones have times that cannot be."""
    word = st.tuples(st.sampled_from(blanks), words, GAPS, lengths, st.booleans())
    at, parts = draw(st.sampled_from([0.0, 0.03, 3599.99])), []
    for drawn in draw(st.lists(st.lists(word, min_size=1, max_size=20), max_size=3)):
        part = []
        for blank, raw, gap_s, length_s, back in drawn:
            start = at + gap_s
            at = start + length_s
            part.append((blank, raw, start, at))
            if wild and back:
                at = max(0.0, at - 0.5)
        parts.append(part)
    end = max([w[3] for p in parts for w in p], default=0.0)
    audio_s = draw(st.sampled_from([end, end + 0.0007, end + 2, *([1.5] if wild else [])]))
    return made(*parts, audio_s=max(audio_s, 1.5))


@given(transcripts())
@example(made([("", "a", 0.0, 0.0)], audio_s=1.5))
@example(made([("", "-" * 50 + "->", 0.0, 9.0)], audio_s=9.0))
def test_cues_are_in_order_within_the_file_and_readable(transcript):
    """start < end, no overlap, none beyond the sound, 7 s, two lines of 42 columns, none empty."""
    shown = srt(transcript)
    assert [c[:2] for c in shown] == [c[:2] for c in vtt(transcript)]
    before = 0
    for start, end, lines in shown:
        assert before <= start < end <= transcript.audio_s * 1000 + 1e-3
        assert end - start <= 7000
        assert 1 <= len(lines) <= 2
        assert all(width(line) and line == line.strip() for line in lines)
        before = end
    assert all(width(line) <= 42 for *_, lines in vtt(transcript) for line in lines)


@given(transcripts())
@example(made([("", "a測\n\u200d" * 21, 0.0, 3.0)], audio_s=3.0))
def test_no_format_loses_or_adds_a_character(transcript):
    """All cues together are the text, blanks aside; nothing but invisible words is left out."""
    words = [w.text for s in transcript.segments for w in s.words]
    assume(all(width(solid(w)) for w in words))
    expected = solid(transcript.text)
    assert expected == solid("".join(line for *_, lines in vtt(transcript) for line in lines))
    assert expected == solid(
        "".join(line.replace("→", "-->") for *_, lines in srt(transcript) for line in lines)
    )
    assert expected == solid("".join(line for _, line in lrc(transcript)))
    assert expected == solid("".join(line for *_, line in tsv(transcript)))
    assert expected == solid("".join(line for *_, line in tsv(transcript, words=True)))


LATIN = st.from_regex(r"[a-z']{1,42}", fullmatch=True)
SPOKEN_LENGTHS = st.sampled_from([0.06, 0.3, 1.0, 6.9])


@given(transcripts(LATIN, blanks=[" "], wild=False))
def test_lines_break_at_blanks_only(transcript):
    """Where the script writes spaces no word is cut or glued to its neighbour."""
    expected = [w.text for s in transcript.segments for w in s.words]
    assert expected == [w for *_, lines in vtt(transcript) for x in lines for w in x.split()]


@given(transcripts(LATIN, blanks=[" "], lengths=SPOKEN_LENGTHS, wild=False))
def test_cues_begin_with_a_word(transcript):
    """A cue is shown from the moment its first word is heard."""
    starts = {round(w.start_s * 1000) for s in transcript.segments for w in s.words}
    assert starts >= {start for start, *_ in srt(transcript)}


@given(transcripts())
def test_rows_and_lyrics_are_in_the_file(transcript):
    """Times of tsv and lrc are whole, in order where the words are, and within the sound."""
    limit = transcript.audio_s * 1000 + 1e-3
    for words in (False, True):
        assert all(0 <= a <= limit and 0 <= b <= limit for a, b, _ in tsv(transcript, words=words))
    times = [t for t, _ in lrc(transcript)]
    assert times == sorted(times)
    assert all(t < limit for t in times)
    assert all(width(line) <= 42 for _, line in lrc(transcript))


# Examples.

HELLO = made(
    [("", "hello", 0.03, 0.51), (" ", "<wor&ld>", 0.51, 1.6)],
    [("", "測", 3661.0, 3661.06), ("", "試", 3661.06, 3661.5), ("", "。", 3661.5, 3661.6)],
    audio_s=3662.0,
)


def test_srt_as_it_is_written():
    """Number, times with a comma, text, an empty line between cues; short cues are stretched."""
    assert formats.render(HELLO, "srt", source="x") == (
        "1\n00:00:00,030 --> 00:00:01,600\nhello <wor&ld>\n\n"
        "2\n01:01:01,000 --> 01:01:02,000\n測試。\n"
    )


def test_vtt_as_it_is_written():
    """Signature, times with a point, markup escaped."""
    assert formats.render(HELLO, "vtt", source="x") == (
        "WEBVTT\n\n00:00:00.030 --> 00:00:01.600\nhello &lt;wor&amp;ld&gt;\n\n"
        "01:01:01.000 --> 01:01:02.000\n測試。\n"
    )


def test_an_arrow_inside_a_text_is_no_time():
    """`-->` in a line makes SubRip readers look for times, and ends a WebVTT cue."""
    said = spoken("00:00:01,000 --> 00:00:02,000")
    assert srt(said)[0][2] == ["00:00:01,000 → 00:00:02,000"]
    assert formats.render(said, "vtt", source="x").count("-->") == 1


def test_lrc_as_it_is_written():
    """Minutes, seconds, hundredths; minutes go on beyond the hour."""
    assert formats.render(HELLO, "lrc", source="x") == (
        "[00:00.03]hello <wor&ld>\n[61:01.00]測試。\n"
    )


def test_tsv_as_it_is_written():
    """Whole milliseconds; a row per stretch of speech, or per word."""
    assert formats.render(HELLO, "tsv", source="x") == (
        "start\tend\ttext\n30\t1600\thello <wor&ld>\n3661000\t3661600\t測試。\n"
    )
    assert tsv(HELLO, words=True) == [
        (30, 510, "hello"), (510, 1600, "<wor&ld>"),
        (3661000, 3661060, "測"), (3661060, 3661500, "試"), (3661500, 3661600, "。"),
    ]  # fmt: skip


def test_tsv_has_no_tab_or_line_break_inside():
    """A row is a line and has three fields, whatever was said."""
    assert tsv(made([("", "a\tb\r\nc", 0.0, 1.0)]))[0][2] == "a b c"


@pytest.mark.parametrize(("name", "empty"), [
    ("txt", "\n"), ("srt", ""), ("vtt", "WEBVTT\n"), ("tsv", "start\tend\ttext\n"), ("lrc", ""),
])  # fmt: skip
def test_no_text_is_an_empty_file_of_its_kind(name, empty):
    """Silence makes no cue, and a text that was withheld is shown by no format."""
    silent = text.from_segments((), reason="silence", audio_s=3.0)
    withheld = HELLO.withheld()
    assert formats.render(silent, name, source="x") == empty
    assert formats.render(withheld, name, source="x", words=True) == empty


def test_a_segment_without_words_ends_with_itself():
    """No word times: the cue spans the segment, never 99 hours; long text is spread over it."""
    part = Segment("no times here", 1.0, 3.0, None, None, ())
    one = dataclasses.replace(HELLO, segments=(part,), text=part.text, audio_s=4.0)
    assert srt(one) == [(1000, 3000, ["no times here"])]
    part = dataclasses.replace(part, text="測" * 100, end_s=21.0)
    many = srt(dataclasses.replace(one, segments=(part,), text=part.text, audio_s=21.0))
    assert (len(many), many[0][0], many[-1][1]) == (5, 1000, 21000)
    assert all(end - start <= 7000 for start, end, _ in many)


def test_a_pause_ends_a_cue():
    """What is said after a second of silence does not show before."""
    words = [("", "one", 0.0, 0.3), (" ", "two", 1.3, 1.6), (" ", "three", 2.5, 2.8)]
    assert [c[2] for c in srt(made(words))] == [["one"], ["two three"]]


def test_a_sentence_ends_a_cue():
    """After a second or more: one cue, one sentence."""
    shown = srt(spoken("It is late now. We should go home. Yes. No."))
    assert [c[2] for c in shown] == [["It is late now."], ["We should go home."], ["Yes. No."]]


def test_a_full_cue_is_cut_at_a_clause():
    """Seven seconds or two lines: rather after a comma in the second half than anywhere."""
    line = "we came over the hill in the morning light, and then we saw the town below us there"
    assert srt(spoken(line, step_s=0.4))[0][2][-1][-6:] == "light,"


def test_two_lines_are_of_like_width():
    """A line break in the middle, not one word alone below a full line."""
    [(_, _, lines)] = srt(spoken("one two three four five six seven eight nine"))
    assert lines == ["one two three four five", "six seven eight nine"]


def test_wide_characters_count_twice():
    """21 Chinese characters fill a line of 42 columns."""
    words = [("", "測", n * 0.06, n * 0.06 + 0.06) for n in range(42)]
    assert [c[2] for c in srt(made(words))] == [["測" * 21] * 2]
    assert cues.columns("aé測カ안ｱ😊e\u0301") == 1 + 1 + 2 + 2 + 2 + 1 + 2 + 1


def test_no_line_begins_with_a_closing_mark():
    """Kinsoku: punctuation and small kana stay with the character before them."""
    line = "「きょう、は。」っ" * 12
    words = [("", c, n * 0.1, n * 0.1 + 0.1) for n, c in enumerate(line)]
    shown = [line for *_, lines in srt(made(words, audio_s=20.0)) for line in lines]
    assert len(shown) > 3
    assert not [line for line in shown if line[0] in "、。」っょ" or line[-1] == "「"]


def test_cues_meet_but_never_overlap_when_words_crowd():
    """A short cue is stretched to a second only as far as the next one leaves room."""
    heard = made([("", "a.", 0.0, 1.0), (" ", "b", 1.2, 1.3)], [("", "c", 1.5, 1.6)], audio_s=1.9)
    assert [c[:2] for c in srt(heard)] == [(0, 1000), (1200, 1500), (1500, 1900)]


def test_more_cues_than_milliseconds_are_none():
    """Sound too short to show anything in makes no cue of no length."""
    assert srt(made([("", "a", 0.0, 0.0004)], audio_s=0.0004)) == []


# Emoji and tags.


@pytest.mark.parametrize(
    ("language", "emotion", "event", "itn", "emoji", "tags"),
    [
        ("en", "HAPPY", "Laughter", True, "😀hi😊", "<|en|><|HAPPY|><|Laughter|><|withitn|>hi"),
        ("zh", "NEUTRAL", "Speech", False, "hi", "<|zh|><|NEUTRAL|><|Speech|><|woitn|>hi"),
        (None, None, None, None, "hi", "hi"),
        ("ko", "EMO_UNKNOWN", "BGM", None, "🎼hi", "<|ko|><|EMO_UNKNOWN|><|BGM|>hi"),
        ("en", "SAD", "Cough", None, "🤧hi😔", "<|en|><|SAD|><|Cough|>hi"),
    ],
)
def test_emoji_and_tags_as_in_the_reference(language, emotion, event, itn, emoji, tags):
    """Event in front, emotion behind, the silent tags nothing; from the fields."""
    heard = made(
        [("", "hi", 0.0, 1.0)], language=language, emotion=emotion, event=event, itn=itn
    )  # fmt: skip
    assert formats.render(heard, "txt", source="x", rich="emoji") == emoji + "\n"
    assert formats.render(heard, "txt", source="x", rich="tags") == tags + "\n"
    assert formats.render(heard, "txt", source="x") == "hi\n"


def test_what_was_said_is_never_taken_for_a_tag():
    """Tags come from prompt rows; the same letters in the text stay, and `The.` stays."""
    heard = made([("", "<|HAPPY|>", 0.0, 1.0), (" ", "The.", 1.0, 2.0)], emotion="SAD")
    assert formats.render(heard, "txt", source="x", rich="emoji") == "<|HAPPY|> The.😔\n"


def test_emoji_of_nothing():
    """Music without speech shows the music; a text that was withheld shows nothing."""
    silent = text.from_segments((), reason="silence", audio_s=3.0, event="BGM")
    assert formats.render(silent, "txt", source="x", rich="emoji") == "🎼\n"
    withheld = dataclasses.replace(HELLO, text="", rejected=True, event="BGM")
    assert formats.render(withheld, "txt", source="x", rich="emoji") == "\n"


def test_every_name_is_rendered():
    """What the command offers exists, ends with a line break and encodes as UTF-8."""
    for name in formats.NAMES:
        assert formats.render(HELLO, name, source="x").encode().endswith(b"\n")
