"""The lead over each peer as a picture: a mark per ratio, its interval, and the target."""

from html import escape

from judge import Judged, judge
from results import Result

WIDTH, LEFT, STEP = 640, 250, 26


def svg(result: Result, clock: str) -> str:
    """A stand-alone SVG; empty rows are left out."""
    shown = [j for j in judge(result, clock=clock) if j.interval and j.target.least]
    if not shown:
        return ""
    most = max(max(j.interval.high, j.target.least or 0) for j in shown if j.interval)
    scale = (WIDTH - LEFT - 60) / most
    height = STEP * len(shown) + 40
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' "
        "font-family='sans-serif' font-size='12'>",
        f"<rect width='{WIDTH}' height='{height}' fill='white'/>",
    ]
    for number in range(0, int(most) + 1, 1 + int(most) // 10):  # at most ten fit side by side
        x = LEFT + scale * number
        parts.append(
            f"<line x1='{x:.1f}' x2='{x:.1f}' y1='8' y2='{height - 28}' stroke='#ddd'/>"
            f"<text x='{x:.1f}' y='{height - 14}' text-anchor='middle' fill='#555'>{number}×</text>"
        )
    parts += [_line(judged, 24 + STEP * i, scale) for i, judged in enumerate(shown)]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _line(judged: Judged, y: float, scale: float) -> str:
    found, target = judged.interval, judged.target
    assert found is not None and target.least is not None  # noqa: PT018 - chosen so
    low, middle, high, least = (
        LEFT + scale * v for v in (found.low, found.median, found.high, target.least)
    )
    colour = "#1a7f37" if judged.met else "#c2410c"
    name = escape(f"{target.what}, {target.peer}")
    return (
        f"<text x='{LEFT - 8}' y='{y + 4}' text-anchor='end'>{name}</text>"
        f"<rect x='{LEFT}' y='{y - 7}' width='{middle - LEFT:.1f}' height='14' fill='{colour}' "
        "fill-opacity='.35'/>"
        f"<line x1='{low:.1f}' x2='{high:.1f}' y1='{y}' y2='{y}' stroke='{colour}' "
        "stroke-width='3'/>"
        f"<line x1='{least:.1f}' x2='{least:.1f}' y1='{y - 9}' y2='{y + 9}' stroke='#111' "
        "stroke-dasharray='3 2'/>"
        f"<text x='{high + 6:.1f}' y='{y + 4}'>{found.median:.2f}×</text>"
    )
