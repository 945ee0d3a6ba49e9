"""What fuzzing calls: a case is made of dice alone, and checked against what is promised.

A reader may return Audio or raise an error of ``asr.errors`` in one line. Anything else is a
finding: another exception, a value that is not finite, more sound than the bytes could hold.
"""

import os
import random
import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import inputs
import numpy as np

from asr import _rust_fe, audio
from asr.errors import AsrError, AudioError, DecodeError, FrontEndError, UsageError

#: Samples that a byte of a file may become at most. FLAC and CAF hold silence in next to nothing;
#: a damaged FLAC file is given gaps of up to 30 s each.
_SAMPLES_PER_BYTE, _ALWAYS = 65536, 1 << 23


class Case(NamedTuple):
    """One execution.

    Attributes:
        data: bytes, which may be made shorter while a finding stays one.
        option: what else the target needs.
    """

    data: bytes
    option: Any = None


class Target(NamedTuple):
    """Makes a case of dice, and checks one."""

    make: Callable[[random.Random], Case]
    check: Callable[[Case], None]


def check_read(case: Case) -> None:
    """Read bytes."""
    read(case.data, case.data, **(case.option or {}))


def read(source: Any, data: bytes, **options: Any) -> None:
    """Read a source of so many bytes, and hold the result to what is promised."""
    told: list[str] = []
    try:
        found = audio.read(source, warn=told.append, **options)
    except AsrError as error:
        line = str(error)
        assert line, "an error without words"
        assert len(line.splitlines()) == 1, f"an error of several lines: {line!r}"
        return
    samples = found.samples
    assert samples.dtype == np.float32, samples.dtype
    assert samples.ndim == 1, samples.shape
    assert np.isfinite(samples).all(), "a sample that is not finite"
    most = _ALWAYS + _SAMPLES_PER_BYTE * len(data)
    assert len(samples) <= most, f"{len(samples)} samples of {len(data)} bytes"
    for line in told:
        assert len(line.splitlines()) == 1, f"a warning of several lines: {line!r}"
        assert line.partition(": ")[0].isidentifier(), f"a warning without a kind: {line!r}"
    if len(samples) < 100_000:
        resampled = audio.resample(found, 16000)
        assert np.isfinite(resampled.samples).all(), "resampling made a value that is not finite"


def _options(dice: random.Random) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if dice.random() < 0.1:
        options["channel"] = dice.choice((1, 2, 3, 0, -1, 10**9))
    if dice.random() < 0.1:
        options["strict"] = True
    return options


def make_wav(dice: random.Random) -> Case:
    """WAV by the rules, WAV against them, and damaged files of libsndfile."""
    if dice.random() < 0.3:
        return Case(inputs.mutate(dice, dice.choice(inputs.seeds(inputs.WAVES))), _options(dice))
    data = inputs.wav(dice)
    return Case(inputs.mutate(dice, data) if dice.random() < 0.3 else data, _options(dice))


def _make_mutated(files: Callable[[], tuple[bytes, ...]]) -> Callable[[random.Random], Case]:
    def make(dice: random.Random) -> Case:
        return Case(inputs.mutate(dice, dice.choice(files() or (b"",))), _options(dice))

    return make


def make_pipe(dice: random.Random) -> Case:
    """Any of the files, in portions; some begin like no sound."""
    make = dice.choice((make_wav, TARGETS["compressed"].make, TARGETS["containers"].make))
    data = make(dice).data if dice.random() < 0.9 else dice.randbytes(dice.randrange(300))
    return Case(data, sorted(dice.randrange(len(data) + 1) for _ in range(dice.randrange(4))))


def check_pipe(case: Case) -> None:
    """Read a pipe that gets its bytes in portions."""
    source, sink = os.pipe()

    def feed() -> None:
        try:
            places = [0, *(min(p, len(case.data)) for p in case.option), len(case.data)]
            for start, end in pairwise(places):
                os.write(sink, case.data[start:end])
        except BrokenPipeError:
            pass  # what is no sound is refused at its first bytes
        finally:
            os.close(sink)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        read(f"/dev/fd/{source}", case.data)
    finally:
        os.close(source)
        feeder.join()


