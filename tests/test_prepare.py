"""A large model's prepared network: made once, trusted only when nobody can have changed it."""

import json
import os
import shutil
import subprocess
import sys
import warnings
from dataclasses import asdict, replace
from pathlib import Path

import fakes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import asr
from asr import _rust_fe, networks
from asr.cli import main
from asr.engines.ort import OrtEngine, save_prepared
from asr.errors import EngineError, LayoutError, UsageError
from asr.layouts import open_layout
from asr.observe import Timer
from asr.optimize import build, cache, load, panels, raw, verify
from asr.optimize.graph import Graph
from asr.optimize.passes import NoMatch, signed_weights
from asr.optimize.probe import Roles
from asr.optimize.request import Request

ROOT = Path(__file__).parent.parent
NETWORK = ROOT / "tests/networks/funasr-torchscript-14-logits"
BYTES = sorted(
    f for f in (ROOT / "tests/networks").glob("*/*.onnx") if not f.name.endswith("model.onnx")
)  # fmt: skip
CLIP = ROOT / "golden/audio/transcribe_me.wav"


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A model folder of the test's own, large by decree, and an empty cache; built in process."""
    folder = tmp_path / "model"
    shutil.copytree(NETWORK, folder)
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(networks, "LARGE_BYTES", 0)
    monkeypatch.setattr(cache, "_SETTLED_NS", 0)
    monkeypatch.setattr(load, "_run", lambda request, tell: build.build(request, tell))
    return folder


@pytest.fixture
def built(monkeypatch):
    """Counts the networks that were built."""
    done = []
    real = load._run
    monkeypatch.setattr(load, "_run", lambda *a: done.append(a) or real(*a))
    return done


