"""asr.layouts: what a model directory means; whatever is wrong with it is said in one line."""

import dataclasses
import json
import re
import shutil

import fakes
import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asr
from asr import layouts
from asr.engines.base import TensorInfo
from asr.layouts import funasr
from asr.records import Features

NETWORK, BPE = "model_quant.onnx", "tiny-en.bpe.model"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 230000000\n"
PAGE = b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n"


@pytest.fixture
def folder(tmp_path):
    return fakes.model_folder(tmp_path)


def refused(folder, file=None, error=asr.LayoutError):
    """The message: one line that begins with the folder or the file, and exit code 4."""
    with pytest.raises(error) as seen:
        asr.Recognizer.load(folder, threads=1)
    message = str(seen.value)
    assert message.startswith(f"{folder / file if file else folder}: ")
    assert len(message.splitlines()) == 1
    assert seen.value.exit_code == 4
    return message


def replace_in(path, old, new):
    content = path.read_text(encoding="utf-8")
    assert old in content
    path.write_text(content.replace(old, new, 1), encoding="utf-8")


# Files that are missing, cut or something else.


def test_a_missing_network_is_named_with_what_is_there(folder):
    """Without a network the message lists the names looked for and the files found."""
    fakes.network_of(folder).unlink()
    message = refused(folder)
    assert "model_quant.onnx or model.onnx" in message
    assert "am.mvn" in message


@pytest.mark.parametrize("name", ["config.yaml", "am.mvn"])
def test_a_missing_file_is_named_with_what_the_layout_needs(folder, name):
    """One missing file is that file's fault, not an unknown kind of model."""
    (folder / name).unlink()
    assert "not found; the FunASR layout needs" in refused(folder, name)


def test_without_any_token_list_both_kinds_are_named(folder):
    """Either token list would do, so the message names both."""
    (folder / "tokens.json").unlink()
    (folder / BPE).unlink()
    assert "expected tokens.json or one *.bpe.model, found none" in refused(folder)


def test_an_empty_folder_or_another_model_is_no_layout(tmp_path):
    """A folder without any file of the layout is told what was expected and found."""
    assert re.search("expected an? .*model directory", refused(tmp_path))
    (tmp_path / "pytorch_model.bin").touch()
    assert "found pytorch_model.bin" in refused(tmp_path)


BROKEN = {
    "a Git LFS pointer": POINTER,
    "a web page": PAGE,
    "nothing": b"",
    "zero bytes": b"\0" * 5000,
    "binary": bytes(range(256)) * 4,
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("name", [NETWORK, "config.yaml", "am.mvn", "tokens.json", BPE])
def test_a_replaced_file_is_named_with_what_it_should_be(folder, name, content):
    """Failed downloads leave pointers, pages, nothing or zeros: each names the file, one line."""
    if name == BPE:
        (folder / "tokens.json").unlink()
    if name == NETWORK:
        fakes.network_of(folder).rename(folder / NETWORK)
    (folder / name).write_bytes(content)
    assert "expected" in refused(folder, name)


@pytest.mark.parametrize("part", [1, 8, 1000, 0.5, 0.999])
def test_a_truncated_network_is_named(folder, part):
    """Half a download is refused at load, with what to do."""
    path = fakes.network_of(folder)
    data = path.read_bytes()
    path.write_bytes(data[: part if isinstance(part, int) else int(len(data) * part)])
    assert "download the file again" in refused(folder, path.name)


@pytest.mark.parametrize("part", [0.1, 0.5, 0.999])
def test_a_truncated_token_list_is_named(folder, part):
    """A JSON list that ends early is refused, also where the cut goes through a character."""
    path = folder / "tokens.json"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part) - 1])
    assert re.search(r"line \d+: expected JSON|expected text", refused(folder, "tokens.json"))