def make_raw(dice: random.Random) -> Case:
    """Formats that are and are not, over any bytes."""
    words = ",".join((
        dice.choice(("s16le", "u8", "s24be", "f32le", "f64be", "alaw", "S16LE", "s17le", "")),
        dice.choice(("8000", "16000", "384000", "3999", "-1", "1e4", "²", "9" * 40)),
        dice.choice(("1", "2", "7", "1024", "1025", "0", " 1", "9" * 40)),
    ))  # fmt: skip
    return Case(dice.randbytes(dice.choice((0, 1, 3, 8, 64, 5000))), (words, _options(dice)))


def check_raw(case: Case) -> None:
    """Read samples without a header."""
    words, options = case.option
    try:
        raw = audio.RawFormat.parse(words)
    except UsageError:
        return
    read(case.data, case.data, raw=raw, **options)


_DTYPES = (
    "f4",
    ">f4",
    "f8",
    "i2",
    ">i2",
    "i4",
    "u1",
    "f2",
    "c8",
    "?",
    "i8",
    "u2",
    "O",
    "U3",
    "M8[s]",
)


def make_array(dice: random.Random) -> Case:
    """Arrays of any type, shape, order of bytes, stride, and any bits."""
    shape = tuple(
        dice.choice((0, 1, 2, 3, 8, 9, 100)) for _ in range(dice.choice((0, 1, 1, 2, 2, 3)))
    )
    rate = dice.choice((16000, 8000, 0, -1, 16000.5, float("nan"), float("inf"), None, "8000", True,
                        np.int64(8000), 10**30))  # fmt: skip
    return Case(dice.randbytes(64), (dice.choice(_DTYPES), shape, dice.choice((1, 2, -1)), rate))


