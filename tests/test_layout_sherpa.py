"""asr.layouts.sherpa: the facts inside the network, tokens.txt, and a sentence for each fault."""

import os
import shutil
import tracemalloc
from pathlib import Path

import fakes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asr
from asr import layouts
from asr.engines.ort import import_runtime
from asr.layouts import funasr, sherpa

NETWORKS = Path(__file__).parent / "networks"
TINY = NETWORKS / "sherpa-torchscript-13-logits"
SAME_WEIGHTS = NETWORKS / "funasr-torchscript-14-logits"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 230000000\n"
PAGE = b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n"

#: Facts of a network with 560 columns and a handful of pieces.
FACTS = {
    "model_type": "sense_voice_ctc",
    "comment": "iic/SenseVoiceSmall",
    "vocab_size": "5",
    "lfr_window_size": "7",
    "lfr_window_shift": "6",
    "normalize_samples": "0",
    "lang_auto": "0",
    "lang_zh": "3",
    "lang_nospeech": "13",
    "with_itn": "14",
    "without_itn": "15",
    "neg_mean": ",".join(["-8.5"] * 560),
    "inv_stddev": ",".join(["0.25"] * 560),
}
OPTIONAL = {"model_type", "comment", "lang_zh", "lang_nospeech"}
PIECES = ["<unk>", "<|zh|>", "▁the", "s", "好"]
TOKENS = "".join(f"{piece} {number}\n" for number, piece in enumerate(PIECES))


def network(facts):
    """An ONNX file of one matrix product that carries these facts behind its graph."""
    data = fakes.network(tokens=5, names=("x", "x_length", "language", "text_norm", "logits"))
    return data + metadata(facts)


def metadata(facts):
    return b"".join(
        field(14, field(1, k.encode()) + field(2, v.encode())) for k, v in facts.items()
    )


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value):
    low, rest = value & 127, value >> 7
    return bytes([low | 128]) + varint(rest) if rest else bytes([low])


@pytest.fixture
def folder(tmp_path):
    """A complete model folder, to be broken."""
    (tmp_path / "model.onnx").write_bytes(network(FACTS))
    (tmp_path / "tokens.txt").write_text(TOKENS, encoding="utf-8")
    return tmp_path


def change_facts(folder, **changes):
    """Write the network anew with other facts; None leaves one out."""
    facts = {k: v for k, v in (FACTS | changes).items() if v is not None}
    (folder / "model.onnx").write_bytes(network(facts))


def refused(folder, file="model.onnx"):
    """The message: one line that begins with the file or the folder, and exit code 4."""
    with pytest.raises(asr.LayoutError) as seen:
        sherpa.open_layout(folder)
    message = str(seen.value)
    assert message.startswith(f"{folder / file if file else folder}: ")
    assert len(message.splitlines()) == 1
    assert seen.value.exit_code == 4
    return message


# What a complete folder means.


def test_both_layouts_of_the_same_weights_mean_the_same():
    """Recipe, CMVN, pieces and prompt rows read from metadata equal those of config and am.mvn."""
    found, expected = sherpa.open_layout(TINY), funasr.open_layout(SAME_WEIGHTS)
    for name in ("neg_mean", "inv_stddev"):
        ours = getattr(found.front_end, name)
        assert ours.dtype == np.float32
        np.testing.assert_array_equal(getattr(expected.front_end, name), ours)
    numbers = set(found.front_end.__slots__) - {"neg_mean", "inv_stddev"}
    for name in numbers:
        assert getattr(expected.front_end, name) == getattr(found.front_end, name), name
    assert expected.vocabulary.pieces == found.vocabulary.pieces
    assert expected.language_ids == found.language_ids
    assert expected.itn_ids == found.itn_ids
    assert (expected.blank_id, expected.prompt_frames) == (found.blank_id, found.prompt_frames)


def test_the_int8_network_is_preferred(folder):
    """model.int8.onnx where it is, else model.onnx."""
    assert folder / "model.onnx" == sherpa.open_layout(folder).network
    shutil.copyfile(folder / "model.onnx", folder / "model.int8.onnx")
    assert folder / "model.int8.onnx" == sherpa.open_layout(folder).network


def test_the_directory_is_recognised(folder):
    """A folder with tokens.txt is sherpa-onnx's; FunASR's files come first where both are."""
    assert layouts.open_layout(folder).kind == "sherpa-onnx"
    assert layouts.open_layout(SAME_WEIGHTS).kind == "funasr"


