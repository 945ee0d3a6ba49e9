"""asr.phrases: lists of phrases, the exact search, what is accepted."""

import itertools
import math
import threading

import numpy as np
import pytest
from conftest import ROOT
from fakes import PIECES, SHIFT_S
from hypothesis import given
from hypothesis import strategies as st

from asr import _rust_fe, ctc, phrases, text
from asr.errors import DecodeError, SystemAccessError, UsageError
from asr.phrases import Phrase, PhraseList
from asr.records import Logits
from asr.text import Vocabulary

SMALL = Vocabulary(["<unk>", "▁", "a", "b", "▁a", "ab"])


def log_softmax(scores):
    x = np.asarray(scores, np.float64)
    x = x - x.max(1, keepdims=True)
    return x - np.log(np.exp(x).sum(1, keepdims=True))


def logits(scores, prompt_frames=0):
    return Logits(np.ascontiguousarray(scores, np.float32), SHIFT_S, prompt_frames)


def one_hot(ids, vocabulary, height=20.0):
    scores = np.zeros((len(ids), len(vocabulary)), np.float32)
    scores[np.arange(len(ids)), ids] = height
    return scores


def segmentations(spelled, pieces):
    """Every sequence of ids that spells a text."""
    if not spelled:
        yield ()
    for token_id, piece in pieces.items():
        if spelled.startswith(piece):
            for rest in segmentations(spelled[len(piece) :], pieces):
                yield (token_id, *rest)


def ctc_log_prob(log_p, ids, blank=0):
    """Graves' forward variables of one sequence, in double precision."""
    states = [blank, *itertools.chain.from_iterable((i, blank) for i in ids)]
    forward = np.full(len(states), -np.inf)
    forward[0] = 0.0  # before the first row
    for row in log_p:
        new = np.full(len(states), -np.inf)
        for s, state in enumerate(states):
            came = [forward[s]]
            if s >= 1:
                came.append(forward[s - 1])
            if s >= 2 and state not in (blank, states[s - 2]):
                came.append(forward[s - 2])
            new[s] = np.logaddexp.reduce(came) + row[state]
        forward = new
    return np.logaddexp.reduce(forward[-2:])


def label_log_prob(log_p, spelled, vocabulary):
    pieces = {
        i: vocabulary.surface(i)
        for i in range(len(vocabulary))
        if i != vocabulary.blank_id and vocabulary.surface(i)
    }
    each = [ctc_log_prob(log_p, ids) for ids in segmentations(spelled, pieces)]
    return np.logaddexp.reduce([-np.inf, *each])


@given(
    rows=st.integers(0, 30),
    scale=st.sampled_from([0.3, 2.0, 8.0]),
    words=st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=5, unique=True),
    seed=st.integers(0, 9999),
)
def test_equals_the_sum_over_all_spellings(rows, scale, words, seed):
    """The probability of a phrase is that of all its spellings, each by the NumPy forward pass."""
    scores = scale * np.random.default_rng(seed).standard_normal((rows, len(SMALL)))
    log_p = log_softmax(scores.astype(np.float32))
    expected = np.array([label_log_prob(log_p, "▁" + word, SMALL) for word in words])
    silence = log_p[:, 0].sum()
    heard = PhraseList(words, SMALL).decode(logits(scores))
    if not heard.hits:
        assert expected.max() <= silence + 1e-9
        return
    (hit,) = heard.hits
    assert expected[words.index(hit.label)] == pytest.approx(expected.max(), abs=1e-9)
    assert hit.log_prob == pytest.approx(expected.max(), abs=1e-4)
    total = np.logaddexp.reduce([*expected, silence])
    assert hit.posterior == pytest.approx(math.exp(expected.max() - total), abs=1e-5)
    others = np.sort(expected)[:-1]
    if len(others) and others[-1] > -np.inf:
        assert hit.margin == pytest.approx(expected.max() - others[-1], abs=1e-4)
    else:
        assert (hit.runner_up, hit.margin) == (None, math.inf)
    ids = heard.decoded.token_ids.tolist()
    assert "".join(SMALL.pieces[i] for i in ids) == "▁" + hit.text


