"""Speaks device phrases and single words with free synthesisers; writes WAV files and a manifest.

Training sentences are spoken by the training voices at many speeds, half of them resampled so
that pitch and vocal tract change too. Held-out voices speak held-out sentences, untouched.
Stopped and started again it goes on with what is missing. README.md names the packages it needs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path

from cache import FeatureCache
from corpus import SPLITS_FILE, Splits
from engines import Job, speak
from plans import FirstPlan, SecondPlan, ThirdPlan

SENTENCE_SOURCES = ("speechocean762", "kathleen")


def training_sentences(work: Path) -> list[str]:
    """The distinct sentences of the recorded training clips."""
    clips = FeatureCache(work / "cache" / "speech").clips
    texts = [c.text for c in clips if c.split == "train" and c.source in SENTENCE_SOURCES]
    return list(dict.fromkeys(text for text in texts if len(text.split()) > 1))


def batches(jobs: list[Job], folder: Path, size: int = 20) -> Iterator[tuple[list[Job], Path]]:
    """Groups of one voice each, the voices in turn."""
    by_voice: dict[str, list[Job]] = {}
    for job in jobs:
        by_voice.setdefault(job.voice, []).append(job)
    for start in range(0, max(map(len, by_voice.values()), default=0), size):
        for same_voice in by_voice.values():
            if same_voice[start:]:
                yield same_voice[start : start + size], folder


def speak_all(jobs: list[Job], out: Path, processes: int) -> int:
    """Writes out/wav/ and out/manifest.tsv; returns how many utterances there are."""
    folder = out / "wav"
    folder.mkdir(parents=True, exist_ok=True)
    with Pool(processes) as pool:
        done = [job for part in pool.imap(speak, batches(jobs, folder)) for job in part]
    done.sort(key=lambda job: job.name)
    lines = ["path\tspeaker\ttranscript\tsource\tsplit"]
    lines += [f"wav/{j.name}.wav\t{j.voice}\t{j.text}\t{j.source}\t{j.split}" for j in done]
    (out / "manifest.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return len(done)


def speak_held_out(splits: Splits, out: Path) -> Path:
    """The test sentences by the test voices alone; returns the manifest."""
    speak_all(list(FirstPlan(splits).held_out("test")), out, processes=2)
    return out / "manifest.tsv"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for wav/ and manifest.tsv")
    parser.add_argument(
        "--second-of", type=Path, help="speak the second set, of this work folder's sentences"
    )
    parser.add_argument("--third", action="store_true", help="speak the third set")
    parser.add_argument("--splits", type=Path, default=SPLITS_FILE)
    parser.add_argument("--engines", nargs="*", help="speak only with these for now")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    splits = Splits(options.splits)
    if options.second_of:
        jobs = list(SecondPlan(splits, training_sentences(options.second_of)).jobs())
    elif options.third:
        jobs = list(ThirdPlan(splits).jobs())
    else:
        jobs = list(FirstPlan(splits).jobs())
    if options.engines:
        jobs = [job for job in jobs if job.engine in options.engines]
    done = speak_all(jobs, options.out, options.processes)
    print(f"{done} of {len(jobs)} utterances spoken")


if __name__ == "__main__":
    main()
