"""Batches of fixed shapes: augmented, normalised, stacked rows with their targets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from augment import Augmenter, add_power, cut_tightly
from corpus import DIGITS
from features import LOG_FLOOR, Normaliser, model_input, stack_frames
from network import LANGUAGE_PROMPTS, TEXTNORM_PROMPTS
from pieces import Pieces
from rounds import FULL_STAGE, Source, TrainingSet

BUCKETS = (
    10,
    13,
    16,
    20,
    24,
    28,
    32,
    38,
    44,
    52,
    60,
    70,
    82,
    96,
    112,
    130,
    150,
    175,
    210,
    260,
    340,
)
"""Rows of a batch; few shapes, because each new one costs a kernel compilation."""
TIGHT_SHARE, TIGHT_DIGITS_SHARE = 0.3, 0.6
"""How often the words of an item, and single digits, are cut as hard as some recorders do."""
PADDED_SHARE, TIGHT_PADDED_SHARE = 0.6, 0.4
"""How often there is silence at an end of an item, and at an end of a word cut tightly."""


@dataclass(frozen=True)
class Batch:
    """Inputs and targets of one step.

    Attributes:
        rows: float32 (B, T, 560), zero behind the real rows.
        lengths: int64 (B,), real rows.
        languages: int64 (B,), prompt numbers.
        textnorms: int64 (B,), prompt numbers.
        tags: int64 (B, 4), the pieces that the prompt rows shall say.
        targets: pieces of every clip.
        small_targets: small pieces of every clip.
    """

    rows: np.ndarray
    lengths: np.ndarray
    languages: np.ndarray
    textnorms: np.ndarray
    tags: np.ndarray
    targets: list[list[int]]
    small_targets: list[list[int]]


@dataclass(frozen=True)
class _Example:
    rows: np.ndarray
    text: str
    language: str
    textnorm: str


class BatchMaker:
    """Turns the items of a round into batches, dropping what does not fill one."""

    def __init__(
        self,
        data: TrainingSet,
        pieces: Pieces,
        small_pieces: Pieces,
        normaliser: Normaliser,
        rows_per_batch: int,
    ) -> None:
        self._data = data
        self._pieces, self._small_pieces = pieces, small_pieces
        self._normaliser = normaliser
        self._rows_per_batch = rows_per_batch

    def batches_of_round(
        self, stage: str, strength: float, seed: tuple[int, int]
    ) -> Iterator[Batch]:
        """All full batches of one round.

        Args:
            stage: a stage of `rounds`.
            strength: of the augmentation, 0 .. 1.
            seed: training seed and number of the round.
        """
        rng = np.random.default_rng(seed)
        augmenter = Augmenter(self._data.random_noise, rng)
        augmenter.strength = strength
        waiting: dict[int, list[_Example]] = {}
        for item in self._data.plan(stage, rng):
            example = self._example(item, stage, augmenter, rng)
            shape = next((size for size in BUCKETS if size >= len(example.rows)), None)
            if shape is None:
                continue
            group = waiting.setdefault(shape, [])
            group.append(example)
            if len(group) >= self._rows_per_batch // shape:
                yield self._batch(waiting.pop(shape), shape)

    def _example(
        self, item: list[Source], stage: str, augmenter: Augmenter, rng: np.random.Generator
    ) -> _Example:
        if not item:
            return self._noise_example(augmenter, rng)
        parts = []
        digit = len(item) == 1 and item[0].clip.text in DIGITS
        tight = rng.random() < (TIGHT_DIGITS_SHARE if digit else TIGHT_SHARE)
        for source in item:
            frames = source.frames()
            if " " not in source.clip.text and tight:
                frames = cut_tightly(frames, rng)
            parts.append(augmenter.speaker(frames))
        text = " ".join(source.clip.text for source in item)
        gaps = [int(gap) for gap in rng.integers(0, 45, len(parts) - 1)]
        longest = 30 + int(80 * augmenter.strength) if stage == FULL_STAGE else 20
        alone = len(item) == 1 and " " not in text
        often = TIGHT_PADDED_SHARE if tight and alone else PADDED_SHARE
        lead, tail = (int(rng.integers(0, longest)) if rng.random() < often else 0 for _ in "xx")
        frames = augmenter.lay_out(parts, gaps, lead, tail)
        normalised = augmenter.mask(self._normaliser(frames).astype(np.float32))
        rows = stack_frames(normalised)
        # CTC needs a row per piece and one more between equal neighbours.
        pieces = self._pieces.encode(text)
        need = len(pieces) + sum(a == b for a, b in pairwise(pieces))
        if need > len(rows):
            rows = np.concatenate([rows, np.repeat(rows[-1:], need - len(rows), axis=0)])
        language = "en" if rng.random() < 0.4 else "auto"
        return _Example(rows, text, language, self._random_textnorm(rng))

    def _noise_example(self, augmenter: Augmenter, rng: np.random.Generator) -> _Example:
        """Noise, hum, clicks or silence without any word."""
        count = int(rng.integers(20, 500))
        frames = np.full((count, augmenter.noise_of_length(1).shape[1]), LOG_FLOOR, np.float32)
        kind = rng.random()
        if kind < 0.6:
            frames = augmenter.noise_of_length(count) + np.float32(rng.uniform(-6, 3))
        elif kind < 0.75:
            frames = hum(count, rng)
        elif kind < 0.85:
            frames = clicks(count, rng)
        if kind < 0.95:
            floor = augmenter.steady_floor(count, rng.uniform(-8, 8))
            frames = add_power(frames, floor)
        frames = augmenter.channel(frames.astype(np.float32))
        language = str(rng.choice(["auto", "en", "nospeech"]))
        rows = model_input(frames, self._normaliser)
        return _Example(rows, "", language, self._random_textnorm(rng))

    @staticmethod
    def _random_textnorm(rng: np.random.Generator) -> str:
        return "withitn" if rng.random() < 0.3 else "woitn"

    def _batch(self, group: list[_Example], shape: int) -> Batch:
        rows = np.zeros((len(group), shape, group[0].rows.shape[1]), np.float32)
        for place, example in enumerate(group):
            rows[place, : len(example.rows)] = example.rows
        return Batch(
            rows,
            np.array([len(example.rows) for example in group]),
            np.array([LANGUAGE_PROMPTS[example.language] for example in group]),
            np.array([TEXTNORM_PROMPTS[example.textnorm] for example in group]),
            np.array([self._tags(example) for example in group]),
            [self._pieces.encode(example.text) for example in group],
            [self._small_pieces.encode(example.text) for example in group],
        )

    def _tags(self, example: _Example) -> list[int]:
        language = "<|en|>" if example.text else "<|nospeech|>"
        event = "<|Speech|>" if example.text else "<|Event_UNK|>"
        names = (language, "<|EMO_UNKNOWN|>", event, f"<|{example.textnorm}|>")
        return [self._pieces.tag_ids[name] for name in names]


def hum(count: int, rng: np.random.Generator) -> np.ndarray:
    """Mains or motor hum: a few narrow, steady lines low in the spectrum; (count, 80)."""
    frames = np.full((count, 80), LOG_FLOOR, np.float32)
    for _ in range(rng.integers(1, 6)):
        line = rng.integers(0, 40)
        frames[:, line : line + 2] = rng.uniform(0, 18) + rng.normal(0, 0.2, (count, 1))
    return frames


def clicks(count: int, rng: np.random.Generator) -> np.ndarray:
    """Short broadband knocks at random times; (count, 80)."""
    frames = np.full((count, 80), LOG_FLOOR, np.float32)
    for start in rng.integers(0, count, rng.integers(1, 12)):
        length = int(rng.integers(1, 5))
        slope = np.linspace(0, rng.uniform(-4, 2), 80)
        burst = rng.uniform(4, 16) + slope + rng.normal(0, 0.5, (length, 80))
        frames[start : start + length] = burst[: count - start]
    return frames
