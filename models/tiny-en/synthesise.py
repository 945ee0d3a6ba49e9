"""Speaks device phrases and single words with free synthesisers; writes WAV files and a manifest.

Needs the programs `flite`, `espeak-ng` and `festival` (the packages are named in README.md).
Training sentences are spoken by the training voices at many speeds, half of them resampled so
that pitch and vocal tract change too. Held-out voices speak held-out sentences, untouched.
"""

from __future__ import annotations

import argparse
import random
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path

import numpy as np
import soundfile
import soxr

from audio import SAMPLE_RATE, load_waveform
from corpus import DIGITS, SPLITS_FILE, Splits
from phrases import DRILL_WORDS, random_sentence, split_of_sentence

SEED = 11
ENGINE_SHARE = {"flite": 0.4, "festival": 0.2, "espeak": 0.4}
MAX_REPEATS = 6
TEST_SENTENCES, TEST_SENTENCES_SEEN = 240, 60
DEV_SENTENCES = 120


@dataclass(frozen=True)
class Job:
    """One utterance to speak.

    Attributes:
        name: file stem.
        text: lower-case words.
        voice: `engine/voice`.
        split: `train`, `dev` or `test`.
        stretch: duration factor; 1 is the voice's own pace.
        pitch: frequency factor by resampling afterwards; 1 leaves the voice as it is.
    """

    name: str
    text: str
    voice: str
    split: str
    stretch: float
    pitch: float


def speak_flite(job: Job, target: Path) -> None:
    """One process per utterance; the engine starts in milliseconds."""
    voice = job.voice.split("/")[1]
    stretch = f"duration_stretch={job.stretch:.2f}"
    command = ["flite", "-voice", voice, "--setf", stretch, "-t", job.text, "-o", str(target)]
    subprocess.run(command, check=True, capture_output=True)


def speak_espeak(job: Job, target: Path) -> None:
    """espeak-ng counts speed in words a minute; 155 is a calm pace."""
    voice = job.voice.split("/")[1]
    speed = str(round(155 / job.stretch))
    command = ["espeak-ng", "-v", voice, "-s", speed, "-w", str(target), job.text]
    subprocess.run(command, check=True, capture_output=True)


def speak_festival(jobs: list[Job], folder: Path) -> None:
    """All utterances of one voice in one process, since the engine starts slowly."""
    lines = [f"(voice_{jobs[0].voice.split('/')[1]})"]
    for job in jobs:
        lines.append(f"(Parameter.set 'Duration_Stretch {job.stretch:.2f})")
        lines.append(f'(set! spoken (SynthText "{job.text}"))')
        lines.append(f'(utt.save.wave spoken "{folder / job.name}.wav" \'riff)')
    script = folder / f"{jobs[0].name}.scm"
    script.write_text("\n".join(lines), encoding="utf-8")
    command = ["festival", "-b", str(script)]
    subprocess.run(command, check=False, capture_output=True)
    script.unlink()


def finish(job: Job, path: Path) -> bool:
    """To 16 kHz 16-bit, pitch changed; False if the engine wrote nothing usable."""
    if not path.exists() or path.stat().st_size < 2000:
        return False
    samples = load_waveform(path)
    if job.pitch != 1.0:
        samples = soxr.resample(samples, SAMPLE_RATE * job.pitch, SAMPLE_RATE)
    peak = float(np.abs(samples).max())
    if peak < 1e-3:
        return False
    soundfile.write(path, samples * (0.6 / peak), SAMPLE_RATE, subtype="PCM_16")
    return True


def speak(batch: tuple[list[Job], Path]) -> list[Job]:
    """Speaks jobs of one engine (festival: of one voice); returns those that worked."""
    jobs, folder = batch
    engine = jobs[0].voice.split("/")[0]
    if engine == "festival":
        speak_festival(jobs, folder)
    for job in jobs:
        if engine == "flite":
            speak_flite(job, folder / f"{job.name}.wav")
        elif engine == "espeak":
            speak_espeak(job, folder / f"{job.name}.wav")
    return [job for job in jobs if finish(job, folder / f"{job.name}.wav")]


