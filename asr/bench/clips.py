"""A workload: which clips are measured, what is said in them, and what is expected to be heard.

A manifest is a tab-separated file with one header line. Columns, all but ``file`` optional:

``file``
    Relative to the manifest. Several WAV files joined by `` + `` with a number of seconds of
    silence between them are one clip: ``a.wav + 0.4 + b.wav``.
``id``
    The file's stem when empty.
``sha256``
    Of the bytes; another hash ends the run before anything is measured.
``seconds``
    Of audio.
``words``
    What is really said, for the character error rate.
``text``, ``text NETWORK``
    What is expected to be heard; NETWORK is the start of the SHA-256 of the network this is known
    of. Without it the first call's text is what the others must repeat.
"""

import csv
import hashlib
import io
import wave
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asr.bench.record import Bucket, Clip
from asr.errors import RecordError, SystemAccessError

DEFAULT = Path(__file__).with_name("workload") / "default.tsv"

#: Longest clip of each bucket in seconds; what is longer is ``long``.
_LIMITS: tuple[tuple[Bucket, float], ...] = (("1 s", 2.0), ("5 s", 8.0), ("15 s", 20.0),
                                             ("30 s", 30.0))  # fmt: skip


@dataclass(frozen=True, slots=True)
class WorkClip:
    """One clip of a workload, ready to be heard.

    Attributes:
        id: unique within the workload.
        path: of the sound.
        bucket: length class.
        sha256: of the file's bytes.
        audio_s: seconds of source audio.
        words: what is said; None where nobody knows.
        texts: what is expected to be heard, by start of the network's SHA-256; ``""`` is any.
    """

    id: str
    path: Path
    bucket: Bucket
    sha256: str
    audio_s: float
    words: str | None
    texts: Mapping[str, str]

    def expected(self, network_sha256: str) -> str | None:
        """The text that this network is expected to hear, if known."""
        for start, text in self.texts.items():
            if network_sha256.startswith(start):
                return text
        return None


@dataclass(frozen=True, slots=True)
class Workload:
    """Clips in the manifest's order.

    Attributes:
        name: the manifest's stem and the start of its hash.
        clips: at least one.
    """

    name: str
    clips: tuple[WorkClip, ...]


def load(manifest: Path, folder: Path) -> Workload:
    """Read a manifest, make what has to be joined, check every hash.

    Args:
        manifest: a file as described above.
        folder: joined clips are written here.

    Raises:
        SystemAccessError: a file cannot be read.
        RecordError: the manifest is none, or a clip is not the one it names.
        AudioError: a clip is no sound.
    """
    data = _bytes(manifest)
    rows = csv.DictReader(io.StringIO(data.decode("utf-8", "replace")), delimiter="\t")
    if "file" not in (rows.fieldnames or ()):
        raise RecordError(f"{manifest}: expected a header line with the column 'file'")
    clips = [_clip(manifest, folder, row) for row in rows if row["file"]]
    if not clips:
        raise RecordError(f"{manifest}: expected at least one clip, found none")
    ids = [clip.id for clip in clips]
    if twice := {i for i in ids if ids.count(i) > 1}:
        raise RecordError(f"{manifest}: expected every id once, found {min(twice)!r} again")
    name = f"{manifest.stem} {hashlib.sha256(data).hexdigest()[:16]}"
    return Workload(name, tuple(clips))


def _clip(manifest: Path, folder: Path, row: Mapping[str, str | None]) -> WorkClip:
    from asr import audio

    parts = (row["file"] or "").split(" + ")
    name = row.get("id") or Path(parts[0]).stem
    path = manifest.parent / parts[0]
    if len(parts) > 1:
        path = folder / f"{name}.wav"
        try:
            path.write_bytes(joined(parts, manifest.parent))
        except (ValueError, wave.Error) as error:
            raise RecordError(f"{manifest}: {name}: cannot join {row['file']!r}: {error}") from None
    sha256 = hashlib.sha256(_bytes(path)).hexdigest()
    if row.get("sha256") not in ("", None, sha256):
        raise RecordError(
            f"{path}: expected the SHA-256 {row['sha256']} of {manifest.name}, found {sha256}: "
            "another file would measure something else"
        )
    audio_s = audio.read(path).duration_s
    if row.get("seconds") and abs(float(row["seconds"] or 0) - audio_s) > 1e-3:
        raise RecordError(f"{path}: expected {row['seconds']} s of audio, found {audio_s:.3f} s")
    texts = {
        column.removeprefix("text").strip(): text
        for column, text in row.items()
        if column and column.startswith("text") and text
    }
    return WorkClip(
        name, path, bucket_of(audio_s), sha256, audio_s, row.get("words") or None, texts
    )


def bucket_of(audio_s: float) -> Bucket:
    """The length class of so many seconds."""
    return next((bucket for bucket, limit in _LIMITS if audio_s <= limit), "long")


def joined(parts: list[str], folder: Path) -> bytes:
    """WAV files and seconds of silence, one after the other: the same bytes every time.

    Raises:
        SystemAccessError: a file cannot be read.
        ValueError, wave.Error: a part is neither a number nor a file like the first one.
    """
    sound, form = b"", None
    for part in parts:
        if part.endswith(".wav"):
            with wave.open(io.BytesIO(_bytes(folder / part))) as source:
                if form not in (None, source.getparams()[:3]):
                    raise ValueError(f"{part} has another rate, width or number of channels")
                form = source.getparams()[:3]
                sound += source.readframes(source.getnframes())
        elif form is None:
            raise ValueError("expected a WAV file first")
        else:
            channels, width, rate = form
            sound += bytes(round(float(part) * rate) * channels * width)
    out = io.BytesIO()
    with wave.open(out, "wb") as target:
        target.setparams((*(form or (1, 2, 16000)), 0, "NONE", "not compressed"))
        target.writeframes(sound)
    return out.getvalue()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the file: {error.strerror}") from None


def error_rate(words: str, heard: str) -> float:
    """Character errors over characters said, after the normalisation of ``asr evaluate``."""
    from asr.evaluate.normalise import characters
    from asr.evaluate.normalise import words as split

    said, found = characters(split(words)), characters(split(heard))
    row = list(range(len(found) + 1))
    for i, character in enumerate(said, 1):
        above, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (character != other))
    return row[-1] / max(1, len(said))


def judged(clip: WorkClip, heard: set[str], network_sha256: str) -> Clip:
    """A clip as a record has it: with what was heard, and whether that is right.

    Args:
        clip: of the workload.
        heard: the texts of all calls.
        network_sha256: of the network that heard it.
    """
    expected = clip.expected(network_sha256)
    return Clip(
        id=clip.id,
        bucket=clip.bucket,
        sha256=clip.sha256,
        audio_s=clip.audio_s,
        text_sha256=hashlib.sha256("\n".join(sorted(heard)).encode()).hexdigest(),
        text_as_expected=len(heard) == 1 and (expected is None or heard == {expected}),
        cer=None if clip.words is None else max(error_rate(clip.words, t) for t in heard),
    )
