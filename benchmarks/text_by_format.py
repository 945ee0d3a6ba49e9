"""Say what a container, an encoding, a rate and channels do to the text: a table of differences.

    .venv/bin/python benchmarks/text_by_format.py [--clips 3] [--formats wav-s16,mp3] [--rates 8000]

Every clip of golden/audio is written in every format, at every rate that the format has, as mono,
as two or six equal channels, and with another voice on a second channel, of which the first is
heard. Each is transcribed from memory and compared with the text of the clip as it is.

The promise, and exit code 12 where it is broken: no text differs for lossless encodings of 16 bits
or more at 16 kHz or more; lossy ones and those of 8 bits have a character error rate (CER, against
what was spoken) at most 2 points above that of the clips as they are, per format, at those rates.
Below 16 kHz, where a part of the sound is gone for good, the table only tells.

A clip whose text changes when noise of one 16-bit step is added to it, which nobody can hear, says
nothing about formats: it is named and left out.
"""

import argparse
import hashlib
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
RATE = 16000
RATES = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 96000)
MAX_CER = 0.02
TEXT_CHANGED = 12
Float32 = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Format:
    """How sound is kept.

    Attributes:
        container: libsndfile's name, or FFmpeg's where ``codec`` is set.
        subtype: libsndfile's name of the encoding.
        exact: whether it is lossless and has 16 bits or more.
        rates: those that the encoding has.
        codec: FFmpeg's name of the encoding.
        most_channels: how many it has room for.
    """

    container: str
    subtype: str = ""
    exact: bool = True
    rates: tuple[int, ...] = RATES
    codec: str = ""
    most_channels: int = 6


_OPUS = (8000, 16000, 24000, 48000)
_TO_48 = tuple(r for r in RATES if r <= 48000)
FORMATS = {
    "wav-u8": Format("WAV", "PCM_U8", exact=False),
    "wav-s16": Format("WAV", "PCM_16"),
    "wav-s24": Format("WAV", "PCM_24"),
    "wav-s32": Format("WAV", "PCM_32"),
    "wav-f32": Format("WAV", "FLOAT"),
    "wav-f64": Format("WAV", "DOUBLE"),
    "wav-alaw": Format("WAV", "ALAW", exact=False),
    "wav-mulaw": Format("WAV", "ULAW", exact=False),
    "wav-ima-adpcm": Format("WAV", "IMA_ADPCM", exact=False, most_channels=2),
    "wavex-s24": Format("WAVEX", "PCM_24"),
    "rf64-s16": Format("RF64", "PCM_16"),
    "w64-s16": Format("W64", "PCM_16"),
    "aiff-s16": Format("AIFF", "PCM_16"),
    "au-s16": Format("AU", "PCM_16"),
    "caf-s24": Format("CAF", "PCM_24"),
    "caf-alac": Format("CAF", "ALAC_16"),
    "flac-s8": Format("FLAC", "PCM_S8", exact=False),
    "flac-s16": Format("FLAC", "PCM_16"),
    "flac-s24": Format("FLAC", "PCM_24"),
    "ogg-vorbis": Format("OGG", "VORBIS", exact=False),
    "ogg-opus": Format("OGG", "OPUS", exact=False, rates=_OPUS),
    "mp3": Format("MP3", "MPEG_LAYER_III", exact=False, rates=_TO_48, most_channels=2),
    "m4a-aac": Format("ipod", codec="aac", exact=False),
    "webm-opus": Format("webm", codec="libopus", exact=False, rates=(48000,)),
}
LAYOUTS = {"mono": 1, "2 same": 2, "2 separate": 2, "6 same": 6}


@dataclass(slots=True)
class Cell:
    """What one format did at one rate.

    Attributes:
        texts: how many were compared.
        changed: (layout, clip, text as it was, text found) of those that differ.
        errors: characters in error, less those of the clips as they are.
        characters: of what was spoken.
    """

    texts: int = 0
    changed: list[tuple[str, str, str, str]] = field(default_factory=list)
    errors: int = 0
    characters: int = 0

    def add(self, layout: str, clip: str, spoken: str, expected: str, found: str) -> None:
        """Compare a text."""
        self.texts += 1
        self.characters += len(spoken)
        if found != expected:
            self.changed.append((layout, clip, expected, found))
            self.errors += distance(spoken, found) - distance(spoken, expected)

    @property
    def cer(self) -> float:
        """The difference of the character error rates; below zero where errors went."""
        return self.errors / max(1, self.characters)


def distance(a: str, b: str) -> int:
    """Least number of characters to insert, delete or replace."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


def written(samples: Float32, rate: int, form: Format) -> bytes:
    """A file's content; samples are float32 (num_samples, channels)."""
    file = io.BytesIO()
    if form.codec:
        _write_av(file, samples, rate, form)
    else:
        import soundfile

        soundfile.write(file, samples, rate, format=form.container, subtype=form.subtype)
    return file.getvalue()


def _write_av(file: io.BytesIO, samples: Float32, rate: int, form: Format) -> None:
    import av

    channels = {1: "mono", 2: "stereo", 6: "5.1"}[samples.shape[1]]
    with av.open(file, "w", format=form.container) as out:
        stream = out.add_stream(form.codec, rate=rate, layout=channels)
        context = stream.codec_context
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples.T), "fltp", channels)
        frame.sample_rate, frame.pts = rate, 0
        resampler = av.AudioResampler(context.format.name, channels, rate)
        fifo = av.AudioFifo()
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            fifo.write(piece)
        size = context.frame_size or 1024
        while (piece := fifo.read(size) or fifo.read(size, partial=True)) is not None:
            out.mux(stream.encode(piece))
        out.mux(stream.encode(None))


