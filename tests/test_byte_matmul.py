"""asr.ByteMatMul inside ONNX Runtime, bit for bit against the runtime's DynamicQuantizeMatMul.

``asr.optimize.panels`` writes the operator as it does at first load; ``multiplication`` is the
network that the runtime knows.
"""

import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from asr import _rust_fe
from asr.engines.ort import OrtEngine
from asr.errors import EngineError, LayoutError
from asr.optimize import panels
from asr.optimize.passes import NoMatch

AVAILABLE = "asr.ByteMatMul" in _rust_fe.build_info()["operators"]

needs_the_cpu = pytest.mark.skipif(not AVAILABLE, reason="this CPU has no AVX-512 VNNI")


def multiplication(depth, columns, *more, weights=None, zeros=None, bias=True, scales=None,
                   outputs=("y",)):  # fmt: skip
    """DynamicQuantizeMatMul and whatever comes after it."""
    rng = np.random.default_rng(depth * 1000 + columns)
    if weights is None:
        weights = rng.integers(-128, 128, (depth, columns))
    constants = {"w": weights.astype(np.int8)}
    constants["s"] = rng.uniform(1e-3, 1e-2, columns) if scales is None else scales
    constants["s"] = np.asarray(constants["s"], np.float32)
    if zeros is not None:
        constants["z"] = np.asarray(zeros, np.int8)
    if bias:
        constants["b"] = rng.standard_normal(columns).astype(np.float32)
    inputs = ["x", "w", "s", "z" if zeros is not None else "", "b" if bias else ""]
    node = helper.make_node("DynamicQuantizeMatMul", inputs, ["y"], domain="com.microsoft")
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, None, depth])
    made = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs]
    tensors = [numpy_helper.from_array(v, name) for name, v in constants.items()]
    graph = helper.make_graph([node, *more], "g", [x], made, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


RELU = helper.make_node("Relu", ["y"], ["r"])


def write(model, folder):
    """What ``panels`` makes of a network: its path, and in how many places."""
    source, path = folder / "source.onnx", folder / "panels.onnx"
    source.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return path, panels.write(source, path, folder / "panels.onnx.data")


def both(model, folder, threads=1):
    """The network as the runtime runs it, and with our operator."""
    path, places = write(model, folder)
    assert places == 1
    found = Counter(
        (n.domain, n.op_type) for n in onnx.load(path, load_external_data=False).graph.node
    )
    assert found["asr", "ByteMatMul"] == 1
    assert not found["com.microsoft", "DynamicQuantizeMatMul"]
    plain = OrtEngine(model.SerializeToString(), name="plain", threads=threads)
    return plain, OrtEngine(path, name="ours", threads=threads)


def rows(count, depth, seed=0):
    return np.random.default_rng(seed).standard_normal((1, count, depth)).astype(np.float32)


def check(engines, *values, name="y"):
    for x in values:
        right, ours = (engine.run({"x": x})[name] for engine in engines)
        assert ours.dtype == np.float32
        assert ours.shape == right.shape
        assert np.array_equal(ours.view(np.int32), right.view(np.int32)), x.shape


@needs_the_cpu
@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 560, 2048])
@pytest.mark.parametrize("columns", [1, 31, 32, 33, 127, 128, 129, 512])
def test_it_is_the_runtimes_multiplication(depth, columns, tmp_path):
    """Of every number of rows that a tile can have, and of more tiles than one."""
    counts = [*range(1, 15), 23, 24, 25, 97] if depth * columns < 1e5 else [1, 12, 13, 97, 333]
    check(both(multiplication(depth, columns), tmp_path), *(rows(n, depth, n) for n in counts))


