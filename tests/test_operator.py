"""asr.SelfAttention inside ONNX Runtime, against NumPy in double precision."""

import ctypes
import subprocess
import sys
import threading

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from asr import _rust_fe
from asr.engines.ort import OrtEngine, save_prepared
from asr.errors import EngineError, LayoutError

AVAILABLE = "asr.SelfAttention" in _rust_fe.build_info()["operators"]
HEADS, COLUMNS = 4, 128  # SenseVoiceSmall's

needs_the_cpu = pytest.mark.skipif(not AVAILABLE, reason="this CPU has no AVX-512 BF16")


def network(heads=HEADS, scale=COLUMNS**-0.5, rank=3, **attributes):
    """A network of the operator alone."""
    attributes = {"num_heads": heads, "scale": scale} | attributes
    node = helper.make_node("SelfAttention", list("qkv"), ["out"], domain="asr", **attributes)
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None] * rank) for name in "qkv"
    ]
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "operator", inputs, [out])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("asr", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def engine(model=None, threads=1):
    return OrtEngine(model or network(), name="operator", threads=threads)


def inputs(frames, width=HEADS * COLUMNS, batch=1, spread=1.5):
    rng = np.random.default_rng(frames)
    shape = (batch, frames, width)
    return {name: spread * rng.standard_normal(shape).astype(np.float32) for name in "qkv"}


def expected(feeds, heads=HEADS, scale=COLUMNS**-0.5):
    """softmax(scale q k^T) v per head."""
    q, k, v = (
        x.astype(float).reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)
        for x in feeds.values()
    )
    scores = scale * (q @ k.transpose(0, 1, 3, 2))
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return (weights @ v).transpose(0, 2, 1, 3).reshape(feeds["q"].shape)


def check(found, feeds, **recipe):
    """Off by a rounding to eight bits of each of the four factors; no more, and not nothing."""
    right = expected(feeds, **recipe)
    assert found.shape == right.shape
    error = found - right
    assert 1e-4 < np.sqrt((error**2).mean()) / right.std() < 6e-3
    assert np.abs(error).max() < 1e-2 * np.abs(feeds["v"]).max()


@needs_the_cpu
@pytest.mark.parametrize("frames", [1, 2, 3, 5, 6, 7, 15, 16, 17, 23, 24, 25, 31, 33, 47, 48, 49,
                                    63, 64, 65, 97, 250, 333, 504, 600])  # fmt: skip
def test_the_operator_is_attention(frames):
    """Lengths around vectors of 16, tiles of 6, blocks of 24 rows, and those of real pieces."""
    feeds = inputs(frames)
    check(engine().run(feeds)["out"], feeds)


@needs_the_cpu
@pytest.mark.parametrize(
    ("heads", "columns", "batch"), [(1, 16, 1), (3, 48, 2), (8, 80, 3), (4, 40, 1), (5, 7, 2)]
)
def test_other_shapes(heads, columns, batch):
    feeds = inputs(37, heads * columns, batch)
    found = engine(network(heads, 0.2)).run(feeds)["out"]
    check(found, feeds, heads=heads, scale=0.2)


@needs_the_cpu
def test_large_scores_choose_one_frame():
    """The softmax is taken relative to the largest score: nothing overflows."""
    feeds = inputs(40, spread=60)
    found = engine().run(feeds)["out"]
    assert np.isfinite(found).all()
    chosen = [np.abs(feeds["v"][0, :, :COLUMNS] - row[:COLUMNS]).max(1).min() for row in found[0]]
    assert np.median(chosen) < 1e-2 * np.abs(feeds["v"]).max()


@needs_the_cpu
def test_no_frames_are_no_rows():
    assert engine().run(inputs(0))["out"].shape == (1, 0, HEADS * COLUMNS)


