"""Pictures for people: golden/compare.py --plot."""

import struct
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from golden import compare  # noqa: E402

GOLDEN = ROOT / "golden" / "expected" / "seven-slt"


def png_size(path):
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def copy_of_golden(folder, change=None):
    for path in GOLDEN.glob("*.npz"):
        arrays = compare.load(path)
        if path.name == change:
            arrays["values"][2, 5] += 1.0
        np.savez(folder / path.name, **arrays)


def test_plot_shows_the_first_step_that_differs(tmp_path, monkeypatch):
    """The picture is of the step that is named first, not of one that only inherits the error."""
    copy_of_golden(tmp_path, change="05-lfr.npz")
    drawn = []
    real = compare.plot
    monkeypatch.setattr(compare, "plot", lambda *a: (drawn.append(a[2]), real(*a)))
    picture = tmp_path / "out.png"
    arguments = [str(tmp_path), "--expected", str(GOLDEN), "--plot", str(picture)]
    assert compare.main(arguments) == 12
    assert drawn[0].endswith("05-lfr.npz")
    assert min(png_size(picture)) > 500


def test_plot_of_equal_dumps_shows_the_features(tmp_path):
    """Nothing differs: there is still something to look at, and the exit code says equal."""
    copy_of_golden(tmp_path)
    picture = tmp_path / "out.png"
    arguments = [str(tmp_path), "--expected", str(GOLDEN), "--plot", str(picture)]
    assert compare.main(arguments) == 0
    assert min(png_size(picture)) > 500