@needs_the_cpu
@pytest.mark.parametrize("spread", [1e-30, 1e-3, 1.0, 1e4, 1e30])
@pytest.mark.parametrize("shift", [-2.0, 0.0, 2.0])
def test_rows_of_any_size_are_quantised_alike(spread, shift, tmp_path):
    """All above 0, all below, or on both sides: the zero moves from one end to the other."""
    values = (rows(19, 96) + np.float32(shift)) * np.float32(spread)
    whole = np.maximum(values, 0) if shift > 0 else np.minimum(values, 0) if shift < 0 else values
    check(both(multiplication(96, 40), tmp_path), values, whole)


@needs_the_cpu
def test_halves_are_rounded_to_even(tmp_path):
    """From 0 to 255 in steps of a half the scale is 1, and every other value lies on the edge."""
    x = np.arange(0, 255.5, 0.5, np.float32)
    x = np.concatenate([x, x[:1]]).reshape(1, 8, 64)
    check(both(multiplication(64, 33), tmp_path), x, x - 100, -x)


@needs_the_cpu
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("scale", ["column", "all"])
@pytest.mark.parametrize("zeros", [None, "none", "all", "column"])
@pytest.mark.parametrize("bias", [False, True])
def test_what_belongs_to_a_column(relu, scale, zeros, bias, tmp_path):
    columns = 70
    of_columns = np.random.default_rng(1).integers(-128, 128, columns)
    model = multiplication(
        50, columns, *([RELU] if relu else []), outputs=("r",) if relu else ("y",), bias=bias,
        scales=None if scale == "column" else [0.25],
        zeros={None: None, "none": np.zeros(columns), "all": [77], "column": of_columns}[zeros],
    )  # fmt: skip
    engines = both(model, tmp_path)
    check(engines, rows(1, 50), rows(40, 50), name="r" if relu else "y")
    nodes = [
        n.op_type for n in onnx.load(tmp_path / "panels.onnx", load_external_data=False).graph.node
    ]
    assert nodes == ["ByteMatMul"]


@needs_the_cpu
def test_extreme_weights_do_not_saturate(tmp_path):
    """Older kernels add pairs of products in 16 bits, which is not enough for these."""
    depth, columns = 4096, 64
    weights = np.where(np.arange(columns) % 2, 127, -128) * np.ones((depth, 1))
    x = np.ones((1, 30, depth), np.float32)
    x[:, ::2] = -1
    check(both(multiplication(depth, columns, weights=weights), tmp_path), x)


@needs_the_cpu
def test_no_rows_are_no_rows(tmp_path):
    _, ours = both(multiplication(8, 40), tmp_path)
    assert ours.run({"x": np.zeros((1, 0, 8), np.float32)})["y"].shape == (1, 0, 40)


@needs_the_cpu
def test_several_clips_are_quantised_together(tmp_path):
    check(both(multiplication(8, 40), tmp_path), rows(12, 8).reshape(3, 4, 8))


@needs_the_cpu
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_comes_back(bad, tmp_path):
    """No promise what the numbers are: that there are as many, and that the next call is right."""
    engines = both(multiplication(64, 40), tmp_path)
    x = rows(20, 64)
    x[0, 3, 5] = bad
    assert engines[1].run({"x": x})["y"].shape == (1, 20, 40)
    check(engines, rows(20, 64))


@needs_the_cpu
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_calls_side_by_side_give_the_same(threads, tmp_path):
    engines = both(multiplication(96, 1000), tmp_path, threads)
    wrong = []

    def work(seed):
        try:
            for n in (1, 40, 7, 97):
                check(engines, rows(n, 96, seed))
        except AssertionError as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert wrong == []


# ------------------------------------------------------------------ which networks


def edited(path, change):
    """The written network after a change, beside its weights."""
    model = onnx.load(path, load_external_data=False)
    change(model.graph)
    path.write_bytes(model.SerializeToString())
    return path


def attribute(name, value):
    def change(graph):
        (found,) = (a for a in graph.node[0].attribute if a.name == name)
        found.i = value

    return change


