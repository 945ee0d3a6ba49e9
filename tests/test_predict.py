"""asr deploy predict: MACs of graphs, bounds and estimate, what would reach the target."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import jsonschema
import pytest
import tomllib

from asr import cli
from asr.deploy import calibration, macs, predict
from asr.errors import LayoutError, UsageError
from asr.layouts import open_layout

ROOT = Path(__file__).parent.parent
NETWORKS = ROOT / "tests/networks"
KNOWN = calibration.load()
#: Sizes of the networks in tests/networks, by models/reference.
SMALL = {"blocks": 3, "width": 8, "feed_forward": 16, "columns": 560, "taps": 11,
         "vocabulary": 128}  # fmt: skip


def predicted(shape="sensevoice-small", *, seconds=10.0, board="rpi5", cores=2, ghz=None,
              target=0.05):  # fmt: skip
    call = predict.call_of_shape(KNOWN, shape, seconds)
    return predict.Predictor(KNOWN, KNOWN.boards[board], cores, ghz).predict(call, target)


@pytest.mark.parametrize("folder", sorted(p.name for p in NETWORKS.glob("*-*")))
@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_a_graph_and_the_formula_give_the_same_products(folder, precision):
    """Every layout, exporter and precision of the reference networks, to the last product."""
    layout = open_layout(NETWORKS / folder)
    if precision == "fp32":
        layout = replace(layout, network=layout.folder / "model.onnx")
    assert macs.of_shape(**SMALL, precision=precision) == macs.of_layout(layout)


def test_fused_attention_has_the_same_products(tmp_path):
    """What asr optimize writes is another graph with other operators, and the same work."""
    assert cli.main(["optimize", str(NETWORKS / "funasr-torchscript-14-logits"), "-o",
                     str(tmp_path / "fast"), "--quantize", "int8"]) == 0  # fmt: skip
    network = (tmp_path / "fast/model_quant.onnx").read_bytes()
    assert b"MultiHeadAttention" in network
    expected = macs.of_shape(**SMALL, precision="int8")
    assert expected == macs.of_layout(open_layout(tmp_path / "fast"))


def test_sensevoice_has_the_products_that_the_study_counted():
    """0.233 G per row, 0.0717 M times the square of the rows; 42 G for 10 s."""
    work, _ = KNOWN.shape("sensevoice-small")
    assert work == macs.Work(macs.Growth(0, 233_102_848, 0), macs.Growth(0, 394_240, 71_680))
    assert work.int8.at(171) + work.fp32.at(171) == pytest.approx(42.0e9, rel=0.005)


@pytest.mark.parametrize(
    ("operator", "inputs", "outputs", "expected"),
    [
        ("MatMul", [(1, 4, 44, 40), (1, 4, 40, 44)], [(1, 4, 44, 44)], 4 * 44 * 40 * 44),
        ("FusedMatMul", [(7, 5), (7, 3)], [(5, 3)], 5 * 7 * 3),  # the left side transposed
        ("Gemm", [(6, 10), (10, 3), (3,)], [(6, 3)], 180),
        ("DynamicQuantizeMatMul", [(1, 9, 8), (8, 16), (16,)], [(1, 9, 16)], 9 * 8 * 16),
        ("Conv", [(1, 8, 54), (8, 1, 11)], [(1, 8, 44)], 8 * 44 * 11),
        ("QLinearConv", [(1, 8, 9, 9), (), (), (4, 8, 3, 3)], [(1, 4, 7, 7)], 4 * 49 * 72),
        ("MultiHeadAttention", [(1, 9, 8), (1, 9, 8), (1, 9, 4)], [(1, 9, 4)], 81 * 8 + 81 * 4),
        ("SelfAttention", [(1, 9, 8), (1, 9, 8), (1, 9, 8)], [(1, 9, 8)], 2 * 81 * 8),
        ("Softmax", [(1, 4, 44, 44)], [(1, 4, 44, 44)], 0),
    ],
)
def test_products_of_an_operator(operator, inputs, outputs, expected):
    """Each kind by hand."""
    assert expected == macs._products(operator, inputs, outputs, Path("x"))


def test_an_operator_that_nobody_counts_is_an_error():
    """A recurrent layer is not passed over in silence."""
    with pytest.raises(LayoutError, match=r"^x: expected operators .* found LSTM$"):
        macs._products("LSTM", [(1, 2, 3)], [(1, 2, 3)], Path("x"))


def test_products_that_grow_otherwise_are_an_error():
    """A network that pads its rows to a multiple would be counted wrongly for other lengths."""
    assert macs.Growth(5, 3, 2) == macs._polynomial([1, 2, 4, 3], [10, 19, 49, 32], Path("x"))
    with pytest.raises(LayoutError, match=r"^x: expected products that grow .* found \[10, 19"):
        macs._polynomial([1, 2, 4, 3], [10, 19, 49, 33], Path("x"))


@pytest.mark.parametrize(
    ("shape", "cores", "ghz", "mix", "estimate"),
    [
        ("sensevoice-small", 1, 2.2, 0.080, 0.13), ("sensevoice-small", 1, 2.4, 0.073, 0.12),
        ("sensevoice-small", 2, 2.2, 0.040, 0.08), ("sensevoice-small", 2, 2.4, 0.037, 0.075),
        ("sensevoice-small", 4, 2.2, 0.020, 0.05), ("sensevoice-small", 4, 2.4, 0.018, 0.05),
        ("sensevoice-small-fp32", 1, 2.4, 0.23, 0.28),
        ("sensevoice-small-fp32", 2, 2.4, 0.11, 0.18),
        ("sensevoice-small-fp32", 4, 2.4, 0.056, 0.11),
    ],
)  # fmt: skip
def test_the_network_is_predicted_as_in_the_study(shape, cores, ghz, mix, estimate):
    """The table of the emulation study, to the digits it gives."""
    found = predicted(shape, cores=cores, ghz=ghz)
    assert mix == pytest.approx(found.rtf_mix, rel=0.04)
    assert estimate == pytest.approx(found.rtf_network, abs=0.006)


def test_the_question_of_the_field():
    """SenseVoiceSmall int8, 10 s, two A76 cores, RTF 0.05: not met, and what would meet it."""
    found = predicted()
    assert (found.kind, found.verdict, found.within_error) == ("predicted", "not met", False)
    assert found.rtf_peak < found.rtf_mix < found.target_rtf < found.rtf_low < found.rtf
    levers = {lever.name: lever for lever in found.levers}
    assert {name: lever.enough for name, lever in levers.items()} == {
        "fewer MACs": True, "MAC share of fp32": False, "kernel efficiency": True, "cores": True,
    }  # fmt: skip
    assert levers["cores"].needed == 4
    assert found.efficiency < levers["kernel efficiency"].needed / 100 <= 1


def test_what_a_lever_needs_does_reach_the_target():
    """Turn each by as much as it says, and the estimate is the target."""
    found = predicted()
    levers = {lever.name: lever for lever in found.levers}
    room = found.target_rtf - found.rtf_stages
    fewer = levers["fewer MACs"]
    assert found.rtf_network * fewer.needed / fewer.now == pytest.approx(room)
    kernels = levers["kernel efficiency"]
    assert found.rtf_network * kernels.now / kernels.needed == pytest.approx(room)
    more = predicted(cores=int(levers["cores"].needed))
    assert (more.verdict, more.levers) == ("met", [])
    assert predicted(cores=int(levers["cores"].needed) - 1).verdict == "not met"


def test_all_products_as_bytes_can_be_enough():
    """fp32 weights to bytes: the estimate is then that of the int8 shape's products."""
    target = 0.2
    found = predicted("sensevoice-small-fp32", cores=1, target=target)
    (lever,) = (one for one in found.levers if one.name == "MAC share of fp32")
    assert (found.verdict, lever.enough, lever.needed, lever.now) == ("not met", True, 0.0, 100.0)
    assert predicted(cores=1, target=target).verdict == "met"


