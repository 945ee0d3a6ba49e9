"""Saving and loading training state; a file is replaced atomically, so a kill leaves the old one.

A state holds everything: network sizes, weights, both vocabularies, mean and deviation, counters,
and (in full states only) the optimiser. `slim` makes the small one to commit: float16 weights and
no optimiser. Training resumed from a slim state warms a fresh optimiser up again.

As a program: `checkpoint.py STATE SLIM` makes the small form.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from features import Normaliser
from network import NetworkConfig, TinySenseVoice
from pieces import Pieces


@dataclass
class Progress:
    """How far training has come.

    Attributes:
        step: optimiser steps.
        round_number: rounds finished.
        audio_hours: augmented audio seen.
        decay_began: step at which a decay branch left the main run; -1 in a main run.
    """

    step: int = 0
    round_number: int = 0
    audio_hours: float = 0.0
    decay_began: int = -1


@dataclass
class State:
    """A checkpoint in memory.

    Attributes:
        model: the network with its weights.
        pieces: output vocabulary.
        small_pieces: vocabulary of the middle head.
        normaliser: mean and deviation of the log-mel frames.
        progress: counters.
        optimiser: state of `optimiser.Optimiser`, or None.
    """

    model: TinySenseVoice
    pieces: Pieces
    small_pieces: Pieces
    normaliser: Normaliser
    progress: Progress
    optimiser: dict | None = None


def save(state: State, path: Path) -> None:
    """Writes beside `path`, then renames."""
    _write(_contents(state, torch.float32, state.optimiser), path)


def slim(state: State, path: Path) -> None:
    """Writes the small form: float16 weights, no optimiser."""
    _write(_contents(state, torch.float16, None), path)


def load(path: Path) -> State:
    """Reads either form; weights become float32."""
    stored = torch.load(path, map_location="cpu", weights_only=True)
    model = TinySenseVoice(NetworkConfig(**stored["config"]))
    weights = {name: value.float() for name, value in stored["weights"].items()}
    model.load_state_dict(weights)
    optimiser = stored["optimiser"]
    normaliser = Normaliser(stored["mean"].numpy(), stored["inverse_deviation"].numpy())
    return State(
        model,
        Pieces(stored["pieces"]),
        Pieces(stored["small_pieces"]),
        normaliser,
        Progress(**stored["progress"]),
        optimiser if optimiser and "muon" in optimiser else None,
    )


def _contents(state: State, dtype: torch.dtype, optimiser: dict | None) -> dict:
    weights: dict[str, Tensor] = state.model.state_dict()
    return {
        "config": dataclasses.asdict(state.model.config),
        "weights": {name: value.to(dtype) for name, value in weights.items()},
        "pieces": state.pieces.model,
        "small_pieces": state.small_pieces.model,
        "mean": torch.from_numpy(np.asarray(state.normaliser.mean, np.float32)),
        "inverse_deviation": torch.from_numpy(
            np.asarray(state.normaliser.inverse_deviation, np.float32)
        ),
        "progress": dataclasses.asdict(state.progress),
        "optimiser": optimiser,
    }


def _write(contents: dict, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        torch.save(contents, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", type=Path)
    parser.add_argument("slim", type=Path)
    options = parser.parse_args()
    slim(load(options.state), options.slim)


if __name__ == "__main__":
    main()