def test_the_pipeline_runs_on_it(folder):
    """From samples to an answer, with sherpa-onnx's tensor names."""
    recognizer = asr.Recognizer.load(folder, threads=1)
    sound = np.zeros(16000, np.float32)
    assert recognizer.transcribe(sound, sample_rate=16000, language="zh").reason == "silence"
    with pytest.raises(asr.UsageError, match="unknown language 'en': expected one of auto, zh"):
        recognizer.transcribe(sound, sample_rate=16000, language="en")


def test_every_language_of_the_metadata_is_known(folder):
    """A later model may know more languages; each lang_... fact is one."""
    change_facts(folder, lang_de="9")
    found = sherpa.open_layout(folder).language_ids
    assert found == {"auto": 0, "zh": 3, "nospeech": 13, "de": 9}


@pytest.mark.parametrize(("value", "scale"), [("0", 32768.0), ("1", 1.0)])
def test_normalize_samples_decides_the_scale(folder, value, scale):
    """0: the network wants samples like int16; 1: full scale ±1.0."""
    change_facts(folder, normalize_samples=value)
    assert scale == sherpa.open_layout(folder).front_end.sample_scale


def test_a_blank_id_may_be_given(folder):
    """Exports of other CTC models name it; SenseVoice's is 0."""
    assert sherpa.open_layout(folder).blank_id == 0
    change_facts(folder, blank_id="4")
    layout = sherpa.open_layout(folder)
    assert (layout.blank_id, layout.vocabulary.blank_id) == (4, 4)


# The facts.


@pytest.mark.parametrize("key", sorted(FACTS.keys() - OPTIONAL))
def test_a_missing_fact_is_named(folder, key):
    """Each fact that sherpa-onnx itself needs is asked for by name."""
    change_facts(folder, **{key: None})
    whole = "expected sherpa-onnx's facts (vocab_size, neg_mean ...), found comment, inv_stddev"
    assert (whole if key == "vocab_size" else f"expected {key}, found none") in refused(folder)


@pytest.mark.parametrize("key", sorted(OPTIONAL))
def test_an_optional_fact_may_be_missing(folder, key):
    """What nothing here depends on is not demanded."""
    change_facts(folder, **{key: None})
    sherpa.open_layout(folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "vocab_size",
            "five",
            "vocab_size: expected a whole number from 1 to 999999, found 'five'",
        ),
        ("vocab_size", "0", "vocab_size: expected a whole number from 1"),
        ("vocab_size", "9" * 5000, "vocab_size: expected a whole number"),
        ("blank_id", "5", "blank_id: expected a whole number from 0 to 4, found '5'"),
        ("lfr_window_size", "0", "lfr_window_size: expected a whole number from 1"),
        ("lfr_window_size", "9", "lfr_window_size (9) x mel bins, found 560 and 560 values"),
        ("lfr_window_shift", "-6", "lfr_window_shift: expected a whole number from 1"),
        ("lang_zh", "", "lang_zh: expected a whole number"),
        ("with_itn", "14.0", "with_itn: expected a whole number"),
        ("normalize_samples", "2", "normalize_samples: expected 0 or 1, found 2"),
        ("neg_mean", "", "neg_mean: expected numbers separated by commas, found text"),
        ("neg_mean", "1,2,x", "neg_mean: expected numbers separated by commas, found text"),
        ("neg_mean", "1,2", "found 2 and 560 values"),
        ("inv_stddev", ",".join(["nan"] * 560), "inv_stddev: expected finite numbers"),
        ("inv_stddev", ",".join(["1e99"] * 560), "inv_stddev: expected finite numbers"),
        ("model_type", "paraformer", "expected model_type sense_voice_ctc (SenseVoice), found par"),
        ("comment", "FunAudioLLM/Fun-ASR-Nano-2512", "found Fun-ASR-Nano"),
    ],
)
def test_a_fact_that_cannot_be_is_refused(folder, key, value, message):
    """Which fact, what was expected, what was found."""
    change_facts(folder, **{key: value})
    found = refused(folder)
    assert found.startswith(f"{folder / 'model.onnx'}: ONNX metadata: ")
    assert message in found
    assert len(found) < len(str(folder)) + 200


