"""Transcript -> cues: pieces of text short enough to read while they are shown.

Everything is counted in whole milliseconds and in columns: a wide character (CJK, kana, Hangul,
emoji) takes two, a combining mark none.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from asr.records import Segment, Transcript

#: Columns of a line, lines of a cue, milliseconds of a cue.
MAX_COLUMNS = 42
MAX_LINES = 2
MAX_CUE_MS = 7000
#: A shorter cue is shown for this long where the next one and the end of the sound leave room.
MIN_CUE_MS = 1000
#: What a cue is given where words crowd or the sound ends with them: a frame of a film.
LEAST_CUE_MS = 40
#: A silence this long ends a cue.
PAUSE_MS = 1000

_BLANK = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_SENTENCE_END = frozenset(".?!。？！．…")
_CLAUSE_END = _SENTENCE_END | frozenset(",;:，、；：")
#: No line begins with these, although each is a word of its own where no spaces are written.
_CLINGING = frozenset("々ーぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮヵヶ")


@dataclass(frozen=True, slots=True)
class Cue:
    """A piece of text and when it is shown.

    Attributes:
        start_ms: first millisecond, 0 or more.
        end_ms: one past the last, later than the start.
        lines: what is shown; at least one line, none empty.
    """

    start_ms: int
    end_ms: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Atom:
    """What no line break may fall into.

    Attributes:
        text: without blanks at its ends.
        space: whether a space stands before it, unless it opens a line.
        columns: how wide the text is.
    """

    text: str
    space: bool
    start_ms: int
    end_ms: int
    columns: int


def columns(text: str) -> int:
    """Width of a text: 2 per wide character, 0 per combining or invisible one, else 1."""
    if text.isascii():
        return len(text)
    return sum(
        2 if unicodedata.east_asian_width(c) in "WF"
        else 0 if unicodedata.category(c) in ("Mn", "Me", "Cf")
        else 1
        for c in text
    )  # fmt: skip


def clean(text: str) -> str:
    """The text on one line: every run of blanks, tabs, line breaks and controls is one space."""
    return _BLANK.sub(" ", text).strip()


def duration_ms(transcript: Transcript) -> int:
    """Whole milliseconds of sound: no time goes beyond them."""
    return int(transcript.audio_s * 1000 + 1e-6)


def cues(transcript: Transcript, *, max_lines: int = MAX_LINES, label: str = "") -> list[Cue]:
    """Cut a transcript into cues.

    Args:
        transcript: what was said; a text that was withheld has no cues.
        max_lines: 1 or 2 lines per cue.
        label: who speaks, in front of each cue's text.

    Returns:
        Cues in order: none empty, none overlapping, each later than 0 and within the sound. A cue
        never joins two stretches of speech, so the words and spaces are the segments' own.
    """
    limit_ms = duration_ms(transcript)
    lead = [_Atom(label, False, 0, 0, columns(label))] if label else []
    widest = MAX_COLUMNS - (columns(label) + 1 if label and max_lines == 1 else 0)
    groups = [g for s in transcript.shown for g in _groups(_atoms(s, widest), max_lines, lead)]
    return list(_placed(groups, limit_ms, max_lines, lead))


def pieces(segment: Segment) -> Iterator[tuple[str, str, float, float]]:
    """Words of a segment with the blank before each: (blank, text, start_s, end_s).

    The blanks are those of the segment's text, which knows where the network wrote some.
    """
    if not segment.words:
        yield from _unheard_times(segment)
        return
    at = 0
    for number, word in enumerate(segment.words):
        found = segment.text.find(word.text, at)
        blank = " " if number else ""
        if found >= 0:
            blank, at = segment.text[at:found], found + len(word.text)
        yield blank, word.text, word.start_s, word.end_s


def _unheard_times(segment: Segment) -> Iterator[tuple[str, str, float, float]]:
    """Words of a segment that has none: the text's, with times in proportion to their length."""
    step = (segment.end_s - segment.start_s) / max(1, len(segment.text))
    for match in re.finditer(r"\S+", segment.text):
        start, end = match.span()
        yield " ", match[0], segment.start_s + start * step, segment.start_s + end * step


def _atoms(segment: Segment, widest: int) -> list[_Atom]:
    atoms: list[_Atom] = []
    for blank, raw, start_s, end_s in pieces(segment):
        text = clean(raw)
        if not columns(text):
            continue
        space = bool(atoms) and bool(_BLANK.search(blank))
        start_ms, end_ms = round(start_s * 1000), round(end_s * 1000)
        if atoms and not space and _clings(atoms[-1].text[-1], text[0]):
            before = atoms.pop()
            text, space = before.text + text, before.space
            start_ms, end_ms = before.start_ms, max(before.end_ms, end_ms)
        atoms.append(_Atom(text, space, start_ms, end_ms, columns(text)))
    return [part for atom in atoms for part in _split(atom, widest)]


