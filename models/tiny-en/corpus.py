"""The training corpora as records: the manifest, its cleaned transcripts, and the committed split.

A manifest is a tab-separated file with a header naming at least
`path speaker transcript source split tier`. `path` is relative to the manifest's folder and names
either a plain audio file there or a member of the tar `<first folder>.tar` beside the manifest.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

SPLITS_FILE = Path(__file__).with_name("splits.tsv")
DIGITS = "zero one two three four five six seven eight nine".split()
COMMANDS = "yes no up down left right on off stop go".split()


@dataclass(frozen=True)
class Clip:
    """One recording and what is said in it.

    Attributes:
        path: address of the audio, relative to the manifest (unique).
        speaker: speaker label; `<source>/<speaker>` is unique.
        text: lower-case words separated by single spaces; empty for noise.
        source: name of the corpus (`noise` for noise, `tts` for synthesised speech).
        split: `train`, `dev`, `test` or `unused`.
    """

    path: str
    speaker: str
    text: str
    source: str
    split: str


def clean_text(transcript: str) -> str:
    """Lower-case, single spaces, and without the file-name leftovers of the precise corpus."""
    text = re.sub(r" en( heychatterbox)?$", "", transcript.lower().strip())
    return re.sub(r"\s+", " ", text)


def read_table(path: Path) -> list[dict[str, str]]:
    """Rows of a tab-separated file with a header; quotes mean nothing."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


class Splits:
    """The committed decision which recording belongs to train, dev, test or is unused.

    A row is `kind key split`. The kinds, most specific first: `clip` (a path), `speaker`
    (`source/speaker`), `voice` (`engine/voice` of synthesised speech).
    """

    def __init__(self, path: Path = SPLITS_FILE) -> None:
        self._of = {(row["kind"], row["key"]): row["split"] for row in read_table(path)}

    def of_clip(self, path: str, source: str, speaker: str) -> str:
        """The split of a recording; one that nobody decided about is unused, never trained on."""
        by_clip = self._of.get(("clip", path))
        return by_clip or self._of.get(("speaker", f"{source}/{speaker}"), "unused")

    def of_voice(self, voice: str) -> str:
        """The split of a synthetic voice, `engine/voice`, or of a mixture: what its parts share."""
        if ":" not in voice:
            return self._of.get(("voice", voice), "unused")
        engine, _, mixture = voice.partition("/")
        parts = {self.of_voice(f"{engine}/{part.split(':')[0]}") for part in mixture.split("+")}
        return parts.pop() if len(parts) == 1 else "unused"

    def voices(self, split: str) -> list[str]:
        """All synthetic voices of a split, in file order."""
        return [
            key for (kind, key), value in self._of.items() if kind == "voice" and value == split
        ]


def read_clips(manifest: Path, splits: Splits) -> list[Clip]:
    """The speech clips of a manifest with the split that `splits` gives them."""
    clips = []
    for row in read_table(manifest):
        split = splits.of_clip(row["path"], row["source"], row["speaker"])
        text = clean_text(row["transcript"])
        clips.append(Clip(row["path"], row["speaker"], text, row["source"], split))
    return clips