def check_array(case: Case) -> None:
    """Read an array."""
    dtype, shape, stride, rate = case.option
    if dtype in ("O", "U3", "M8[s]"):
        array = np.zeros(shape, dtype)
    else:
        count = int(np.prod(shape))
        size = np.dtype(dtype).itemsize
        data = (case.data + b"\0")[: len(case.data)] or b"\0"
        data = (data * (count * size // len(data) + 1))[: count * size]
        array = np.frombuffer(data, dtype).reshape(shape)
    if array.ndim:
        array = array[::stride]
    try:
        found = audio.read(array, rate, warn=lambda _: None)
    except (AudioError, UsageError) as error:
        assert len(str(error).splitlines()) == 1, str(error)
    else:
        assert np.isfinite(found.samples).all(), "a sample that is not finite"


_NUMBERS = (0, 1, 2, 3, 7, 80, 560, 1024, 1025, 2**31, 2**63, 2**64 - 1, 2**64, -1, 1e300, 0.5,
            25.0, float("nan"), float("inf"), -0.0, None, "16000", b"x", True)  # fmt: skip


def _any_array(dice: random.Random) -> Any:
    if dice.random() < 0.05:
        return dice.choice((None, [1.0], "x", 3))
    shape = [dice.choice((0, 1, 2, 7, 40)) for _ in range(dice.choice((1, 1, 2, 2, 2, 0, 3)))]
    dtype = dice.choice(("f4", "f4", "f4", "f4", "f8", "i2", ">f4"))
    values = np.random.default_rng(dice.getrandbits(32)).normal(0, 3, shape).astype(dtype)
    if values.size and dtype != "i2" and dice.random() < 0.2:
        values.flat[0] = dice.choice((np.nan, np.inf, -np.inf, 3e38, 1e-45, -0.0))
    if values.ndim and dice.random() < 0.1:
        values = values[::-1]
    if dice.random() < 0.1:
        values.setflags(write=False)
    return values


def make_boundary(dice: random.Random) -> Case:
    """A function of ``asr._rust_fe`` and arguments that may fit."""
    number = lambda *good: dice.choice(good) if dice.random() < 0.8 else dice.choice(_NUMBERS)  # noqa: E731
    name = dice.choice(("fbank", "lfr", "cmvn", "ctc_greedy", "phrases"))
    if name == "fbank":
        recipe = {
            "sample_rate_hz": number(16000, 8000), "frame_length_ms": number(25.0, 1.0),
            "frame_shift_ms": number(10.0, 0.5), "window": number("hamming"),
            "num_mel_bins": number(80, 2), "low_freq_hz": number(20.0, 0.0),
            "high_freq_hz": number(0.0, -400.0), "preemphasis": number(0.97, 0.0),
            "sample_scale": number(32768.0, 1.0), "backend": number(None, "scalar", "x"),
        }  # fmt: skip
        return Case(b"", (name, recipe, _any_array(dice), number(400, 0)))
    if name == "lfr":
        return Case(b"", (name, _any_array(dice), number(7, 1), number(6, 1)))
    if name == "cmvn":
        arrays = [_any_array(dice) for _ in range(3)]
        if dice.random() < 0.2:
            arrays[2] = arrays[1]
        return Case(b"", (name, *arrays))
    if name == "ctc_greedy":
        return Case(
            b"", (name, _any_array(dice), number(0, 1), number(0, 1, 4), number(None, "scalar"))
        )
    word = lambda: bytes(dice.choices(b"ab\xe2", k=dice.randrange(4)))  # noqa: E731
    pieces = [word() for _ in range(dice.choice((0, 1, 2, 7, 7, 40)))]
    texts = [[word() + word() for _ in range(dice.randrange(3))] for _ in range(dice.randrange(5))]
    groups = [number(0, 0, 1) for _ in texts]
    return Case(b"", (name, pieces, number(0, 1), texts, groups, _any_array(dice), number(0, 1),
                      dice.choice((True, False))))  # fmt: skip


def check_boundary(case: Case) -> None:
    """Call into Rust: a result, or an error of ours, or Python's own about a type."""
    name, *arguments = case.option
    try:
        _call(name, arguments)
    except (FrontEndError, DecodeError) as error:
        assert len(str(error).splitlines()) == 1, str(error)
    except (TypeError, OverflowError):
        pass  # what a signature refuses


def _call(name: str, arguments: list[Any]) -> None:
    if name == "fbank":
        recipe, samples, count = arguments
        front_end = _rust_fe.Fbank(**recipe)
        front_end.num_frames(count)
        values = front_end.compute(samples)
        assert values.shape == (front_end.num_frames(len(samples)), recipe["num_mel_bins"])
        assert np.isfinite(values).all(), "a feature that is not finite"
    elif name == "lfr":
        values = _rust_fe.lfr(*arguments)
        features, m, n = arguments
        assert values.shape == (-(-len(features) // n), m * features.shape[1])
    elif name == "cmvn":
        assert _rust_fe.cmvn(*arguments) is arguments[0]
    elif name == "ctc_greedy":
        argmax, log_prob, entropy, *_ = _rust_fe.ctc_greedy(*arguments)
        assert len(argmax) == len(arguments[0])
        assert (log_prob <= 0).all()
        assert np.isfinite(entropy).all()
    else:
        pieces, blank_id, texts, groups, logits, prompt_frames, many = arguments
        graph = _rust_fe.Phrases(pieces, blank_id, texts, groups)
        _, facts, scores = graph.decode(logits, prompt_frames, many=many)
        assert len(facts) == len(scores)
        assert not np.isnan(scores).any(), "a score that is no number"


#: By name, in the order in which they run.
TARGETS = {
    "wav": Target(make_wav, check_read),
    "compressed": Target(_make_mutated(lambda: inputs.seeds(inputs.COMPRESSED)), check_read),
    "others": Target(_make_mutated(lambda: inputs.seeds(inputs.OTHERS)), check_read),
    "containers": Target(_make_mutated(inputs.containers), check_read),
    "pipe": Target(make_pipe, check_pipe),
    "raw": Target(make_raw, check_raw),
    "array": Target(make_array, check_array),
    "boundary": Target(make_boundary, check_boundary),
}
