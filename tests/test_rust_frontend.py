"""asr._rust_fe, front end: the laws of fbank, LFR and CMVN, on every backend of this CPU."""

import resource
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr import _rust_fe
from asr.errors import FrontEndError

RECIPE = {
    "sample_rate_hz": 16000,
    "frame_length_ms": 25.0,
    "frame_shift_ms": 10.0,
    "window": "hamming",
    "num_mel_bins": 80,
    "low_freq_hz": 20.0,
    "high_freq_hz": 8000.0,
    "preemphasis": 0.97,
    "sample_scale": 32768.0,
}
FLOOR = np.float32(np.log(np.finfo(np.float32).eps))
BACKENDS = _rust_fe.build_info()["backends"]

every_backend = pytest.mark.parametrize("backend", BACKENDS)


def fbank(backend=None, **changes):
    return _rust_fe.Fbank(**{**RECIPE, **changes}, backend=backend)


def noise(num_samples, seed=0, scale=0.1):
    return (scale * np.random.default_rng(seed).standard_normal(num_samples)).astype(np.float32)


def float64_fbank(samples):
    """Kaldi's formulas in NumPy and double precision."""
    frames = np.lib.stride_tricks.sliding_window_view(samples, 400)[::160].astype(np.float64)
    frames = frames * 32768 - (frames * 32768).mean(1, keepdims=True)
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    window = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 399)
    power = np.abs(np.fft.rfft(frames * window, 512)) ** 2
    edges = np.linspace(*(1127 * np.log1p(np.array([20, 8000]) / 700)), 82)
    mel = 1127 * np.log1p(np.arange(256) * 16000 / 512 / 700)
    left, right = edges[:-2, None], edges[2:, None]
    delta = edges[1] - edges[0]
    weights = np.maximum(0, np.minimum((mel - left) / delta, (right - mel) / delta))
    return np.log(np.maximum(power[:, :256] @ weights.T, np.finfo(np.float32).eps))


@every_backend
@pytest.mark.parametrize(
    ("num_samples", "num_frames"),
    [
        *[(0, 0), (1, 0), (159, 0), (160, 0), (161, 0), (399, 0)],
        *[(400, 1), (401, 1), (559, 1), (560, 2), (561, 2), (16000, 98)],
    ],
)
def test_frame_count(backend, num_samples, num_frames):
    """There are 1 + (N - 400) // 160 frames, none below 400 samples."""
    front_end = fbank(backend)
    assert num_frames == front_end.num_frames(num_samples)
    values = front_end.compute(noise(num_samples))
    assert (num_frames, 80) == values.shape
    assert np.float32 == values.dtype


@every_backend
@pytest.mark.parametrize("kind", ["noise", "tone", "clipped", "offset"])
def test_values_equal_the_formula_in_double_precision(backend, kind):
    """Every value is the double precision value, rounded."""
    samples = {
        "noise": noise(8000),
        "tone": 0.9 * np.sin(2 * np.pi * 7900 / 16000 * np.arange(8000)),
        "clipped": np.clip(noise(8000, scale=3.0), -1, 1),
        "offset": 0.9 + noise(8000, scale=1e-5),
    }[kind].astype(np.float32)
    np.testing.assert_allclose(
        fbank(backend).compute(samples), float64_fbank(samples), rtol=0, atol=5e-6
    )


@every_backend
@given(gain=st.floats(0.0078125, 128.0, width=32), seed=st.integers(0, 99))
def test_gain_adds_twice_its_logarithm(backend, gain, seed):
    """A gain g adds 2 ln g above the floor."""
    front_end, samples = fbank(backend), noise(2000, seed)
    expected = front_end.compute(samples) + np.float32(2 * np.log(gain))
    got = front_end.compute(samples * np.float32(gain))
    np.testing.assert_allclose(got, expected, rtol=0, atol=2e-5)


@every_backend
@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.1, -0.7, 1e-6, 1e-30])
def test_constant_input_gives_the_floor_exactly(backend, value):
    """Silence, and any constant, gives ln(FLT_EPSILON) to the last bit."""
    values = fbank(backend).compute(np.full(4000, value, np.float32))
    assert np.float32(FLOOR).tobytes() * values.size == values.tobytes()


@every_backend
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=8))
def test_finite_input_gives_finite_output(backend, few):
    """Whatever finite numbers come in, no NaN and no infinity comes out."""
    samples = np.resize(np.array([*few, 0.0], np.float32), 1200)
    values = fbank(backend).compute(samples)
    assert np.isfinite(values).all()
    assert values.min() >= FLOOR


@every_backend
@given(hops=st.integers(1, 20), seed=st.integers(0, 99))
def test_moving_by_hops_moves_rows(backend, hops, seed):
    """Leaving out whole hops leaves out whole rows and changes no other bit."""
    front_end, samples = fbank(backend), noise(6000, seed)
    np.testing.assert_array_equal(
        front_end.compute(samples)[hops:], front_end.compute(samples[hops * 160 :])
    )