def test_a_truncated_sentencepiece_model_is_named(folder):
    """Half a SentencePiece model is refused with its size."""
    (folder / "tokens.json").unlink()
    data = (folder / BPE).read_bytes()
    (folder / BPE).write_bytes(data[: len(data) // 2])
    assert f"found {len(data) // 2} bytes" in refused(folder, BPE)


def test_a_pointer_says_how_to_fetch_the_file(folder):
    """The commonest failure of a clone has its own advice."""
    path = fakes.network_of(folder)
    path.write_bytes(POINTER)
    assert "Git LFS pointer" in refused(folder, path.name)
    assert "git lfs pull" in refused(folder, path.name)


# am.mvn.


def blocks(shift, scale, *, first="[ 0 ]"):
    def row(values):
        return " ".join(str(v) for v in values)

    return (
        f"<Nnet>\n<Splice> 560 560\n{first}\n<AddShift> 560 560\n"
        f"<LearnRateCoef> 0 [ {row(shift)} ]\n<Rescale> 560 560\n"
        f"<LearnRateCoef> 0 [ {row(scale)} ]\n</Nnet>\n"
    )


SHIFT, SCALE = np.arange(560) / 8 - 40, np.arange(560) / 512 + 0.25


def read(tmp_path, content, expected=560):
    path = tmp_path / "am.mvn"
    path.write_text(content, encoding="utf-8")
    return funasr.read_cmvn(path, expected=expected)


@pytest.mark.parametrize("first", ["[ 0 ]", "[ 0 1 2 ]", "", "\n\n[ 0 ]\n\n"])
def test_am_mvn_has_three_blocks_and_the_first_is_neither(tmp_path, first):
    """Shift and scale are found by section name; the Splice block and empty lines do no harm.

    Reading the blocks in order, shift would be the Splice's 0 and scale the shift.
    """
    neg_mean, inv_stddev = read(tmp_path, blocks(SHIFT, SCALE, first=first))
    assert np.array_equal(SHIFT.astype(np.float32), neg_mean)
    assert np.array_equal(SCALE.astype(np.float32), inv_stddev)


@pytest.mark.parametrize("name", ["<AddShift>", "<Rescale>"])
def test_a_missing_section_of_am_mvn_is_named(tmp_path, name):
    """Without its section there is no value to guess."""
    with pytest.raises(asr.LayoutError, match=f"am.mvn: expected a section {name}"):
        read(tmp_path, blocks(SHIFT, SCALE).replace(name, "<Other>"))


def test_a_section_does_not_borrow_the_values_of_the_next(tmp_path):
    """A shift section without values is damaged; the scales are no shifts."""
    content = blocks(SHIFT, SCALE)
    start = content.index("[", content.index("<AddShift>"))
    damaged = content[:start] + content[content.index("<Rescale>") :]
    with pytest.raises(asr.LayoutError, match="<AddShift>"):
        read(tmp_path, damaged)


@pytest.mark.parametrize("count", [0, 1, 80, 559, 561])
@pytest.mark.parametrize("name", ["<AddShift>", "<Rescale>"])
def test_a_wrong_count_in_am_mvn_is_named(tmp_path, name, count):
    """Expected and found counts, and the section, are in the message."""
    wrong = np.ones(count)
    shift, scale = (wrong, SCALE) if name == "<AddShift>" else (SHIFT, wrong)
    with pytest.raises(asr.LayoutError, match=f"{name}: expected 560 .* found {count};"):
        read(tmp_path, blocks(shift, scale))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e99"])
def test_a_value_in_am_mvn_that_is_no_number_is_refused(tmp_path, value):
    """NaN and infinity, also what is infinite as float32, would silence every clip."""
    with pytest.raises(asr.LayoutError, match="<Rescale>: expected 560 finite values"):
        read(tmp_path, blocks(SHIFT, [*SCALE[:-1], value]))


@pytest.mark.parametrize("value", ["x", "0x1p3", "1,5", "--"])
def test_text_in_am_mvn_is_refused(tmp_path, value):
    """A word among the values is named as such."""
    with pytest.raises(asr.LayoutError, match="<AddShift>: expected numbers"):
        read(tmp_path, blocks([value, *SHIFT[1:]], SCALE))


def test_am_mvn_cut_anywhere_is_never_read_as_something_else(tmp_path):
    """Wherever the file ends early, the end is missed: no prefix gives values."""
    content = blocks(SHIFT, SCALE)
    whole = content.rindex("]") + 1
    for length in [*range(0, whole, 97), whole - 2]:
        with pytest.raises(asr.LayoutError, match=r"am\.mvn"):
            read(tmp_path, content[:length])
    assert len(read(tmp_path, content[:whole])) == 2


# config.yaml.


def test_the_recipe_comes_from_config_yaml(folder):
    """Every number of frontend_conf arrives; the rest is what this family of models shares."""
    content = fakes.CONFIG.replace("lfr_m: 7", "lfr_m: 5").replace("lfr_n: 6", "lfr_n: 3")
    content = content.replace("n_mels: 80", "n_mels: 40").replace("fs: 16000", "fs: 8000")
    content = content.replace("frame_length: 25", "frame_length: 32")
    content = content.replace("frame_shift: 10", "frame_shift: 16")
    (folder / "config.yaml").write_text(content)
    (folder / "am.mvn").write_text(blocks(SHIFT[:200], SCALE[:200]))
    recipe = layouts.open_layout(folder).front_end
    found = dataclasses.asdict(recipe)
    assert np.array_equal(SHIFT[:200].astype(np.float32), found.pop("neg_mean"))
    assert np.array_equal(SCALE[:200].astype(np.float32), found.pop("inv_stddev"))
    assert found == {
        "sample_rate_hz": 8000,
        "sample_scale": 32768.0,
        "frame_length_ms": 32,
        "frame_shift_ms": 16,
        "window": "hamming",
        "num_mel_bins": 40,
        "low_freq_hz": 20.0,
        "high_freq_hz": 4000.0,
        "preemphasis": 0.97,
        "lfr_m": 5,
        "lfr_n": 3,
    }


def test_config_in_block_style_and_as_json_are_the_same(folder):
    """YAML has two spellings of the same data; the quick way for one changes nothing."""
    block = layouts.open_layout(folder)
    (folder / "config.yaml").write_text(json.dumps(yaml.safe_load(fakes.CONFIG)))
    as_json = layouts.open_layout(folder)
    for field in dataclasses.fields(block.front_end):
        expected = getattr(block.front_end, field.name)
        assert np.array_equal(expected, getattr(as_json.front_end, field.name))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("model: SenseVoiceSmall", "model: Paraformer", "SenseVoiceSmall, found Paraformer"),
        ("frontend_conf:", "other_conf:", "expected frontend_conf"),
        ("    fs: 16000\n", "", "frontend_conf.fs: expected a positive whole number, found None"),
        ("n_mels: 80", "n_mels: eighty", "frontend_conf.n_mels: .* found '?eighty"),
        ("n_mels: 80", "n_mels: true", "frontend_conf.n_mels: .* found True"),
        ("frame_length: 25", "frame_length: -25", "frontend_conf.frame_length: .* found -25"),
        ("frame_shift: 10", "frame_shift: []", r"frontend_conf.frame_shift: .* found \[\]"),
        ("lfr_n: 6", "lfr_n: 0", "frontend_conf.lfr_n: .* found 0"),
        ("fs: 16000", "fs: [16000", r"line \d+: expected YAML"),
        ("fs: 16000", "fs: {{", r"line \d+: expected YAML"),
        ("encoder: S", "encoder:\tS\n\t- x: ", r"line \d+: expected YAML"),
        ("fs: 16000", "fs: 2024-13-45", "."),
        ("fs: 16000", "fs: 99999999999999999999999", "."),
    ],
)
def test_a_broken_config_is_named_with_the_key(folder, old, new, said):
    """Which key, what was expected, what was found."""
    replace_in(folder / "config.yaml", old, new)
    assert re.search(said, refused(folder, "config.yaml"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("window: hamming", "window: povey"),
        ("    window: hamming\n", ""),
        ("frame_length: 25", "frame_length: 100000000"),
        ("frame_length: 25", "frame_length: 1"),
        ("frame_shift: 10", "frame_shift: 100000000"),
        ("fs: 16000", "fs: 100"),
    ],
)
def test_a_recipe_that_cannot_be_built_names_the_file(folder, old, new):
    """What the front end refuses was said by config.yaml: the user must know where to look."""
    replace_in(folder / "config.yaml", old, new)
    refused(folder, "config.yaml", error=(asr.LayoutError, asr.FrontEndError))


