"""Pictures of an evaluation, as PNG in memory."""

import io
import math
import warnings
from typing import Any

from asr.evaluate.libraries import require
from asr.evaluate.report import Evaluation

_BLUE, _RED, _ORANGE, _GREY, _DARK = "#2f6db3", "#c8443c", "#d9902f", "#9aa3ad", "#39424e"
_DPI = 160
#: The bars of more sources than this would not fit a page; those with the most words are drawn.
_SOURCES = 40


def draw(evaluation: Evaluation) -> dict[str, bytes]:
    """Draw all pictures.

    Returns:
        PNG by name: ``errors``, ``reliability``, ``rejection``; one is absent where there is
        nothing to draw.

    Raises:
        MissingToolError: Matplotlib is not installed.
    """
    pictures = {}
    if evaluation.total.wer:
        pictures["errors"] = _errors(evaluation)
    if evaluation.calibration.words:
        pictures["reliability"] = _reliability(evaluation)
    if evaluation.curves:
        pictures["rejection"] = _rejection(evaluation)
    return pictures


def _errors(evaluation: Evaluation) -> bytes:
    """Bars of substitutions, deletions, insertions by source, with the interval of the WER."""
    spoken = [s for s in evaluation.sources if s.wer is not None]
    large = sorted(spoken, key=lambda s: s.words.expected, reverse=True)[:_SOURCES]
    scores = [s for s in spoken if s in large]
    if len(spoken) > 1:
        scores.append(evaluation.total)
    figure, axes = _canvas(7.2, 1.3 + 0.42 * len(scores))
    places = range(len(scores))
    left = [0.0] * len(scores)
    parts = (("substitutions", _BLUE), ("deletions", _ORANGE), ("insertions", _RED))
    for part, colour in parts:
        widths = [100 * getattr(s.words, part) / s.words.expected for s in scores]
        axes.barh(places, widths, left=left, height=0.6, color=colour, label=part)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for place, score in enumerate(scores):
        assert score.wer is not None  # noqa: S101 - filtered above
        low, value, high = (100 * x for x in (score.wer.low, score.wer.value, score.wer.high))
        axes.plot([low, high], [place, place], color=_DARK, linewidth=1.2, solid_capstyle="butt")
        axes.text(high, place, f"  {value:.1f} %", va="center", color=_DARK)
    axes.set_yticks(places, [s.name or "all" for s in scores], parse_math=False)
    axes.set_ylim(len(scores) - 0.4, -0.6)
    axes.set_xlim(0, 114 * max(s.wer.high for s in scores if s.wer))
    axes.set_xlabel("word error rate, % of the expected words; line: 95 % interval")
    axes.legend(frameon=False, ncols=3, loc="lower left", bbox_to_anchor=(0, 1), fontsize=9)
    axes.grid(axis="y", visible=False)
    return _png(figure)


def _reliability(evaluation: Evaluation) -> bytes:
    """Share of right words by confidence, with how many words each bar stands for below."""
    found = evaluation.calibration
    figure, (axes, counts) = _canvas(5.6, 5.6, rows=(3.2, 1))
    bins = [(b, b.right) for b in found.bins if b.right is not None]
    width = found.bins[0].high - found.bins[0].low
    axes.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1)
    axes.bar(
        [b.low for b, _ in bins], [right.value for _, right in bins], width, align="edge",
        color=_BLUE, alpha=0.35, edgecolor="white", label="share right",
    )  # fmt: skip
    axes.errorbar(
        [b.confidence for b, _ in bins], [right.value for _, right in bins],
        yerr=[[r.value - r.low for _, r in bins], [r.high - r.value for _, r in bins]],
        fmt="o", markersize=4.5, color=_BLUE, ecolor=_DARK, elinewidth=1, capsize=2,
        label="at the mean confidence, 95 % interval",
    )  # fmt: skip
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("share of words right")
    axes.legend(frameon=False, loc="upper left", fontsize=9)
    axes.set_title(
        f"expected calibration error {found.ece or 0.0:.3f}", loc="left", color=_DARK, fontsize=11
    )
    counts.bar(
        [b.low for b in found.bins], [b.words for b in found.bins], width, align="edge",
        color=_GREY, edgecolor="white",
    )  # fmt: skip
    counts.set_ylabel("words")
    counts.set_xlabel("confidence of the word")
    counts.set_xlim(0, 1)
    return _png(figure)


def _rejection(evaluation: Evaluation) -> bytes:
    """Wrong texts shown against right texts withheld, and where the thresholds stand."""
    figure, axes = _canvas(5.6, 5.0)
    axes.plot([0, 100], [100, 0], color=_GREY, linestyle="--", linewidth=1, label="by chance")
    for curve, colour in zip(evaluation.curves, (_BLUE, _ORANGE), strict=False):
        axes.plot(
            [100 * p.right_rejected for p in curve.points],
            [100 * p.wrong_accepted for p in curve.points],
            color=colour, linewidth=1.8,
            label=f"{curve.measure.replace('_', ' ')} (AUROC {curve.auroc:.3f})",
        )  # fmt: skip
    verdict = evaluation.verdict
    if verdict and verdict.reported.right_rejected and verdict.reported.wrong_accepted:
        x, y = verdict.reported.right_rejected, verdict.reported.wrong_accepted
        axes.errorbar(
            [100 * x.value], [100 * y.value],
            xerr=[[100 * (x.value - x.low)], [100 * (x.high - x.value)]],
            yerr=[[100 * (y.value - y.low)], [100 * (y.high - y.value)]],
            fmt="o", color=_RED, capsize=2, zorder=5, label="the thresholds, both together",
        )  # fmt: skip
    # Good measures hug the corner: show as much of the right side as there is something to see.
    firsts = [
        min(p.right_rejected for p in c.points if p.wrong_accepted < 0.01)
        for c in evaluation.curves
    ]
    right = min(100, 10 * max(1, math.ceil(11 * max(firsts))))
    axes.set_xlim(-right / 100, right * 1.01)
    axes.set_ylim(-1, 101)
    axes.set_xlabel("right texts withheld, %")
    axes.set_ylabel("wrong texts shown, %")
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    return _png(figure)


def _canvas(width: float, height: float, rows: tuple[float, ...] = ()) -> tuple[Any, Any]:
    """A figure and its axes, without a global state or a window."""
    figure = require("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    if rows:
        axes = figure.subplots(len(rows), sharex=True, height_ratios=rows)
    else:
        axes = figure.subplots()
    for one in axes if rows else [axes]:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(color="#e6e9ed", linewidth=0.8)
        one.set_axisbelow(True)
        one.tick_params(colors=_DARK, length=0)
    return figure, axes


def _png(figure: Any) -> bytes:  # noqa: ANN401 - matplotlib is imported lazily
    stream = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a source's name may have glyphs that the font lacks
        figure.savefig(stream, format="png", dpi=_DPI, metadata={"Software": None})
    return stream.getvalue()
