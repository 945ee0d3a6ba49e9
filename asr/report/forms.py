"""A report as one HTML file that needs nothing else, or as Markdown."""

from html import escape

from asr import page
from asr.report import charts
from asr.report.blocks import Figure, Report, Section, Table

_STYLE = (
    charts.STYLE
    + """
:root { --blue: #2f6db3; --red: #c8443c; --orange: #d9902f; --green: #3b8a5a; --alarm: #fde8e8; }
@media (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --ink: #d7dde4; --paper: #14181d; --soft: #9aa5b1; --line: #323b45;
    --hair: #232a32; --small: #8b96a2; --blue: #6aa5e8; --red: #ee7b72; --orange: #e2a653;
    --green: #6cc08c; --alarm: #4a2222; }
}
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr));
  gap: 1.4rem 2rem; margin: .8rem 0 1.2rem; }
.figures figure { max-width: 33rem; }
p.warning { background: var(--alarm); padding: .4rem .8rem; border-radius: 6px; }
p { overflow-wrap: anywhere; } .scroll { margin-bottom: 1rem; }
@media (max-width: 30rem) { body { padding: 0 .8rem; } th, td { padding: .3rem .45rem; }
  .tiles { gap: .5rem; } .tile { flex: 1 1 6.5rem; min-width: 0; padding: .5rem .7rem; } }
"""
)


def html(report: Report) -> str:
    """A page: readable at 360 px, dark where the reader's system is, no script, no network."""
    parts = [
        f"<h1>{escape(report.title)}</h1>",
        f"<p class='lead'>{escape(report.lead)}</p>",
        *(f"<p class='warning'>{escape(w)}</p>" for w in report.warnings),
        page.tiles((escape(name), escape(value)) for name, value in report.tiles),
        *map(_html_section, report.sections),
    ]
    return page.document(report.title, parts, _STYLE)


def _html_section(section: Section) -> str:
    parts = [f"<h2>{escape(section.title)}</h2>"]
    figures: list[str] = []
    for block in section.blocks:
        if isinstance(block, Figure):
            caption = f"<figcaption>{escape(block.caption)}</figcaption>"
            figures.append(f"<figure>{block.svg}{caption}</figure>")
            continue
        if figures:
            parts.append(f"<div class='figures'>{''.join(figures)}</div>")
            figures = []
        if isinstance(block, Table):
            rows = [[escape(cell) for cell in row] for row in block.rows]
            parts.append(page.table([escape(h) for h in block.head], rows, text=block.text))
        else:
            parts.append(f"<p>{escape(block)}</p>")
    if figures:
        parts.append(f"<div class='figures'>{''.join(figures)}</div>")
    return "\n".join(parts)


def markdown(report: Report) -> str:
    """The same without charts: every number of theirs is in a table too."""
    tiles = "; ".join(f"{name}: **{value}**" for name, value in report.tiles)
    warnings = (f"> **{_text(w)}**" for w in report.warnings)
    parts = [f"# {_text(report.title)}", _text(report.lead), *warnings, tiles]
    for section in report.sections:
        parts.append(f"## {section.title}")
        for block in section.blocks:
            if isinstance(block, Table):
                parts.append(markdown_table(block))
            elif isinstance(block, str):
                parts.append(_text(block))
    return "\n\n".join(parts) + "\n"


def markdown_table(table: Table) -> str:
    """A table of GitHub's Markdown."""
    rule = [":--" if i in table.text else "--:" for i in range(len(table.head))]
    rows = [table.head, rule, *table.rows]
    return "\n".join(
        "| " + " | ".join(_text(c).replace("|", "\\|") for c in row) + " |" for row in rows
    )


def _text(words: str) -> str:
    """Names are no HTML, which Markdown would let through outside of code."""
    parts = words.split("`")
    parts[::2] = [p.replace("&", "&amp;").replace("<", "&lt;") for p in parts[::2]]
    return "`".join(parts)
