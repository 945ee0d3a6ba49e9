"""Say where two dumps differ first: step, array, frame, column, expected, got, largest error.

    python golden/compare.py GOT                     our dump (ASR_DUMP=GOT) against golden/expected
    python golden/compare.py GOT --expected OTHER    two dumps of ours, before and after a change
    python golden/compare.py GOT --exact             every bit
    python golden/compare.py GOT --plot out.png      a picture of the first step that differs

Exit code 0 equal within tolerance, 12 different, 14 nothing to compare with.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))
from golden import signals  # noqa: E402

Arrays = dict[str, np.ndarray]
Tolerance = dict[str, float]

EXPECTED = ROOT / "golden" / "expected"
#: Facts about a golden file, not values of a step.
NOT_VALUES = {"format_version", "references", "model_sha256", "samples_sha256"}
NOT_VALUES |= {"float64_minus_values", "margin", "rows", "num_frames"}


@dataclass(frozen=True)
class Difference:
    """The first place where two arrays differ, and the largest error anywhere in them."""

    array: str
    frame: int | None
    column: int | None
    expected: object
    got: object
    largest: float

    def __str__(self) -> str:
        place = "".join(
            f", {name} {index}"
            for name, index in (("frame", self.frame), ("column", self.column))
            if index is not None
        )
        return (
            f"{self.array}{place}: expected {self.expected}, got {self.got}; "
            f"largest error {self.largest:.3g}"
        )


def first_difference(
    array: str,
    expected: Any,  # noqa: ANN401 - whatever was dumped
    got: Any,  # noqa: ANN401
    allowed: Any,  # noqa: ANN401
    rows: np.ndarray | None = None,
) -> Difference | None:
    """Compare two arrays.

    Args:
        array: its name, for the message.
        expected: any shape; the first axis is frames, the second columns.
        got: an array of the same shape.
        allowed: largest absolute error; a number, or an array of the same shape.
        rows: the frame numbers of the rows when only some were stored.

    Returns:
        None when equal, else a Difference. NaN is always a difference; equal infinities are not.
    """
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape:
        return Difference(f"{array} shape", None, None, expected.shape, got.shape, np.inf)
    if expected.dtype.kind in "US":
        same = bool(np.all(expected == got))
        return None if same else Difference(array, None, None, expected, got, np.inf)
    with np.errstate(invalid="ignore"):
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
    error = np.where(got == expected, 0.0, error)
    wrong = ~(error <= allowed)
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    largest = np.nan if np.isnan(error).any() else float(error.max())
    frame = column = None
    if len(index) > 0:
        frame = int(rows[index[0]]) if rows is not None else index[0]
    if len(index) > 1:
        column = index[1]
    return Difference(array, frame, column, expected[index], got[index], largest)


@dataclass(frozen=True)
class FbankVerdict:
    """How features stand to two references.

    Attributes:
        difference: the first cell that breaks the law, or None.
        cells: how many cells were compared.
        apart: in how many of them the references themselves differ by more than the limit.
        largest: largest error to either reference where they agree.
    """

    difference: Difference | None
    cells: int
    apart: int
    largest: float


def judge_fbank(
    got: np.ndarray,
    knf: np.ndarray,
    exact: np.ndarray,
    tolerance: Tolerance,
    rows: np.ndarray | None = None,
) -> FbankVerdict:
    """Apply the law of accuracy to log-mel features, cell by cell.

    Where kaldi-native-fbank and float64 agree within `references_agree`, ours is within
    `fbank_abs` of both. Elsewhere ours is not further from float64 than kaldi-native-fbank is.

    Args:
        got: float32 (num_frames, 80), ours.
        knf: float32, same shape.
        exact: float64, same shape.
        tolerance: the table of cases.toml.
        rows: frame numbers, when only some rows are compared.
    """
    if got.shape != knf.shape:
        wrong = Difference("values shape", None, None, knf.shape, got.shape, np.inf)
        return FbankVerdict(wrong, knf.size, 0, np.inf)
    knf_error = np.abs(knf - exact)
    agree = knf_error <= tolerance["references_agree"]
    limit = np.where(agree, tolerance["fbank_abs"], knf_error + tolerance["float32_rounding"])
    to_exact = first_difference("values (float64)", exact, got, limit, rows)
    to_knf = first_difference(
        "values (kaldi-native-fbank)",
        knf,
        got,
        np.where(agree, tolerance["fbank_abs"], np.inf),
        rows,
    )
    errors = np.maximum(np.abs(got - exact), np.abs(got - knf))[agree]
    largest = float(errors.max(initial=0.0))
    return FbankVerdict(to_exact or to_knf, knf.size, int((~agree).sum()), largest)


def allowed_error(step: str, array: str, tolerance: Tolerance) -> float:
    """Return the tolerance of one array of one step."""
    if array in ("frame_shift_s", "prompt_frames"):
        return 1e-9
    if step in ("lfr", "fbank"):
        return tolerance["fbank_abs"]
    if step == "cmvn":
        return tolerance["chain_abs"]
    if step == "infer":
        return tolerance["logit_abs"]
    if array in ("log_prob", "log_probs", "entropy", "entropies"):
        return tolerance["log_prob_abs"]
    if array in ("start_frame", "end_frame"):
        return tolerance["frame_abs"]
    return 0.0


def compare_step(
    step: str, expected: Arrays, got: Arrays, tolerance: Tolerance | None
) -> Difference | None:
    """Compare the arrays of one step; return the first Difference or None.

    Args:
        step: its name, such as `fbank`.
        expected: mapping of arrays, from `load`.
        got: mapping of arrays, from `load`.
        tolerance: the table of cases.toml, or None for equality of every bit.
    """
    rows = expected.get("rows")
    for array in sorted(expected.keys() - NOT_VALUES):
        if array not in got:
            return Difference(array, None, None, "an array", "none", np.inf)
        wanted, found = expected[array], got[array]
        if rows is not None and array == "values":
            if len(found) != expected["num_frames"]:
                count = int(expected["num_frames"])
                return Difference("values rows", None, None, count, len(found), np.inf)
            found = found[rows]
        if tolerance and array == "values" and "float64_minus_values" in expected:
            exact = wanted + expected["float64_minus_values"].astype(np.float64)
            difference = judge_fbank(found, wanted, exact, tolerance, rows).difference
            if difference:
                return difference
            continue
        limit = allowed_error(step, array, tolerance) if tolerance else 0.0
        if tolerance and array == "argmax" and "margin" in expected:
            clear = expected["margin"] > tolerance["argmax_margin"]
            limit = np.where(clear, 0.0, np.inf)
        difference = first_difference(array, wanted, found, limit, rows)
        if difference:
            return difference
    return None


def load(path: Path) -> Arrays:
    """Read an .npz file as a dict."""
    with np.load(path) as archive:
        return dict(archive)


def steps_of(folder: Path) -> dict[str, Path]:
    """Return {file name: path} of the dumped steps of one clip, in pipeline order."""
    return {path.name: path for path in sorted(folder.glob("[0-9][0-9]-*.npz"))}


def clips_of(folder: Path) -> dict[str, Path]:
    """Return {clip name: folder}; a folder that holds steps itself is one clip."""
    if steps_of(folder):
        return {folder.name: folder}
    return {path.name: path for path in sorted(folder.iterdir()) if steps_of(path)}


def compare(
    expected_folder: Path, got_folder: Path, tolerance: Tolerance | None
) -> Iterator[tuple[str, str, Difference | None]]:
    """Compare two folders of dumps clip by clip, step by step.

    Yields:
        (clip, step file name, Difference or None) for each step present in both; the steps of a
        clip after its first difference are left out, for they only inherit it.
    """
    expected_clips, got_clips = clips_of(expected_folder), clips_of(got_folder)
    if len(expected_clips) == len(got_clips) == 1:  # two single clips, whatever they are called
        expected_clips = dict(zip(got_clips, expected_clips.values(), strict=True))
    for clip in expected_clips.keys() & got_clips.keys():
        got = steps_of(got_clips[clip])
        for name, path in steps_of(expected_clips[clip]).items():
            if name not in got:
                continue
            difference = compare_step(name[3:-4], load(path), load(got[name]), tolerance)
            yield clip, name, difference
            if difference:
                break


def plot(expected: Arrays, got: Arrays, title: str, path: Path) -> None:
    """Draw expected, got and their difference as feature maps (needs matplotlib)."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = expected.get("rows")
    wanted = expected["values"]
    found = got["values"] if rows is None else got["values"][rows]
    count = min(len(wanted), len(found))
    maps = {"expected": wanted, "got": found, "got - expected": found[:count] - wanted[:count]}
    figure, axes = plt.subplots(3, 1, figsize=(10, 9), layout="constrained")
    for axis, (name, values) in zip(axes, maps.items(), strict=True):
        image = axis.imshow(values.T, origin="lower", aspect="auto", interpolation="nearest")
        axis.set(title=f"{title}: {name}", xlabel="frame", ylabel="column")
        figure.colorbar(image, ax=axis)
    figure.savefig(path)


