"""The feature cache: log-mel frames of many clips in one flat file, and a table beside it.

`STEM.npy` holds float16 (all frames, 80), natural log; `STEM.tsv` one row per clip in the same
order: `path speaker text source split frames`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from corpus import Clip, read_table

_COLUMNS = ("path", "speaker", "text", "source", "split")


class FeatureCache:
    """Log-mel frames by clip number.

    Attributes:
        clips: the clips, in order.
        frame_counts: int64 (clips,).
        frames: float16 (all frames, 80), the flat store, memory-mapped.
    """

    def __init__(self, stem: Path) -> None:
        rows = read_table(stem.with_suffix(".tsv"))
        self.clips = [Clip(**{column: row[column] for column in _COLUMNS}) for row in rows]
        self.frame_counts = np.array([int(row["frames"]) for row in rows], dtype=np.int64)
        # As a plain array: every small slice of a memmap object costs more than its copy.
        self.frames = np.asarray(np.load(stem.with_suffix(".npy"), mmap_mode="r"))
        self._ends = np.cumsum(self.frame_counts)

    def __len__(self) -> int:
        return len(self.clips)

    def __getitem__(self, index: int) -> np.ndarray:
        """float32 (frames, 80) of one clip."""
        end = self._ends[index]
        return self.frames[end - self.frame_counts[index] : end].astype(np.float32)


def write_cache(stem: Path, clips: list[Clip], features: list[np.ndarray]) -> None:
    """Writes both files; `features` are float16 (frames, 80), one per clip."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    # A training run may still have the old file mapped: replace it, never write into it.
    partial = stem.with_suffix(".partial.npy")
    np.save(partial, np.concatenate(features))
    partial.replace(stem.with_suffix(".npy"))
    lines = ["\t".join((*_COLUMNS, "frames"))]
    for clip, frames in zip(clips, features, strict=True):
        values = [getattr(clip, column) for column in _COLUMNS]
        lines.append("\t".join([*values, str(len(frames))]))
    stem.with_suffix(".tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
