"""A folder with the files of a SenseVoice model, all but its weights."""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sentencepiece
import yaml


@dataclass(frozen=True)
class Source:
    """config.yaml, configuration.json, am.mvn and one SentencePiece model.

    Attributes:
        folder: where they are.
    """

    folder: Path

    @cached_property
    def config(self) -> dict[str, Any]:
        """The configuration. Dither, absent and therefore 1.0 in FunASR, is 0 for comparisons."""
        config = yaml.safe_load((self.folder / "config.yaml").read_text(encoding="utf-8"))
        config["frontend_conf"]["dither"] = 0.0
        return config

    @cached_property
    def bpe_model(self) -> Path:
        """The SentencePiece model."""
        found = sorted(self.folder.glob("*.bpe.model"))
        if len(found) != 1:
            names = ", ".join(p.name for p in found) or "none"
            raise SystemExit(f"{self.folder}: expected one *.bpe.model, found {names}")
        return found[0]

    @cached_property
    def pieces(self) -> list[str]:
        """The pieces by id."""
        model = sentencepiece.SentencePieceProcessor(model_file=str(self.bpe_model))
        return [model.id_to_piece(i) for i in range(model.vocab_size())]

    @cached_property
    def cmvn(self) -> tuple[list[str], list[str]]:
        """Shift and scale of am.mvn, by section, as they are spelled there."""
        text = (self.folder / "am.mvn").read_text(encoding="utf-8")
        blocks = [
            re.search(rf"<{name}>.*?\[(.*?)\]", text, re.DOTALL) for name in ("AddShift", "Rescale")
        ]
        shift, scale = (block[1].split() for block in blocks)
        return shift, scale

    def write_tokens_json(self, path: Path) -> None:
        """A JSON list of pieces, as in FunASR's ONNX folders."""
        path.write_text(json.dumps(self.pieces, ensure_ascii=False) + "\n", encoding="utf-8")

    def write_tokens_txt(self, path: Path) -> None:
        """A piece and its id per line, as sherpa-onnx's script writes it."""
        lines = (f"{piece} {number}\n" for number, piece in enumerate(self.pieces))
        path.write_text("".join(lines), encoding="utf-8")
