"""Ours as a contender: whole calls, stages, rows. Run by asr/bench/worker.py and fresh.py."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
IMPORTS = ("onnxruntime", "asr.recognizer", "soundfile", "sentencepiece")


def load(model: str, threads: str, how: str = "") -> "Recognizer":  # noqa: F821 - imported later
    """Load a folder; ``how`` is ``quantize``, ``as-is``, or nothing, as contenders.py has it."""
    from asr.recognizer import Recognizer

    quantize = "int8" if how == "quantize" else None
    return Recognizer.load(model, threads=int(threads), optimize=how != "as-is", quantize=quantize)


def warm(model: str, threads: str, how: str = "") -> Callable[[str], str]:
    """Read a file, return its text."""
    recognizer = load(model, threads, how)
    return lambda path: recognizer.transcribe(path, piece_s=60.0).text


def long(model: str, threads: str, how: str = "") -> Callable[[str], str]:
    """A long file in pieces of at most 20 s, all of it heard: what the peers are given too."""
    recognizer = load(model, threads, how)
    return lambda path: recognizer.transcribe(path, vad=False).text


def front_end(model: str, path: str) -> Callable[[], None]:
    """Samples in memory -> features: fbank, LFR, CMVN."""
    from sounds import samples_of

    from asr.frontend import FrontEnd
    from asr.layouts import open_layout
    from asr.records import Audio

    stages = FrontEnd(open_layout(Path(model)).front_end)
    sound = Audio(samples_of(path), 16000, path)

    def run() -> None:
        stages.cmvn(stages.lfr(stages.fbank(sound)))

    return run


def decode(model: str, rows: str) -> Callable[[], None]:
    """Scores -> ids, log-probability, entropy -> text."""
    from sounds import scores

    from asr import ctc, text
    from asr.layouts import open_layout
    from asr.records import Logits

    layout = open_layout(Path(model))
    logits = Logits(scores(int(rows), len(layout.vocabulary)), 0.06, layout.prompt_frames)

    def run() -> None:
        decoded = ctc.greedy(logits, blank_id=layout.blank_id)
        text.transcribe(decoded, layout.vocabulary, audio_s=0.06 * int(rows), requested_itn=False)

    return run


class _Outside:
    """CPU time of a call outside the network."""

    def __init__(self) -> None:
        self.network_ns = 0

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        start_ns = time.process_time_ns()
        value = function(*arguments)
        if name == "infer":
            self.network_ns += time.process_time_ns() - start_ns
        return value


def outside(model: str, threads: str, how: str = "") -> Callable[[str], str]:
    """CPU nanoseconds of a warm call outside the network, as text."""
    recognizer = load(model, threads, how)

    def run(path: str) -> str:
        observer, start_ns = _Outside(), time.process_time_ns()
        recognizer.transcribe(path, piece_s=60.0, observer=observer)
        return str(time.process_time_ns() - start_ns - observer.network_ns)

    return run


def answers(model: str, threads: str, how: str = "") -> Callable[[str], str]:
    """The best id of every row of a file, as JSON."""
    return rows_of(load(model, threads, how))


def rows_of(recognizer: "Recognizer") -> Callable[[str], str]:  # noqa: F821
    """The same of any recogniser of ours."""

    def run(path: str) -> str:
        kept: list[int] = []

        class Keep:
            def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
                value = function(*arguments)
                if name == "decode":
                    kept.extend(value.argmax.tolist())
                return value

        recognizer.transcribe(path, piece_s=60.0, observer=Keep())
        return json.dumps(kept)

    return run