def test_a_target_below_everything_has_no_lever():
    """Where front end and decoding alone take longer, nothing is called enough."""
    found = predicted(target=0.001)
    assert [lever.enough for lever in found.levers] == [False] * 4
    assert all(lever.needed is None for lever in found.levers)


def test_the_error_can_reach_over_the_target():
    """A verdict that the error could turn says so."""
    found = predicted(cores=4)
    assert (found.verdict, found.within_error) == ("met", True)


def test_published_times_lie_within_the_error():
    """Times that nothing was fitted to."""
    for check in KNOWN.checks:
        found = predicted(check["shape"], board=check["board"], cores=check["cores"])
        assert found.rtf_low <= check["rtf"] <= found.rtf_high, check["source"]


def test_short_sound_pays_for_reading_the_weights():
    """237 MB are read once per call however short it is: 51 ms on a Pi 5."""
    short = predicted(seconds=0.5, cores=4)
    assert short.rtf_network * 0.5 == pytest.approx(237e6 / 4.6e9)
    assert short.rtf_peak * 0.5 == pytest.approx(237e6 / 17.1e9)
    board = KNOWN.boards["rpi5"]
    assert board.weight_pass_s(1_900_000) == (0.0, 0.0)


def test_the_rust_stages_are_as_counted():
    """What the prediction takes for them is what the budget of aarch64 says."""
    counted = tomllib.loads((ROOT / "benchmarks/instructions.toml").read_text())["stages"]
    front_end = counted["fbank"]["neon"] + counted["lfr"]["aarch64"] + counted["cmvn"]["aarch64"]
    assert KNOWN.stage_instructions(1, 0) == pytest.approx(front_end, rel=0.05)
    assert KNOWN.stage_instructions(0, 20 * 25055) == pytest.approx(
        counted["ctc"]["neon"], rel=0.05
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cores", "5"], r"--cores: expected 1 to 4, the Cortex-A76 cores of rpi5, found 5"),
        (["--cores", "0"], r"--cores: expected 1 to 4"),
        (["--seconds", "21"], r"--seconds: expected 0.1 to 20, the length of one piece, found 21"),
        (["--seconds", "nan"], r"--seconds: expected 0.1 to 20"),
        (["--ghz", "0"], r"--ghz: expected 0.1 to 5, found 0"),
        (["--ghz", "nan"], r"--ghz: expected 0.1 to 5, found nan"),
        (["--target", "0"], r"--target: expected an RTF above 0, found 0"),
        (["--shape", "x"], r"--shape: expected sensevoice-small, .*, found x"),
    ],
)
def test_what_cannot_be_asked(arguments, message, capsys):
    """Usage errors, one line each."""
    assert cli.main(["deploy", "predict", *arguments]) == 2
    assert re.fullmatch(rf"asr: {message}.*\n", capsys.readouterr().err)


