"""Stand-ins: an engine with given answers, model folders to break, networks of a few bytes."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np

from asr import _rust_fe, hub, layouts
from asr.engines.base import TensorInfo
from asr.engines.preparation import SMALL
from asr.frontend import FrontEnd
from asr.recognizer import Recognizer
from asr.records import Decoded
from asr.text import Vocabulary

SHIFT_S = 0.06
PROMPT_FRAMES = 4
BUILTIN = hub.find_model("tiny-en")

#: A config.yaml as FunASR writes it for SenseVoiceSmall, as far as it says something.
CONFIG = """\
encoder: SenseVoiceEncoderSmall
model: SenseVoiceSmall
tokenizer: SentencepiecesTokenizer
frontend: WavFrontend
frontend_conf:
    fs: 16000
    window: hamming
    n_mels: 80
    frame_length: 25
    frame_shift: 10
    lfr_m: 7
    lfr_n: 6
    cmvn_file: null
"""

#: A vocabulary with everything a SenseVoice token list can hold: tags, all bytes, CJK, Korean.
PIECES = [
    "<unk>",
    "<s>",
    "</s>",
    *(f"<|{tag}|>" for tag in ("zh", "en", "yue", "ja", "ko", "nospeech")),
    *(f"<|{tag}|>" for tag in ("HAPPY", "NEUTRAL", "EMO_UNKNOWN", "Speech", "BGM", "Event_UNK")),
    *(f"<|{tag}|>" for tag in ("withitn", "woitn")),
    *(f"<0x{value:02X}>" for value in range(256)),
    *("▁", "▁hello", "▁wor", "ld", "▁v", "ad", "s", ",", ".", "'", "▁meet", "▁you", "No", "1"),
    *("测", "试", "▁测", "测试", "。", ",", "カ", "ナ", "안", "▁안녕", "하세요", "▁저는"),
    *("<no>", "<|", "|>", "é", "▁ñ"),
]
ID = {piece: number for number, piece in enumerate(PIECES)}
PROMPTS = ("<|en|>", "<|NEUTRAL|>", "<|Speech|>", "<|woitn|>")


def hiss(num_samples):
    """Faint noise, float32 (num_samples,): the least that makes the pipeline ask the network."""
    rng = np.random.default_rng(num_samples)
    return (rng.standard_normal(num_samples) * 1e-3).astype(np.float32)


def scores(best_ids, *, size=None, margin=12.0):
    """Scores (rows, size) float32 whose best id per row is as given."""
    values = np.zeros((len(best_ids), size or len(PIECES)), np.float32)
    values[np.arange(len(best_ids)), list(best_ids)] = margin
    return values


def rows(text, prompts=PROMPTS):
    """Scores for prompt rows and speech rows, by piece; ``None`` is blank."""
    return scores([ID[p] if p else 0 for p in (*prompts, *text)])


def decoded(token_ids, *, prompts=(0, 0, 0, 0), spans=None, log_prob=-0.1, entropy=0.2):
    """A Decoded with these tokens, one row each followed by a blank unless spans say otherwise."""
    count = len(token_ids)
    spans = spans if spans is not None else [(2 * k, 2 * k + 1) for k in range(count)]
    length = PROMPT_FRAMES + (spans[-1][1] + 1 if spans else 1)
    argmax = np.zeros(length, np.int32)
    argmax[:PROMPT_FRAMES] = prompts
    for token_id, (start, end) in zip(token_ids, spans, strict=True):
        argmax[PROMPT_FRAMES + start : PROMPT_FRAMES + end] = token_id
    return Decoded(
        argmax=argmax,
        log_prob=np.full(length, log_prob, np.float32),
        entropy=np.full(length, entropy, np.float32),
        token_ids=np.array(token_ids, np.int32),
        start_frame=np.array([s for s, _ in spans], np.int32),
        end_frame=np.array([e for _, e in spans], np.int32),
        log_probs=np.full(count, log_prob, np.float32),
        entropies=np.full(count, entropy, np.float32),
        prompt_frames=PROMPT_FRAMES,
        frame_shift_s=SHIFT_S,
    )


class FakeEngine:
    """Returns the same scores whatever goes in, and remembers what went in.

    Args:
        values: float32 (prompt_frames + t, vocab_size); a function of the inputs that gives them;
            or an exception to raise.
        names: tensor names in the FunASR spelling (default) or in sherpa-onnx's.
    """

    description = "fake"
    threads = 1
    preparation = SMALL

    def __init__(self, values, *, sherpa=False, dim=560):
        self.values = values
        self.calls = []
        names = ("x", "x_length", "language", "text_norm") if sherpa else (
            "speech", "speech_lengths", "language", "textnorm",
        )  # fmt: skip
        self.inputs = (
            TensorInfo(names[0], "tensor(float)", ("batch", "time", dim)),
            *(TensorInfo(name, "tensor(int32)", ("batch",)) for name in names[1:]),
        )
        self._output = "logits" if sherpa else "ctc_logits"
        self.outputs = (TensorInfo(self._output, "tensor(float)", ("batch", "time_out", "vocab")),)

    def run(self, inputs):
        """See ``asr.engines.base.Engine.run``."""
        self.calls.append(dict(inputs))
        if isinstance(self.values, Exception):
            raise self.values
        values = self.values(inputs) if callable(self.values) else self.values
        return {self._output: values[np.newaxis]}


def recognizer(values, *, pieces=PIECES, sherpa=False):
    """A real recogniser, except that the network's answer is given."""
    layout = layouts.open_layout(BUILTIN)
    layout = dataclasses.replace(layout, vocabulary=Vocabulary(pieces))
    return Recognizer(layout, FrontEnd(layout.front_end), FakeEngine(values, sherpa=sherpa))


