"""The exported model's folder in FunASR's layout: written by export.py, heard by evaluate.py.

`model.onnx` (fp32), `model_quant.onnx` (int8), `am.mvn`, `config.yaml`, `bpe.model`,
`tokens.json`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnxruntime

from features import MEL_BINS, ROW_WIDTH, STACK, STRIDE, Normaliser, log_mel, model_input
from network import LANGUAGE_PROMPTS, PROMPT_ROWS, TEXTNORM_PROMPTS, NetworkConfig
from pieces import Pieces

INT8_FILE, FP32_FILE = "model_quant.onnx", "model.onnx"

_CONFIG = """\
encoder: SenseVoiceEncoderSmall
encoder_conf:
    output_size: {width}
    attention_heads: {heads}
    linear_units: {feed_forward}
    num_blocks: {blocks}
    tp_blocks: {top_blocks}
    dropout_rate: 0.0
    positional_dropout_rate: 0.0
    attention_dropout_rate: 0.0
    input_layer: pe
    pos_enc_class: SinusoidalPositionEncoder
    normalize_before: true
    kernel_size: {memory}
    sanm_shfit: 0
    selfattention_layer_type: sanm

model: SenseVoiceSmall
model_conf:
    length_normalized_loss: true
    sos: 1
    eos: 2
    ignore_id: -1

tokenizer: SentencepiecesTokenizer
tokenizer_conf:
  bpemodel: null
  unk_symbol: <unk>
  split_with_space: true

frontend: WavFrontend
frontend_conf:
    fs: 16000
    window: hamming
    n_mels: {mel_bins}
    frame_length: 25
    frame_shift: 10
    lfr_m: {stack}
    lfr_n: {stride}
    dither: 0.0
    cmvn_file: null
"""


def write_config(folder: Path, config: NetworkConfig) -> None:
    """config.yaml with the keys that FunASR's has."""
    text = _CONFIG.format(
        width=config.width,
        heads=config.heads,
        feed_forward=config.feed_forward,
        blocks=config.blocks,
        top_blocks=config.top_blocks,
        memory=config.memory,
        mel_bins=MEL_BINS,
        stack=STACK,
        stride=STRIDE,
    )
    (folder / "config.yaml").write_text(text, encoding="utf-8")


def write_cmvn(folder: Path, normaliser: Normaliser) -> None:
    """am.mvn: minus the mean and one over the deviation, each 80 values repeated seven times."""

    def line(values: np.ndarray) -> str:
        numbers = " ".join(f"{value:.7g}" for value in np.tile(values, STACK))
        return f"<LearnRateCoef> 0 [ {numbers} ]"

    size = f"{ROW_WIDTH} {ROW_WIDTH}"
    lines = [
        "<Nnet>",
        f"<Splice> {size}",
        "[ 0 ]",
        f"<AddShift> {size}",
        line(-normaliser.mean),
        f"<Rescale> {size}",
        line(normaliser.inverse_deviation),
        "</Nnet>",
    ]
    (folder / "am.mvn").write_text("\n".join(lines) + "\n", encoding="utf-8")


def read_cmvn(folder: Path) -> Normaliser:
    """The first 80 values of both blocks of am.mvn."""
    text = (folder / "am.mvn").read_text(encoding="utf-8")
    blocks = {}
    for name in ("AddShift", "Rescale"):
        found = re.search(rf"<{name}>.*?\[(.*?)\]", text, re.DOTALL)
        if found is None:
            raise ValueError(f"{folder / 'am.mvn'}: no block <{name}>")
        blocks[name] = np.array(found[1].split(), dtype=np.float32)[:MEL_BINS]
    return Normaliser(-blocks["AddShift"], blocks["Rescale"])


def write_pieces(folder: Path, pieces: Pieces) -> None:
    """bpe.model, and tokens.json with the pieces in order of their ids."""
    (folder / "bpe.model").write_bytes(pieces.model)
    listing = json.dumps(pieces.all_pieces(), ensure_ascii=False)
    (folder / "tokens.json").write_text(listing, encoding="utf-8")


class ExportedModel:
    """A network file of a model folder, run by ONNX Runtime on the CPU.

    Attributes:
        pieces: the folder's vocabulary.
    """

    def __init__(self, folder: Path, file_name: str = INT8_FILE, threads: int = 1) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(
            folder / file_name, options, providers=["CPUExecutionProvider"]
        )
        self._normaliser = read_cmvn(folder)
        self.pieces = Pieces((folder / "bpe.model").read_bytes())

    def logits(self, waveform: np.ndarray) -> np.ndarray:
        """float32 (rows + 4, pieces) of float32 (samples,), 16 kHz; language auto, no ITN."""
        frames = log_mel(waveform)
        if len(frames) == 0:
            return np.zeros((PROMPT_ROWS, len(self.pieces)), np.float32)
        rows = model_input(frames, self._normaliser)
        feed = {
            "speech": rows[None],
            "speech_lengths": np.array([len(rows)], np.int32),
            "language": np.array([LANGUAGE_PROMPTS["auto"]], np.int32),
            "textnorm": np.array([TEXTNORM_PROMPTS["woitn"]], np.int32),
        }
        return self._session.run(["ctc_logits"], feed)[0][0]

    def text(self, logits: np.ndarray) -> str:
        """Greedy text of what `logits` returned."""
        best = logits[PROMPT_ROWS:].argmax(-1).tolist()
        return self.pieces.text_of_frames(best)
