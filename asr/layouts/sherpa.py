"""The directory of a sherpa-onnx SenseVoice model: model*.onnx with its facts inside, tokens.txt.

The facts and the CMVN travel in the ONNX file's metadata. It stands behind the weights, so the
reader below seeks past them: a file of 230 MB costs a few short reads here, and the engine later
reads it once. Nothing is run, and no ONNX package is needed.

Deliberate difference: sherpa-onnx before its pull request 3839 dropped up to five frames at the
edges when it stacked frames. We always stack as FunASR does (``asr.frontend.FrontEnd.lfr``), so
that both layouts of the same weights give the same text.
"""

import io
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np

from asr import rejection
from asr.engines.ort import read_model
from asr.errors import LayoutError, SystemAccessError
from asr.frontend import FrontEndConfig
from asr.layouts.base import Layout
from asr.layouts.files import first_file, read_text
from asr.records import Float32
from asr.text import WORD_MARKER, Vocabulary

NETWORKS = ("model.int8.onnx", "model.onnx")
TOKENS = "tokens.txt"
MODEL_TYPE = "sense_voice_ctc"
PROMPT_FRAMES = 4  # language, emotion, event, ITN

# sherpa-onnx offline-recognizer-sense-voice-impl.h, InitFeatConfig: not in the metadata.
SAMPLE_RATE_HZ = 16000
FRAME_LENGTH_MS = 25
FRAME_SHIFT_MS = 10
SAMPLE_SCALES = {0: 32768.0, 1: 1.0}  # by the fact normalize_samples

MAX_NUMBER = 1_000_000  # above any vocabulary; a damaged fact must not make us allocate for it

_LINE = re.compile(r"(?:(.*)[ \t])?([0-9]{1,9})[ \t\r]*\Z", re.DOTALL)
_METADATA_PROPS = 14  # field of ModelProto
_KEY, _VALUE = 1, 2  # fields of StringStringEntryProto


def matches(folder: Path) -> bool:
    """Whether the directory looks like this layout, complete or not."""
    return (folder / TOKENS).is_file() or (folder / NETWORKS[0]).is_file()


def open_layout(folder: Path) -> Layout:
    """Understand the directory.

    Args:
        folder: holds ``model.int8.onnx`` (preferred) or ``model.onnx``, and ``tokens.txt``.

    Raises:
        LayoutError: a file or a fact is missing, damaged, or says something that cannot be.
        SystemAccessError: a file cannot be read.
    """
    network = first_file(folder, NETWORKS)
    facts = _Facts(read_metadata(network), network)
    facts.check_kind()
    pieces = read_tokens(folder / TOKENS, expected=facts.number("vocab_size", least=1))
    blank_id = facts.number("blank_id", default=0, below=len(pieces))
    return Layout(
        kind="sherpa-onnx",
        folder=folder,
        network=network,
        recipe_file=network,
        front_end=_recipe(facts),
        vocabulary=Vocabulary(pieces, blank_id=blank_id),
        blank_id=blank_id,
        prompt_frames=PROMPT_FRAMES,
        language_ids=facts.languages(),
        itn_ids={True: facts.number("with_itn"), False: facts.number("without_itn")},
        rejection=rejection.read(folder),
    )


# ------------------------------------------------------------------ the facts in the metadata