def shorter(at):
    def change(graph):
        name = graph.node[0].input[at]
        (tensor,) = (t for t in graph.initializer if t.name == name)
        values = numpy_helper.to_array(tensor)[:-1].copy()
        tensor.CopyFrom(numpy_helper.from_array(values, name))

    return change


def computed(graph):
    name = graph.node[0].input[5]
    graph.node[0].input[5] = "computed"
    graph.node.insert(0, helper.make_node("Neg", [name], ["computed"]))


@needs_the_cpu
@pytest.mark.parametrize(
    ("change", "found"),
    [
        (attribute("columns", 65), "expected constants of one depth"),
        (attribute("columns", 0), "expected constants of one depth"),
        (attribute("columns", -1), "expected constants of one depth"),
        (attribute("depth", 9), "expected constants of one depth"),
        (attribute("depth", 1 << 40), "expected constants of one depth"),
        (shorter(2), "expected constants of one depth"),
        (shorter(3), "expected constants of one depth"),
        (shorter(5), "expected constants of one depth"),
        (computed, "expected a constant, found something computed"),
    ],
)
def test_what_cannot_be_is_refused_at_load(change, found, tmp_path):
    """Nothing is read that is not there: the operator's memory is the file."""
    path, _ = write(multiplication(8, 40), tmp_path)
    with pytest.raises(LayoutError, match=found):
        OrtEngine(edited(path, change), name="n", threads=1)


@needs_the_cpu
def test_rows_of_another_length_are_refused(tmp_path):
    path, _ = write(multiplication(8, 40), tmp_path)

    def any_length(graph):
        graph.input[0].type.tensor_type.shape.dim[2].ClearField("dim_value")

    ours = OrtEngine(edited(path, any_length), name="n", threads=1)
    with pytest.raises(EngineError, match="rows as long as the matrix is deep"):
        ours.run({"x": rows(3, 9)})


def test_it_loads_where_the_cpu_can_run_it_and_only_there(tmp_path):
    path, _ = write(multiplication(8, 40), tmp_path)
    if AVAILABLE:
        assert OrtEngine(path, name="n", threads=1).outputs[0].name == "y"
    else:
        with pytest.raises(LayoutError, match="expected a CPU with AVX-512 VNNI"):
            OrtEngine(path, name="n", threads=1)


