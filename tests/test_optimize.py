"""asr.optimize: every pass on every reference network; nothing changes unnoticed."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from asr import _rust_fe
from asr.cli import main
from asr.engines.ort import OrtEngine
from asr.layouts import open_layout
from asr.optimize import probe, verify
from asr.optimize.graph import Graph
from asr.optimize.passes import (
    NoMatch,
    attention,
    bf16_attention,
    fsmn,
    masks,
    quantize,
    shapes,
    signed_weights,
)
from asr.optimize.rewrite import Wanted, rewrite

ROOT = Path(__file__).parent.parent
NETWORKS = sorted(p.parent for p in (ROOT / "tests/networks").glob("*/model.onnx"))
#: As exported, and as onnxsim and onnxslim leave them (models/reference/simplify.py).
FILES = [
    *sorted((ROOT / "tests/networks").glob("*/model*.onnx")),
    *sorted((ROOT / "tests/networks_simplified").glob("*.onnx")),
]
INT8 = [f for f in FILES if not f.name.endswith("model.onnx")]
FP32 = [f for f in FILES if f.name.endswith("model.onnx")]
BUILT_IN = ROOT / "asr/builtin/tiny-en"
BLOCKS, MULTIPLICATIONS = 3, 13  # of a tiny reference network

needs_bf16 = pytest.mark.skipif(
    not _rust_fe.build_info()["operators"], reason="this CPU has no AVX-512 BF16"
)


def name_of(path):
    return f"{path.parent.name}/{path.name}" if path.suffix == ".onnx" else path.name


def origin_of(network):
    """The folder of a network; a simplified one is named after its origin's."""
    if network.parent.name != "networks_simplified":
        return network.parent
    return ROOT / "tests/networks" / network.name.split(".")[1]


def layout_of(network):
    return replace(open_layout(origin_of(network)), network=network)


def scores(model, layout, roles):
    engine = OrtEngine(model, name="test", threads=1, folder=layout.network.parent)
    return verify.scores(engine, roles, (1, 2, 5, 17, 64))


def changes(network, run):
    """Places that a pass rewrote, and what that did to the scores."""
    layout = layout_of(network)
    model = onnx.load(network)
    roles = probe.Roles.of(layout, model)
    before = scores(model.SerializeToString(), layout, roles)
    graph = Graph(model)
    meetings = probe.observe(graph, roles)
    masks.run(graph, meetings)
    places = run(graph, meetings)
    return places, verify.compare(before, scores(graph.finish().SerializeToString(), layout, roles))


# ------------------------------------------------------------------ each pass, every network


@pytest.mark.parametrize("network", FILES, ids=name_of)
@pytest.mark.parametrize(
    ("run", "places"),
    [
        (lambda graph, _: fsmn.run(graph), BLOCKS),
        (lambda graph, m: min(BLOCKS * 3, shapes.run(graph, m)), BLOCKS * 3),
        (lambda graph, m: shapes.run(graph, m) and attention.run(graph), BLOCKS),
    ],
    ids=["fsmn", "shapes", "attention"],
)
def test_a_pass_finds_every_block_and_changes_no_decision(network, run, places):
    found, change = changes(network, run)
    assert found == places
    # Bytes amplify a last bit of a sum.
    assert change.largest < (0.1 if network in INT8 else 5e-5)
    assert change.agreement == 1.0


@pytest.mark.parametrize("network", FILES, ids=name_of)
def test_without_masks_nothing_computes_a_mask(network):
    places, change = changes(network, lambda graph, _: len(list(graph.of_type("Where"))))
    assert places == 0
    assert change.largest < 2e-5


@pytest.mark.parametrize("network", INT8, ids=name_of)
def test_signed_weights_are_the_same_integers(network):
    places, change = changes(network, lambda graph, _: signed_weights.run(graph))
    assert places == MULTIPLICATIONS
    assert change.largest < 5e-6
    graph = Graph(onnx.load(network))
    before = [graph.constant(n.input[1]).astype(int) - int(graph.constant(n.input[3]).flat[0])
              for n in graph.of_type("MatMulInteger")]  # fmt: skip
    signed_weights.run(graph)
    after = [graph.constant(n.input[1]) for n in graph.of_type("MatMulInteger")]
    zeros = [int(graph.constant(n.input[3]).flat[0]) for n in graph.of_type("MatMulInteger")]
    assert all(w.dtype == np.int8 for w in after)
    for old, new, zero in zip(before, after, zeros, strict=True):
        assert np.array_equal(old, new.astype(int) - zero)


