"""What one round of training consists of: single clips, strings of clips, and noise without words.

A round is about ten hours of audio. Its order and all random choices follow from (seed, round).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cache import FeatureCache
from corpus import COMMANDS, DIGITS, Clip

WORDS_STAGE, SHORT_STAGE, FULL_STAGE = "words", "short", "full"
SHORT_CLIP_FRAMES = 260

FULL_SHARE = {
    "speechocean762": 0.4,
    "kathleen": 0.3,
    "grid_s1": 0.2,
    "speech_commands": 0.9,
    "wake_words": 0.25,
    "precise": 0.4,
    "cuts": 0.5,
    "spoken_digits": 3.0,
    "tts_words": 0.12,
    "tts_phrases": 0.4,
    "tts_sentences": 0.2,
}
"""Share of each source's training clips in a full round; `spoken_digits` are those of
speechocean762 that say nothing but digits."""
SHORT_SHARE = {
    "speechocean762": 1.0,
    "kathleen": 1.0,
    "grid_s1": 0.0,
    "speech_commands": 0.6,
    "wake_words": 0.35,
    "precise": 0.35,
    "tts_words": 0.25,
    "tts_phrases": 0.35,
}
WORDS_SHARE = {"speech_commands": 0.5, "wake_words": 0.1, "precise": 0.1, "tts_words": 0.3}
DIGIT_STRINGS, COMMAND_STRINGS, SENTENCE_PAIRS, NOISE_ONLY = 800, 800, 250, 800
SINGLE_DIGITS = 5000
"""Extra items of a full round. Human digits are few, so they are drawn again and again."""
HUMAN_DIGIT_SHARE = 0.5
HUMAN_DIGITS = {"speechocean762": 0.45, "speech_commands": 0.3, "grid_s1": 0.2, "kathleen": 0.05}
"""How often a human digit comes from each corpus: two of them are one person each."""


@dataclass(frozen=True)
class Source:
    """A clip in one of the caches.

    Attributes:
        cache: the cache that holds it.
        index: its number there.
    """

    cache: FeatureCache
    index: int

    @property
    def clip(self) -> Clip:
        """What is known about it."""
        return self.cache.clips[self.index]

    def frames(self) -> np.ndarray:
        """float32 (frames, 80)."""
        return self.cache[self.index]


class TrainingSet:
    """The training clips of all caches, by source, word and speaker."""

    def __init__(self, work: Path) -> None:
        stems = [work / "speech", work / "tts", work / "tts2", work / "tts3", work / "cuts"]
        self.caches = [FeatureCache(stem) for stem in stems if stem.with_suffix(".npy").exists()]
        self.noise = FeatureCache(work / "noise")
        self._noise_ids = [
            index
            for index, clip in enumerate(self.noise.clips)
            if clip.split == "train" and self.noise.frame_counts[index] >= 20
        ]
        self.by_group: dict[str, list[Source]] = defaultdict(list)
        for cache in self.caches:
            for index, clip in enumerate(cache.clips):
                if clip.split == "train":
                    source = Source(cache, index)
                    self.by_group[self._group(clip)].append(source)
        self.by_group["spoken_digits"] = [
            source
            for source in self.by_group["speechocean762"]
            if set(source.clip.text.split()) <= set(DIGITS)
        ]
        self._digits: dict[str, dict[str, list[Source]]] = defaultdict(lambda: defaultdict(list))
        self._commands: dict[str, list[Source]] = defaultdict(list)
        self._by_speaker: dict[str, list[Source]] = defaultdict(list)
        for source in self._single_words():
            self._file_word(source)

    @staticmethod
    def _group(clip: Clip) -> str:
        if clip.source != "tts":
            return clip.source
        return "tts_words" if len(clip.text.split()) == 1 else "tts_phrases"

    def _single_words(self) -> list[Source]:
        groups = ("speech_commands", "tts_words", "cuts", "wake_words", "precise")
        return [source for group in groups for source in self.by_group[group]]

    def _file_word(self, source: Source) -> None:
        clip = source.clip
        corpus = clip.path.split("/")[0] if clip.source == "cuts" else clip.source
        synthetic = clip.source == "tts"
        if clip.text in DIGITS:
            maker = clip.speaker.split("/")[0] if synthetic else corpus
            self._digits[maker][clip.text].append(source)
        if not synthetic:
            self._commands[clip.text].append(source)
        if clip.text in DIGITS or clip.text in COMMANDS:
            self._by_speaker[f"{clip.source}/{clip.speaker}"].append(source)

    def random_noise(self, rng: np.random.Generator) -> np.ndarray:
        """float32 (frames, 80) of a random training noise."""
        return self.noise[self._noise_ids[rng.integers(len(self._noise_ids))]]

    def training_frames(self, count: int, seed: int = 0) -> np.ndarray:
        """float16 (count, 80): random frames of the recorded training speech."""
        cache = self.caches[0]
        trained = np.repeat([c.split == "train" for c in cache.clips], cache.frame_counts)
        chosen = np.random.default_rng(seed).choice(np.flatnonzero(trained), count, replace=False)
        return cache.frames[np.sort(chosen)]

    def plan(self, stage: str, rng: np.random.Generator) -> list[list[Source]]:
        """One round: each item a list of clips to join; an empty list is noise alone."""
        if stage == WORDS_STAGE:
            items = self._singles(WORDS_SHARE, rng, limit=SHORT_CLIP_FRAMES)
        elif stage == SHORT_STAGE:
            items = self._singles(SHORT_SHARE, rng, limit=SHORT_CLIP_FRAMES)
        else:
            items = self._singles(FULL_SHARE, rng, limit=None) + self._strings(rng)
        return [items[index] for index in rng.permutation(len(items))]

    def _singles(
        self, shares: dict[str, float], rng: np.random.Generator, limit: int | None
    ) -> list[list[Source]]:
        items = []
        for group, share in shares.items():
            pool = self.by_group[group]
            if limit is not None:
                pool = [s for s in pool if s.cache.frame_counts[s.index] < limit]
            for part in (1.0,) * int(share) + (share % 1,):
                chosen = rng.permutation(len(pool))[: int(len(pool) * part)]
                items += [[pool[index]] for index in chosen]
        return items

    def _strings(self, rng: np.random.Generator) -> list[list[Source]]:
        items = [[self._digit(rng)] for _ in range(SINGLE_DIGITS)]
        items += [self._digit_string(rng) for _ in range(DIGIT_STRINGS)]
        items += [self._command_string(rng) for _ in range(COMMAND_STRINGS)]
        sentences = self.by_group["speechocean762"] + self.by_group["kathleen"]
        phrases = self.by_group["tts_phrases"]
        for pool in (sentences, phrases):
            items += [[_pick(pool, rng), _pick(pool, rng)] for _ in range(SENTENCE_PAIRS // 2)]
        return items + [[] for _ in range(NOISE_ONLY)]

    def _digit(self, rng: np.random.Generator) -> Source:
        word = _pick(DIGITS, rng)
        if rng.random() >= HUMAN_DIGIT_SHARE:
            return _pick(self._digits[self._engine(rng)][word], rng)
        shares = {m: share for m, share in HUMAN_DIGITS.items() if self._digits[m][word]}
        total = sum(shares.values())
        maker = rng.choice(list(shares), p=[share / total for share in shares.values()])
        return _pick(self._digits[str(maker)][word], rng)

    def _engine(self, rng: np.random.Generator) -> str:
        """Every engine equally often, however many voices it has."""
        return _pick(sorted(self._digits.keys() - HUMAN_DIGITS.keys()), rng)

    def _digit_string(self, rng: np.random.Generator) -> list[Source]:
        """2 to 7 digits, half of the time by one synthetic voice."""
        count = rng.integers(2, 8)
        if rng.random() < 0.5:
            return [self._digit(rng) for _ in range(count)]
        one = _pick(self._digits[self._engine(rng)][_pick(DIGITS, rng)], rng)
        voice = f"tts/{one.clip.speaker}"
        pool = [s for s in self._by_speaker[voice] if s.clip.text in DIGITS]
        return [_pick(pool, rng) for _ in range(count)]

    def _command_string(self, rng: np.random.Generator) -> list[Source]:
        """2 to 5 words: mostly the ten commands, half of the time by one person."""
        count = rng.integers(2, 6)
        first = _pick(self.by_group["speech_commands"], rng)
        same = self._by_speaker[f"speech_commands/{first.clip.speaker}"]
        if rng.random() < 0.5 and len(same) > 3:
            return [_pick(same, rng) for _ in range(count)]
        words = COMMANDS if rng.random() < 0.7 else sorted(self._commands)
        return [_pick(self._commands[_pick(words, rng)], rng) for _ in range(count)]


def _pick(pool: list, rng: np.random.Generator):  # noqa: ANN202 - same type as the entries
    """A random entry."""
    return pool[rng.integers(len(pool))]