@pytest.mark.system
@pytest.mark.skipif(
    not _rust_fe.build_info()["target"].startswith("x86_64"), reason="emulates an x86 CPU"
)
def test_an_emulated_cpu_without_it_refuses_in_one_line(tmp_path):
    path, _ = write(multiplication(8, 40), tmp_path)
    code = (
        "import sys; from pathlib import Path; from asr.engines.ort import OrtEngine\n"
        "OrtEngine(Path(sys.argv[1]), name='n', threads=1)"
    )
    done = subprocess.run(
        ["qemu-x86_64", "-cpu", "Haswell", sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stderr.splitlines()[-1]
    assert last.startswith("asr.errors.LayoutError: n: expected a network")
    assert "expected a CPU with AVX-512 VNNI, found one without" in last


# ------------------------------------------------------------------ what is rewritten


@needs_the_cpu
def test_a_relu_stays_where_others_need_what_is_below_0(tmp_path):
    """The sum is an output, too."""
    model = multiplication(8, 40, RELU, outputs=("y", "r"))
    engines = both(model, tmp_path)
    check(engines, rows(5, 8))
    check(engines, rows(5, 8), name="r")


@needs_the_cpu
def test_a_relu_before_is_no_relu_behind(tmp_path):
    model = multiplication(8, 8, helper.make_node("Relu", ["x"], ["r"]), outputs=("y", "r"))
    check(both(model, tmp_path), rows(5, 8))


@needs_the_cpu
def test_weights_that_another_uses_are_kept_for_it(tmp_path):
    model = multiplication(
        8, 40, helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT), outputs=("y", "c")
    )
    engines = both(model, tmp_path)
    check(engines, rows(5, 8))
    check(engines, rows(5, 8), name="c")


@needs_the_cpu
def test_large_constants_lie_outside_at_the_begin_of_a_page(tmp_path):
    """They are mapped, never copied; the small ones cost less inside."""
    table = numpy_helper.from_array(np.arange(40_000, dtype=np.float32), "t")
    model = multiplication(8, 40, helper.make_node("Identity", ["t"], ["c"]), outputs=("y", "c"))
    model.graph.initializer.append(table)
    check(both(model, tmp_path), rows(5, 8))
    written = onnx.load(tmp_path / "panels.onnx", load_external_data=False).graph.initializer
    outside = {
        t.name: {e.key: e.value for e in t.external_data} for t in written if t.external_data
    }
    assert sorted(outside) == ["ByteMatMul_0_weights", "t"]
    assert {e["location"] for e in outside.values()} == {"panels.onnx.data"}
    assert all(int(e["offset"]) % 4096 == 0 for e in outside.values())
    assert np.array_equal(
        numpy_helper.to_array(next(t for t in onnx.load(tmp_path / "panels.onnx").graph.initializer
                                   if t.name == "t")),
        numpy_helper.to_array(table),
    )  # fmt: skip


@needs_the_cpu
def test_values_outside_raw_data_are_read_too(tmp_path):
    """The runtime saves scalars so."""
    model = multiplication(8, 40, zeros=[-3], scales=[0.25])
    right = OrtEngine(model.SerializeToString(), name="plain", threads=1)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        kind, name = tensor.data_type, tensor.name
        tensor.CopyFrom(helper.make_tensor(name, kind, values.shape, values.ravel()))
        assert not tensor.raw_data
    check((right, both(model, tmp_path)[1]), rows(5, 8))


def unsigned(model):
    w = model.graph.initializer[0]
    w.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(w).view(np.uint8), "w"))


def computed_weights(model):
    model.graph.initializer[0].name = "v"
    model.graph.node.insert(0, helper.make_node("Identity", ["v"], ["w"]))


def outside(model):
    w = model.graph.initializer[0]
    w.ClearField("raw_data")
    w.data_location = TensorProto.EXTERNAL
    w.external_data.add(key="location", value="other")


def bias_outside(model):
    b = model.graph.initializer[-1]
    assert b.name == "b"
    b.ClearField("raw_data")
    b.data_location = TensorProto.EXTERNAL
    b.external_data.add(key="location", value="other")


def bias_computed(model):
    model.graph.initializer[-1].name = "c"
    model.graph.node.insert(0, helper.make_node("Neg", ["c"], ["b"]))


@pytest.mark.parametrize(
    "change", [unsigned, computed_weights, outside, bias_outside, bias_computed]
)
def test_what_is_built_otherwise_stays_with_the_runtime(change, tmp_path):
    model = multiplication(8, 40)
    change(model)
    assert write(model, tmp_path)[1] == 0
    assert {p.name for p in tmp_path.iterdir()} == {"source.onnx"}


def test_graphs_inside_operators_are_left_alone(tmp_path):
    inner = helper.make_graph([], "inner", [], [])
    loop = helper.make_node("If", ["c"], [], then_branch=inner, else_branch=inner)
    with pytest.raises(NoMatch, match="found If"):
        write(multiplication(8, 40, loop), tmp_path)


def test_a_sum_that_could_leave_32_bits_stays_with_the_runtime(tmp_path):
    assert write(multiplication(panels._DEEPEST + 1, 1), tmp_path)[1] == 0


@pytest.mark.parametrize(
    "data", [b"\x08\x07", b"\x3a\xff\xff\x03abc", b"\x0b", b"\x08", b"\x3a\x02\x0a\x00"]
)
def test_what_is_no_network_is_no_match(data, tmp_path):
    with pytest.raises(NoMatch):
        write(data, tmp_path)
