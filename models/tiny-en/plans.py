"""Which voice says what: three sets of synthetic speech, each from one seed.

The first set holds what training began with and the held-out phrases of the tests. The second,
added at step 8,000 of the main run, brings two more engines, more of the digits, and the sentences
of the recorded training clips said by the fast voices. The third, added at step 13,250, brings
phrases by diphone voices and words by mixtures of Kokoro's voices, a new one for every word.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from corpus import COMMANDS, DIGITS, Splits
from engines import KOKORO_NAMES, Job
from phrases import DRILL_WORDS, random_sentence, split_of_sentence

SEED, SECOND_SEED, THIRD_SEED = 11, 12, 13
MAX_REPEATS = 6
TEST_SENTENCES, TEST_SENTENCES_SEEN = 240, 60
DEV_SENTENCES = 120
FIRST_ENGINES = {"flite": 0.4, "festival": 0.2, "espeak": 0.4}
"""Share of the sentences of the first set."""
SECOND_ENGINES = {"pico": 0.4, "flite": 0.35, "festival": 0.25}
"""Share of the sentences of the second set, without those of Kokoro, which is slow."""
SECOND_COPIES = {"pico": 12, "flite": 6, "festival": 6, "espeak": 1, "kokoro": 1}
"""How often each voice of an engine says every digit; other words half as often."""
SECOND_PHRASES, KOKORO_PHRASES = 8000, 500
THIRD_VOICES = {
    "flite/kal": 0.2,
    "flite/kal16": 0.2,
    "festival/kal_diphone": 0.3,
    "flite/awb": 0.15,
    "flite/slt": 0.15,
}
"""Share of the phrases of the third set."""
THIRD_PHRASES, MIXED_WORDS = 4000, 1500


class _Plan:
    """What both sets share: one generator, numbered utterances, voices by engine."""

    def __init__(self, splits: Splits, seed: int, prefix: str) -> None:
        self._rng = random.Random(seed)
        self._splits = splits
        self._prefix = prefix
        self._count = 0

    def _job(self, text: str, voice: str, split: str, source: str = "tts") -> Job:
        self._count += 1
        vary = split == "train"
        stretch = self._rng.uniform(0.75, 1.35) if vary else self._rng.uniform(0.95, 1.1)
        pitch = self._rng.uniform(0.84, 1.2) if vary and self._rng.random() < 0.5 else 1.0
        name = f"{self._prefix}{self._count:06d}"
        return Job(name, text, voice, split, stretch * pitch, pitch, source)

    def _voices(self, engine: str, split: str = "train") -> list[str]:
        return [v for v in self._splits.voices(split) if v.startswith(f"{engine}/")]

    def _voice_of(self, shares: dict[str, float]) -> str:
        engine = self._rng.choices(list(shares), list(shares.values()))[0]
        return self._rng.choice(self._voices(engine))

    def _sentences(self, split: str) -> Iterator[str]:
        while True:
            sentence = random_sentence(self._rng)
            if split_of_sentence(sentence) == split:
                yield sentence

    def _repeated(self, count: int) -> Iterator[str]:
        """Training sentences, none of them too often."""
        said: dict[str, int] = {}
        for sentence in self._sentences("train"):
            if said.get(sentence, 0) < MAX_REPEATS:
                said[sentence] = said.get(sentence, 0) + 1
                yield sentence
                count -= 1
            if count == 0:
                break

    def _distinct(self, split: str, count: int) -> list[str]:
        found: dict[str, None] = {}
        for sentence in self._sentences(split):
            found[sentence] = None
            if len(found) == count:
                break
        return list(found)


class FirstPlan(_Plan):
    """flite, festival and espeak-ng; held-out sentences by held-out voices."""

    def __init__(self, splits: Splits) -> None:
        super().__init__(splits, SEED, "")

    def jobs(self, phrases: int = 9000) -> Iterator[Job]:
        """Everything, the held-out part first so that it never depends on the rest."""
        yield from self.held_out("test")
        yield from self.held_out("dev")
        for sentence in self._repeated(phrases):
            yield self._job(sentence, self._voice_of(FIRST_ENGINES), "train")
        for voice in self._first_voices("train"):
            copies = 1 if voice.startswith("espeak") else 6
            for word in DRILL_WORDS:
                for _ in range(copies * (2 if word in DIGITS else 1)):
                    yield self._job(word, voice, "train")

    def _first_voices(self, split: str) -> list[str]:
        return [v for v in self._splits.voices(split) if v.split("/")[0] in FIRST_ENGINES]

    def held_out(self, split: str) -> Iterator[Job]:
        """The same sentences and words by every held-out voice of `split`."""
        unseen = self._distinct(
            split, DEV_SENTENCES if split == "dev" else TEST_SENTENCES - TEST_SENTENCES_SEEN
        )
        seen = self._distinct("train", TEST_SENTENCES_SEEN) if split == "test" else []
        for voice in self._first_voices(split):
            for text in [*unseen, *seen]:
                yield self._job(text, voice, split)


class SecondPlan(_Plan):
    """Pico and Kokoro besides; a validation voice of an engine family that trains little.

    Args:
        splits: who trains.
        texts: sentences of the recorded training clips.
    """

    def __init__(self, splits: Splits, texts: list[str]) -> None:
        super().__init__(splits, SECOND_SEED, "s")
        self._texts = texts

    def jobs(self) -> Iterator[Job]:
        """Validation, then single words, phrases and sentences."""
        dev = self._distinct("dev", DEV_SENTENCES)
        for voice in self._voices("pico", "dev"):
            for text in [*dev, *DIGITS, *COMMANDS]:
                yield self._job(text, voice, "dev", "tts_other")
        for engine, copies in SECOND_COPIES.items():
            for voice in self._voices(engine):
                for word in self._words(engine):
                    for _ in range(copies if word in DIGITS else max(1, copies // 2)):
                        yield self._job(word, voice, "train")
        for sentence in self._repeated(SECOND_PHRASES):
            yield self._job(sentence, self._voice_of(SECOND_ENGINES), "train")
        for text in self._texts:
            voice = self._voice_of(SECOND_ENGINES)
            yield self._job(text, voice, "train", "tts_sentences")
        for sentence in self._repeated(KOKORO_PHRASES):
            yield self._job(sentence, self._voice_of({"kokoro": 1}), "train")

    @staticmethod
    def _words(engine: str) -> list[str]:
        if engine == "pico":
            return DRILL_WORDS
        return [*DIGITS, *COMMANDS] if engine != "espeak" else DIGITS


class ThirdPlan(_Plan):
    """Whatever part of it is spoken is a fair sample of the whole."""

    def __init__(self, splits: Splits) -> None:
        super().__init__(splits, THIRD_SEED, "t")

    def jobs(self) -> Iterator[Job]:
        """Words by ever new mixtures, then phrases."""
        for _ in range(MIXED_WORDS):
            words = self._rng.choices([DIGITS, COMMANDS, DRILL_WORDS], [0.5, 0.2, 0.3])[0]
            yield self._job(self._rng.choice(words), self._mixture(), "train")
        voices, shares = list(THIRD_VOICES), list(THIRD_VOICES.values())
        for sentence in self._repeated(THIRD_PHRASES):
            yield self._job(sentence, self._rng.choices(voices, shares)[0], "train")

    def _mixture(self) -> str:
        """Two of Kokoro's voices in random shares; its one man is in half of the mixtures."""
        women, man = KOKORO_NAMES[:-1], KOKORO_NAMES[-1]
        first, second = self._rng.sample(women, 2)
        if self._rng.random() < 0.5:
            first = man
        share = self._rng.randint(-20, 120)
        return f"kokoro/{first}:{share}+{second}:{100 - share}"