def main(arguments: list[str] | None = None) -> int:
    """Compare, print one line a step, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("got", type=Path, help="folder written with ASR_DUMP, or one clip of it")
    parser.add_argument("--expected", type=Path, default=EXPECTED, help="default: golden/expected")
    parser.add_argument("--exact", action="store_true", help="every bit, no tolerance")
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw the first step that differs")
    options = parser.parse_args(arguments)
    for folder in (options.expected, options.got):
        if not folder.is_dir():
            parser.error(f"{folder}: expected a folder of dumps, found none")
    tolerance = None if options.exact else signals.load_cases()["tolerance"]
    results = sorted(compare(options.expected, options.got, tolerance), key=lambda r: r[:2])
    for clip, step, difference in results:
        print(f"{clip}/{step}: {difference or 'equal'}")
    if not results:
        print(f"{options.got}: no clip and step in common with {options.expected}")
        return 14
    different = [result for result in results if result[2]]
    clips = len({result[0] for result in results})
    print(f"{len(results)} steps of {clips} clips compared, {len(different)} different")
    if options.plot:
        drawable = [r for r in different or results if r[1][3:-4] in ("fbank", "lfr", "cmvn")]
        if drawable:
            clip, step, _ = drawable[0]
            expected_clips, got_clips = clips_of(options.expected), clips_of(options.got)
            (expected_clip,) = (
                expected_clips.values() if len(expected_clips) == 1 else (expected_clips[clip],)
            )
            plot(
                load(expected_clip / step),
                load(got_clips[clip] / step),
                f"{clip}/{step}",
                options.plot,
            )
    return 12 if different else 0


if __name__ == "__main__":
    sys.exit(main())