def test_a_network_without_facts_gets_advice(folder):
    """An export of FunASR in the wrong company: the message says what would make it whole."""
    (folder / "model.onnx").write_bytes(network({}))
    message = refused(folder)
    assert "expected sherpa-onnx's facts (vocab_size, neg_mean ...), found none" in message
    assert "config.yaml, am.mvn and tokens.json" in message


# tokens.txt.


def read(tmp_path, content, expected=5):
    path = tmp_path / "tokens.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return sherpa.read_tokens(path, expected=expected)


@pytest.mark.parametrize(
    "content",
    [
        TOKENS,
        TOKENS.removesuffix("\n"),
        TOKENS.replace("\n", "\r\n"),
        TOKENS.replace(" ", "\t"),
        TOKENS.replace(" ", "  ").replace("  2", " \t2"),
        "\n".join(reversed(TOKENS.split("\n"))),
        TOKENS + "\n \n\t\r\n",
        TOKENS.replace("▁the", " the"),
        "\ufeff" + TOKENS,
    ],
    ids=["as written", "no last line end", "CRLF", "tabs", "wide", "reversed", "empty lines",
         "leading blank", "byte order mark"],
)  # fmt: skip
def test_tokens_are_read_however_they_are_spaced(tmp_path, content):
    """Line ends, separators, order and empty lines do not matter; a leading blank is a marker."""
    found = [piece.rstrip(" ") for piece in read(tmp_path, content)]
    assert found == PIECES


@pytest.mark.parametrize(
    "piece",
    ["\u3000", "\u00a0", "\u2028", "\u2029", "\u0085", "\x0b", "\x1c", "a\rb", "1", "12", "▁1", "#",
     "<0x20>", "a b", "é", "e\u0301"],
    ids=ascii,
)  # fmt: skip
def test_only_blanks_and_line_feeds_separate(tmp_path, piece):
    """A piece may be a digit, hold a blank, or be what Python calls a space or a line end."""
    assert [piece, "x"] == read(tmp_path, f"{piece} 0\nx 1\n", expected=2)


@pytest.mark.parametrize("line", ["▁ 1", "  1", " 1", "1"])
def test_the_marker_alone_survives_editors(tmp_path, line):
    """The piece that is only a word marker, also written as a blank or stripped to nothing."""
    assert read(tmp_path, f"x 0\n{line}\n", expected=2) == ["x", "▁"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<unk> 0\nhello\n", "line 2: expected a piece and its id, found 'hello'"),
        ("<unk> 0\nhello 1.5\n", "line 2: expected a piece and its id, found 'hello 1.5'"),
        ("<unk> 0\nhello -1\n", "line 2: expected a piece and its id"),
        ("a 0\n▁the\t-3.2\n", "looks like a SentencePiece .vocab file"),
        ("<unk>\t0\n<s>\t0\n", "line 2: expected each id once, found 0 again; this looks"),
        ("a 0\nb 1\nc 1\n", "line 3: expected each id once, found 1 again"),
        ("a 0\nb 5\n", "line 2: expected ids below 5 (vocab_size of the network), found 5"),
        ("a 0\nc 2\n", "expected 5 pieces (vocab_size of the network), found 2; the first id "
         "without one is 1"),
        ("", "expected 5 pieces (vocab_size of the network), found 0"),
        (b"\xff\xfe\x00 0\n", "expected text, found binary data"),
        ("x" * 500 + "\n", "found 'xxx"),
        ("x " + "9" * 5000 + "\n", "line 1: expected a piece and its id, found 'x 999"),
    ],
)  # fmt: skip
def test_wrong_tokens_are_named_by_line(folder, content, message):
    """Line, expectation and finding; never a wrong vocabulary."""
    data = content if isinstance(content, bytes) else content.encode()
    (folder / "tokens.txt").write_bytes(data)
    found = refused(folder, "tokens.txt")
    assert message in found
    assert len(found) < len(str(folder)) + 200


@given(st.permutations(range(4)), st.lists(st.text(
    st.characters(exclude_characters="\n \t\r", exclude_categories=["Cs"]), min_size=1, max_size=4),
    min_size=4, max_size=4))  # fmt: skip
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_pieces_in_any_order_come_back(tmp_path, order, pieces):
    """Writing and reading is the identity for every piece without blanks."""
    content = "".join(f"{pieces[i]} {i}\n" for i in order)
    assert pieces == read(tmp_path, content, expected=4)