@pytest.mark.parametrize(
    "content", ["", "just text", "- a\n- list\n", "42", "!!python/object/apply:os.getcwd []"]
)
def test_a_config_of_another_kind_is_refused(folder, content):
    """Valid YAML that holds no keys, and YAML that wants to run code, are refused."""
    (folder / "config.yaml").write_text(content)
    assert "expected" in refused(folder, "config.yaml")


def test_a_recipe_for_other_features_does_not_fit_am_mvn(folder):
    """The count in am.mvn follows from the recipe, so files of two models are noticed."""
    replace_in(folder / "config.yaml", "n_mels: 80", "n_mels: 40")
    assert "expected 280 finite values" in refused(folder, "am.mvn")


# Token lists.


@pytest.mark.parametrize("content", ['{"a": 1}', "[1, 2]", '"text"', "null", '["a", null]'])
def test_a_token_list_of_another_kind_is_refused(folder, content):
    """JSON that is no list of strings is no token list."""
    (folder / "tokens.json").write_text(content)
    assert "expected a list of pieces" in refused(folder, "tokens.json")


@pytest.mark.parametrize("change", [-1, 1])
def test_a_token_list_of_another_length_names_both_counts(folder, change):
    """The network's columns and the token list's length are in the message."""
    tokens = fakes.tokens_of(folder)
    wrong = tokens[:change] if change < 0 else [*tokens, "extra"]
    (folder / "tokens.json").write_text(json.dumps(wrong))
    message = refused(folder, fakes.network_of(folder).name)
    assert str(len(tokens)) in message
    assert str(len(wrong)) in message
    assert "different models" in message


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokens.json", "[" * 200_000),
        ("config.yaml", '{"a":' * 200_000),
        ("config.yaml", "[" * 200_000),
        ("config.yaml", "a: 2001-99-99"),
        ("config.yaml", "&a [*a, *a, *a]"),
    ],
)
def test_hostile_text_is_refused_like_any_other(folder, name, content):
    """Nesting without end and impossible dates are damaged files, not our bug."""
    (folder / name).write_text(content)
    refused(folder, name)


