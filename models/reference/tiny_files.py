"""The files around the tiny network, all our own: configuration, CMVN and a SentencePiece model.

They have the shape of SenseVoice's (16 kHz, 80 mel bins, LFR 7/6, 560 columns, tags, several
scripts), and nothing in them comes from it, so they may be committed.
"""

import io
import json
import math
from pathlib import Path

import sentencepiece
import yaml

HERE = Path(__file__).parent
BPE_MODEL = "tiny.bpe.model"
VOCAB_SIZE = 128
TAGS = [
    *("zh", "en", "yue", "ja", "ko", "nospeech"),
    *("HAPPY", "SAD", "ANGRY", "NEUTRAL", "EMO_UNKNOWN"),
    *("Speech", "BGM", "Laughter", "Event_UNK"),
    *("withitn", "woitn"),
]

CONFIG = {
    "encoder": "SenseVoiceEncoderSmall",
    "encoder_conf": {
        "output_size": 8,
        "attention_heads": 2,
        "linear_units": 16,
        "num_blocks": 2,
        "tp_blocks": 1,
        "dropout_rate": 0.0,
        "positional_dropout_rate": 0.0,
        "attention_dropout_rate": 0.0,
        "input_layer": "pe",
        "pos_enc_class": "SinusoidalPositionEncoder",
        "normalize_before": True,
        "kernel_size": 11,
        "sanm_shfit": 0,  # the spelling is FunASR's
        "selfattention_layer_type": "sanm",
    },
    "model": "SenseVoiceSmall",
    "model_conf": {"length_normalized_loss": True, "sos": 1, "eos": 2, "ignore_id": -1},
    "tokenizer": "SentencepiecesTokenizer",
    "tokenizer_conf": {"bpemodel": None, "unk_symbol": "<unk>", "split_with_space": True},
    "frontend": "WavFrontend",
    "frontend_conf": {
        "fs": 16000,
        "window": "hamming",
        "n_mels": 80,
        "frame_length": 25,
        "frame_shift": 10,
        "lfr_m": 7,
        "lfr_n": 6,
        "cmvn_file": None,
    },
}


def write(folder: Path) -> None:
    """Write config.yaml, configuration.json, am.mvn and the SentencePiece model."""
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump(CONFIG, sort_keys=False)
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    paths = {
        "init_param": "model.pt",
        "config": "config.yaml",
        "tokenizer_conf": {"bpemodel": BPE_MODEL},
        "frontend_conf": {"cmvn_file": "am.mvn"},
    }
    text = json.dumps({"model": {"type": "funasr"}, "file_path_metas": paths}, indent=2)
    (folder / "configuration.json").write_text(text + "\n", encoding="utf-8")
    (folder / "am.mvn").write_text(_cmvn(), encoding="utf-8")
    (folder / BPE_MODEL).write_bytes(_bpe_model())


def _cmvn() -> str:
    """An am.mvn whose 80 shifts and 80 scales repeat seven times: a smooth curve over the bins."""
    bins = range(CONFIG["frontend_conf"]["n_mels"])
    shift = [round(-10.0 - 2.5 * math.sin(math.pi * k / 79), 4) for k in bins]
    scale = [round(0.3 + 0.05 * math.cos(math.pi * k / 79), 4) for k in bins]
    lines = ["<Nnet>", "<Splice> 560 560", "[ 0 ]"]
    for name, values in (("<AddShift>", shift), ("<Rescale>", scale)):
        numbers = " ".join(str(value) for value in values * 7)
        lines += [f"{name} 560 560", f"<LearnRateCoef> 0 [ {numbers} ]"]
    return "\n".join([*lines, "</Nnet>", ""])


def _bpe_model() -> bytes:
    """Train a SentencePiece model on tiny_text.txt; the same text gives the same bytes."""
    lines = (HERE / "tiny_text.txt").read_text(encoding="utf-8").splitlines()
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="bpe",
        vocab_size=VOCAB_SIZE,
        character_coverage=1.0,
        normalization_rule_name="identity",  # the other rules add a table of 240 kB
        user_defined_symbols=[f"<|{tag}|>" for tag in TAGS],
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()