@given(rows=st.integers(0, 4), seed=st.integers(0, 9999))
def test_equals_the_enumeration_of_paths(rows, seed):
    """No forward pass at all: every path through the rows, collapsed, joined and added up."""
    scores = 2 * np.random.default_rng(seed).standard_normal((rows, len(SMALL)))
    p = np.exp(log_softmax(scores.astype(np.float32)))
    sums = dict.fromkeys(["", "▁a", "▁ab", "▁aa"], 0.0)
    for path in itertools.product(range(len(SMALL)), repeat=rows):
        ids = [i for i, _ in itertools.groupby(path) if i != 0]
        spelled = "".join(SMALL.pieces[i] for i in ids)
        if spelled in sums:
            sums[spelled] += math.prod(p[row, i] for row, i in enumerate(path))
    silence = sums.pop("")
    heard = PhraseList(["a", "ab", "aa"], SMALL).decode(logits(scores))
    best = max(sums.values())
    assert bool(heard.hits) == (best > silence)
    for hit in heard.hits:
        assert math.exp(hit.log_prob) == pytest.approx(best, rel=1e-4)
        assert sums["▁" + hit.label] == pytest.approx(best, rel=1e-9)


def test_real_width_in_double_precision():
    """A vocabulary of tags, bytes and CJK, half a minute: still the NumPy forward pass."""
    vocabulary = Vocabulary(PIECES)
    scores = np.random.default_rng(3).standard_normal((500, len(PIECES))).astype(np.float32)
    scores[:, 0] += 6
    expected = label_log_prob(log_softmax(scores), "▁hello▁world", vocabulary)
    scores[100, PIECES.index("▁hello")] += 20
    scores[101, PIECES.index("▁wor")] += 20
    scores[104, PIECES.index("ld")] += 20
    expected = label_log_prob(log_softmax(scores), "▁hello▁world", vocabulary)
    hit = PhraseList(["hello world", "hello"], vocabulary).decode(logits(scores)).hits[0]
    assert hit.log_prob == pytest.approx(expected, abs=1e-3)  # 500 float32 row sums


def test_a_label_gathers_its_texts():
    """Probabilities of one label add up; the text is the more probable one."""
    scores = one_hot([4, 0, 3, 0], SMALL, 3.0)
    apart = PhraseList(["ab", "aa"], SMALL).decode(logits(scores)).hits[0]
    joined = PhraseList([Phrase("ab", "on"), Phrase("aa", "on")], SMALL)
    hit = joined.decode(logits(scores)).hits[0]
    assert (hit.text, hit.label, hit.runner_up, hit.margin) == ("ab", "on", None, math.inf)
    p = math.exp(apart.log_prob) * (1 + math.exp(-apart.margin))
    assert math.exp(hit.log_prob) == pytest.approx(p, rel=1e-6)


def test_tokens_have_rows_and_statistics():
    """Tokens follow the best path; statistics of all rows are those of greedy decoding."""
    scores = one_hot([1, 4, 4, 0, 3, 3, 3, 0], SMALL)
    scores[5, 3] += 5
    heard = PhraseList(["ab"], SMALL).decode(logits(scores, prompt_frames=1))
    got, greedy = heard.decoded, ctc.greedy(logits(scores, prompt_frames=1), blank_id=0)
    for name in ("argmax", "log_prob", "entropy", "token_ids", "start_frame", "end_frame",
                 "log_probs", "entropies"):  # fmt: skip
        expected, found = getattr(greedy, name), getattr(got, name)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6, err_msg=name)
        assert expected.dtype == found.dtype
    assert got.token_ids.tolist() == [4, 3]
    assert heard.hits[0].num_tokens == 2
    assert heard.hits[0].score == pytest.approx(0, abs=1e-3)


def test_many_phrases_in_a_row():
    """With many, phrases follow one another; without, there is one at most."""
    ids = [4, 0, 0, 1, 3, 0, 4, 0, 4, 0]
    scores = logits(one_hot(ids, SMALL))
    heard = PhraseList(["a", "b"], SMALL, many=True).decode(scores)
    assert [hit.label for hit in heard.hits] == ["a", "b", "a", "a"]
    assert heard.decoded.start_frame.tolist() == [0, 3, 4, 6, 8]
    assert [hit.first_frame for hit in heard.hits] == [0, 2, 6, 8]
    assert heard.accepted
    assert len(PhraseList(["a", "b"], SMALL).decode(scores).hits) == 1


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 80])
def test_silence_holds_no_phrase(many, rows):
    """Where blank is best nothing is found, and nothing is accepted."""
    heard = PhraseList(["a", "b"], SMALL, many=many).decode(logits(one_hot([0] * rows, SMALL)))
    assert (heard.hits, heard.accepted, len(heard.decoded.token_ids)) == ((), False, 0)


