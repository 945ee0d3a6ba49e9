"""The Python-Rust boundary, measured: no copies, the lock released, lent arrays kept safe.

The test build counts every allocation of the Rust half and can keep the interpreter lock, so that
each check is also seen to fail.
"""

import importlib.util
import shutil
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from asr import _rust_fe, hub, layouts

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent
RATE = 16000
RECIPE = layouts.open_layout(hub.find_model(hub.DEFAULT_MODEL)).front_end
#: Besides its result a call needs tables of fixed size, and a mean for each frame.
SCRATCH_BYTES = 200_000


def build(features, name, tmp_path_factory):
    """Compile the module with these features and load it under its own name."""
    target = ROOT / "target/boundary"
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "--locked", "-p", "rust_fe",
         "--features", features, "--target-dir", target],
        cwd=ROOT, check=True,
    )  # fmt: skip
    path = tmp_path_factory.mktemp(name) / "_rust_fe.so"
    shutil.copyfile(target / "release/librust_fe.so", path)
    spec = importlib.util.spec_from_file_location("_rust_fe", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def counting(tmp_path_factory):
    return build("count-allocations", "counting", tmp_path_factory)


@pytest.fixture(scope="module")
def holding(tmp_path_factory):
    return build("hold-lock", "holding", tmp_path_factory)


def fbank_of(module):
    return module.Fbank(
        sample_rate_hz=RATE, frame_length_ms=25, frame_shift_ms=10, window="hamming",
        num_mel_bins=80, low_freq_hz=20, high_freq_hz=8000, preemphasis=0.97, sample_scale=32768,
    )  # fmt: skip


def noise(seconds):
    return np.random.default_rng(0).standard_normal(int(seconds * RATE)).astype(np.float32) * 0.1


FEATURES = np.random.default_rng(0).standard_normal((3000, 80)).astype(np.float32)
STACKED = np.random.default_rng(0).standard_normal((500, 560)).astype(np.float32)
LOGITS = np.random.default_rng(0).standard_normal((500, 5000)).astype(np.float32)
CALLS = {
    "fbank": lambda m: (fbank_of(m).compute, (noise(30),)),
    "lfr": lambda m: (m.lfr, (FEATURES, 7, 6)),
    "cmvn": lambda m: (m.cmvn, (STACKED, RECIPE.neg_mean, RECIPE.inv_stddev)),
    "ctc_greedy": lambda m: (m.ctc_greedy, (LOGITS, 0, 4)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_allocates_its_result_and_little_else(counting, name):
    """Rust allocates the result and bounded scratch: no copy of the input, none of the output."""
    function, arguments = CALLS[name](counting)
    result = function(*arguments)
    arrays = result if isinstance(result, tuple) else (result,)
    result_bytes = sum(a.nbytes for a in arrays)
    input_bytes = max(a.nbytes for a in arguments if isinstance(a, np.ndarray))
    before = counting.allocated_bytes()
    function(*arguments)
    used = counting.allocated_bytes() - before
    print(f"{name}: in {input_bytes}, out {result_bytes}, allocated {used}")
    if name == "cmvn":  # in place
        result_bytes = 0
    assert result_bytes <= used <= result_bytes + SCRATCH_BYTES
    assert name == "fbank" or used < result_bytes + input_bytes / 4


@pytest.mark.parametrize("name", CALLS)
def test_python_allocates_no_array_for_a_call(name):
    """What comes back is Rust's memory, handed over: NumPy's own allocations are a few hundred
    bytes of headers, seen by tracemalloc."""
    function, arguments = CALLS[name](_rust_fe)
    function(*arguments)
    tracemalloc.start()
    try:
        result = function(*arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000
    arrays = result if isinstance(result, tuple) else (result,)
    assert name == "cmvn" or not any(a.flags.owndata for a in arrays)


def test_the_counter_sees_a_copy(counting):
    """The counter counts: twice the frames are twice the bytes."""
    before = counting.allocated_bytes()
    counting.lfr(FEATURES, 7, 6)
    once = counting.allocated_bytes() - before
    counting.lfr(np.concatenate([FEATURES, FEATURES]), 7, 6)
    twice = counting.allocated_bytes() - before - once
    assert twice == pytest.approx(2 * once, rel=0.01)


def counted_during_ten_minutes(module):
    """How far a Python thread counts while another runs one native call; a million at most.

    With a switch interval longer than any call nobody takes the lock away: the other thread counts
    only if the call itself has let go of it. The interval holds from when a thread begins to wait,
    so it is set before the other thread can: one that waits with the usual 5 ms would get its turn
    at the end of the call, before it is counted. A module's first call lets go of the lock for a
    moment, to set up the types of its arrays, and so is made before.
    """
    front_end, samples = fbank_of(module), np.tile(noise(60), 10)
    front_end.compute(samples[:RATE])
    start, counter = threading.Event(), [0]

    def count():
        start.wait()
        while counter[0] < 1_000_000:
            counter[0] += 1

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        thread.start()
        start.set()
        front_end.compute(samples)
        return counter[0]
    finally:
        sys.setswitchinterval(interval)
        thread.join()


def test_another_thread_counts_during_ten_minutes_of_audio():
    """While one native call works on 10 minutes a Python thread goes on."""
    counted = counted_during_ten_minutes(_rust_fe)
    print(f"counted to {counted} during the call")
    assert counted > 1000


def test_with_the_lock_held_the_check_above_fails(holding):
    """The same call in a build that keeps the lock lets nobody count."""
    assert counted_during_ten_minutes(holding) == 0


def test_a_lent_array_cannot_be_resized_even_unchecked():
    """During a call NumPy refuses to resize the caller's array, also with refcheck=False."""
    front_end, samples = fbank_of(_rust_fe), np.tile(noise(60), 20).copy()  # owns its memory
    expected = front_end.compute(samples)
    results, refused, size = [], 0, samples.size
    thread = threading.Thread(target=lambda: results.append(front_end.compute(samples)))
    thread.start()
    while thread.is_alive():
        # One sample more adds no frame, so that the result is the same if the call begins between.
        refused += not try_resize(samples, size + 1)
        try_resize(samples, size)
    thread.join()
    assert refused > 0
    assert np.array_equal(expected, results[0])
    assert try_resize(samples, 10)  # afterwards the array is the caller's again


def try_resize(array, size):
    """Whether NumPy resizes the array in place, reference counts unchecked."""
    try:
        array.resize(size, refcheck=False)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("name", CALLS)
def test_a_strided_or_other_typed_input_is_an_error_not_a_copy(name):
    """What Rust cannot borrow as it lies is refused with both sides named."""
    function, (array, *rest) = CALLS[name](_rust_fe)
    for wrong, found in ((array[::2], "strides"), (array.astype(np.float64), "float64")):
        with pytest.raises(ValueError, match=f"expected a float32 array.*found .*{found}"):
            function(wrong, *rest)