def test_both_token_lists_give_the_same_vocabulary_and_text(folder, clip):
    """tokens.json is only the quicker way to the pieces of the SentencePiece model."""
    by_json = asr.Recognizer.load(folder, threads=1)
    (folder / "tokens.json").unlink()
    by_model = asr.Recognizer.load(folder, threads=1)
    assert list(by_json.layout.vocabulary.pieces) == list(by_model.layout.vocabulary.pieces)
    assert by_json.transcribe(clip).segments == by_model.transcribe(clip).segments


def test_several_sentencepiece_models_are_not_guessed_between(folder):
    """Two models and no list: both names are told."""
    (folder / "tokens.json").unlink()
    shutil.copyfile(folder / BPE, folder / "other.bpe.model")
    assert f"found other.bpe.model, {BPE}" in refused(folder)


def test_the_quantised_network_is_preferred(folder):
    """With both networks in the folder the smaller one runs."""
    path = fakes.network_of(folder)
    data = path.read_bytes()
    (folder / "model.onnx").write_bytes(data)
    (folder / "model_quant.onnx").write_bytes(data)
    assert layouts.open_layout(folder).network.name == "model_quant.onnx"
    (folder / "model_quant.onnx").unlink()
    assert layouts.open_layout(folder).network.name == "model.onnx"


# Any damage.


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_is_a_model_or_an_error_of_ours(tmp_path_factory, data):
    """Bytes changed, lost or added anywhere in a text file: never another exception."""
    folder = tmp_path_factory.mktemp("damaged")
    folder = fakes.model_folder(folder)
    path = folder / data.draw(st.sampled_from(["config.yaml", "am.mvn", "tokens.json"]))
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)))
    lost = data.draw(st.integers(0, 40))
    path.write_bytes(content[:start] + data.draw(st.binary(max_size=20)) + content[start + lost :])
    try:
        layouts.open_layout(folder)
    except asr.AsrError as error:
        assert error.exit_code == 4  # noqa: PT017 - either outcome is right
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    finally:
        shutil.rmtree(folder.parent)


# The network.


def test_a_network_for_other_features_is_named(folder):
    """Columns of features that the network declares against the recipe's."""
    (folder / NETWORK).write_bytes(fakes.network(dim=320))
    message = refused(folder, NETWORK)
    assert "320" in message
    assert "560" in message
    assert "different models" in message


def test_a_network_for_other_tokens_is_named(folder):
    """Columns of scores against the token list."""
    (folder / NETWORK).write_bytes(fakes.network(tokens=500))
    message = refused(folder, NETWORK)
    assert "500" in message
    assert "different models" in message


def test_a_network_that_does_not_say_its_size_is_checked_when_it_runs():
    """Free sizes pass at load; the first scores tell."""
    size = len(fakes.PIECES)
    recognizer = fakes.recognizer(np.zeros((9, size + 1), np.float32))
    with pytest.raises(asr.LayoutError, match=rf"1, frames, {size}\).*found \(1, 9, {size + 1}"):
        recognizer.transcribe(fakes.hiss(16000), sample_rate=16000)