class Planner:
    """Decides which voice says what, from one seed."""

    def __init__(self, splits: Splits) -> None:
        self._rng = random.Random(SEED)
        self._splits = splits
        self._count = 0

    def _job(self, text: str, voice: str, split: str) -> Job:
        self._count += 1
        vary = split == "train"
        stretch = self._rng.uniform(0.75, 1.35) if vary else self._rng.uniform(0.95, 1.1)
        pitch = self._rng.uniform(0.84, 1.2) if vary and self._rng.random() < 0.5 else 1.0
        return Job(f"{self._count:06d}", text, voice, split, stretch * pitch, pitch)

    def _train_voice(self) -> str:
        engine = self._rng.choices(list(ENGINE_SHARE), list(ENGINE_SHARE.values()))[0]
        voices = [v for v in self._splits.voices("train") if v.startswith(engine)]
        return self._rng.choice(voices)

    def _sentences(self, split: str) -> Iterator[str]:
        while True:
            sentence = random_sentence(self._rng)
            if split_of_sentence(sentence) == split:
                yield sentence

    def train(self, phrases: int) -> Iterator[Job]:
        """Random sentences by random voices, then every drill word by every voice."""
        said: dict[str, int] = {}
        for sentence in self._sentences("train"):
            if said.get(sentence, 0) < MAX_REPEATS:
                said[sentence] = said.get(sentence, 0) + 1
                yield self._job(sentence, self._train_voice(), "train")
                phrases -= 1
            if phrases == 0:
                break
        for voice in self._splits.voices("train"):
            copies = 1 if voice.startswith("espeak") else 6
            for word in DRILL_WORDS:
                for _ in range(copies * (2 if word in DIGITS else 1)):
                    yield self._job(word, voice, "train")

    def held_out(self, split: str) -> Iterator[Job]:
        """The same sentences and words by every held-out voice of `split`."""
        unseen = self._distinct(
            split, DEV_SENTENCES if split == "dev" else TEST_SENTENCES - TEST_SENTENCES_SEEN
        )
        seen = self._distinct("train", TEST_SENTENCES_SEEN) if split == "test" else []
        for voice in self._splits.voices(split):
            for text in [*unseen, *seen]:
                yield self._job(text, voice, split)

    def _distinct(self, split: str, count: int) -> list[str]:
        found: dict[str, None] = {}
        for sentence in self._sentences(split):
            found[sentence] = None
            if len(found) == count:
                break
        return list(found)


def batches(jobs: list[Job], folder: Path, size: int = 100) -> list[tuple[list[Job], Path]]:
    """Groups of one voice each."""
    by_voice: dict[str, list[Job]] = {}
    for job in jobs:
        by_voice.setdefault(job.voice, []).append(job)
    groups = []
    for same_voice in by_voice.values():
        groups += [
            (same_voice[start : start + size], folder) for start in range(0, len(same_voice), size)
        ]
    return groups


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for wav/ and manifest.tsv")
    parser.add_argument("--phrases", type=int, default=9000, help="training sentences to speak")
    parser.add_argument("--splits", type=Path, default=SPLITS_FILE)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    folder = options.out / "wav"
    folder.mkdir(parents=True, exist_ok=True)
    planner = Planner(Splits(options.splits))
    jobs = [*planner.held_out("test"), *planner.held_out("dev"), *planner.train(options.phrases)]
    with Pool(options.processes) as pool:
        done = [job for part in pool.imap(speak, batches(jobs, folder)) for job in part]
    done.sort(key=lambda job: job.name)
    lines = ["path\tspeaker\ttranscript\tsource\tsplit"]
    lines += [f"wav/{j.name}.wav\t{j.voice}\t{j.text}\ttts\t{j.split}" for j in done]
    (options.out / "manifest.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(done)} of {len(jobs)} utterances spoken")


if __name__ == "__main__":
    main()