class _Facts:
    """Metadata with a sentence for everything that can be wrong in it.

    Args:
        values: as in the file.
        network: the file, for messages.
    """

    def __init__(self, values: Mapping[str, str], network: Path) -> None:
        self._values = values
        self._network = network

    def check_kind(self) -> None:
        """Refuse networks of other kinds before the first missing fact does."""
        kind = self._values.get("model_type", MODEL_TYPE)
        if kind != MODEL_TYPE:
            self.refuse(f"expected model_type {MODEL_TYPE} (SenseVoice), found {kind[:40]}")
        if "Nano" in self._values.get("comment", ""):
            self.refuse("expected SenseVoice, found Fun-ASR-Nano, which has another prompt")
        if "vocab_size" not in self._values:
            found = ", ".join(sorted(self._values)[:8]) or "none"
            self.refuse(
                f"expected sherpa-onnx's facts (vocab_size, neg_mean ...), found {found}; an "
                "export of FunASR needs config.yaml, am.mvn and tokens.json beside it instead"
            )

    def number(
        self, key: str, *, default: int | None = None, least: int = 0, below: int = MAX_NUMBER
    ) -> int:
        """A whole number, ``least`` or more and less than ``below``."""
        if key not in self._values and default is not None:
            return default
        value = self._text(key)
        if not re.fullmatch(r"[0-9]{1,9}", value) or not least <= int(value) < below:
            self.refuse(
                f"{key}: expected a whole number from {least} to {below - 1}, found {value[:40]!r}"
            )
        return int(value)

    def vector(self, key: str) -> Float32:
        """Finite numbers, separated by commas."""
        words = self._text(key).split(",")
        try:
            with np.errstate(over="ignore"):
                values = np.array(words, np.float64).astype(np.float32)
        except ValueError:
            self.refuse(f"{key}: expected numbers separated by commas, found text")
        if not np.isfinite(values).all():
            self.refuse(f"{key}: expected finite numbers, found NaN or infinity")
        return values

    def languages(self) -> dict[str, int]:
        """Language -> row of the prompt embedding, from every ``lang_...``."""
        self.number("lang_auto")
        return {k.removeprefix("lang_"): self.number(k) for k in self._values if k[:5] == "lang_"}

    def refuse(self, problem: str) -> NoReturn:
        """Raise a LayoutError about this file's metadata, on one line whatever the file holds."""
        raise LayoutError(f"{self._network}: ONNX metadata: {' '.join(problem.split())}")

    def _text(self, key: str) -> str:
        if key not in self._values:
            self.refuse(
                f"expected {key}, found none; export the model again with sherpa-onnx's script"
            )
        return self._values[key]


def _recipe(facts: _Facts) -> FrontEndConfig:
    """The front end, with the CMVN of the metadata: (x + neg_mean) * inv_stddev."""
    lfr_m = facts.number("lfr_window_size", least=1)
    neg_mean, inv_stddev = facts.vector("neg_mean"), facts.vector("inv_stddev")
    if len(neg_mean) != len(inv_stddev) or len(neg_mean) % lfr_m:
        facts.refuse(
            f"expected neg_mean and inv_stddev of lfr_window_size ({lfr_m}) x mel bins, "
            f"found {len(neg_mean)} and {len(inv_stddev)} values"
        )
    normalize = facts.number("normalize_samples")
    if normalize not in SAMPLE_SCALES:
        facts.refuse(f"normalize_samples: expected 0 or 1, found {normalize}")
    return FrontEndConfig(
        sample_rate_hz=SAMPLE_RATE_HZ,
        sample_scale=SAMPLE_SCALES[normalize],
        frame_length_ms=FRAME_LENGTH_MS,
        frame_shift_ms=FRAME_SHIFT_MS,
        window="hamming",
        num_mel_bins=len(neg_mean) // lfr_m,
        low_freq_hz=20.0,
        high_freq_hz=SAMPLE_RATE_HZ / 2,
        preemphasis=0.97,
        lfr_m=lfr_m,
        lfr_n=facts.number("lfr_window_shift", least=1),
        neg_mean=neg_mean,
        inv_stddev=inv_stddev,
    )


# ------------------------------------------------------------------ tokens.txt


