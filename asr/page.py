"""What every HTML page of ours looks like: one file, no network, no script."""

from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { color-scheme: light; --ink: #22272e; --paper: #fff; --soft: #57606a; --line: #dfe3e8;
  --hair: #eaedf0; --small: #6e7781; }
body { font: 15px/1.5 system-ui, "Helvetica Neue", Arial, sans-serif; color: var(--ink);
  background: var(--paper); max-width: 72rem; margin: 2rem auto; padding: 0 1.25rem; }
h1 { font-size: 1.6rem; margin: 0 0 .25rem; }
h2 { font-size: 1.15rem; margin: 2.4rem 0 .6rem; padding-bottom: .25rem;
  border-bottom: 1px solid var(--line); }
p { max-width: 46rem; margin: .4rem 0 .9rem; }
p.lead { color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: right; white-space: nowrap;
  border-bottom: 1px solid var(--hair); }
th { font-weight: 600; color: var(--soft); border-bottom: 2px solid var(--line);
  vertical-align: bottom; }
td.text, th.text { text-align: left; white-space: normal; }
td.path { min-width: 13rem; max-width: 20rem; overflow-wrap: anywhere; color: var(--soft);
  font-size: .86em; }
tr.total td { font-weight: 600; border-top: 2px solid var(--line); }
small { color: var(--small); font-weight: 400; }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.2rem 0; }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; min-width: 8.5rem; }
.tile b { display: block; font-size: 1.5rem; font-weight: 600; }
.tile span { display: block; color: var(--soft); font-size: .86rem; }
figure { margin: 0; }
figcaption { color: var(--soft); font-size: .9rem; max-width: 34rem; }
"""


def document(title: str, parts: Iterable[str], style: str = "") -> str:
    """A whole page.

    Args:
        title: plain text.
        parts: HTML; empty ones are left out.
        style: CSS after ours.
    """
    return (
        "<!DOCTYPE html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>\n"
        f"<title>{escape(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body>\n</html>\n"
    )


def tiles(values: Iterable[tuple[str, str]]) -> str:
    """Few large numbers.

    Args:
        values: what it is, and the number; both HTML.
    """
    inside = "".join(f"<div class='tile'><b>{v}</b><span>{n}</span></div>" for n, v in values)
    return f"<div class='tiles'>{inside}</div>"


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    text: Sequence[int],
    path: int | None = None,
    total: bool = False,
) -> str:
    """A table; cells are HTML already. Columns in ``text`` are aligned to the left."""

    def cell(tag: str, place: int, value: str) -> str:
        names = ["text"] * (place in text) + ["path"] * (tag == "td" and place == path)
        return f"<{tag}{' class=' + repr(' '.join(names)) if names else ''}>{value}</{tag}>"

    lines = ["".join(cell("td", i, value) for i, value in enumerate(row)) for row in rows]
    if not lines:
        return "<p>None.</p>"
    body = [f"<tr>{line}</tr>" for line in lines]
    if total:
        body[-1] = f"<tr class='total'>{lines[-1]}</tr>"
    top = "".join(cell("th", i, name) for i, name in enumerate(head))
    return f"<div class='scroll'><table><tr>{top}</tr>\n" + "\n".join(body) + "\n</table></div>"