def test_missing_files_are_named(folder):
    """Without tokens or network the message says what the layout needs and what is there."""
    (folder / "tokens.txt").unlink()
    message = refused(folder, "tokens.txt")
    assert "the sherpa-onnx layout needs tokens.txt and model.int8.onnx or model.onnx" in message
    (folder / "model.onnx").rename(folder / "encoder.onnx")
    message = refused(folder, None)
    assert "expected model.int8.onnx or model.onnx, found encoder.onnx" in message


def test_a_file_that_cannot_be_read_is_the_systems_fault(folder, monkeypatch):
    """Permissions give exit code 5, for the network and for the tokens."""

    def deny(*_arguments, **_options):
        raise PermissionError(13, "Permission denied")

    for method, file in (("open", "model.onnx"), ("read_bytes", "tokens.txt")):
        with monkeypatch.context() as patch:
            patch.setattr(Path, method, deny)
            with pytest.raises(
                asr.SystemAccessError, match=f"{file}: cannot read .*denied"
            ) as seen:
                sherpa.open_layout(folder)
        assert seen.value.exit_code == 5


def test_the_command_line_says_it_in_one_line(folder, cli, clip):
    """A broken model is exit code 4 and one line on stderr."""
    change_facts(folder, neg_mean=None)
    run = cli("transcribe", clip, "--model", folder)
    assert (run.code, run.out) == (4, "")
    assert "expected neg_mean, found none" in run.err
    assert len(run.err.splitlines()) == 1


# Reading the metadata.


@pytest.mark.parametrize("file", ["model.onnx", "model.int8.onnx"])
def test_the_runtime_reads_the_same_metadata(file):
    """Our walk over the file against ONNX Runtime's own reading."""
    session = import_runtime().InferenceSession(
        str(TINY / file), providers=["CPUExecutionProvider"]
    )
    assert session.get_modelmeta().custom_metadata_map == sherpa.read_metadata(TINY / file)


def test_weights_are_not_read_for_the_metadata(tmp_path):
    """A network of 1 GB costs a few kilobytes of memory: the graph is skipped."""
    path, size = tmp_path / "model.onnx", 1 << 30
    with path.open("wb") as file:
        file.write(b"\x08\x08" + varint(7 << 3 | 2) + varint(size))
        file.seek(size, os.SEEK_CUR)  # a hole, no data
        file.write(metadata(FACTS))
    tracemalloc.start()
    try:
        assert sherpa.read_metadata(path) == FACTS
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (POINTER, "found a Git LFS pointer of"),
        (PAGE, "found a web page"),
        (b"", "found an empty file"),
        (b"PK\x03\x04" + bytes(100), "bytes that are something else"),
        (b"\x08\x08" + b"\xff" * 20, "bytes that are damaged at byte"),
        (b"\x08\x08\x3a\xff\x7f" + bytes(100), "bytes that end before the 16383 bytes announced"),
        (b"\x08\x08\x3a", "bytes that end in the middle of a number"),
        (b"\x08\x08\x3b\x00", "bytes that are damaged at byte 2"),
        (b"\x08\x08" + bytes(9_000_000), "bytes that are damaged at byte 2"),
    ],
)
def test_what_is_no_network_is_named(folder, data, message):
    """A pointer, a page, nothing, an archive, a damaged or cut file: each in its own words."""
    (folder / "model.onnx").write_bytes(data)
    assert message in refused(folder)


def test_a_cut_network_is_always_refused(folder):
    """Cut anywhere, the file is refused in one line; never another exception, never accepted."""
    whole = network(FACTS)
    graph_end = len(whole) - len(metadata(FACTS))
    for length in [*range(0, 40), *range(40, graph_end, 997), *range(graph_end, len(whole), 13)]:
        (folder / "model.onnx").write_bytes(whole[:length])
        refused(folder)


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_metadata_never_escapes_as_another_error(folder, data):
    """Any bytes changed behind the graph: it opens, or it is a LayoutError."""
    whole = bytearray(network(FACTS))
    graph_end = len(whole) - len(metadata(FACTS))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(graph_end, len(whole) - 1))] = data.draw(st.integers(0, 255))
    (folder / "model.onnx").write_bytes(bytes(whole))
    message = ""
    try:
        sherpa.open_layout(folder)
    except asr.LayoutError as error:
        message = str(error)
    assert len(message.splitlines()) <= 1
