"""What a report is made of: sections of words, tables and charts."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Table:
    """Plain text cells.

    Attributes:
        head: names of the columns.
        rows: as many cells each.
        text: columns of words, aligned to the left.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    text: Sequence[int] = (0,)


@dataclass(frozen=True, slots=True)
class Figure:
    """An SVG and what it shows; only HTML has it."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, and what is under it in order: strings are paragraphs."""

    title: str
    blocks: Sequence[str | Table | Figure]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything.

    Attributes:
        title: one line.
        lead: what ran where, one sentence.
        warnings: why a reader should be careful.
        tiles: what it is, and the number: the few that matter.
        sections: in order.
    """

    title: str
    lead: str
    warnings: Sequence[str]
    tiles: Sequence[tuple[str, str]]
    sections: Sequence[Section] = field(default_factory=tuple)