def read_tokens(path: Path, *, expected: int) -> list[str]:
    """Read the pieces of a ``tokens.txt``, one ``piece id`` per line, in any order.

    Args:
        path: the file.
        expected: number of ids, ``vocab_size`` of the network.

    Returns:
        the pieces by id, in SentencePiece's spelling.

    Raises:
        LayoutError: a line is no piece and id, or an id is missing, doubled, or too large.
        SystemAccessError: the file cannot be read.

    Source: sherpa-onnx ``symbol-table.cc``. Only ASCII blanks and line feeds separate, since a
    piece may be any other kind of space. A leading blank is a word marker, and so is an empty
    piece: editors and some exports write them for ``▁``. Deliberate difference: sherpa-onnx turns
    only a leading ``▁`` into a space, SentencePiece and we every one.
    """
    pieces: list[str | None] = [None] * expected
    needs = f"the sherpa-onnx layout needs {TOKENS} and {' or '.join(NETWORKS)}"
    lines = read_text(path, needs=needs, encoding="utf-8-sig").split("\n")
    for number, line in enumerate(lines, start=1):
        piece, _, digits = line.rpartition(" ")
        plain = piece and digits.isdecimal() and len(digits) < 10 and piece[0] != " "
        if not plain:
            if not line.strip(" \t\r"):
                continue
            match = _LINE.match(line)
            if match is None:
                raise LayoutError(f"{path}: line {number}: {_bad_line(line)}")
            piece, digits = match[1] or " ", match[2]
            piece = WORD_MARKER + piece[1:] if piece[0] == " " else piece
        token_id = int(digits)
        if token_id >= expected:
            raise LayoutError(
                f"{path}: line {number}: expected ids below {expected} (vocab_size of the "
                f"network), found {token_id}; the files come from different models"
            )
        if pieces[token_id] is not None:
            raise LayoutError(
                f"{path}: line {number}: expected each id once, found {token_id} again"
                + (_VOCAB_HINT if "\t" in line else "")
            )
        pieces[token_id] = piece
    complete = [piece for piece in pieces if piece is not None]
    if len(complete) != expected:
        raise LayoutError(
            f"{path}: expected {expected} pieces (vocab_size of the network), found "
            f"{len(complete)}; the first id without one is {pieces.index(None)}"
        )
    return complete


_VOCAB_HINT = "; this looks like a SentencePiece .vocab file, which has scores instead of ids"


def _bad_line(line: str) -> str:
    shown = line if len(line) <= 40 else line[:40] + "..."
    return f"expected a piece and its id, found {shown!r}" + (_VOCAB_HINT if "\t" in line else "")


# ------------------------------------------------------------------ metadata of an ONNX file


def read_metadata(path: Path) -> dict[str, str]:
    """Read the metadata of an ONNX file and nothing else of it.

    Args:
        path: an ``.onnx`` file: protobuf fields one after another, of which the graph with all
            weights is one and each pair of key and value another.

    Raises:
        LayoutError: no ONNX file, or a truncated or damaged one.
        SystemAccessError: the file cannot be read.

    Source: ``onnx.proto``, messages ModelProto and StringStringEntryProto.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            begins_well = file.read(1) == b"\x08"
            file.seek(0)
            if begins_well:
                return dict(_pair(entry) for entry in _messages(file, size, _METADATA_PROPS))
    except _DamagedError as error:
        raise LayoutError(
            f"{path}: expected an ONNX network, found {size} bytes that {error}; "
            "download the file again"
        ) from None
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the network: {error.strerror}") from None
    read_model(path)  # says what the file is instead: a Git LFS pointer, a web page ...
    raise LayoutError(f"{path}: expected an ONNX network, found another file")


class _DamagedError(Exception):
    """The bytes are no protobuf; says so in half a sentence."""


def _pair(entry: bytes) -> tuple[str, str]:
    """Key and value of one entry."""
    key, value = (
        b"".join(_messages(io.BytesIO(entry), len(entry), field)) for field in (_KEY, _VALUE)
    )
    return key.decode("utf-8", "replace"), value.decode("utf-8", "replace")


def _messages(file: BinaryIO, size: int, wanted: int) -> Iterator[bytes]:
    """The content of each field ``wanted``; every other field is skipped unread."""
    while (start := file.tell()) < size:
        number, kind = divmod(_varint(file), 8)
        if number == 0 or kind not in (0, 1, 2, 5):
            raise _DamagedError(f"are damaged at byte {start}")
        if kind == 0:
            _varint(file)
            continue
        length = _varint(file) if kind == 2 else {1: 8, 5: 4}[kind]
        if length > size - file.tell():
            raise _DamagedError(f"end before the {length} bytes announced at byte {start}")
        if (number, kind) == (wanted, 2):
            yield file.read(length)
        else:
            file.seek(length, os.SEEK_CUR)


def _varint(file: BinaryIO) -> int:
    """A whole number: seven bits per byte, lowest first, the top bit says that more follow."""
    value = 0
    for shift in range(0, 70, 7):
        byte = file.read(1)
        if not byte:
            raise _DamagedError("end in the middle of a number")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise _DamagedError(f"are damaged at byte {file.tell()}")
