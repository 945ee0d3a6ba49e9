"""The measuring harness: pairs of worker processes, intervals, the machine."""

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asr import MissingToolError, TextChangedError
from asr.bench import machine
from asr.bench.measure import Contender, Worker, abba, race
from asr.bench.stats import mad, median_interval, ratio_interval

THIS = Path(__file__)


def busy(milliseconds, value="same"):
    """A contender that computes for so long and returns a string."""

    def run():
        print("noise on stdout must not disturb the answers")
        end = time.process_time() + float(milliseconds) / 1000
        while time.process_time() < end:
            pass
        return value

    return run


def broken():
    """A contender that cannot be built."""
    raise ImportError("no module named peer")


def dying():
    """A contender whose process ends in the middle."""
    return lambda: __import__("os")._exit(1)


def contender(name, function, *arguments):
    return Contender(name, THIS, function, arguments)


def test_pairs_find_the_ratio():
    """A contender that works three times as long has a CPU ratio near 3, base first."""
    pairs = race([contender("one", "busy", "4"), contender("three", "busy", "12")], 8)["three"]
    ratio = pairs.ratio("cpu_ns")
    assert ratio.low <= ratio.median <= ratio.high
    assert ratio.median == pytest.approx(3.0, rel=0.25)
    assert ratio.n == len(pairs.a) == len(pairs.b) == 8


def test_other_answers_are_no_race():
    """Contenders that return different strings are refused before anything is timed."""
    with (
        Worker(contender("a", "busy", "0", "left")) as a,
        Worker(contender("b", "busy", "0", "right")) as b,
        pytest.raises(TextChangedError, match=r"'left'.*'right'"),
    ):
        abba(a, b, 2)


def test_a_contender_that_cannot_be_built_says_why():
    """The last line of its error is in ours."""
    with pytest.raises(MissingToolError, match=r"peer-x: could not be measured.*no module named"):
        Worker(contender("peer-x", "broken"))


def test_a_contender_that_dies_is_an_error_not_a_hang():
    """The end of the process is noticed."""
    with (
        Worker(contender("dying", "dying")) as worker,
        pytest.raises(MissingToolError, match=r"dying"),
    ):
        worker.run()


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=30))
def test_intervals_hold_their_median(values):
    """The median lies within its interval, which lies within the sample."""
    found = median_interval(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)


def test_ratios_read_both_ways():
    """b / a and a / b are reciprocal, bounds exchanged."""
    rng = np.random.default_rng(0)
    a, b = rng.lognormal(0, 0.1, 40), rng.lognormal(0.5, 0.1, 40)
    there, back = ratio_interval(a, b), ratio_interval(b, a)
    assert there.median == pytest.approx(1 / back.median)
    assert there.low == pytest.approx(1 / back.high, rel=0.02)


def test_intervals_cover():
    """Of 200 samples with a known median about 95 % of the intervals hold it."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        found = median_interval(rng.normal(10, 1, 25))
        hits += found.low <= 10 <= found.high
    assert 180 <= hits <= 200


def test_mad_ignores_an_outlier():
    """One wild value does not move the median absolute deviation."""
    assert mad([1, 2, 3, 4, 1000]) == 1


def test_the_fingerprint_is_stable_and_nameless():
    """Same machine, same fingerprint; no host name in it."""
    import platform

    assert machine.fingerprint() == machine.fingerprint()
    assert platform.node() not in map(str, machine.fields().values())