def test_other_speech_is_rejected():
    """What is not on the list has a low score; what is on it has one near zero."""
    vocabulary = Vocabulary(PIECES)
    ids = [PIECES.index(piece) for piece in ("▁hello", "▁you", "s")]
    scores = logits(one_hot(ids, vocabulary))
    assert PhraseList(["hello yous"], vocabulary).decode(scores).accepted
    other = PhraseList(["hello world"], vocabulary).decode(scores)
    assert other.hits[0].score < -10
    assert not other.accepted


def test_an_unsure_choice_is_rejected_on_request():
    """Two phrases of about equal probability: the posterior says so, the score does not."""
    scores = one_hot([1, 2, 0], SMALL)
    scores[1, 3] = 19.5
    assert PhraseList(["a", "b"], SMALL).decode(logits(scores)).accepted
    heard = PhraseList(["a", "b"], SMALL, min_posterior=0.9).decode(logits(scores))
    assert heard.hits[0].posterior == pytest.approx(1 / (1 + math.exp(-0.5)), abs=1e-4)
    assert not heard.accepted


def test_an_impossible_token_still_has_a_confidence():
    """A log-probability far below what a float holds does not break the transcript."""
    scores = np.full((4, len(SMALL)), -2000.0, np.float32)
    scores[:, 5] = 0.0
    scores[:, 0] = -1990.0
    heard = PhraseList(["b"], SMALL).decode(logits(scores))
    for log_prob in heard.decoded.log_probs:
        assert math.exp(log_prob) > 0


def transcript_of(heard, vocabulary):
    return text.transcribe(heard.decoded, vocabulary, audio_s=9.0, requested_itn=False)


def test_judge_shows_the_label_or_withholds():
    """Accepted: the labels; not accepted: no text, rejected; nothing heard: unchanged."""
    lamp = PhraseList([Phrase("a", "lamp on"), Phrase("b", "lamp off")], SMALL, many=True)
    heard = lamp.decode(logits(one_hot([4, 0, 1, 3], SMALL)))
    shown = phrases.judge(transcript_of(heard, SMALL), heard)
    assert (shown.text, shown.segments[0].text) == ("lamp on lamp off", "a b")
    assert not shown.rejected

    heard = lamp.decode(logits(one_hot([5, 2, 3, 2], SMALL)))
    withheld = phrases.judge(transcript_of(heard, SMALL), heard)
    assert (withheld.text, withheld.rejected, withheld.reason) == ("", True, "low_confidence")
    assert withheld.segments

    heard = lamp.decode(logits(one_hot([0, 0], SMALL)))
    silent = phrases.judge(transcript_of(heard, SMALL), heard)
    assert (silent.text, silent.rejected, silent.reason) == ("", False, "silence")


def test_other_speech_is_withheld_and_silence_is_silence():
    """No phrase fits: what was heard stays in the segments."""
    listed = PhraseList(["b b b"], SMALL)
    other = listed.decode(logits(one_hot([4, 3, 0], SMALL)))
    assert (other.hits, other.accepted) == ((), False)
    withheld = phrases.judge(transcript_of(other, SMALL), other)
    assert (withheld.text, withheld.rejected, withheld.reason) == ("", True, "low_confidence")
    assert (withheld.segments[0].text, withheld.no_speech) == ("ab", False)

    found = listed.decode(logits(one_hot([1, 3, 1, 3, 1, 3], SMALL)))
    assert phrases.judge(transcript_of(found, SMALL), found).text == "b b b"


def test_the_default_score_is_the_one_that_was_chosen():
    """-1 nat per row with speech; the number is explained in docs/phrases.md."""
    assert PhraseList(["a"], SMALL).min_score == -1.0
    assert "`score` >= -1.0" in (ROOT / "docs/phrases.md").read_text(encoding="utf-8")


def test_reads_a_file(tmp_path):
    """Comments, empty lines, labels, Windows line ends, a byte order mark, spaces, NFKC."""
    path = tmp_path / "phrases.txt"
    path.write_bytes("\ufeff# lamp\r\n\r\nhello  world => on\r\n  meet you\n".encode())
    read = PhraseList.read(path, Vocabulary(PIECES))
    assert read.phrases == (Phrase("hello  world", "on"), Phrase("meet you", "meet you"))
    assert len(read) == 2