def prepare(folder, **wanted):
    """A recogniser and its state; a warning fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recognizer = asr.Recognizer.load(folder, threads=1, **wanted)
    return recognizer, recognizer.engine.preparation


def entry_of(found):
    return found.network.parent


def record_of(found):
    return json.loads((entry_of(found) / cache.RECORD).read_text(encoding="utf-8"))


def scores(recognizer):
    x = np.random.default_rng(0).standard_normal((1, 40, 560)).astype(np.float32)
    n = np.zeros(1, np.int32)
    feeds = {"speech": x, "speech_lengths": n + 40, "language": n, "textnorm": n + 15}
    return recognizer.engine.run(feeds)[recognizer.engine.outputs[0].name]


# ------------------------------------------------------------------ the states


def test_first_cached_off_say_the_same(model, tmp_path):
    off, state = prepare(model, optimize=False)
    assert (state.state, state.reason, state.network) == ("off", "not asked for", None)
    assert not (tmp_path / "cache").exists()
    told = []
    first, state = prepare(model, progress=told.append)
    assert (state.state, state.passes) == ("first", fakes.prepared_passes())
    assert state.disk_bytes == sum(
        f.stat().st_size for f in entry_of(state).iterdir() if f.name != cache.RECORD
    )
    assert told[0] == "preparing model_quant.onnx for this CPU, this once"
    assert f"MB in {entry_of(state)}" in told[-1]
    again, later = prepare(model)
    assert (later.state, replace(later, state="first")) == ("cached", state)
    assert np.array_equal(scores(off), scores(first))
    assert np.array_equal(scores(off), scores(again))
    assert off.transcribe(CLIP).text == again.transcribe(CLIP).text


def test_a_small_network_is_not_looked_for(tmp_path):
    code = (
        "import sys, asr; r = asr.Recognizer.load(threads=1); "
        "assert r.engine.preparation.state == 'not applicable'; "
        "sys.exit('asr.optimize' in sys.modules)"
    )
    environment = {**os.environ, "ASR_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert done.returncode == 0
    assert not (tmp_path / "cache").exists()


def test_a_cached_load_reads_the_network_no_more(model, monkeypatch):
    prepare(model)
    monkeypatch.setattr(cache, "digest", lambda path: pytest.fail(f"{path} was read whole"))
    monkeypatch.setattr(networks, "read_model", lambda path: pytest.fail(f"{path} was read"))
    timer = Timer()
    assert prepare(model, observer=timer)[1].state == "cached"
    assert [name for name, _ in timer.steps_ns] == [
        "layout", "front_end", "prepare", "model_read", "session_create",
    ]  # fmt: skip


def test_a_file_that_changed_just_now_is_read_whole_next_time(model, monkeypatch):
    monkeypatch.setattr(cache, "_SETTLED_NS", 10**15)
    prepare(model)
    seen = []
    real = cache.digest
    monkeypatch.setattr(cache, "digest", lambda path: seen.append(path) or real(path))
    assert prepare(model)[1].state == "cached"
    assert seen == [model / "model_quant.onnx"]


def test_another_file_of_the_same_size_and_time_is_another_network(model):
    network = model / "model_quant.onnx"
    before = network.stat()
    recognizer, _ = prepare(model)
    old = scores(recognizer)
    data = bytearray(network.read_bytes())
    bytes_of = [i.raw_data for i in onnx.load(network).graph.initializer
                if i.data_type == TensorProto.UINT8]  # fmt: skip
    weight = max(bytes_of, key=len)
    at = data.index(weight) + len(weight) // 2  # neither head nor tail of the file
    data[at : at + 64] = bytes(64)
    network.write_bytes(data)
    os.utime(network, ns=(before.st_atime_ns, before.st_mtime_ns))
    recognizer, state = prepare(model)
    assert state.state == "first"
    assert not np.array_equal(old, scores(recognizer))


@pytest.mark.parametrize("what", ["runtime", "cpu", "passes"])
def test_another_runtime_or_cpu_gets_its_own(model, monkeypatch, what):
    _, state = prepare(model)
    if what == "runtime":
        runtime = load.import_runtime()
        monkeypatch.setattr(runtime, "__version__", "9.9")
    elif what == "cpu":
        info = {**_rust_fe.build_info(), "kernel_features": "another"}
        monkeypatch.setattr(_rust_fe, "build_info", lambda: info)
    else:
        monkeypatch.setattr(load, "PASSES", "next")
    _, other = prepare(model)
    assert other.state == "first"
    assert entry_of(other) != entry_of(state)
    assert len(cache.entries()) == 2


def test_without_vnni_weights_stay_unsigned(model, monkeypatch):
    """Older x86 kernels saturate for signed weights."""
    info = {**_rust_fe.build_info(), "byte_features": [], "operators": []}
    monkeypatch.setattr(_rust_fe, "build_info", lambda: info)
    _, state = prepare(model)
    assert (state.state, state.passes) == ("first", ())


def test_without_our_operator_weights_are_in_the_runtimes_order(model, monkeypatch):
    off, _ = prepare(model, optimize=False)
    info = {**_rust_fe.build_info(), "operators": []}
    monkeypatch.setattr(_rust_fe, "build_info", lambda: info)
    first, state = prepare(model)
    assert "byte_matmul" not in state.passes
    (step,) = (p for p in record_of(state)["passes"] if p["name"] == "byte_matmul")
    assert (step["kept"], step["reason"]) == (False, "this CPU has no AVX-512 VNNI")
    assert np.array_equal(scores(off), scores(first))


def test_what_our_operator_cannot_do_is_left_to_the_runtime(model, monkeypatch):
    def refuse(*_):
        raise NoMatch("expected something else")

    monkeypatch.setattr(panels, "write", refuse)
    off, _ = prepare(model, optimize=False)
    first, state = prepare(model)
    assert "byte_matmul" not in state.passes
    assert "byte_matmul" in {p["name"] for p in record_of(state)["passes"]}
    assert {f.name for f in entry_of(state).iterdir()} == {
        "model.onnx", "model.onnx.data", "prepared.json"
    }  # fmt: skip
    assert np.array_equal(scores(off), scores(first))


@pytest.mark.skipif(
    "byte_matmul" not in fakes.prepared_passes(), reason="this CPU has no AVX-512 VNNI"
)
@pytest.mark.parametrize("network", BYTES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_our_operator_says_the_same_in_every_export(network, tmp_path):
    """Every product of bytes is ours, and every score the same bits."""
    model, _ = raw.sign(network.read_bytes())
    plain = OrtEngine(model, name="plain", threads=1, folder=network.parent)
    save_prepared(model, tmp_path / "saved.onnx", name="saved", threads=1, prepack=False)
    path = tmp_path / "ours.onnx"
    places = panels.write(tmp_path / "saved.onnx", path, tmp_path / "ours.onnx.data")
    nodes = [n.op_type for n in onnx.load(path, load_external_data=False).graph.node]
    assert nodes.count("ByteMatMul") == places > 0
    assert not {"MatMulInteger", "DynamicQuantizeMatMul", "Relu"} & set(nodes)
    roles = Roles.named(open_layout(network.parent), plain.inputs, plain.outputs)
    ours = OrtEngine(path, name="ours", threads=1)
    before, after = (verify.scores(engine, roles) for engine in (plain, ours))
    assert verify.compare(before, after).verdict == verify.IDENTICAL


def test_a_cached_load_imports_nothing_that_prepares(model):
    """It is the load that most processes do: 2 ms, not 20."""
    prepare(model)
    code = (
        "import sys, asr; from asr import networks; networks.LARGE_BYTES = 0; "
        "r = asr.Recognizer.load(sys.argv[1], threads=1); "
        "assert r.engine.preparation.state == 'cached'; "
        "print(*({'subprocess', 'shutil', 'tempfile', 'asr.optimize.build', "
        "'asr.optimize.rewrite', 'asr.optimize.graph'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, model], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "", "")


# ------------------------------------------------------------------ what is not trusted


def same_stamps_but(path, change):
    """Change a file and put its size and times back."""
    before = path.stat()
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def invert(data):
    middle = len(data) // 2
    data[middle] ^= 0xFF


def replace_by_link(entry):
    entry.rename(entry.with_name("elsewhere"))
    entry.symlink_to(entry.with_name("elsewhere"))


DAMAGE = {
    "weights": lambda e: same_stamps_but(e / "model.onnx.data", invert),
    "network": lambda e: same_stamps_but(e / "model.onnx", invert),
    "truncated": lambda e: os.truncate(e / "model.onnx.data", 100),
    "a file gone": lambda e: (e / "model.onnx.data").unlink(),
    "no record": lambda e: (e / cache.RECORD).unlink(),
    "half a record": lambda e: os.truncate(e / cache.RECORD, 50),
    "no object": lambda e: (e / cache.RECORD).write_text("[]"),
    "others may write the folder": lambda e: e.chmod(0o770),
    "others may write the weights": lambda e: (e / "model.onnx.data").chmod(0o602),
    "others may write the record": lambda e: (e / cache.RECORD).chmod(0o620),
    "a link": replace_by_link,
    "nothing": lambda e: shutil.rmtree(e),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_what_is_damaged_or_writable_by_others_is_made_anew(model, damage):
    recognizer, state = prepare(model)
    good = scores(recognizer)
    damage(entry_of(state))
    recognizer, state = prepare(model)
    assert state.state == "first"
    assert np.array_equal(good, scores(recognizer))
    assert prepare(model)[1].state == "cached"


def test_what_another_user_owns_is_made_anew(model, monkeypatch):
    _, state = prepare(model)
    if os.geteuid() == 0:
        os.chown(entry_of(state) / cache.RECORD, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        with pytest.warns(RuntimeWarning, match="this user owns"):
            asr.Recognizer.load(model, threads=1)
        return
    assert prepare(model)[1].state == "first"


def test_an_entry_under_another_key_is_not_believed(model, built):
    _, state = prepare(model)
    entry = entry_of(state)
    entry.rename(entry.with_name("0" * 24 + "-" + "1" * 16))
    assert cache.entries() == []
    assert prepare(model)[1].state == "first"
    assert len(built) == 2


@pytest.mark.parametrize("spoil", ["others may write", "no folder", "read-only"])
def test_a_cache_that_cannot_be_used_is_one_line(model, monkeypatch, tmp_path, spoil):
    if spoil == "others may write":
        cache.folder().mkdir(parents=True)
        cache.folder().chmod(0o777)
    elif spoil == "no folder":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("ASR_CACHE", str(tmp_path / "file"))
    else:
        monkeypatch.setenv("ASR_CACHE", "/sys/asr")  # not even root can write there
    with pytest.warns(RuntimeWarning) as told:
        recognizer = asr.Recognizer.load(model, threads=1)
    (line,) = (str(w.message) for w in told)
    assert line.startswith("model_quant.onnx runs as it is, not prepared for this CPU: ")
    assert "\n" not in line
    assert recognizer.engine.preparation.state == "off"
    plain, _ = prepare(model, optimize=False)
    assert np.array_equal(scores(recognizer), scores(plain))


def test_too_little_room_is_one_line(model, monkeypatch):
    full = shutil.disk_usage("/")._replace(free=99)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
    with pytest.warns(RuntimeWarning, match="expected room for 0 MB, found 0 MB"):
        asr.Recognizer.load(model, threads=1)
    assert cache.entries() == []


def test_the_oldest_make_room(model, monkeypatch, tmp_path):
    _, old = prepare(model)
    other = tmp_path / "other"
    shutil.copytree(ROOT / "tests/networks/sherpa-torchscript-13-logits", other)
    monkeypatch.setattr(cache, "LIMIT_BYTES", old.disk_bytes + 300_000)
    _, new = prepare(other)
    assert [e.folder for e in cache.entries()] == [entry_of(new)]


def test_a_prepared_file_that_the_runtime_refuses_is_removed(model, monkeypatch):
    _, state = prepare(model)
    real = OrtEngine.__init__

    def refuse(self, model, **more):
        if isinstance(model, Path):
            raise LayoutError("refused")
        real(self, model, **more)

    monkeypatch.setattr(OrtEngine, "__init__", refuse)
    with pytest.warns(RuntimeWarning, match="runs as it is.*refused"):
        recognizer = asr.Recognizer.load(model, threads=1)
    assert recognizer.engine.preparation.state == "off"
    assert not entry_of(state).exists()


# ------------------------------------------------------------------ builds that fail


def test_a_network_that_cannot_be_prepared_is_tried_once(model, monkeypatch, built):
    def wrong(data):
        graph = onnx.load_from_string(data)
        for tensor in graph.graph.initializer:
            if tensor.data_type == TensorProto.UINT8 and len(tensor.dims) == 2:
                values = numpy_helper.to_array(tensor)
                tensor.CopyFrom(numpy_helper.from_array(values[:, ::-1].copy(), tensor.name))
        return graph.SerializeToString(), 1

    monkeypatch.setattr(raw, "sign", wrong)
    info = {**_rust_fe.build_info(), "byte_features": ["vnni"]}
    monkeypatch.setattr(_rust_fe, "build_info", lambda: info)
    for _ in range(2):
        _, state = prepare(model)
        assert state.state == "off"
        assert "a score moves by" in state.reason
    assert len(built) == 1
    assert len(list(cache.entries()[0].folder.iterdir())) == 1  # its record alone


@pytest.mark.parametrize(
    ("fails", "line"),
    [
        (lambda *_: (_ for _ in ()).throw(EngineError("no space")), None),
        (None, "ended with code 3"),
    ],
    ids=["an exception", "a crash"],
)
def test_a_build_that_fails_leaves_nothing(model, monkeypatch, fails, line):
    if fails is None:
        monkeypatch.undo()
        monkeypatch.setenv("ASR_CACHE", str(model.parent / "cache"))
        monkeypatch.setattr(networks, "LARGE_BYTES", 0)
        monkeypatch.setattr(load, "_CHILD", "import os; os._exit(3)")
        with pytest.warns(RuntimeWarning, match=line):
            asr.Recognizer.load(model, threads=1)
    else:
        monkeypatch.setattr(load, "_run", fails)
        with pytest.raises(EngineError):
            asr.Recognizer.load(model, threads=1)
    assert sorted(p.name for p in cache.folder().iterdir()) == [".lock"]


def test_the_builder_ends_with_its_caller_and_leaves_nothing(model, tmp_path):
    """Its stdin ends when the caller is killed; here it hangs on a network that never comes."""
    part = tmp_path / "part"
    part.mkdir()
    (part / "half").write_text("half a network")
    (model / "model_quant.onnx").unlink()
    os.mkfifo(model / "model_quant.onnx")
    request = Request(str(model), "model_quant.onnx", str(part), "", 1, signed=True, panels=True)
    command = [sys.executable, "-c", load._CHILD, json.dumps(asdict(request)), json.dumps(sys.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        opened = os.open(model / "model_quant.onnx", os.O_WRONLY)  # waits until it reads
        process.stdin.close()
        assert process.wait(timeout=60) == 1
        os.close(opened)
    assert not part.exists()


def test_what_a_killed_build_left_is_removed_by_the_next(model):
    left = cache.folder() / ".part-something.1"
    left.mkdir(parents=True)
    cache.folder().chmod(0o700)
    (left / "half").write_text("half a network")
    prepare(model)
    assert not left.exists()


def test_a_program_that_is_no_python_is_not_started(model, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("ASR_CACHE", str(model.parent / "cache"))
    monkeypatch.setattr(networks, "LARGE_BYTES", 0)
    monkeypatch.setattr(sys, "executable", "/usr/bin/car-cabin")
    with pytest.warns(RuntimeWarning, match="car-cabin: expected to run inside a Python"):
        asr.Recognizer.load(model, threads=1)


# ------------------------------------------------------------------ quantised on request, or proved


def test_quantised_on_request(model, built):
    _, state = prepare(model, quantize="int8")
    assert state.state == "first"
    assert "quantize" in state.passes
    assert prepare(model, quantize="int8")[1].state == "cached"
    assert prepare(model)[1].passes != state.passes  # without asking it is another entry
    assert [Path(request.network).name for request, _ in built] == [
        "model.onnx", "model_quant.onnx",
    ]  # fmt: skip


def test_quantising_needs_the_fp32_network(model):
    (model / "model.onnx").unlink()
    with pytest.raises(UsageError, match=r"expected model\.onnx"):
        prepare(model, quantize="int8")


@pytest.mark.parametrize(
    ("texts", "of_this", "lossy"),
    [
        ({"clips": 9, "changed": 0}, True, True),
        ({"clips": 9, "changed": 1}, True, False),
        ({"clips": 0, "changed": 0}, True, False),
        (None, True, False),
        ({"clips": 9, "changed": 0}, False, False),
    ],
)
def test_what_asr_optimize_proved_of_this_file_is_done(model, texts, of_this, lossy):
    """Nothing lossy happens unless the record is of this very file and no text changed."""
    checksum = cache.digest(model / "model_quant.onnx") if of_this else "0" * 64
    steps = [{"name": "fsmn", "kept": True}, {"name": "quantize", "kept": False}]
    record = {"schema": "asr-optimize/1", "from": {"sha256": checksum}, "passes": steps,
              "texts": texts}  # fmt: skip
    (model / "optimize.json").write_text(json.dumps(record))
    _, state = prepare(model)
    assert ("fsmn" in state.passes) == lossy
    assert "quantize" not in state.passes


# ------------------------------------------------------------------ signed weights, byte by byte


@pytest.mark.parametrize("network", BYTES, ids=lambda p: f"{p.parent.name}/{p.name}")
def test_signing_bytes_is_the_pass(network):
    """The same weights and zero points as the pass on the parsed graph; all else as it stood."""
    data = network.read_bytes()
    signed, places = raw.sign(data)
    graph = Graph(onnx.load_from_string(data))
    assert places == signed_weights.run(graph)
    ours, theirs = Graph(onnx.load_from_string(signed)), graph
    for a, b in zip(ours.of_type("MatMulInteger"), theirs.of_type("MatMulInteger"), strict=True):
        for at in (1, 3):
            left, right = ours.constant(a.input[at]), theirs.constant(b.input[at])
            assert left.dtype == np.int8
            assert np.array_equal(left, right)
    assert raw.sign(signed) == (signed, 0)
    first, second = onnx.load_from_string(data), onnx.load_from_string(signed)
    assert list(first.graph.node) == list(second.graph.node)
    changed = {i.name for i in second.graph.initializer if i.data_type == TensorProto.INT8}
    kept = [[i for i in m.graph.initializer if i.name not in changed] for m in (first, second)]
    assert kept[0] == kept[1]


def multiplication(*nodes, outputs=("y",), zero=None):
    """A network of one byte multiplication, and more."""
    w = helper.make_tensor("w", TensorProto.UINT8, [2, 2], [0, 1, 200, 255])
    z = helper.make_tensor("z", TensorProto.UINT8, [], [130]) if zero is None else zero
    node = helper.make_node("MatMulInteger", ["x", "w", "", "z"], ["y"])
    made = [helper.make_tensor_value_info(o, TensorProto.INT32, None) for o in outputs]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 2])
    graph = helper.make_graph([node, *nodes], "g", [x], made, [w, z])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_values_outside_raw_data_are_signed_too():
    signed, places = raw.sign(multiplication().SerializeToString())
    assert places == 1
    w, z = map(numpy_helper.to_array, onnx.load_from_string(signed).graph.initializer)
    assert w.tolist() == [[-128, -127], [72, 127]]
    assert z.tolist() == 2
    x = np.array([[3, 250]], np.uint8)
    both = (multiplication().SerializeToString(), signed)
    assert np.array_equal(*(OrtEngine(m, name="n", threads=1).run({"x": x})["y"] for m in both))


@pytest.mark.parametrize("shared", ["w", "z"])
def test_what_others_use_stays_unsigned(shared):
    other = helper.make_node("Cast", [shared], ["c"], to=TensorProto.INT32)
    data = multiplication(other, outputs=("y", "c")).SerializeToString()
    assert raw.sign(data) == (data, 0)


def test_weights_in_another_file_are_left_alone(model, tmp_path, built):
    """The checksum of the network says nothing of them."""
    other = tmp_path / "dynamo"
    shutil.copytree(ROOT / "tests/networks/funasr-dynamo-18-logits", other)
    (other / "model_quant.onnx").unlink()
    for _ in range(2):
        _, state = prepare(other)
        assert (state.state, state.reason) == ("off", "its weights lie in another file")
    assert len(built) == 1


def test_a_network_that_changes_meanwhile_is_not_kept(model, monkeypatch):
    real = cache.sha256
    monkeypatch.setattr(cache, "sha256", lambda path: ("0" * 64, real(path)[1]))
    with pytest.warns(RuntimeWarning, match="found one in change"):
        asr.Recognizer.load(model, threads=1)
    assert cache.entries() == []


def test_a_graph_output_stays_unsigned():
    data = multiplication(outputs=("y", "w")).SerializeToString()
    assert raw.sign(data) == (data, 0)


def test_graphs_inside_operators_are_left_alone():
    inner = helper.make_graph([], "inner", [], [])
    loop = helper.make_node("If", ["c"], [], then_branch=inner, else_branch=inner)
    with pytest.raises(NoMatch, match="found If"):
        raw.sign(multiplication(loop).SerializeToString())


@pytest.mark.parametrize("data", [b"", b"\x08\x07", b"\x3a\xff\xff\x03abc", b"\x0b", b"\x08"])
def test_what_is_no_network_is_no_match(data):
    with pytest.raises(NoMatch):
        raw.sign(data)


# ------------------------------------------------------------------ the commands


@pytest.fixture(scope="module")
def heavy(tmp_path_factory):
    """A model whose network is large, by a long remark in its metadata."""
    folder = tmp_path_factory.mktemp("heavy") / "model"
    shutil.copytree(NETWORK, folder)
    network = onnx.load(folder / "model_quant.onnx")
    network.metadata_props.add(key="remark", value="x" * networks.LARGE_BYTES)
    onnx.save(network, folder / "model_quant.onnx")
    return folder


def run(folder, *arguments, **environment):
    command = [Path(sys.executable).parent / "asr", *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "ASR_CACHE": str(folder), **environment},
    )  # fmt: skip


def test_processes_at_once_prepare_once_and_all_say_the_same(heavy, tmp_path):
    """Real processes, real builder; then every command tells the state."""
    ask = ("transcribe", CLIP, "--model", heavy, "--json", "--timings", "--repeat", "2")
    processes = [run(tmp_path, *ask) for _ in range(3)]
    answers = [process.communicate() for process in processes]
    assert [p.returncode for p in processes] == [0, 0, 0], answers
    told = [json.loads(out) for out, _ in answers]
    states = [t["timings"]["prepared"]["state"] for t in told]
    assert sorted(states) == ["cached", "cached", "first"]
    assert len({t["text"] for t in told}) == 1
    first = answers[states.index("first")][1]
    assert "asr: preparing model_quant.onnx" in first
    assert "asr cache clean removes it" in first
    inspected = json.loads(run(tmp_path, "inspect", heavy, "--json").communicate()[0])
    assert inspected["engine"]["prepared"].startswith("cached: ")
    plain = run(tmp_path, *ask, "--no-optimize").communicate()[0]
    found = json.loads(plain)["timings"]["prepared"]
    assert (found["state"], found["reason"]) == ("off", "not asked for")
    assert json.loads(plain)["text"] == told[0]["text"]


def test_the_cache_is_listed_and_cleaned(model, capsys):
    _, state = prepare(model)
    assert main(["cache", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["networks"]
    assert row["bytes"] == state.disk_bytes
    assert row["network"] == str(model / "model_quant.onnx")
    assert row["scores"] == verify.IDENTICAL
    assert row["left_out"] == {}
    assert main(["cache", "list"]) == 0
    assert str(model / "model_quant.onnx") in capsys.readouterr().out
    assert main(["cache", "clean"]) == 0
    assert "freed" in capsys.readouterr().out
    assert [p.name for p in cache.folder().iterdir()] == [".lock"]
    assert prepare(model)[1].state == "first"


def test_nothing_to_clean_is_no_error(model, capsys):
    assert main(["cache", "clean"]) == 0
    assert main(["cache", "list"]) == 0
    assert "0 MB" in capsys.readouterr().out
    assert not cache.folder().exists()


def test_a_layout_is_prepared_whatever_its_convention(model, tmp_path):
    other = tmp_path / "sherpa"
    shutil.copytree(ROOT / "tests/networks/sherpa-torchscript-13-logits", other)
    recognizer, state = prepare(other)
    assert state.state == "first"
    assert recognizer.layout.kind == open_layout(other).kind == "sherpa-onnx"
