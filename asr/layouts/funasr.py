"""The directory FunASR writes for SenseVoiceSmall: config.yaml, am.mvn, model*.onnx, tokens."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from asr import rejection
from asr.errors import LayoutError
from asr.frontend import FrontEndConfig
from asr.layouts.base import Layout
from asr.layouts.files import first_file, read_text
from asr.records import Float32
from asr.text import Vocabulary

# FunASR sense_voice/model.py: rows of the 16-row prompt embedding.
LANGUAGE_IDS = {"auto": 0, "zh": 3, "en": 4, "yue": 7, "ja": 11, "ko": 12, "nospeech": 13}
ITN_IDS = {True: 14, False: 15}
PROMPT_FRAMES = 4  # language, emotion, event, ITN
BLANK_ID = 0

_LARGEST = 1_000_000  # no rate, length or count of a recipe is larger

_NEEDS = (
    "the FunASR layout needs config.yaml, am.mvn, tokens.json or *.bpe.model, and "
    "model_quant.onnx or model.onnx"
)

NETWORKS = ("model_quant.onnx", "model.onnx")


def matches(folder: Path) -> bool:
    """Whether the directory looks like this layout, complete or not."""
    return (folder / "config.yaml").is_file() or (folder / "am.mvn").is_file()


def open_layout(folder: Path) -> Layout:
    """Understand the directory.

    Args:
        folder: holds ``model_quant.onnx`` (preferred) or ``model.onnx``, ``config.yaml``,
            ``am.mvn`` and ``tokens.json`` or ``*.bpe.model``; maybe ``rejection.json``.

    Raises:
        LayoutError: a file is missing, damaged, or says something that cannot be.
        SystemAccessError: a file cannot be read.
    """
    network = first_file(folder, NETWORKS)
    vocabulary = _vocabulary(folder)
    languages = {
        name: row
        for name, row in LANGUAGE_IDS.items()
        if name == "auto" or vocabulary.has_tag(name)
    }
    return Layout(
        kind="funasr",
        folder=folder,
        network=network,
        recipe_file=folder / "config.yaml",
        front_end=_recipe(folder),
        vocabulary=vocabulary,
        blank_id=BLANK_ID,
        prompt_frames=PROMPT_FRAMES,
        language_ids=languages,
        itn_ids=ITN_IDS,
        rejection=rejection.read(folder),
    )


def _text(path: Path) -> str:
    return read_text(path, needs=_NEEDS)


def _recipe(folder: Path) -> FrontEndConfig:
    """The front end of config.yaml, with the CMVN of am.mvn."""
    path = folder / "config.yaml"
    config = _parse_yaml(_text(path), path)
    if not isinstance(config, dict):
        raise LayoutError(f"{path}: expected keys and values, found {type(config).__name__}")
    model = config.get("model", "SenseVoiceSmall")
    if model != "SenseVoiceSmall":
        raise LayoutError(f"{path}: expected model SenseVoiceSmall, found {model}")
    conf = config.get("frontend_conf")
    if not isinstance(conf, dict):
        raise LayoutError(f"{path}: expected frontend_conf, found none")
    n_mels, lfr_m = _number(conf, "n_mels", path), _number(conf, "lfr_m", path)
    neg_mean, inv_stddev = read_cmvn(folder / "am.mvn", expected=n_mels * lfr_m)
    rate = _number(conf, "fs", path)
    return FrontEndConfig(
        sample_rate_hz=rate,
        sample_scale=32768.0,
        frame_length_ms=_number(conf, "frame_length", path),
        frame_shift_ms=_number(conf, "frame_shift", path),
        window=str(conf.get("window")),
        num_mel_bins=n_mels,
        low_freq_hz=20.0,
        high_freq_hz=rate / 2,
        preemphasis=0.97,
        lfr_m=lfr_m,
        lfr_n=_number(conf, "lfr_n", path),
        neg_mean=neg_mean,
        inv_stddev=inv_stddev,
    )


def _parse_yaml(content: str, path: Path) -> object:
    """Parse YAML. Its JSON subset goes to json, which spares a tenth of a cold start."""
    if content.startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(content)
    import yaml

    # The C loader is 8x faster; not every platform has it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(content, Loader=loader)  # noqa: S506 - both are safe
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        problem = getattr(error, "problem", None) or "not YAML"
        raise LayoutError(f"{path}: line {line}: expected YAML: {problem}") from None


def _number(conf: Mapping[str, Any], key: str, path: Path) -> int:
    value = conf.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _LARGEST:
        raise LayoutError(
            f"{path}: frontend_conf.{key}: expected a positive whole number, "
            f"found {repr(value)[:40]}"
        )
    return value


def read_cmvn(path: Path, *, expected: int) -> tuple[Float32, Float32]:
    """Read the shift and scale of a Kaldi ``am.mvn``.

    Args:
        path: the file. It has three bracketed blocks; the first, under ``<Splice>``, is neither.
        expected: values per block.

    Returns:
        neg_mean and inv_stddev, float32 (expected,): features become (x + neg_mean) * inv_stddev.

    Raises:
        LayoutError: a section is missing, its count is wrong, or a value is no finite number.

    Source: FunASR ``wav_frontend.py`` ``load_cmvn``. Deliberate difference: blocks are found by
    section name, so empty lines and other sections do no harm.
    """
    words = _text(path).split()
    blocks = {name: _block(words, name, expected, path) for name in ("<AddShift>", "<Rescale>")}
    return blocks["<AddShift>"], blocks["<Rescale>"]


def _block(words: list[str], name: str, expected: int, path: Path) -> Float32:
    section = words.index(name) + 1 if name in words else len(words)
    # The bracket must be this section's own: "560 560 <LearnRateCoef> 0" and no more before it.
    start = words.index("[", section) if "[" in words[section : section + 5] else len(words)
    if "]" not in words[start:]:
        raise LayoutError(f"{path}: expected a section {name} [ values ], found none")
    end = words.index("]", start)
    try:
        with np.errstate(over="ignore"):
            values = np.array(words[start + 1 : end], dtype=np.float64).astype(np.float32)
    except ValueError:
        raise LayoutError(f"{path}: section {name}: expected numbers, found text") from None
    if len(values) != expected or not np.isfinite(values).all():
        raise LayoutError(
            f"{path}: section {name}: expected {expected} finite values (lfr_m x n_mels), "
            f"found {len(values)}; the file is truncated or belongs to another model"
        )
    return values


def _vocabulary(folder: Path) -> Vocabulary:
    """The pieces by id: tokens.json first, since it loads without SentencePiece."""
    path = folder / "tokens.json"
    if path.is_file():
        try:
            pieces = json.loads(_text(path))
        except json.JSONDecodeError as error:
            raise LayoutError(
                f"{path}: line {error.lineno}: expected JSON, {error.msg}; download it again"
            ) from None
        except RecursionError:
            raise LayoutError(f"{path}: expected a list of pieces, found deep nesting") from None
        if not isinstance(pieces, list) or not all(isinstance(p, str) for p in pieces):
            raise LayoutError(f"{path}: expected a list of pieces, found something else")
        return Vocabulary(pieces)
    models = sorted(folder.glob("*.bpe.model"))
    if len(models) != 1:
        found = ", ".join(p.name for p in models) or "none"
        raise LayoutError(f"{folder}: expected tokens.json or one *.bpe.model, found {found}")
    return Vocabulary(_pieces(models[0]))


def _pieces(path: Path) -> list[str]:
    import sentencepiece

    try:
        model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    except (RuntimeError, OSError) as error:
        detail = str(error).strip().splitlines()[-1]
        raise LayoutError(
            f"{path}: expected a SentencePiece model, found {path.stat().st_size} bytes that are "
            f"none ({detail}); download the file again"
        ) from None
    pieces: list[str] = model.id_to_piece(list(range(model.vocab_size())))
    return pieces
