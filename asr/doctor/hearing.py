"""A model hears the clips: texts, ids, and how long it took."""

import hashlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from asr import audio
from asr.doctor.clips import Clip
from asr.recognizer import Recognizer
from asr.records import Decoded, Float32, Transcript

T = TypeVar("T")

#: Calls per clip; the first one of all is cold.
CALLS = 3


@dataclass(frozen=True, slots=True)
class Heard:
    """What one clip gave.

    Attributes:
        samples: float32 (num_samples,), at the model's rate.
        calls_ms: of every call.
        texts: all that the calls said, withheld or not.
        transcript: of the last call.
        argmax: the best id of every row, prompt rows included.
    """

    samples: Float32
    calls_ms: tuple[float, ...]
    texts: frozenset[str]
    transcript: Transcript
    argmax: tuple[int, ...]


class _Catch:
    """An observer that keeps the decoded rows."""

    def __init__(self) -> None:
        self.argmax: list[int] = []

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Call ``function(*arguments)``."""
        value = function(*arguments)
        if name == "decode" and isinstance(value, Decoded):
            self.argmax += value.argmax.tolist()
        return value


def hear(recognizer: Recognizer, clip: Clip) -> Heard:
    """Let a model hear a clip ``CALLS`` times."""
    sound = audio.resample(clip.sound, recognizer.sample_rate_hz)
    calls, texts = [], []
    for _ in range(CALLS):
        catch = _Catch()
        start_s = time.perf_counter()
        transcript = recognizer.transcribe(sound, observer=catch)
        calls.append((time.perf_counter() - start_s) * 1e3)
        texts.append(text_of(transcript))
    return Heard(sound.samples, tuple(calls), frozenset(texts), transcript, tuple(catch.argmax))


def text_of(transcript: Transcript) -> str:
    """What was heard, also where it is withheld."""
    return " ".join(segment.text for segment in transcript.segments)


def clip_facts(clip: Clip, heard: Heard, with_texts: bool) -> dict[str, Any]:
    """A clip's part of the JSON."""
    transcript = heard.transcript
    return {
        "name": clip.name,
        "audio_s": round(transcript.audio_s, 3),
        "language": transcript.language,
        "tokens": sum(len(w.tokens) for s in transcript.segments for w in s.words),
        "ids_sha256": hashlib.sha256(repr(heard.argmax).encode()).hexdigest(),
        "confidence": transcript.confidence,
        "rejected": transcript.rejected,
        "reason": transcript.reason,
        "text": text_of(transcript) if with_texts else None,
    }


def timing_facts(load_ms: float, heard: Sequence[Heard], clips: Sequence[Clip]) -> dict[str, float]:
    """Load, first call, warm calls: the clips' medians over all calls but the first, summed."""
    warm_ms = sum(statistics.median(h.calls_ms[1:]) for h in heard)
    audio_s = sum(clip.sound.duration_s for clip in clips)
    return {
        "load_ms": load_ms,
        "first_call_ms": heard[0].calls_ms[0],
        "first_call_audio_s": clips[0].sound.duration_s,
        "warm_ms": warm_ms,
        "audio_s": audio_s,
        "rtf_warm": warm_ms / 1e3 / audio_s,
    }
