"""Averages the weights of several states of one run; the last one gives everything else.

States some dozens of steps apart differ by the noise of the batches; their mean has less of it.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import checkpoint


def average(paths: list[Path]) -> checkpoint.State:
    """The last state with the mean of all weights and no optimiser."""
    state = checkpoint.load(paths[-1])
    weights = [checkpoint.load(path).model.state_dict() for path in paths]
    mean = {name: sum(w[name] for w in weights) / len(weights) for name in weights[0]}
    state.model.load_state_dict(mean)
    state.optimiser, state.progress.decay_began = None, -1
    return state


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("states", type=Path, nargs="+", help="in order of their steps")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    checkpoint.save(average(options.states), options.out)


if __name__ == "__main__":
    main()
