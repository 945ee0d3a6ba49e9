"""asr._rust_fe.ctc_greedy: greedy decoding with statistics, on every backend of this CPU."""

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr import _rust_fe
from asr.errors import DecodeError, FrontEndError

BACKENDS = _rust_fe.build_info()["backends"]
ROWS = ["argmax", "log_prob", "entropy"]
NAMES = [*ROWS, "token_ids", "start_frame", "end_frame", "log_probs", "entropies"]

every_backend = pytest.mark.parametrize("backend", BACKENDS)


def decode(logits, blank_id=0, prompt_frames=0, backend=None):
    got = _rust_fe.ctc_greedy(np.asarray(logits, np.float32), blank_id, prompt_frames, backend)
    return dict(zip(NAMES, got, strict=True))


def statistics(logits):
    """Arg-max, log-probability and entropy in double precision."""
    x = np.asarray(logits, np.float64)
    x = x - x.max(1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    return x.argmax(1), log_p.max(1), -(np.exp(log_p) * log_p).sum(1)


def oracle(argmax, log_prob, blank_id, prompt_frames):
    """Collapse runs, then drop blanks: (id, start, end, row of highest probability)."""
    tokens = []
    rows = range(prompt_frames, len(argmax))
    for token, group in groupby(rows, key=lambda t: argmax[t]):
        run = list(group)
        if token != blank_id:
            best = max(run, key=lambda t: (log_prob[t], -t))
            tokens.append((token, run[0] - prompt_frames, run[-1] + 1 - prompt_frames, best))
    return tokens


def one_hot(ids, vocab=5, height=9.0):
    logits = np.zeros((len(ids), vocab), np.float32)
    logits[np.arange(len(ids)), ids] = height
    return logits


@every_backend
@given(
    rows=st.integers(0, 30),
    vocab=st.integers(1, 200),
    prompt_frames=st.integers(0, 4),
    scale=st.sampled_from([0.1, 1.0, 8.0, 50.0]),
    normalised=st.booleans(),
    seed=st.integers(0, 9999),
)
def test_equals_the_oracle(backend, rows, vocab, prompt_frames, scale, normalised, seed):
    """Raw and log-softmax scores alike: statistics in double precision, tokens as the oracle's."""
    rng = np.random.default_rng(seed)
    prompt_frames, blank_id = min(prompt_frames, rows), int(rng.integers(vocab))
    logits = scale * rng.standard_normal((rows, vocab))
    logits[rng.random((rows, vocab)) < 0.02] += 3 * scale
    if normalised:
        logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    logits = logits.astype(np.float32)
    got = decode(logits, blank_id, prompt_frames, backend)

    argmax, log_prob, entropy = statistics(logits)
    np.testing.assert_array_equal(argmax, got["argmax"])
    np.testing.assert_allclose(got["log_prob"], log_prob, rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(got["entropy"], entropy, rtol=1e-6, atol=4e-6)
    assert (got["log_prob"] <= 0).all()

    tokens = oracle(argmax, got["log_prob"], blank_id, prompt_frames)
    best = [token[3] for token in tokens]
    for column, name in enumerate(["token_ids", "start_frame", "end_frame"]):
        assert [token[column] for token in tokens] == got[name].tolist()
    np.testing.assert_array_equal(got["log_prob"][best], got["log_probs"])
    np.testing.assert_array_equal(got["entropy"][best], got["entropies"])


@every_backend
def test_dtypes_and_shapes(backend):
    """Rows are T long, tokens K long, ids and frames int32, statistics float32."""
    got = decode(one_hot([1, 1, 0, 2, 3]), backend=backend)
    for name in NAMES:
        integer = name in ("argmax", "token_ids", "start_frame", "end_frame")
        assert (np.int32 if integer else np.float32) == got[name].dtype, name
        assert (5 if name in ROWS else 3,) == got[name].shape, name


@every_backend
def test_full_vocabulary(backend):
    """The real width, 25,055 columns, and the tolerance still holds."""
    logits = (4 * np.random.default_rng(1).standard_normal((12, 25055))).astype(np.float32)
    argmax, log_prob, entropy = statistics(logits)
    got = decode(logits, backend=backend)
    np.testing.assert_array_equal(argmax, got["argmax"])
    np.testing.assert_allclose(got["log_prob"], log_prob, rtol=0, atol=2e-6)
    np.testing.assert_allclose(got["entropy"], entropy, rtol=0, atol=4e-6)


@every_backend
@given(st.lists(st.integers(0, 4), max_size=20), st.data())
def test_blanks_between_different_tokens_change_nothing(backend, ids, data):
    """A blank inserted where the token changes leaves the tokens as they were."""
    borders = [t for t in range(len(ids) + 1) if not 0 < t < len(ids) or ids[t - 1] != ids[t]]
    at = data.draw(st.sampled_from(borders))
    with_blank = [*ids[:at], 0, *ids[at:]]
    expected = decode(one_hot(ids), backend=backend)["token_ids"]
    got = decode(one_hot(with_blank), backend=backend)["token_ids"]
    np.testing.assert_array_equal(expected, got)


@every_backend
def test_blank_between_equal_tokens_makes_two(backend):
    """Collapse comes first, then the blanks go: a blank keeps equal neighbours apart."""
    got = decode(one_hot([1, 1, 0, 1]), backend=backend)
    assert got["token_ids"].tolist() == [1, 1]
    assert got["start_frame"].tolist() == [0, 3]
    assert got["end_frame"].tolist() == [2, 4]


@every_backend
def test_only_blanks_give_no_tokens(backend):
    """All rows blank: statistics for each, no token."""
    got = decode(one_hot([0] * 6), backend=backend)
    assert (len(got["argmax"]), len(got["token_ids"])) == (6, 0)


@every_backend
@pytest.mark.parametrize("vocab", [2, 17, 100, 3000])
def test_lowest_id_wins_ties(backend, vocab):
    """Of equal scores the lowest id is taken, wherever they lie."""
    for columns in [(0, vocab - 1), (vocab // 2, vocab - 1), (vocab - 1,)]:
        logits = np.full((1, vocab), -2.0, np.float32)
        logits[0, list(columns)] = 3.0
        assert [columns[0]] == decode(logits, backend=backend)["argmax"].tolist()
    assert decode(np.zeros((1, vocab)), backend=backend)["argmax"].tolist() == [0]


@every_backend
def test_first_row_wins_ties_within_a_run(backend):
    """Of equally probable rows in a run, the first gives the entropy."""
    two, three = [0, 0, -300], [0, -np.log(2), -np.log(2)]  # each gives column 0 one half
    for rows in ([two, three], [three, two]):
        got = decode(rows, blank_id=2, backend=backend)
        assert got["log_prob"][0] == got["log_prob"][1]
        assert got["entropy"][0] != got["entropy"][1]
        assert got["token_ids"].tolist() == [0]
        assert got["entropies"].tolist() == [got["entropy"][0]]


@every_backend
def test_prompt_rows_have_statistics_but_no_tokens(backend):
    """The first rows are not decoded; a run does not reach across their border."""
    got = decode(one_hot([1, 2, 3, 4, 4, 4, 0]), prompt_frames=4, backend=backend)
    assert len(got["argmax"]) == 7
    assert got["token_ids"].tolist() == [4]
    assert [got["start_frame"][0], got["end_frame"][0]] == [0, 2]


@every_backend
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("row", "column"), [(0, 0), (3, 17), (6, 1999)])
def test_bad_score_is_named(backend, value, row, column):
    """A score that is not finite is an error naming row and column, prompt rows included."""
    logits = np.random.default_rng(0).standard_normal((7, 2000)).astype(np.float32)
    logits[row, column] = value
    with pytest.raises(DecodeError, match=f"at row {row}, column {column}$"):
        decode(logits, 0, 4, backend)


@every_backend
def test_scores_as_far_apart_as_floats_can_be(backend):
    """Finite scores are never refused, however large."""
    top = float(np.finfo(np.float32).max)
    got = decode([[top, -top, 0.0], [-top, -top, -top]], backend=backend)
    np.testing.assert_allclose(got["log_prob"], [0.0, -np.log(3)], rtol=1e-6)
    np.testing.assert_allclose(got["entropy"], [0.0, np.log(3)], rtol=1e-6)


@pytest.mark.parametrize(
    ("logits", "arguments", "found"),
    [
        (np.zeros((4, 5)), (0, 0), r"float32 array of shape \(T, V\).*float64 \(4, 5\)"),
        (np.zeros(5, np.float32), (0, 0), r"float32 \(5,\)"),
        (np.zeros((4, 10), np.float32)[:, ::2], (0, 0), "not contiguous"),
        (np.zeros((4, 5), np.float32, order="F"), (0, 0), "not contiguous"),
        (np.zeros((4, 0), np.float32), (0, 0), "columns"),
        (np.zeros((4, 5), np.float32), (5, 0), "blank_id of 0 to 4, found 5"),
        (np.zeros((4, 5), np.float32), (-1, 0), "blank_id of 0 to 4, found -1"),
        (np.zeros((3, 5), np.float32), (0, 4), "4 prompt rows, found 3"),
    ],
)
def test_wrong_scores_are_refused(logits, arguments, found):
    """Wrong dtype, shape, strides or numbers: the message says what was expected and found."""
    with pytest.raises(DecodeError, match=found):
        _rust_fe.ctc_greedy(logits, *arguments)


def test_unknown_backend_is_refused():
    """A backend that this CPU cannot run is an error that lists those it can."""
    with pytest.raises(FrontEndError, match=r"available: .*scalar"):
        decode(one_hot([1]), backend="mmx")


@every_backend
def test_threads_get_the_same_result(backend):
    """Several threads may decode at once."""
    matrices = [np.random.default_rng(i).standard_normal((40, 900)) for i in range(8)]
    expected = [decode(m, backend=backend) for m in matrices]
    with ThreadPoolExecutor(8) as pool:
        for want, got in zip(
            expected, pool.map(lambda m: decode(m, backend=backend), matrices), strict=True
        ):
            for name in NAMES:
                np.testing.assert_array_equal(want[name], got[name])