def arranged(samples: Float32, other: Float32, layout: str) -> Float32:
    """Channels of a layout: float32 (num_samples, channels)."""
    if layout == "2 separate":
        return np.stack([samples, np.resize(other, samples.shape)], axis=1)
    return np.repeat(samples[:, np.newaxis], LAYOUTS[layout], axis=1)


def at_rate(samples: Float32, rate: int) -> Float32:
    """The clip at another rate, as a careful recordist would have made it."""
    if rate == RATE:
        return samples
    import soxr

    found: Float32 = soxr.resample(samples, RATE, rate, quality="VHQ")
    return np.clip(found, -1, 1)


class Ears:
    """The recogniser; equal sound is heard once, since it has one text."""

    def __init__(self) -> None:
        from asr import Recognizer

        self._recognizer = Recognizer.load()
        self._heard: dict[tuple[int, bytes], str] = {}

    def text(self, content: bytes | Path | Float32, channel: int | None = None) -> str:
        """What is said in a file, or in an array at 16 kHz."""
        from asr import audio

        rate = RATE if isinstance(content, np.ndarray) else None
        sound = audio.read(content, rate, channel=channel)
        key = (sound.sample_rate_hz, hashlib.sha256(sound.samples.tobytes()).digest())
        if key not in self._heard:
            self._heard[key] = self._recognizer.transcribe(sound).text
        return self._heard[key]

    def is_settled(self, clip: Path) -> bool:
        """Whether noise of one 16-bit step leaves the text as it is, ten times out of ten."""
        samples = read(clip)
        for seed in range(10):
            noise = np.random.default_rng(seed).uniform(-1, 1, len(samples)) / 32768
            if self.text((samples + noise).astype(np.float32)) != self.text(clip):
                return False
        return True


def read(clip: Path) -> Float32:
    """The samples of a clip."""
    import soundfile

    found: Float32 = soundfile.read(clip, dtype="float32")[0]
    return found


def compare(
    ears: Ears, clips: list[Path], formats: dict[str, Format], rates: list[int]
) -> Iterator[tuple[str, int, Cell]]:
    """Write, transcribe and compare.

    Yields:
        Format, rate, and what was found.
    """
    sounds = [read(clip) for clip in clips]
    expected = [ears.text(clip) for clip in clips]
    spoken = [
        json.loads((GOLDEN / "expected" / clip.stem / "text.json").read_text())["words"]
        for clip in clips
    ]
    for name, form in formats.items():
        for rate in rates:
            if rate not in form.rates:
                continue
            resampled = [at_rate(sound, rate) for sound in sounds]
            cell = Cell()
            for number, (clip, text) in enumerate(zip(clips, expected, strict=True)):
                for layout, channels in LAYOUTS.items():
                    if channels > form.most_channels:
                        continue
                    other = resampled[number - 1]
                    content = written(arranged(resampled[number], other, layout), rate, form)
                    channel = 1 if layout == "2 separate" else None
                    found = ears.text(content, channel)
                    cell.add(layout, clip.stem, spoken[number], text, found)
            yield name, rate, cell


def verdict(name: str, cells: dict[int, Cell]) -> str:
    """What of the promise a format breaks; empty when nothing."""
    from_16 = [cell for rate, cell in cells.items() if rate >= RATE]
    changed = sum(len(cell.changed) for cell in from_16)
    cer = sum(c.errors for c in from_16) / max(1, sum(c.characters for c in from_16))
    if FORMATS[name].exact:
        return f"{changed} texts differ" if changed else ""
    return f"CER {100 * cer:+.2f}" if cer > MAX_CER else ""


def main() -> int:
    """Print the table; 12 when the promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clips", type=int, metavar="N", help="the first N (default: all)")
    parser.add_argument("--formats", default=",".join(FORMATS), metavar="LIST")
    parser.add_argument("--rates", default=",".join(map(str, RATES)), metavar="LIST")
    options = parser.parse_args()
    ears = Ears()
    every = sorted((GOLDEN / "audio").glob("*.wav"))[: options.clips]
    clips = [clip for clip in every if ears.is_settled(clip)]
    formats = {name: FORMATS[name] for name in options.formats.split(",")}
    rates = [int(rate) for rate in options.rates.split(",")]
    print(f"{len(clips)} clips x {', '.join(LAYOUTS)}; texts that differ, and CER more or less\n")
    for clip in every:
        if clip not in clips:
            print(f"left out: {clip.stem}, whose text changes with noise of one 16-bit step\n")
    print("| format | " + " | ".join(f"{rate / 1000:g} kHz" for rate in rates) + " | |")
    print("|---" * (len(rates) + 2) + "|")
    table: dict[str, dict[int, Cell]] = {name: {} for name in formats}
    for name, rate, cell in compare(ears, clips, formats, rates):
        table[name][rate] = cell
        if rate == max(r for r in rates if r in formats[name].rates):
            _print_row(name, rates, table[name])
    broken = {name: why for name, cells in table.items() if (why := verdict(name, cells))}
    for name in broken:
        for rate, cell in table[name].items():
            for layout, clip, before, after in cell.changed if rate >= RATE else ():
                print(f"{name} {rate} {layout} {clip}: {before!r} became {after!r}")
    print(f"\n{'broken: ' + ', '.join(broken) if broken else 'kept'}")
    return TEXT_CHANGED if broken else 0


def _print_row(name: str, rates: list[int], cells: dict[int, Cell]) -> None:
    shown = [
        f"{len(c.changed)}/{c.texts} {100 * c.cer:+.1f}" if (c := cells.get(rate)) else "-"
        for rate in rates
    ]
    kind = "exact" if FORMATS[name].exact else "lossy"
    print(f"| {name} | " + " | ".join(shown) + f" | {verdict(name, cells) or kind} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