@pytest.mark.parametrize("network", FP32, ids=name_of)
def test_quantised_networks_are_as_near_as_the_exporters_own(network):
    """Beside the int8 file that FunASR's or sherpa-onnx's own tool makes of the same weights."""
    places, ours = changes(network, lambda graph, _: quantize.run(graph))
    assert places == MULTIPLICATIONS
    peer = next(f for f in origin_of(network).glob("model*.onnx") if f.name != "model.onnx")
    layout = layout_of(network)
    roles = probe.Roles.of(layout, onnx.load(network))
    truth, theirs = (scores(onnx.load(f).SerializeToString(), layout, roles)
                     for f in (network, peer))  # fmt: skip
    assert 0 < ours.relative_rms < 1.1 * verify.compare(truth, theirs).relative_rms


@needs_bf16
@pytest.mark.parametrize("network", FILES, ids=name_of)
def test_attention_in_bf16_is_off_by_its_rounding(network):
    """Byte weights quantised at run time amplify a last bit; still less than quantising moves."""
    found, change = changes(
        network, lambda graph, m: shapes.run(graph, m) and bf16_attention.run(graph)
    )
    assert found == BLOCKS
    assert 1e-5 < change.relative_rms < (4e-3 if network.name == "model.onnx" else 4e-2)
    assert change.agreement >= 0.95


def test_a_scale_that_the_operator_refuses_is_no_match(monkeypatch):
    block = attention.Block("q", "k", "v", heads=4, scale=-1.0, result="r", target=None)
    monkeypatch.setattr(attention, "find", lambda _: [block])
    with pytest.raises(NoMatch, match="scaled by a number above 0"):
        bf16_attention.run(Graph(onnx.load(NETWORKS[0] / "model.onnx")))


def test_bytes_keep_a_column_of_zeros_and_the_largest_weight():
    weight = np.array([[0, 1.0, -2.0], [0, -0.5, 127.0]], np.float32)
    values, scales = quantize.to_bytes(weight)
    assert values.tolist() == [[0, 127, -2], [0, -64, 127]]
    assert np.allclose(values * scales, weight, atol=0.5 * scales.max())


# ------------------------------------------------------------------ what does not match


def test_a_convolution_in_another_surrounding_is_named():
    model = onnx.load(NETWORKS[0] / "model.onnx")
    graph = Graph(model)
    conv = next(graph.of_type("Conv"))
    for attribute in conv.attribute:
        if attribute.name == "strides":
            attribute.ints[0] = 2
    with pytest.raises(NoMatch, match="expected stride and dilation 1"):
        fsmn.run(graph)


def test_attention_with_a_mask_is_left_alone():
    with pytest.raises(NoMatch, match="expected"):
        attention.run(Graph(onnx.load(BUILT_IN / "model_quant.onnx")))


def test_a_factor_that_is_not_one_everywhere_stays():
    """``x * lengths`` looks like a mask at one length only; several are tried."""
    x = helper.make_tensor_value_info("speech", TensorProto.FLOAT, [1, "t", 4])
    n = helper.make_tensor_value_info("speech_lengths", TensorProto.INT32, [1])
    ids = [
        helper.make_tensor_value_info(k, TensorProto.INT32, [1]) for k in ("language", "textnorm")
    ]
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, "t", 4])
    cast = helper.make_node("Cast", ["speech_lengths"], ["f"], to=TensorProto.FLOAT)
    product = helper.make_node("Mul", ["speech", "f"], ["logits"])
    graph = helper.make_graph([cast, product], "g", [x, n, *ids], [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    roles = probe.Roles("speech", "speech_lengths", 4, ("language", "textnorm"), "logits")
    graph = Graph(model)
    assert masks.run(graph, probe.observe(graph, roles)) == 0
    assert [node.op_type for node in graph.ordered()] == ["Cast", "Mul"]


def test_a_graph_output_keeps_its_name():
    model = onnx.load(NETWORKS[0] / "model.onnx")
    graph = Graph(model)
    name = graph.outputs[0]
    graph.replace(name, graph.producer[name].input[0])
    assert graph.finish().graph.output[0].name == name
    onnx.checker.check_model(model)


# ------------------------------------------------------------------ the whole


@pytest.mark.parametrize("network", FILES, ids=name_of)
def test_lossless_rewriting_keeps_every_decision(network):
    found = rewrite(layout_of(network), Wanted(signed=True), threads=1)
    assert found.comparison.verdict in (verify.IDENTICAL, verify.ROUNDED)
    assert found.comparison.agreement == 1.0
    kept = {step.name for step in found.steps if step.kept}
    assert {"masks", "shapes", "fsmn", "attention"} <= kept


def test_what_rounds_through_int8_is_taken_back():
    """The built-in model's bytes amplify a last bit; lossless must leave it as it is."""
    found = rewrite(open_layout(BUILT_IN), Wanted(signed=True), threads=1)
    assert found.comparison.verdict != verify.CHANGED
    assert any("a score moves by" in (step.reason or "") for step in found.steps)


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ([[1.0, 0.0]], [[1.0, 0.0]], verify.IDENTICAL),
        ([[1.0, 0.0]], [[1.0, 0.004]], verify.ROUNDED),
        ([[1.0, 0.0]], [[1.0, 0.006]], verify.CHANGED),
        ([[1.0, 0.0]], [[1.0, 0.0], [1.0, 0.0]], verify.CHANGED),
    ],
)
def test_verdicts(before, after, verdict):
    found = verify.compare([np.array(before, np.float32)], [np.array(after, np.float32)])
    assert found.verdict == verdict