@needs_the_cpu
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["q", "k", "v"])
def test_what_is_not_finite_spreads_as_in_numpy(name, bad):
    """And leaves nothing behind for the next, shorter call: the same memory is used again."""
    one, feeds, shorter = engine(), inputs(21), inputs(19)
    good = one.run(shorter)["out"]
    spoilt = feeds | {name: feeds[name].copy()}
    spoilt[name][0, 20, -5] = bad  # in the last head: the others write over it
    found, right = one.run(spoilt)["out"], expected(spoilt)
    assert np.array_equal(np.isnan(found), np.isnan(right))
    assert np.isnan(right).any() or name == "v" or (name, bad) == ("k", -np.inf)
    assert np.array_equal(one.run(shorter)["out"], good)


@needs_the_cpu
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_calls_side_by_side_give_the_same(threads):
    """Threads of one call and calls of several threads at once; lengths differ between them."""
    lengths = (600, 17, 97, 250)
    right = [engine().run(inputs(n))["out"] for n in lengths]
    shared = engine(threads=threads)
    wrong = []

    def work(first):
        for i in range(12):
            n = (first + i) % len(lengths)
            if not np.array_equal(shared.run(inputs(lengths[n]))["out"], right[n]):
                wrong.append(lengths[n])

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


@needs_the_cpu
@pytest.mark.parametrize(
    ("model", "found"),
    [
        (network(heads=0), "num_heads of at least 1"),
        (network(scale=0.0), "a finite scale above 0"),
        (network(scale=float("nan")), "a finite scale above 0"),
    ],
)
def test_attributes_that_cannot_be_are_refused_at_load(model, found):
    with pytest.raises(LayoutError, match=found):
        engine(model)


@needs_the_cpu
@pytest.mark.parametrize(
    ("model", "feeds", "found"),
    [
        (network(), inputs(5) | {"v": inputs(6)["v"]}, "of one shape"),
        (network(), inputs(5, 510), "as many columns for each head"),
        (network(rank=2), {n: x[0] for n, x in inputs(5).items()}, "three dimensions"),
    ],
)
def test_shapes_that_cannot_be_are_refused(model, feeds, found):
    with pytest.raises(EngineError, match=found):
        engine(model).run(feeds)


@needs_the_cpu
def test_a_network_saved_for_this_cpu_keeps_the_operator(tmp_path):
    """As the cache of prepared networks does it."""
    save_prepared(network(), tmp_path / "saved.onnx", name="operator", threads=1)
    feeds = inputs(33)
    saved = OrtEngine(tmp_path / "saved.onnx", name="operator", threads=1)
    assert np.array_equal(saved.run(feeds)["out"], engine().run(feeds)["out"])


def test_it_loads_where_the_cpu_can_run_it_and_only_there():
    if AVAILABLE:
        assert engine().outputs[0].name == "out"
    else:
        with pytest.raises(
            LayoutError, match="expected a CPU with AVX-512 BF16, found one without"
        ):
            engine()


def test_the_module_is_a_library_of_operators():
    """Whoever runs such a network elsewhere registers this very file."""
    assert ctypes.CDLL(_rust_fe.__file__).RegisterCustomOps
    with pytest.raises(Exception, match=r"asr:SelfAttention.*not a registered"):
        onnxruntime.InferenceSession(network(), providers=["CPUExecutionProvider"])


@pytest.mark.system
@pytest.mark.skipif(
    not _rust_fe.build_info()["target"].startswith("x86_64"), reason="emulates an x86 CPU"
)
def test_an_emulated_cpu_without_it_refuses_in_one_line(tmp_path):
    (tmp_path / "operator.onnx").write_bytes(network())
    code = (
        "import sys; from pathlib import Path; from asr.engines.ort import OrtEngine\n"
        "OrtEngine(Path(sys.argv[1]).read_bytes(), name='operator', threads=1)"
    )
    done = subprocess.run(
        ["qemu-x86_64", "-cpu", "Haswell", sys.executable, "-c", code, tmp_path / "operator.onnx"],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("asr.errors.LayoutError: operator: expected a network")
    assert "expected a CPU with AVX-512 BF16, found one without" in last