def test_nyquist_may_be_written_as_zero():
    """An upper edge of zero or less counts down from half the sampling rate, as in Kaldi."""
    samples = noise(4000)
    for edge, same in [(0.0, 8000.0), (-400.0, 7600.0)]:
        np.testing.assert_array_equal(
            fbank(high_freq_hz=same).compute(samples), fbank(high_freq_hz=edge).compute(samples)
        )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"window": "hann"}, 'window must be "hamming", found "hann"'),
        ({"num_mel_bins": 500}, "num_mel_bins must be .*found 500"),
        ({"frame_shift_ms": 0.0}, "frame_shift_ms must be .*found 0"),
        ({"high_freq_hz": 9000.0}, "high_freq_hz must be .*found 9000"),
        ({"preemphasis": float("nan")}, "preemphasis must be .*found NaN"),
        ({"backend": "mmx"}, '"mmx" cannot run on this CPU, available: .*scalar'),
    ],
)
def test_unusable_recipe_is_named(change, found):
    """A recipe that cannot be used is refused at construction, with field and value."""
    with pytest.raises(FrontEndError, match=found):
        fbank(**change)


@pytest.mark.parametrize(
    ("samples", "found"),
    [
        (np.zeros(800), r"float32 array of shape \(N,\).*float64 \(800,\)"),
        (np.zeros(800, np.int16), r"int16 \(800,\)"),
        (np.zeros(800, ">f4"), r">f4 \(800,\)"),
        (np.zeros((2, 400), np.float32), r"float32 \(2, 400\)"),
        (np.zeros(1600, np.float32)[::2], r"strides \(8,\) that is not contiguous"),
        (np.frombuffer(bytes(801), np.uint8)[1:].view(np.float32), "unaligned"),
        ([0.0] * 800, "found list"),
    ],
)
def test_wrong_array_is_an_error_not_a_copy(samples, found):
    """Wrong dtype, shape or strides: the message says what was expected and what was found."""
    with pytest.raises(FrontEndError, match=found):
        fbank().compute(samples)


@every_backend
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_bad_sample_is_named(backend, value):
    """A sample that is not finite is an error naming its index."""
    samples = noise(4000)
    samples[1234] = value
    with pytest.raises(FrontEndError, match="at index 1234"):
        fbank(backend).compute(samples)


@every_backend
def test_threads_get_the_same_result(backend):
    """One object may be used by several threads at once."""
    front_end = fbank(backend)
    clips = [noise(16000 + 500 * i, i) for i in range(8)]
    expected = [front_end.compute(clip) for clip in clips]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            for want, got in zip(expected, pool.map(front_end.compute, clips), strict=True):
                np.testing.assert_array_equal(want, got)


def test_no_memory_is_kept_between_calls():
    """A thousand calls leave nothing behind: a leak of one result each would be 60 MB."""
    front_end, samples = fbank(), noise(16000)
    mean = np.zeros(560, np.float32)

    def resident_bytes():
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    def features():
        return _rust_fe.cmvn(_rust_fe.lfr(front_end.compute(samples), 7, 6), mean, mean)

    for _ in range(50):
        features()
    before = resident_bytes()
    for _ in range(1000):
        features()
    assert resident_bytes() - before < 10_000_000


def test_results_are_handed_over_without_a_copy():
    """Results live in the memory that Rust wrote them to: NumPy only looks at it."""
    values = fbank().compute(noise(4000))
    for array in (values, _rust_fe.lfr(values, 7, 6)):
        assert not array.flags.owndata
        assert array.flags.c_contiguous
        assert array.flags.writeable


def test_other_threads_run_during_a_call():
    """The interpreter lock is released: another thread never waits for most of a long call."""
    samples = np.tile(noise(16000), 600)
    front_end = fbank("scalar")
    longest, stop = [0.0], threading.Event()

    def watch():
        last = time.perf_counter()
        while not stop.is_set():
            now = time.perf_counter()
            longest[0] = max(longest[0], now - last)
            last = now

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        start = time.perf_counter()
        front_end.compute(samples)
        took = time.perf_counter() - start
    finally:
        stop.set()
        thread.join()
    assert longest[0] < 0.6 * took


