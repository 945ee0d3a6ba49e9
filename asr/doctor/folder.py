"""What lies in a model folder: files and checksums, the recipe, the token table."""

import hashlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from asr.hub.manifest import MODELS
from asr.hub.store import digest
from asr.layouts import Layout

#: Files that the layouts know. Others are counted, not named: a name may say too much.
_NAMES = frozenset(
    {"model.onnx", "model.onnx.data", "model_quant.onnx", "model.int8.onnx", "am.mvn",
     "config.yaml", "configuration.json", "tokens.json", "tokens.txt", "rejection.json",
     "phrases.txt", "asr-model.json", "README.md"}
    | {file.path for m in MODELS.values() for d in m.distributions for file in d.files}
)  # fmt: skip
#: A tokenizer may have any name before these.
TOKENIZER = "*.bpe.model"
#: What SenseVoice's front end is, whatever the export; a model of another recipe hears nonsense.
SENSEVOICE: dict[str, object] = {
    "sample_rate_hz": 16000,
    "sample_scale": 32768.0,
    "frame_length_ms": 25.0,
    "frame_shift_ms": 10.0,
    "window": "hamming",
    "num_mel_bins": 80,
    "low_freq_hz": 20.0,
    "preemphasis": 0.97,
    "lfr_m": 7,
    "lfr_n": 6,
}


@dataclass(frozen=True, slots=True)
class FileFact:
    """A file of the folder.

    Attributes:
        name: as the layouts know it; ``TOKENIZER`` for one of any other name.
        bytes: its size.
        sha256: of its content.
        published_as: the models of ``asr models list`` that have this very file.
        damaged: of a published file it has name and size, but not the content.
    """

    name: str
    bytes: int
    sha256: str
    published_as: tuple[str, ...]
    damaged: bool


def files(folder: Path) -> tuple[list[FileFact], int]:
    """Hash the files of a model folder.

    Returns:
        Those that the layouts know, by name, and how many others there are.

    Raises:
        SystemAccessError: one cannot be read.
    """
    paths = sorted(p for p in folder.iterdir() if p.is_file())
    found = [_fact(name, path) for path in paths if (name := public_name(path.name))]
    return found, len(paths) - len(found)


def public_name(name: str) -> str | None:
    """What a file of a model folder is called in a report; None if only its owner knows it."""
    if name in _NAMES:
        return name
    return TOKENIZER if name.endswith(TOKENIZER[1:]) else None


def _fact(name: str, path: Path) -> FileFact:
    sha256, size = digest(path), path.stat().st_size
    published = [
        (f"{model.name} ({distribution.layout})", file)
        for model in MODELS.values()
        for distribution in model.distributions
        for file in distribution.files
    ]
    same = tuple(of for of, file in published if file.sha256 == sha256)
    twin = any((file.path, file.size) == (name, size) and file.sha256 for _, file in published)
    return FileFact(name, size, sha256, same, twin and not same)


def recipe(layout: Layout) -> dict[str, Any]:
    """The front end's values; of CMVN its size and a checksum of its float32 values."""
    config = layout.front_end
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    vectors = [np.ascontiguousarray(values.pop(name)) for name in ("neg_mean", "inv_stddev")]
    content = b"".join(vector.tobytes() for vector in vectors)
    cmvn = {"values": len(vectors[0]), "sha256": hashlib.sha256(content).hexdigest()}
    return {**values, "cmvn": cmvn}


def odd_recipe(layout: Layout) -> list[str]:
    """What of the recipe is not SenseVoice's, one sentence each."""
    config = layout.front_end
    odd = [
        f"{name} is {found}, SenseVoice has {expected}"
        for name, expected in SENSEVOICE.items()
        if (found := getattr(config, name)) != expected
    ]
    if not (np.isfinite(config.neg_mean).all() and (config.inv_stddev > 0).all()):
        odd.append("CMVN has shifts that are not finite or scales that are not positive")
    return odd


def tokens(layout: Layout) -> dict[str, Any]:
    """What the token table holds, and what is wrong with it."""
    vocabulary = layout.vocabulary
    pieces = list(vocabulary.pieces)
    tags = [t for i in range(len(pieces)) if (t := vocabulary.tag(i)) is not None]
    return {
        "pieces": len(pieces),
        "sha256": hashlib.sha256("\n".join(pieces).encode("utf-8", "surrogatepass")).hexdigest(),
        "blank_id": layout.blank_id,
        "blank_piece": pieces[layout.blank_id],
        "languages": list(layout.language_ids),
        "tags": len(tags),
        "byte_pieces": sum(vocabulary.byte(i) is not None for i in range(len(pieces))),
        "repeated_pieces": len(pieces) - len(set(pieces)),
        "agrees_with_tokenizer": _agrees(layout.folder, pieces),
    }


def odd_tokens(found: dict[str, Any], layout: Layout) -> list[str]:
    """What of the token table is not as it should be, one sentence each."""
    odd = []
    if found["repeated_pieces"]:
        odd.append(f"{found['repeated_pieces']} pieces stand in the token table more than once")
    if found["agrees_with_tokenizer"] is False:
        odd.append("the token table and the tokenizer (*.bpe.model) have different pieces")
    if layout.vocabulary.surface(layout.blank_id).strip("<>") not in ("unk", "blank", "blk"):
        odd.append(f"the blank is the piece {found['blank_piece']!r}, expected <unk> or <blank>")
    missing = [
        t for t in ("nospeech", "Speech", "withitn", "woitn") if not layout.vocabulary.has_tag(t)
    ]
    if missing:
        odd.append(f"no piece for the tags {', '.join(missing)}")
    return odd


def _agrees(folder: Path, pieces: list[str]) -> bool | None:
    """Whether a SentencePiece model beside the table has the same pieces; None without one."""
    models = sorted(folder.glob("*.bpe.model"))
    if not models:
        return None
    from sentencepiece import SentencePieceProcessor

    try:
        tokenizer = SentencePieceProcessor(model_file=str(models[0]))
    except (OSError, RuntimeError):
        return False
    size = tokenizer.get_piece_size()
    return size == len(pieces) and [tokenizer.id_to_piece(i) for i in range(size)] == pieces
