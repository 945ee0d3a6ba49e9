"""The training log: one tab-separated line now and then, and the learning curve drawn from it.

As a program: `progress_log.py LOG PNG` draws the curve.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from corpus import read_table
from validation import SETS

LOSSES = ("ctc", "small_ctc", "tags")
COLUMNS = (
    "step round stage strength learning_rate audio_hours audio_hours_per_minute".split()
    + [f"loss_{name}" for name in LOSSES]
    + ["dev_mean"]
    + [f"dev_{name}" for name in SETS]
)


class ProgressLog:
    """Appends lines to a file and to standard output; sums losses between lines."""

    def __init__(self, path: Path, audio_hours: float) -> None:
        self._path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text("\t".join(COLUMNS) + "\n", encoding="utf-8")
        self._audio_hours = audio_hours
        self._restart()

    def _restart(self) -> None:
        self._started = time.monotonic()
        self._sums = dict.fromkeys(LOSSES, 0.0)
        self._steps = 0

    def add_losses(self, values: dict[str, float]) -> None:
        """Losses of one step."""
        for name, value in values.items():
            self._sums[name] += value
        self._steps += 1

    def write(self, facts: dict[str, object], audio_hours: float, dev: dict[str, float]) -> None:
        """One line; `dev` is empty where nothing was validated.

        The rate in audio hours per minute is by the clock since the last line.
        """
        minutes = (time.monotonic() - self._started) / 60
        cells = {name: str(value) for name, value in facts.items()}
        cells["audio_hours"] = f"{audio_hours:.2f}"
        rate = (audio_hours - self._audio_hours) / max(minutes, 1e-6)
        cells["audio_hours_per_minute"] = f"{rate:.2f}"
        for name, total in self._sums.items():
            cells[f"loss_{name}"] = f"{total / max(1, self._steps):.3f}"
        for name, value in dev.items():
            cells[f"dev_{name}"] = f"{value:.1f}"
        if dev:
            cells["dev_mean"] = f"{sum(dev.values()) / len(dev):.1f}"
        line = "\t".join(cells.get(column, "") for column in COLUMNS)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(line, flush=True)
        self._audio_hours = audio_hours
        self._restart()


def draw_curve(log: Path, picture: Path) -> None:
    """Training loss and validation errors over steps, as a PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = read_table(log)
    figure, (upper, lower) = pyplot.subplots(2, 1, figsize=(9, 9), sharex=True)
    steps = [int(row["step"]) for row in rows]
    for name in ("ctc", "small_ctc"):
        upper.plot(steps, [float(row[f"loss_{name}"]) for row in rows], label=name)
    upper.set_ylabel("training loss per piece (augmented)")
    measured = [row for row in rows if row["dev_mean"]]
    for name in ("mean", *SETS):
        # A set that joined later has no value in the rows before.
        known = [row for row in measured if row[f"dev_{name}"]]
        values = [float(row[f"dev_{name}"]) for row in known]
        style = {"color": "black", "linewidth": 2.5} if name == "mean" else {"linewidth": 1}
        lower.plot([int(row["step"]) for row in known], values, label=name, **style)
    lower.set_ylabel("validation: word error %, noise with text %")
    lower.set_xlabel("step")
    lower.set_ylim(0, 100)
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(picture, dpi=90)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("picture", type=Path)
    options = parser.parse_args()
    draw_curve(options.log, options.picture)


if __name__ == "__main__":
    main()