def test_a_shape_and_a_model_exclude_each_other(capsys):
    """One thing is asked about."""
    with pytest.raises(SystemExit) as left:
        cli.main(["deploy", "predict", "tiny-en", "--shape", "sensevoice-small"])
    assert left.value.code == 2


@pytest.mark.parametrize("what", [[], ["tiny-en"], ["--shape", "sensevoice-small-fp32"]])
def test_every_line_says_that_it_is_predicted(what, capsys):
    """No number leaves without the word; nothing claims to be measured."""
    assert cli.main(["deploy", "predict", *what]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) >= 8
    assert all(line.startswith("predicted  ") for line in lines)
    assert not any("measured" in line for line in lines)


def test_the_page_shows_the_answer(capsys):
    """docs/predict.md has what the command prints, not met and the levers included."""
    assert cli.main(["deploy", "predict"]) == 0
    told = capsys.readouterr().out
    assert f"```text\n{told}```" in (ROOT / "docs/predict.md").read_text(encoding="utf-8")
    assert "target: not met\n" in told


@pytest.mark.parametrize("what", [[], ["tiny-en", "--seconds", "1"], ["--cores", "4"]])
def test_the_json_follows_its_schema(what, capsys):
    """One object, kind predicted."""
    assert cli.main(["deploy", "predict", *what, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    schema = json.loads((ROOT / "docs/prediction.schema.json").read_text())
    jsonschema.validate(found, schema)
    assert set(found) == set(schema["properties"])
    assert found["kind"] == "predicted"


def test_a_prediction_is_repeatable():
    """No clock, no chance."""
    assert asdict(predicted()) == asdict(predicted())


def test_a_board_without_its_cores_is_refused():
    """Through the seam that others call."""
    with pytest.raises(UsageError):
        predict.Predictor(KNOWN, KNOWN.boards["rk3588"], 8)
