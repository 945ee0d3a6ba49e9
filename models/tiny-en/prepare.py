"""Computes log-mel features of a manifest and of the noise clips into a cache, on two processes.

Writes `speech` and `noise` below --work/cache; with --synthetic a manifest of synthesise.py
becomes a cache named like the folder it lies in (`tts`, `tts2`). Clips that are `unused`, and
training clips over 20 s, are left out.
"""

from __future__ import annotations

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np

from audio import AudioStore
from cache import write_cache
from corpus import SPLITS_FILE, Clip, Splits, clean_text, read_clips, read_table
from features import log_mel

MIN_FRAMES, MAX_FRAMES = 8, 2000
_store: AudioStore


def _open_store(folder: Path) -> None:
    global _store
    _store = AudioStore(folder)


def _features_of(path: str) -> np.ndarray:
    """float16 (frames, 80)."""
    return log_mel(_store.waveform(path)).astype(np.float16)


def compute(stem: Path, clips: list[Clip], folder: Path, processes: int) -> None:
    """Writes the cache `stem` of these clips, whose paths are relative to `folder`."""
    with Pool(processes, _open_store, (folder,)) as pool:
        features = pool.map(_features_of, [clip.path for clip in clips], chunksize=64)
    kept = [
        (clip, frames)
        for clip, frames in zip(clips, features, strict=True)
        if len(frames) >= MIN_FRAMES and (clip.split == "test" or len(frames) <= MAX_FRAMES)
    ]
    write_cache(stem, [clip for clip, _ in kept], [frames for _, frames in kept])
    hours = sum(len(frames) for _, frames in kept) / 360_000
    print(f"{stem.name}: {len(kept)} of {len(clips)} clips, {hours:.2f} h")


def synthetic_clips(manifest: Path) -> list[Clip]:
    """Synthesised clips carry their own split: of the voice and of the sentence."""
    return [
        Clip(r["path"], r["speaker"], clean_text(r["transcript"]), r["source"], r["split"])
        for r in read_table(manifest)
    ]


def noise_clips(store: AudioStore, splits: Splits) -> list[Clip]:
    """The members of noise.tar, named by their folder."""
    paths = sorted(store.names("noise"))
    return [
        Clip(path, Path(path).parent.name, "", "noise", splits.of_clip(path, "noise", ""))
        for path in paths
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="manifest of the corpora (TSV)")
    parser.add_argument("--synthetic", type=Path, help="manifest that synthesise.py wrote")
    parser.add_argument("--work", type=Path, required=True, help="folder for cache/")
    parser.add_argument("--splits", type=Path, default=SPLITS_FILE)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    splits = Splits(options.splits)
    cache = options.work / "cache"
    if options.data:
        folder = options.data.parent
        noises = noise_clips(AudioStore(folder), splits)
        compute(cache / "noise", noises, folder, options.processes)
        clips = [clip for clip in read_clips(options.data, splits) if clip.split != "unused"]
        compute(cache / "speech", clips, folder, options.processes)
    if options.synthetic:
        clips = synthetic_clips(options.synthetic)
        folder = options.synthetic.parent
        compute(cache / folder.name, clips, folder, options.processes)


if __name__ == "__main__":
    main()