# ------------------------------------------------------------------ the command


def test_the_command_writes_a_model_that_says_the_same(tmp_path, capsys):
    out = tmp_path / "fast"
    assert main(["optimize", str(NETWORKS[0]), "-o", str(out)]) == 0
    record = json.loads((out / "optimize.json").read_text())
    assert record["schema"] == "asr-optimize/1"
    assert record["scores"]["verdict"] in (verify.IDENTICAL, verify.ROUNDED)
    clip = str(ROOT / "golden/audio/transcribe_me.wav")
    texts = []
    for model in (NETWORKS[0], out):
        capsys.readouterr()
        assert main(["transcribe", clip, "--model", str(model)]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    assert [p.name for p in tmp_path.iterdir()] == ["fast"]  # nothing half-made beside it


@pytest.mark.parametrize("network", NETWORKS, ids=name_of)
def test_quantised_folders_open_in_their_layout(network, tmp_path):
    out = tmp_path / "int8"
    assert main(["optimize", str(network), "-o", str(out), "--quantize", "int8"]) == 0
    layout = open_layout(out)
    assert layout.kind == open_layout(network).kind
    weights = [numpy_helper.to_array(i) for i in onnx.load(layout.network).graph.initializer]
    assert sum(w.dtype == np.int8 and w.ndim == 2 for w in weights) == MULTIPLICATIONS


@needs_bf16
def test_attention_in_bf16_leaves_the_built_in_models_texts(tmp_path, capsys):
    """The folder says what it needs, and every command runs it."""
    clips = sorted((ROOT / "golden/audio").glob("*.wav"))
    manifest = tmp_path / "clips.tsv"
    manifest.write_text("path\ttranscript\n" + "".join(f"{clip}\t\n" for clip in clips))
    out = tmp_path / "bf16"
    command = ["optimize", "tiny-en", "-o", str(out), "--attention", "bf16"]
    assert main([*command, "--verify", str(manifest)]) == 0
    record = json.loads((out / "optimize.json").read_text())
    assert record["operators"] == ["asr.SelfAttention"]
    assert record["texts"]["clips"] == len(clips)
    assert 0 < record["scores"]["relative_rms"] < 0.1
    kept = {step["name"] for step in record["passes"] if step["kept"]}
    assert "bf16_attention" in kept
    assert "attention" not in kept
    assert main(["transcribe", str(clips[0]), "--model", str(out)]) == 0


def test_attention_in_bf16_is_refused_where_the_cpu_lacks_it(tmp_path, capsys, monkeypatch):
    without = dict(_rust_fe.build_info(), operators=[])
    monkeypatch.setattr(_rust_fe, "build_info", lambda: without)
    command = ["optimize", "tiny-en", "-o", str(tmp_path / "x"), "--attention", "bf16"]
    assert main(command) == 2
    assert "a CPU without it" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_changed_text_is_refused_and_nothing_is_left(tmp_path, capsys, monkeypatch):
    manifest = tmp_path / "clips.tsv"
    manifest.write_text(f"path\ttranscript\n{ROOT / 'golden/audio/transcribe_me.wav'}\t\n")
    real = masks.run

    def wrong(graph, meetings):
        places = real(graph, meetings)
        head = list(graph.of_type("MatMulInteger"))[-1]
        weight = graph.constant(head.input[1])
        graph.set_input(head, 1, graph.add_constant(weight[:, ::-1]))
        return places

    monkeypatch.setattr(masks, "run", wrong)
    monkeypatch.setattr("asr.optimize.rewrite._PASSES", (("masks", wrong),))
    out = tmp_path / "out"
    code = main(["optimize", "tiny-en", "-o", str(out), "--verify", str(manifest)])
    assert code == 12
    assert "the text changed" in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["clips.tsv"]


def test_an_output_with_something_in_it_is_refused(tmp_path, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert main(["optimize", "tiny-en", "-o", str(tmp_path)]) == 2
    assert "expected a new or empty folder" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_quantising_needs_the_fp32_network(tmp_path, capsys):
    assert main(["optimize", "tiny-en", "-o", str(tmp_path / "x"), "--quantize", "int8"]) == 2
    assert "expected model.onnx" in capsys.readouterr().err


def test_without_onnx_the_command_says_what_to_install(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["optimize", "tiny-en", "-o", str(tmp_path / "x")]) == 7
    assert "pip install 'asr-rtf[optimize]'" in capsys.readouterr().err


def test_nothing_of_it_is_imported_to_transcribe():
    code = "import sys, asr.recognizer; sys.exit('asr.optimize' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