def test_input_may_vanish_during_a_call():
    """The caller may try to resize its array, and drop it, while another thread works on it."""
    front_end = fbank("scalar")
    expected = front_end.compute(np.tile(noise(16000), 60))
    arrays = [np.tile(noise(16000), 60)]
    mine = arrays[0]
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(lambda: front_end.compute(arrays.pop()))
        time.sleep(0.002)
        if not future.done():
            with pytest.raises(ValueError, match="resize"):
                mine.resize(16000)
        del mine
        np.testing.assert_array_equal(expected, future.result())


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 9), st.integers(1, 3))
def test_lfr_equals_the_naive_version(num_frames, m, n, dim):
    """Row r holds frames r n - (m - 1) // 2 and following, the border frames repeated."""
    frames = np.arange(num_frames * dim, dtype=np.float32).reshape(num_frames, dim)
    rows = -(-num_frames // n)
    index = np.arange(rows)[:, None] * n + np.arange(m) - (m - 1) // 2
    expected = frames[np.clip(index, 0, max(num_frames - 1, 0))].reshape(rows, m * dim)
    np.testing.assert_array_equal(expected, _rust_fe.lfr(frames, m, n))


def test_lfr_of_nothing_is_nothing():
    """No frames give no rows of full width."""
    assert _rust_fe.lfr(np.zeros((0, 80), np.float32), 7, 6).shape == (0, 560)


@given(st.integers(1, 30), st.floats(-20, 20, width=32))
def test_lfr_of_a_constant_is_constant(num_frames, value):
    """Stacking changes no value."""
    frames = np.full((num_frames, 80), value, np.float32)
    assert {np.float32(value)} == set(_rust_fe.lfr(frames, 7, 6).ravel())


@given(st.integers(0, 20), st.integers(0, 99))
def test_cmvn_inverts(num_frames, seed):
    """Shift and scale are undone by scale and shift; the values are those of float32 NumPy."""
    rng = np.random.default_rng(seed)
    features = rng.normal(10, 3, (num_frames, 80)).astype(np.float32)
    neg_mean = rng.uniform(-15, -8, 80).astype(np.float32)
    inv_stddev = rng.uniform(0.14, 0.16, 80).astype(np.float32)
    got = _rust_fe.cmvn(features.copy(), neg_mean, inv_stddev)
    np.testing.assert_array_equal((features + neg_mean) * inv_stddev, got)
    np.testing.assert_allclose(features, got / inv_stddev - neg_mean, rtol=0, atol=2e-5)


def test_cmvn_works_in_its_arguments_memory():
    """What comes back is the array that went in: nothing is allocated."""
    features = np.ones((3, 80), np.float32)
    assert _rust_fe.cmvn(features, np.ones(80, np.float32), np.ones(80, np.float32)) is features
    assert (features == 2).all()


def test_cmvn_refuses_what_may_not_be_written_to():
    """A read-only array is an error of ours, not a crash and not a silent copy."""
    features = np.ones((3, 80), np.float32)
    features.setflags(write=False)
    with pytest.raises(FrontEndError, match="expected a writable float32 array"):
        _rust_fe.cmvn(features, np.ones(80, np.float32), np.ones(80, np.float32))
    assert (features == 1).all()


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda x, v: _rust_fe.lfr(x, 0, 6), "m must be 1 to 1024, found 0"),
        (lambda x, v: _rust_fe.lfr(x, 2**62, 6), "m must be 1 to 1024, found 46116"),
        (lambda x, v: _rust_fe.lfr(x, 7, 0), "n must be 1 to 1024, found 0"),
        (lambda x, v: _rust_fe.lfr(x, 7, 1025), "n must be 1 to 1024, found 1025"),
        (lambda x, v: _rust_fe.lfr(x[:, :0], 7, 6), "dim must be positive, found 0"),
        (lambda x, v: _rust_fe.lfr(x.T, 7, 6), "not contiguous"),
        (lambda x, v: _rust_fe.lfr(x.astype(float), 7, 6), "found float64"),
        (lambda x, v: _rust_fe.cmvn(x, v[:-1].copy(), v), "neg_mean: .*80.* found 79"),
        (lambda x, v: _rust_fe.cmvn(x, v, v[:-1].copy()), "inv_stddev: .*80.* found 79"),
        (lambda x, v: _rust_fe.cmvn(x, v[::-1], v), "neg_mean: .*not contiguous"),
        (lambda x, v: _rust_fe.cmvn(x[:, ::2], v, v), "features: .*not contiguous"),
    ],
)
def test_lfr_and_cmvn_refuse_what_does_not_fit(call, found):
    """Numbers and shapes that do not fit are errors that name the argument."""
    with pytest.raises(FrontEndError, match=found):
        call(np.zeros((10, 80), np.float32), np.zeros(80, np.float32))


def test_build_info_names_this_build():
    """A benchmark can see version, profile, target and instruction sets."""
    info = _rust_fe.build_info()
    assert set(info) == {"version", "profile", "target", "backends", "byte_features",
                         "compiler", "kernel_features", "operators"}  # fmt: skip
    assert info["profile"] in ("release", "debug")
    assert info["compiler"].startswith("rustc 1.")
    assert info["backends"][-1] == "scalar"
    assert info["backends"][0] == fbank().backend
