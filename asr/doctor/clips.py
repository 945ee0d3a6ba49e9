"""The clips that the doctor lets a model hear: 20 of this package, or the user's own."""

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from asr import audio
from asr.errors import AudioError, UsageError
from asr.records import Audio

MAX_CLIPS = 20
#: What peers take at most in one call, and what a model of this family was trained on.
MAX_S = 30.0
_OURS = Path(__file__).parent / "clips"
_EXTENSIONS = {".wav", ".flac", ".ogg", ".opus", ".mp3"}


@dataclass(frozen=True, slots=True)
class Clip:
    """Something to hear.

    Attributes:
        name: of a clip of ours; a number for the user's, since file names may say too much.
        sound: mono, at most ``MAX_S`` seconds.
    """

    name: str
    sound: Audio


def load(source: Path | None) -> list[Clip]:
    """Read at most ``MAX_CLIPS`` clips.

    Args:
        source: a manifest as for ``asr evaluate``, or a folder of sound files; None takes the
            clips of this package: synthetic speech in five languages, made for the purpose.

    Raises:
        UsageError: no such manifest or folder, or it names no clip.
        AudioError: a clip cannot be read.
    """
    if source is None:
        return [Clip(p.stem, audio.read(p)) for p in sorted(_OURS.glob("*.flac"))]
    if source.is_dir():
        paths = [p for p in sorted(source.iterdir()) if p.suffix.lower() in _EXTENSIONS]
        sounds = [audio.read(p) for p in paths[:MAX_CLIPS]]
    else:
        sounds = _listed(source)
    if not sounds:
        raise UsageError(f"{source}: expected at least one clip, found none")
    return [Clip(f"clip-{number:02d}", _cut(sound)) for number, sound in enumerate(sounds, 1)]


def _listed(manifest: Path) -> list[Audio]:
    from asr.evaluate.clips import Clips
    from asr.evaluate.manifest import read_manifest

    listed = read_manifest(manifest)
    if listed.failures:
        first = listed.failures[0]
        raise UsageError(f"{manifest}: line {first.line}: {first.reason}")
    with Clips(manifest.parent) as clips:
        found = [clips.find(row.path) for row in islice(listed.rows, MAX_CLIPS)]
        return [audio.read(sound, rate) for sound, rate in found]


def _cut(sound: Audio) -> Audio:
    most = int(MAX_S * sound.sample_rate_hz)
    if not len(sound.samples):
        raise AudioError(f"{sound.source}: expected sound, found an empty file")
    samples = np.ascontiguousarray(sound.samples[:most])
    return Audio(samples, sound.sample_rate_hz, sound.source)
