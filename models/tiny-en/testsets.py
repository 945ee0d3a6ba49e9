"""The test sets as waveforms: what a split says, as recorded, padded, joined, or no speech.

Built from one split alone, with fixed seeds, so every model hears the same. The validation split
gives sets of the same kinds, on which thresholds are chosen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import istft, stft

from audio import SAMPLE_RATE, AudioStore
from corpus import COMMANDS, Clip, Splits, read_clips, read_table
from phrases import split_of_sentence

PADDING_SECONDS = 0.2
DIGIT_STRINGS, COMMAND_STRINGS_PER_SPEAKER = 150, 12
GENERATED_NOISES = 60


@dataclass(frozen=True)
class Utterance:
    """Something to hear.

    Attributes:
        name: where it comes from.
        text: what is said; empty for no speech.
        waveform: float32 (samples,), 16 kHz.
    """

    name: str
    text: str
    waveform: np.ndarray


def quiet_noise(waveform: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` samples of noise with the clip's own floor: its lowest level in every band.

    A tightly cut clip has no silence to copy, but between its harmonics it shows its floor.
    """
    window = min(400, len(waveform))
    _, _, bands = stft(waveform, nperseg=window)
    floor = np.percentile(np.abs(bands), 5, axis=1)
    _, _, noise = stft(rng.standard_normal(count + 2 * window), nperseg=window)
    shaped = noise / np.sqrt((np.abs(noise) ** 2).mean()) * floor[:, None]
    _, samples = istft(shaped, nperseg=window)
    return samples[window : window + count].astype(np.float32)