def test_spelling_follows_the_vocabulary():
    """Case falls only where it must; bytes spell the rest; CJK needs no marker in front."""
    vocabulary = Vocabulary(PIECES)
    ids = [PIECES.index(piece) for piece in ("测", "试")]
    for spoken in (ids, [PIECES.index("▁测"), ids[1]], [PIECES.index("测试")]):
        hit = PhraseList(["测试", "hello"], vocabulary).decode(logits(one_hot(spoken, vocabulary)))
        assert hit.hits[0].label == "测试"
        assert hit.hits[0].log_prob > -1e-3
    emoji = [PIECES.index("▁"), *(PIECES.index(f"<0x{b:02X}>") for b in "🙂".encode())]
    heard = PhraseList(["🙂"], vocabulary).decode(logits(one_hot(emoji, vocabulary)))
    assert heard.decoded.token_ids.tolist() == emoji
    letters = Vocabulary(["<unk>", "▁", "h", "i"])
    heard = PhraseList(["HI"], letters).decode(logits(one_hot([1, 2, 3], letters)))
    assert heard.hits[0].label == "HI"


BAD = [
    (b"", "p.txt: expected one phrase per line, found none"),
    (b"# nothing\n\n", "p.txt: expected one phrase per line, found none"),
    (b"a\n\xff\n", "p.txt: line 2: expected UTF-8"),
    (b"a\nab =>\n", "p.txt: line 2: expected 'text' or 'text => label', found 'ab =>'"),
    (b"=> on\n", "p.txt: line 1: expected 'text' or 'text => label'"),
    (b"a\n\nabc xa\n", "p.txt: line 3: expected characters that the model knows, found 'c' 'x'"),
    (b"a\n#\n a \n", "p.txt: line 3: expected each phrase once, found it on line 1"),
    (b"a" * 201, "p.txt: line 1: expected at most 200 characters, found 201"),
    (b"a\n" * 5001, "p.txt: expected at most 5000 phrases, found 5001"),
]


@pytest.mark.parametrize(("content", "message"), BAD)
def test_bad_lists_are_one_line(tmp_path, content, message):
    """The file, the line, what was expected, what was found."""
    path = tmp_path / "p.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        PhraseList.read(path, SMALL)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_list_that_cannot_be_read(tmp_path):
    """A missing file is the system's answer, not a bad list."""
    with pytest.raises(SystemAccessError, match="No such file"):
        PhraseList.read(tmp_path / "none.txt", SMALL)


def test_text_that_no_pieces_can_spell():
    """Every character is known, but not by itself."""
    with pytest.raises(UsageError, match="line 2: expected text that the model's pieces can spell"):
        PhraseList(["xy", "x"], Vocabulary(["<unk>", "▁xy"]))
    with pytest.raises(UsageError, match="min_score"):
        PhraseList(["a"], SMALL, min_score=math.nan)
    with pytest.raises(UsageError, match="min_posterior"):
        PhraseList(["a"], SMALL, min_posterior=1.1)
    with pytest.raises(UsageError, match="line 1: expected a phrase"):
        PhraseList([" "], SMALL)


def test_scores_that_do_not_fit():
    """NaN is named by row and column; a model of another width is refused."""
    listed = PhraseList(["a"], SMALL)
    bad = one_hot([0, 0], SMALL)
    bad[1, 2] = np.nan
    with pytest.raises(DecodeError, match="row 1, column 2"):
        listed.decode(logits(bad))
    with pytest.raises(DecodeError, match="expected 6 columns, one per piece, found 7"):
        listed.decode(logits(np.zeros((3, 7))))
    with pytest.raises(DecodeError, match="expected a blank_id"):
        _rust_fe.Phrases([b"", b"a"], 2, [[b"a"]], [0])
    for group in (1, 2**64 - 1):  # the second was a panic of Rust: fuzz/
        with pytest.raises(DecodeError, match=f"expected groups below 1, found {group}"):
            _rust_fe.Phrases([b"", b"a"], 0, [[b"a"]], [group])


def test_shared_between_threads():
    """One list, four threads, the same answers."""
    listed = PhraseList(["a", "ab", "b"], SMALL, many=True)
    rng = np.random.default_rng(0)
    scores = [logits(4 * rng.standard_normal((40, len(SMALL)))) for _ in range(8)]
    expected = [listed.decode(s).hits for s in scores]
    got = {}

    def work(name):
        got[name] = [listed.decode(s).hits for s in scores]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found == expected for found in got.values())
