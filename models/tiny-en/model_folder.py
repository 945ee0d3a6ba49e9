"""A model folder in FunASR's layout, as it lies in the wheel: what goes beside the network.

`model_quant.onnx` (int8; `model.onnx` is fp32), `am.mvn`, `config.yaml`, `tiny-en.bpe.model`,
`tokens.json`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from features import MEL_BINS, ROW_WIDTH, STACK, STRIDE, Normaliser
from network import NetworkConfig
from pieces import Pieces

INT8_FILE, FP32_FILE = "model_quant.onnx", "model.onnx"
TOKENIZER_FILE = "tiny-en.bpe.model"


def write_config(folder: Path, config: NetworkConfig) -> None:
    """config.yaml with the keys that FunASR's has, as JSON: that is YAML, and read faster."""
    settings = {
        "encoder": "SenseVoiceEncoderSmall",
        "encoder_conf": {
            "output_size": config.width,
            "attention_heads": config.heads,
            "linear_units": config.feed_forward,
            "num_blocks": config.blocks,
            "tp_blocks": config.top_blocks,
            "input_layer": "pe",
            "pos_enc_class": "SinusoidalPositionEncoder",
            "normalize_before": True,
            "kernel_size": config.memory,
            "sanm_shfit": 0,
            "selfattention_layer_type": "sanm",
        },
        "model": "SenseVoiceSmall",
        "tokenizer": "SentencepiecesTokenizer",
        "tokenizer_conf": {
            "bpemodel": TOKENIZER_FILE,
            "unk_symbol": "<unk>",
            "split_with_space": True,
        },
        "frontend": "WavFrontend",
        "frontend_conf": {
            "fs": 16000,
            "window": "hamming",
            "n_mels": MEL_BINS,
            "frame_length": 25,
            "frame_shift": 10,
            "dither": 0.0,
            "lfr_m": STACK,
            "lfr_n": STRIDE,
            "cmvn_file": None,
        },
    }
    text = json.dumps(settings, indent=2)
    (folder / "config.yaml").write_text(text + "\n", encoding="utf-8")


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


def write_pieces(folder: Path, pieces: Pieces) -> None:
    """The SentencePiece model, and tokens.json with the pieces in order of their ids."""
    (folder / TOKENIZER_FILE).write_bytes(pieces.model)
    listing = json.dumps(pieces.all_pieces(), ensure_ascii=False)
    (folder / "tokens.json").write_text(listing, encoding="utf-8")
