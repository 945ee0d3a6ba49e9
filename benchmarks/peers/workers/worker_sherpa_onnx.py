"""sherpa-onnx as a contender."""

import json
from collections.abc import Callable
from pathlib import Path

from sounds import RATE_HZ, samples_of

IMPORTS = ("sherpa_onnx",)


def load(model: str, threads: str) -> "OfflineRecognizer":  # noqa: F821 - imported when loaded
    """Its SenseVoice recogniser; the network's name says which file the folder holds."""
    import sherpa_onnx

    network = next(iter(sorted(Path(model).glob("model*.onnx"))))
    return sherpa_onnx.OfflineRecognizer.from_sense_voice(
        model=str(network),
        tokens=str(Path(model) / "tokens.txt"),
        num_threads=int(threads),
        language="auto",
        use_itn=False,
    )


def warm(model: str, threads: str) -> Callable[[str], str]:
    """Read a file, return its text."""
    recognizer = load(model, threads)
    return lambda path: _hear(recognizer, samples_of(path)).text


def long(model: str, threads: str) -> Callable[[str], str]:
    """A long file cut every 20 s; whole, its attention would need gigabytes and minutes."""
    recognizer = load(model, threads)

    def run(path: str) -> str:
        samples, step = samples_of(path), 20 * RATE_HZ
        pieces = (samples[i : i + step] for i in range(0, len(samples), step))
        return "".join(_hear(recognizer, piece).text for piece in pieces)

    return run


def answers(model: str, threads: str) -> Callable[[str], str]:
    """The ids of its tokens, as JSON: it does not show its rows."""
    recognizer = load(model, threads)
    lines = (Path(model) / "tokens.txt").read_text(encoding="utf-8").splitlines()
    ids = {line.rpartition(" ")[0]: number for number, line in enumerate(lines)}

    def run(path: str) -> str:
        return json.dumps([ids.get(t, -1) for t in _hear(recognizer, samples_of(path)).tokens])

    return run


def _hear(recognizer: "OfflineRecognizer", samples: "NDArray") -> "Result":  # noqa: F821
    stream = recognizer.create_stream()
    stream.accept_waveform(RATE_HZ, samples)
    recognizer.decode_stream(stream)
    return stream.result
