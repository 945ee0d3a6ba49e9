"""Charts as inline SVG: 360 units wide, so that their words stay readable on a phone."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 360

STYLE = """
svg { display: block; width: 100%; height: auto; font: 10.5px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg text.soft { fill: var(--soft); }
svg .bar { fill: var(--blue); } svg .load { fill: var(--orange); } svg .net { fill: var(--green); }
svg .axis { stroke: var(--line); fill: none; } svg .border { stroke: var(--soft); fill: none;
  stroke-dasharray: 3 3; }
svg .level { stroke: var(--red); stroke-width: 1.6; fill: none; }
svg .dots { stroke: var(--blue); stroke-width: 3; stroke-linecap: round; fill: none; }
svg .faint { stroke-opacity: .45; } svg .unfit { stroke: var(--soft); stroke-opacity: .5; }
svg .mark { stroke: var(--red); stroke-width: 1.5; fill: none; }
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One phase of a waterfall.

    Attributes:
        name: of the phase or stage.
        ns: its time.
        kind: ``load``, ``net`` or ``bar``, for its colour.
    """

    name: str
    ns: float
    kind: str


def waterfall(bars: Sequence[Bar], scale_ns: float) -> str:
    """Phases one after the other, each where the one before ended.

    Args:
        bars: in order; those below 0.5 % of their sum are drawn as one, `rest`.
        scale_ns: what the whole width stands for.
    """
    total = sum(b.ns for b in bars)
    shown = [b for b in bars if b.ns >= 0.005 * total]
    rest = sum(b.ns for b in bars if b.ns < 0.005 * total)
    if rest:
        shown.append(Bar("rest", rest, "bar"))
    left, room = 88.0, WIDTH - 88.0 - 56.0
    parts, at = [], 0.0
    for i, bar in enumerate(shown):
        y, x = 15 * i, left + room * at / scale_ns
        width = max(0.6, room * bar.ns / scale_ns)
        parts.append(
            f"<text x='{left - 5:.0f}' y='{y + 10.5:.1f}' text-anchor='end'>"
            f"{escape(bar.name.replace('_', ' '))}</text>"
            f"<rect class='{bar.kind}' x='{x:.1f}' y='{y + 2}' width='{width:.1f}' height='10' "
            f"rx='1.5'/><text x='{WIDTH}' y='{y + 10.5:.1f}' text-anchor='end'>"
            f"{milliseconds(bar.ns)}</text>"
        )
        at += bar.ns
    return _svg(15 * len(shown) + 2, parts, "waterfall")


def strips(rows: Sequence[tuple[str, Sequence[float], float, float]]) -> str:
    """Every call as a dot, relative to its clip's median.

    Args:
        rows: name, times, median and 95th percentile of each clip, any unit.
    """
    low, high, left = 0.8, 1.6, 44.0
    room = WIDTH - left - 8

    def place(ratio: float) -> float:
        return left + room * (min(max(ratio, low), high) - low) / (high - low)

    parts = []
    for i, (name, times, median, p95) in enumerate(rows):
        y = 26 * i + 14
        dots = "".join(
            f"M{place(t / median):.1f} {y - 6 + 3 * (j % 5):.0f}h0" for j, t in enumerate(times)
        )
        parts.append(
            f"<text x='{left - 6:.0f}' y='{y + 4}' text-anchor='end'>{escape(name)}</text>"
            f"<path class='dots faint' d='{dots}'/>"
            f"<path class='mark' d='M{place(1):.1f} {y - 10}v20M{place(p95 / median):.1f} {y - 10}"
            "v20'/>"
        )
    bottom = 26 * len(rows) + 6
    for ratio in (0.8, 1.0, 1.2, 1.4, 1.6):
        word = f"{100 * (ratio - 1):+.0f} %" if ratio != 1 else "median"
        anchor = "end" if ratio == high else "middle"
        parts.append(
            f"<text class='soft' x='{place(ratio):.0f}' y='{bottom + 10}' text-anchor='{anchor}'>"
            f"{word}</text>"
        )
    return _svg(bottom + 14, parts, "every warm call, relative to its clip's median")


@dataclass(frozen=True, slots=True)
class Dot:
    """One run of a timeline.

    Attributes:
        value: on the vertical axis.
        fit: whether it counts.
        level: median of its segment; None for a run that does not count.
        starts: why a new segment begins here; empty when none does.
    """

    value: float
    fit: bool
    level: float | None
    starts: str = ""


def timeline(dots: Sequence[Dot], first: str, last: str) -> str:
    """Runs in order, their levels as lines, borders of segments dashed.

    Args:
        dots: at least one.
        first: what the left end is called.
        last: what the right end is called.
    """
    values = [d.value for d in dots]
    low, high = min(values), max(values)
    pad = 0.08 * (high - low) or 0.1 * high
    low, high = max(0.0, low - pad), high + pad
    left, right, top, bottom = 52.0, WIDTH - 6.0, 8.0, 118.0

    def x(i: float) -> float:
        return left + (right - left) * (i + 0.5) / len(dots)

    def y(value: float) -> float:
        return bottom - (bottom - top) * (value - low) / (high - low)

    parts = [f"<path class='axis' d='M{left} {top}V{bottom}H{right}'/>"]
    parts += [
        f"<text class='soft' x='{left - 4:.0f}' y='{y(v) + 3.5:.1f}' text-anchor='end'>"
        f"{v:.4g}</text>"
        for v in (low + pad / 2, (low + high) / 2, high - pad / 2)
    ]
    for i, dot in enumerate(dots):
        kind = "dots" if dot.fit else "dots unfit"
        parts.append(f"<path class='{kind}' d='M{x(i):.1f} {y(dot.value):.1f}h0'/>")
        if dot.starts:
            parts.append(
                f"<path class='border' d='M{x(i - 0.5):.1f} {top}V{bottom}'>"
                f"<title>{escape(dot.starts)}</title></path>"
            )
        if dot.level is not None:
            edge = f"M{x(i - 0.4):.1f} {y(dot.level):.1f}H{x(i + 0.4):.1f}"
            parts.append(f"<path class='level' d='{edge}'/>")
    parts.append(
        f"<text class='soft' x='{left:.0f}' y='{bottom + 13:.0f}'>{escape(first)}</text>"
        f"<text class='soft' x='{right:.0f}' y='{bottom + 13:.0f}' text-anchor='end'>"
        f"{escape(last)}</text>"
    )
    return _svg(bottom + 18, parts, f"{len(dots)} runs over time")


def milliseconds(ns: float) -> str:
    """``3.62 ms``; below 0.1 ms in µs."""
    if ns < 1e5:
        return f"{ns / 1e3:.3g} µs"
    return f"{ns / 1e6:.3g} ms" if ns < 1e9 else f"{ns / 1e6:.0f} ms"


def _svg(height: float, parts: Sequence[str], name: str) -> str:
    return (
        f"<svg viewBox='0 0 {WIDTH} {height:.0f}' role='img' aria-label='{escape(name)}'>"
        + "".join(parts)
        + "</svg>"
    )
