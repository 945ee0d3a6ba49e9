"""Our pipeline with OpenVINO under it, at the precision that OpenVINO picks for this CPU."""

from collections.abc import Callable
from pathlib import Path

IMPORTS = ("openvino", "asr.recognizer", "soundfile", "sentencepiece")


def load(model: str, threads: str) -> "Recognizer":  # noqa: F821 - imported when loaded
    """Front end, decoder and text are ours."""
    from asr.engines.openvino import OpenVinoEngine
    from asr.frontend import FrontEnd
    from asr.layouts import open_layout
    from asr.recognizer import Recognizer

    layout = open_layout(Path(model))
    engine = OpenVinoEngine(layout.network, threads=int(threads), exact=False)
    return Recognizer(layout, FrontEnd(layout.front_end), engine)


def warm(model: str, threads: str) -> Callable[[str], str]:
    """Read a file, return its text."""
    recognizer = load(model, threads)
    return lambda path: recognizer.transcribe(path, piece_s=60.0).text
