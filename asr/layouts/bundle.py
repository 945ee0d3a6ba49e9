"""The folder that ``asr deploy bundle`` writes for a board: docs/bundle.md.

Python reads it too, so that one folder can be heard by either and only the host differs.
"""

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from asr.errors import LayoutError
from asr.frontend import FrontEndConfig
from asr.layouts.base import Layout
from asr.layouts.files import read_bytes, read_text
from asr.rejection import Thresholds
from asr.text import Vocabulary

SCHEMA_ID = "asr-bundle/1"
DESCRIPTION = "bundle.json"
NETWORK, CMVN, TOKENS, PHRASES = "model.onnx", "cmvn.f32", "tokens.bin", "phrases.json"
#: What a token is: the first byte of its entry in ``tokens.bin``.
TEXT, TAG, BYTE, NOTHING = range(4)

_NEEDS = "asr deploy bundle MODEL -o DIR makes a bundle anew"


def matches(folder: Path) -> bool:
    """Whether the directory looks like this layout, complete or not."""
    return (folder / DESCRIPTION).is_file()


def open_layout(folder: Path) -> Layout:
    """Understand the directory.

    Raises:
        LayoutError: a file is missing or damaged, the schema is another one, or the network was
            prepared for one CPU.
        SystemAccessError: a file cannot be read.
    """
    path = folder / DESCRIPTION
    try:
        return _layout(folder, json.loads(read_text(path, needs=_NEEDS)))
    except LayoutError:
        raise
    except (ValueError, KeyError, TypeError, struct.error) as error:
        raise LayoutError(
            f"{path}: expected a bundle, found {type(error).__name__}: {error}; {_NEEDS}"
        ) from None


def _layout(folder: Path, found: dict[str, Any]) -> Layout:
    path = folder / DESCRIPTION
    if found["schema"] != SCHEMA_ID:
        raise LayoutError(f"{path}: expected schema {SCHEMA_ID}, found {found['schema']!r}")
    if found["prepared"] is not None:
        raise LayoutError(
            f"{path}: expected a bundle as asr deploy made it, found one prepared for one CPU"
        )
    recipe, rejection = found["recipe"], found["rejection"]
    dim = recipe["lfr_m"] * recipe["num_mel_bins"]
    cmvn = np.frombuffer(read_bytes(folder / CMVN, needs=_NEEDS), "<f4").reshape(2, dim)
    return Layout(
        kind="bundle",
        folder=folder,
        network=folder / NETWORK,
        recipe_file=path,
        front_end=FrontEndConfig(**recipe, neg_mean=cmvn[0], inv_stddev=cmvn[1]),
        vocabulary=Vocabulary(unpack_tokens(read_bytes(folder / TOKENS, needs=_NEEDS))),
        blank_id=found["blank_id"],
        prompt_frames=found["prompt_frames"],
        language_ids=found["language_ids"],
        itn_ids={True: found["itn_ids"]["with"], False: found["itn_ids"]["without"]},
        rejection=Thresholds(**rejection) if rejection else None,
    )


def pack_tokens(vocabulary: Vocabulary) -> bytes:
    """Each token: a byte for its kind, two for the length (little endian), the bytes.

    Text is UTF-8 with ``▁`` before a word; of a tag only its name; a byte piece is that byte.
    """
    entries = []
    for token_id, piece in enumerate(vocabulary.pieces):
        tag, value = vocabulary.tag(token_id), vocabulary.byte(token_id)
        surface = vocabulary.surface(token_id)
        if tag is not None:
            kind, data = TAG, tag.encode("utf-8", "surrogatepass")
        elif value is not None:
            kind, data = BYTE, bytes([value])
        elif surface:
            kind, data = TEXT, surface.encode("utf-8", "surrogatepass")
        else:
            kind, data = NOTHING, piece.encode("utf-8", "surrogatepass")
        entries.append(struct.pack("<BH", kind, len(data)) + data)
    return b"".join(entries)


def unpack_tokens(table: bytes) -> list[str]:
    """The pieces that ``pack_tokens`` was given.

    Raises:
        ValueError: the table is none.
    """
    pieces: list[str] = []
    at = 0
    while at < len(table):
        kind, length = struct.unpack_from("<BH", table, at)
        data = table[at + 3 : at + 3 + length]
        if kind > NOTHING or len(data) != length:
            raise ValueError(f"{TOKENS}: token {len(pieces)} is none")
        if kind == BYTE:
            pieces.append(f"<0x{data[0]:02X}>")
        else:
            text = data.decode("utf-8", "surrogatepass")
            pieces.append(f"<|{text}|>" if kind == TAG else text)
        at += 3 + length
    return pieces
