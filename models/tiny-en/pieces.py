"""SentencePiece vocabularies: 400 pieces for the output, 110 small ones for the middle head.

As a program: trains both from the training texts of the caches in --work.
"""

from __future__ import annotations

import argparse
import io
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from cache import FeatureCache

TAGS = (
    "<|zh|> <|en|> <|nospeech|> <|EMO_UNKNOWN|> <|NEUTRAL|> <|Speech|> <|Event_UNK|> "
    "<|withitn|> <|woitn|>"
).split()
BLANK = 0
VOCABULARY, SMALL_VOCABULARY = 400, 110
_LETTERS = "abcdefghijklmnopqrstuvwxyz'"


def train_pieces(texts: Iterable[str], size: int, tags: list[str]) -> bytes:
    """A serialised byte-pair model, `<unk>` (the blank) at 0; equal texts give an equal model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=size,
        model_type="bpe",
        character_coverage=1.0,
        unk_id=BLANK,
        bos_id=1,
        eos_id=2,
        pad_id=-1,
        user_defined_symbols=tags,
        required_chars=_LETTERS,
        normalization_rule_name="identity",
        minloglevel=2,
    )
    return model.getvalue()


def balanced_texts(caches: list[FeatureCache]) -> list[str]:
    """Training texts; a word said a thousand times counts a few times, a sentence up to three."""
    counts = Counter(c.text for cache in caches for c in cache.clips if c.split == "train")
    texts = []
    for text, count in sorted(counts.items()):
        texts += [text] * min(count, 3 if " " in text else 12)
    return texts


class Pieces:
    """One vocabulary: text to ids and back."""

    def __init__(self, model: bytes) -> None:
        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.tag_ids = {tag: self._processor.piece_to_id(tag) for tag in TAGS}
        self._tag_values = set(self.tag_ids.values())

    def __len__(self) -> int:
        return self._processor.get_piece_size()

    def encode(self, text: str) -> list[int]:
        """Ids of lower-case text."""
        return self._processor.encode(text)

    def text_of_frames(self, best: list[int]) -> str:
        """Greedy CTC: collapse equal neighbours, drop blanks and tags, join the pieces.

        Args:
            best: the best id of every row after the prompt rows.
        """
        ids, previous = [], BLANK
        for value in best:
            if value not in (previous, BLANK) and value not in self._tag_values:
                ids.append(int(value))
            previous = value
        return self._processor.decode(ids).strip()

    def all_pieces(self) -> list[str]:
        """Every piece in order of its id."""
        return [self._processor.id_to_piece(index) for index in range(len(self))]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--work", type=Path, required=True, help="folder with cache/; the models go beside it"
    )
    options = parser.parse_args()
    texts = balanced_texts(
        [FeatureCache(options.work / "cache" / stem) for stem in ("speech", "tts")]
    )
    for name, size, tags in (("bpe", VOCABULARY, TAGS), ("bpe_small", SMALL_VOCABULARY, [])):
        model = train_pieces(texts, size, tags)
        (options.work / f"{name}.model").write_bytes(model)
        print(name, len(Pieces(model)), "pieces from", len(texts), "texts")


if __name__ == "__main__":
    main()