def _clings(before: str, after: str) -> bool:
    """Whether no line break may fall between two characters."""
    return (
        after in _CLINGING
        or unicodedata.category(after) in ("Pe", "Pf", "Po")
        or unicodedata.category(before) in ("Ps", "Pi")
    )


def _split(atom: _Atom, widest: int) -> Iterator[_Atom]:
    """Cut what is wider than a line at characters, its time in proportion."""
    if atom.columns <= widest:
        yield atom
        return
    parts = [""]
    for character in atom.text:
        if columns(parts[-1] + character) > widest:
            parts.append("")
        parts[-1] += character
    shown: list[str] = []
    for part in map(str.strip, parts):
        if columns(part):
            shown.append(part)
        else:
            shown[-1] += part  # invisible by itself: it belongs to what it follows
    span, done, space = atom.end_ms - atom.start_ms, 0, atom.space
    for part in shown:
        width = columns(part)
        start = atom.start_ms + span * done // atom.columns
        done += width
        end = atom.start_ms + span * done // atom.columns
        yield _Atom(part, space, start, end, width)
        space = False


def _groups(atoms: Iterable[_Atom], max_lines: int, lead: list[_Atom]) -> Iterator[list[_Atom]]:
    """Atoms of one cue each: as many as can be read, ended by a pause or a sentence."""
    group: list[_Atom] = []
    for atom in atoms:
        if group and atom.start_ms - group[-1].end_ms >= PAUSE_MS:
            yield group
            group = []
        while group and not _fits([*group, atom], max_lines, lead):
            cut = _clause(group)
            yield group[:cut]
            group = group[cut:]
        group.append(atom)
        long_enough = atom.end_ms - group[0].start_ms >= MIN_CUE_MS
        if atom.text[-1] in _SENTENCE_END and long_enough:
            yield group
            group = []
    if group:
        yield group


def _fits(group: Sequence[_Atom], max_lines: int, lead: list[_Atom]) -> bool:
    if group[-1].end_ms - group[0].start_ms > MAX_CUE_MS:
        return False
    return len(_filled(_led(lead, group))) <= max_lines


def _led(lead: list[_Atom], group: Sequence[_Atom]) -> Sequence[_Atom]:
    """The label in front, with a space behind it."""
    return [*lead, replace(group[0], space=True), *group[1:]] if lead else group


def _clause(group: Sequence[_Atom]) -> int:
    """Where a full group is cut: after the last clause in its second half, else at its end."""
    for number in range(len(group), len(group) // 2, -1):
        if group[number - 1].text[-1] in _CLAUSE_END:
            return number
    return len(group)


def _filled(group: Sequence[_Atom]) -> list[int]:
    """Number of atoms per line when each line takes all it can."""
    counts, width = [0], 0
    for atom in group:
        more = atom.columns + (atom.space and counts[-1] > 0)
        if counts[-1] and width + more > MAX_COLUMNS:
            counts.append(0)
            more, width = atom.columns, 0
        counts[-1] += 1
        width += more
    return counts


def _lines(group: Sequence[_Atom], max_lines: int) -> tuple[str, ...]:
    """One line where that is enough, else the two that differ least in width."""
    if max_lines == 1 or len(_filled(group)) == 1:
        return (_text(group),)
    halves = [(_text(group[:cut]), _text(group[cut:])) for cut in range(1, len(group))]
    return min(halves, key=lambda half: max(map(columns, half)))


def _text(group: Sequence[_Atom]) -> str:
    return "".join(" " * (a.space and number > 0) + a.text for number, a in enumerate(group))


def _placed(
    groups: Sequence[list[_Atom]], limit_ms: int, max_lines: int, lead: list[_Atom]
) -> Iterator[Cue]:
    """Give each group its time: in order, within the sound, not empty, long enough if it can be.

    Nothing is yielded when the sound has fewer milliseconds than groups.
    """
    least = min(LEAST_CUE_MS, limit_ms // len(groups)) if groups else 0
    if not least:
        return
    starts: list[int] = []
    earliest = 0
    for number, group in enumerate(groups):
        latest = limit_ms - (len(groups) - number) * least
        starts.append(min(max(group[0].start_ms, earliest), latest))
        earliest = starts[-1] + least
    for group, start, following in zip(groups, starts, [*starts[1:], limit_ms], strict=True):
        end = max(group[-1].end_ms, start + MIN_CUE_MS)
        end = min(end, start + MAX_CUE_MS, following)
        yield Cue(start, end, _lines(_led(lead, group), max_lines))
