"""Our pipeline with sherpa-onnx's network under it as lele compiles it (lele.py, lele/)."""

import ctypes
import mmap
from collections.abc import Callable, Mapping
from pathlib import Path

IMPORTS = ("numpy", "asr.recognizer", "soundfile", "sentencepiece")


class LeleEngine:
    """The network as an engine; lele runs on one thread."""

    description, threads, placement = "lele 0.1.16", 1, {"CPU": 1}

    def __init__(self, built: Path) -> None:
        from asr.engines.base import TensorInfo
        from asr.engines.preparation import UNPREPARED

        self.preparation = UNPREPARED
        self._library = ctypes.CDLL(str(built / "release/liblele_sensevoice.so"))
        self._library.lele_load.restype = ctypes.c_void_p
        self._library.lele_run.restype = ctypes.c_size_t
        with (built / "weights.bin").open("rb") as file:
            self._weights = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE)
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._weights))
        size = ctypes.c_size_t(len(self._weights))
        self._loaded = ctypes.c_void_p(self._library.lele_load(ctypes.c_void_p(place), size))
        kinds = {"x": "tensor(float)"} | dict.fromkeys(
            ("x_length", "language", "text_norm"), "tensor(int32)"
        )
        self.inputs = tuple(
            TensorInfo(n, kind, (None, None, 560) if n == "x" else (None,))
            for n, kind in kinds.items()
        )
        self.outputs = (TensorInfo("logits", "tensor(float)", (None, None, 25055)),)

    def run(self, inputs: Mapping[str, "NDArray"]) -> dict[str, "NDArray"]:  # noqa: F821
        """As ``asr.engines.base.Engine.run``."""
        import numpy as np

        features = np.ascontiguousarray(inputs["x"], np.float32)
        rows = features.shape[1]
        scores = np.empty((1, rows + 4, 25055), np.float32)
        pointers = (array.ctypes.data_as(ctypes.c_void_p) for array in (features, scores))
        given, out = pointers
        language, itn = (ctypes.c_int64(int(inputs[n][0])) for n in ("language", "text_norm"))
        found = self._library.lele_run(
            self._loaded, given, ctypes.c_size_t(rows), language, itn, out,
            ctypes.c_size_t(scores.size),
        )  # fmt: skip
        assert found == scores.size, f"lele gives {found} scores, wanted {scores.size}"
        return {"logits": scores}


def load(model: str, threads: str) -> "Recognizer":  # noqa: F821 - imported later
    """Front end, decoder and text are ours."""
    from asr.frontend import FrontEnd
    from asr.layouts import open_layout
    from asr.recognizer import Recognizer

    layout = open_layout(Path(model))
    return Recognizer(layout, FrontEnd(layout.front_end), LeleEngine(Path(model).parent / "lele"))


def warm(model: str, threads: str) -> Callable[[str], str]:
    """Read a file, return its text."""
    recognizer = load(model, threads)
    return lambda path: recognizer.transcribe(path, piece_s=60.0).text


def answers(model: str, threads: str) -> Callable[[str], str]:
    """The best id of every row of a file, as JSON."""
    from worker_ours import rows_of

    return rows_of(load(model, threads))