def test_another_kind_of_network_is_named_with_its_tensors(folder):
    """A network that is no SenseVoice: the tensors it has are told."""
    names = ("input", "length", "lang", "norm", "output")
    (folder / NETWORK).write_bytes(fakes.network(names=names))
    message = refused(folder, NETWORK)
    assert "expected a SenseVoice network" in message
    assert "found input, length, lang, norm" in message


SHERPA = ("x", "x_length", "language", "text_norm", "logits")


def test_both_spellings_of_the_tensors_are_known(folder):
    """FunASR and sherpa-onnx name the same tensors differently; they are bound by name."""
    (folder / NETWORK).write_bytes(fakes.network(names=SHERPA))
    recognizer = asr.Recognizer.load(folder, threads=1)
    assert recognizer.transcribe(fakes.hiss(16000), sample_rate=16000).text == ""


def test_tensors_are_bound_by_name_not_by_place():
    """A network may list its inputs in any order."""
    layout = layouts.open_layout(fakes.BUILTIN)
    order = [3, 1, 0, 2]
    engine = fakes.FakeEngine(np.zeros((5, 400), np.float32))
    inputs = tuple(engine.inputs[i] for i in order)
    tensors = layout.connect(inputs, engine.outputs).bind(
        Features(np.zeros((9, 560), np.float32), 0.06), 4, 15
    )
    shapes = {name: (t.dtype.name, t.shape, t.ravel()[0]) for name, t in tensors.items()}
    assert shapes == {
        "speech": ("float32", (1, 9, 560), 0),
        "speech_lengths": ("int32", (1,), 9),
        "language": ("int32", (1,), 4),
        "textnorm": ("int32", (1,), 15),
    }


def test_features_are_lent_not_copied():
    """Binding adds an axis, not a copy."""
    layout = layouts.open_layout(fakes.BUILTIN)
    engine = fakes.FakeEngine(np.zeros((5, 400), np.float32))
    values = np.zeros((9, 560), np.float32)
    tensors = layout.connect(engine.inputs, engine.outputs).bind(Features(values, 0.06), 0, 15)
    assert np.shares_memory(values, tensors["speech"])


def test_a_network_without_axes_is_refused():
    """A tensor without a shape has no last axis to compare; it is not taken for a match."""
    layout = layouts.open_layout(fakes.BUILTIN)
    engine = fakes.FakeEngine(np.zeros((5, 400), np.float32))
    binding = layout.connect(engine.inputs, (TensorInfo("logits", "tensor(float)", ()),))
    with pytest.raises(asr.LayoutError, match=r"expected scores \(1, frames, 400\)"):
        binding.unbind({"logits": np.zeros((), np.float32)}, 0.06)


# Languages.


def test_only_languages_with_a_tag_are_offered(folder):
    """A model that cannot answer a language must not accept it."""
    layout = layouts.open_layout(folder)
    tokens = fakes.tokens_of(folder)
    assert set(layout.language_ids) == {
        "auto",
        *(name for name in funasr.LANGUAGE_IDS if f"<|{name}|>" in tokens),
    }
    assert layout.language_id("en") == 4
    assert layout.language_id("auto") == 0


@pytest.mark.parametrize(
    ("asked", "hint"), [("zn", "zh"), ("eng", "en"), ("EN", "en"), ("aut", "auto")]
)
def test_an_unknown_language_is_refused_with_a_suggestion(folder, asked, hint):
    """A typing mistake must not silently mean auto."""
    layout = layouts.open_layout(folder)
    with pytest.raises(
        asr.UsageError, match=f"unknown language '{asked}'.*did you mean '{hint}'"
    ) as seen:
        layout.language_id(asked)
    assert seen.value.exit_code == 2


def test_a_language_like_none_is_refused_with_the_list():
    """Where nothing is near, the known ones are listed."""
    with pytest.raises(asr.UsageError, match=r"expected one of auto, .*en") as seen:
        layouts.open_layout(fakes.BUILTIN).language_id("klingon123")
    assert "did you mean" not in str(seen.value)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    """A file or nothing where a folder should be."""
    with pytest.raises(asr.LayoutError, match="expected a model directory, found nothing"):
        layouts.open_layout(tmp_path / "nope")
    (tmp_path / "file").touch()
    with pytest.raises(asr.LayoutError, match="expected a model directory, found a file"):
        layouts.open_layout(tmp_path / "file")