def padded(waveform: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The clip with a fifth of a second of its own noise floor at both ends."""
    count = int(PADDING_SECONDS * SAMPLE_RATE)
    ends = [quiet_noise(waveform, count, rng) for _ in range(2)]
    return np.concatenate([ends[0], waveform, ends[1]])


def joined(parts: list[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Clips with 0.05 to 0.4 s of noise floor around each."""
    pieces = [quiet_noise(parts[0], int(rng.uniform(0.1, 0.3) * SAMPLE_RATE), rng)]
    for part in parts:
        gap = int(rng.uniform(0.05, 0.4) * SAMPLE_RATE)
        pieces += [part, quiet_noise(part, gap, rng)]
    return np.concatenate(pieces)


class TestSets:
    """Named lists of utterances, made when asked for.

    Attributes:
        makers: for every set's name a function that yields its utterances.
    """

    def __init__(self, data: Path, synthetic: Path, splits: Splits, split: str = "test") -> None:
        self._store = AudioStore(data.parent)
        self._synthetic, self._synthetic_store = synthetic, AudioStore(synthetic.parent)
        self._splits, self._split = splits, split
        self._clips: dict[str, list[Clip]] = defaultdict(list)
        for clip in read_clips(data, splits):
            if clip.split == split:
                self._clips[clip.source].append(clip)
        self.makers: dict[str, Callable[[], Iterator[Utterance]]] = {
            "Speech Commands words": lambda: self._as_recorded("speech_commands"),
            "- the ten commands": self._ten_commands,
            "FSDD digits (theo), as cut": lambda: self._as_recorded("fsdd"),
            "FSDD digits (theo), padded": self._padded_digits,
            "digit strings 3-6 (theo)": self._digit_strings,
            "command strings 2-5": self._command_strings,
            "wake words, held-out clips": lambda: self._as_recorded("wake_words"),
            "'(hey) computer', other corpus": lambda: self._as_recorded("precise"),
            **{
                f"device phrases, {voice}": self._phrase_maker(voice)
                for voice in splits.voices(split)
            },
            "speechocean762 sentences": lambda: self._as_recorded("speechocean762"),
            "LJSpeech sentences": lambda: self._as_recorded("ljspeech_part"),
            "noise, held-out recordings": self._recorded_noise,
            "hum, clicks, silence (generated)": self._generated_noise,
        }

    def _hear(self, clip: Clip) -> Utterance:
        return Utterance(clip.path, clip.text, self._store.waveform(clip.path))

    def _as_recorded(self, source: str) -> Iterator[Utterance]:
        return (self._hear(clip) for clip in self._clips[source])

    def _ten_commands(self) -> Iterator[Utterance]:
        return (u for u in self._as_recorded("speech_commands") if u.text in COMMANDS)

    def _padded_digits(self) -> Iterator[Utterance]:
        rng = np.random.default_rng(3)
        for said in self._as_recorded("fsdd"):
            yield Utterance(said.name, said.text, padded(said.waveform, rng))

    def _strings(
        self, clips: list[Clip], count: int, lengths: tuple[int, int], seed: int
    ) -> Iterator[Utterance]:
        rng = np.random.default_rng(seed)
        for number in range(count):
            chosen = rng.integers(0, len(clips), rng.integers(lengths[0], lengths[1] + 1))
            heard = [self._hear(clips[index]) for index in chosen]
            text = " ".join(said.text for said in heard)
            waveform = joined([said.waveform for said in heard], rng)
            yield Utterance(f"{clips[0].speaker} string {number}", text, waveform)

    def _digit_strings(self) -> Iterator[Utterance]:
        return self._strings(self._clips["fsdd"], DIGIT_STRINGS, (3, 6), seed=5)

    def _command_strings(self) -> Iterator[Utterance]:
        by_speaker: dict[str, list[Clip]] = defaultdict(list)
        for clip in self._clips["speech_commands"]:
            by_speaker[clip.speaker].append(clip)
        for number, (_, clips) in enumerate(sorted(by_speaker.items())):
            if len(clips) > 3:
                yield from self._strings(clips, COMMAND_STRINGS_PER_SPEAKER, (2, 5), 100 + number)

    def _phrase_maker(self, voice: str) -> Callable[[], Iterator[Utterance]]:
        def make() -> Iterator[Utterance]:
            for row in read_table(self._synthetic):
                if row["speaker"] == voice and row["split"] == self._split:
                    waveform = self._synthetic_store.waveform(row["path"])
                    yield Utterance(row["path"], row["transcript"], waveform)

        return make

    def _recorded_noise(self) -> Iterator[Utterance]:
        for path in sorted(self._store.names("noise")):
            if self._splits.of_clip(path, "noise", "") == self._split:
                yield Utterance(path, "", self._store.waveform(path))

    def _generated_noise(self) -> Iterator[Utterance]:
        rng = np.random.default_rng(9 if self._split == "test" else 10)
        for number in range(GENERATED_NOISES):
            seconds = rng.uniform(0.5, 6)
            time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
            level = 10 ** rng.uniform(-4, -1)
            kind = ("hum", "clicks", "silence", "hiss")[number % 4]
            waveform = np.zeros(len(time))
            if kind == "hum":
                base = rng.choice([50, 60, 100, 120])
                for harmonic in range(1, int(rng.integers(2, 12))):
                    phase = rng.uniform(0, 2 * np.pi)
                    waveform += np.sin(2 * np.pi * base * harmonic * time + phase) / harmonic
            elif kind == "clicks":
                for start in rng.integers(0, len(time), int(rng.integers(1, 12))):
                    length = int(rng.integers(20, 400))
                    burst = rng.standard_normal(length) * np.exp(-np.arange(length) / 60)
                    waveform[start : start + length] += burst[: len(time) - start]
            elif kind == "hiss":
                waveform = rng.standard_normal(len(time))
            if kind != "silence":
                waveform = waveform * level / max(1e-9, np.abs(waveform).max())
                waveform += rng.standard_normal(len(time)) * level * 0.01
            yield Utterance(f"{kind} {number}", "", waveform.astype(np.float32))


def unseen_share(synthetic: Path) -> float:
    """Share of the test sentences that no training voice ever said, in percent."""
    sentences = {r["transcript"] for r in read_table(synthetic) if r["split"] == "test"}
    return 100 * sum(split_of_sentence(text) == "test" for text in sentences) / len(sentences)