def model_folder(tmp_path):
    """A copy of the built-in model with a config.yaml in block style, to be broken."""
    folder = tmp_path / "model"
    folder.mkdir()
    for file in BUILTIN.iterdir():
        if file.is_file():
            shutil.copyfile(file, folder / file.name)
    (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
    return folder


def network_of(folder: Path):
    """The network file of a model folder."""
    return next(p for n in ("model_quant.onnx", "model.onnx") if (p := folder / n).is_file())


def tokens_of(folder: Path):
    """The token list of a model folder."""
    return json.loads((folder / "tokens.json").read_text(encoding="utf-8"))


def network(*, dim=560, tokens=400, weight=0.0, rows=None, names=None, fixed=True):
    """A valid ONNX file of one matrix product: features (1, t, dim) -> scores (1, t, tokens).

    Written by hand, field by field, so that tests need no ONNX package.

    Args:
        dim: columns of features that the network declares.
        tokens: columns of scores.
        weight: value of every weight; NaN makes NaN scores.
        rows: rows of the weight matrix where they shall not fit ``dim``.
        names: names of the four inputs and the output.
        fixed: whether the file states the column counts, or leaves them free.
    """
    *inputs, output = names or ("speech", "speech_lengths", "language", "textnorm", "ctc_logits")
    weights = np.full((rows or dim, tokens), weight, "<f4")
    tensor = (
        _varint(1, weights.shape[0])
        + _varint(1, weights.shape[1])
        + _varint(2, 1)
        + _bytes(8, b"w")
        + _bytes(9, weights.tobytes())
    )
    node = _bytes(1, inputs[0]) + _bytes(1, "w") + _bytes(2, output) + _bytes(4, "MatMul")
    graph = (
        _bytes(1, node)
        + _bytes(2, "g")
        + _bytes(5, tensor)
        + _bytes(11, _value(inputs[0], 1, (1, "t", dim if fixed else "d")))
        + b"".join(_bytes(11, _value(name, 6, (1,))) for name in inputs[1:])
        + _bytes(12, _value(output, 1, (1, "t", tokens if fixed else "v")))
    )
    opset = _bytes(1, "") + _varint(2, 13)
    return _varint(1, 8) + _bytes(7, graph) + _bytes(8, opset)


def _value(name, kind, shape):
    sizes = [_varint(1, s) if isinstance(s, int) else _bytes(2, s) for s in shape]
    dims = b"".join(_bytes(1, size) for size in sizes)
    return _bytes(1, name) + _bytes(2, _bytes(1, _varint(1, kind) + _bytes(2, dims)))


def _number(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _varint(field, value):
    return _number(field << 3) + _number(value)


def _bytes(field, data):
    data = data.encode() if isinstance(data, str) else data
    return _number(field << 3 | 2) + _number(len(data)) + data


def schema_validator(name="transcript"):
    """A validator of `asr transcribe --json` lines against a schema in docs/."""
    import jsonschema
    from referencing import Registry, Resource

    docs = Path(__file__).resolve().parents[1] / "docs"
    schemas = {
        name: json.loads((docs / f"{name}.schema.json").read_text(encoding="utf-8"))
        for name in ("transcript", "channels", "timings")
    }
    registry = Registry().with_resources(
        (schema["$id"], Resource.from_contents(schema)) for schema in schemas.values()
    )
    return jsonschema.Draft202012Validator(schemas[name], registry=registry)


def prepared_passes():
    """What is done to unsigned byte weights on this CPU."""
    info = _rust_fe.build_info()
    signed = ("signed_weights",) if "vnni" in info["byte_features"] else ()
    ours = ("byte_matmul",) if "asr.ByteMatMul" in info["operators"] else ()
    return signed + ours
