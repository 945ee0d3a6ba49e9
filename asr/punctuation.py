"""Punctuation and case of a text with digits on the words of the same text without them.

Inverse text normalisation (ITN) brings punctuation and rewrites numbers: ``I'm 23, okay?`` for
``i'm twenty three okay``. Both texts are cut into units, aligned, and each mark goes behind the
unit of the plain text that stands where the mark's own unit stands in the other.
"""

from dataclasses import dataclass, replace

from asr.records import Segment, Transcript, Word

#: The marks that are taken over. Quotes and brackets come in pairs, which an alignment can break.
MARKS = frozenset(".,?!;:…。，、？！；：")
#: From here on (CJK, kana, Hangul) a character is a unit by itself.
_SINGLE = 0x2E80


@dataclass(slots=True)
class _Unit:
    """What is aligned: a run of letters and digits, or one character where no spaces are written.

    Attributes:
        places: of its letters and digits in the text; an apostrophe inside is none of them.
        key: those in lower case.
        end: its last place, an apostrophe's included.
        marks: punctuation behind it.
    """

    places: list[int]
    key: tuple[str, ...]
    end: int
    marks: str = ""


def apply(plain: Transcript, written: Transcript) -> Transcript:
    """Give a transcript of one piece of sound the punctuation and case of another text of it.

    Args:
        plain: heard without ITN; one segment at most.
        written: heard with ITN.

    Returns:
        The plain one with marks behind its words, which belong to those words, and with case;
        times and tokens are untouched. Without marks and case its text is what it was. Warnings
        are those of both; ``no_punctuation`` says that there was none to take.
    """
    if not plain.segments:
        return plain
    (segment,) = plain.segments
    pieces = spread(segment.text, written.text)
    words, at = [], 0
    for word in segment.words:
        found = segment.text.find(word.text, at)
        if found >= 0:
            at = found + len(word.text)
            word = _renamed(word, "".join(pieces[found:at]))
        words.append(word)
    text = "".join(pieces)
    segments: tuple[Segment, ...] = (replace(segment, text=text, words=tuple(words)),)
    warnings = (*plain.warnings, *written.warnings)
    if not warnings and MARKS.isdisjoint(written.text):
        warnings = ("no_punctuation",)
    return replace(plain, text=text, segments=segments, warnings=tuple(dict.fromkeys(warnings)))


def _renamed(word: Word, text: str) -> Word:
    return word if word.text == text else replace(word, text=text)


def spread(plain: str, written: str) -> list[str]:
    """Spread marks and case of one text over another.

    Args:
        plain: the text whose words stay.
        written: the text whose marks and case are taken.

    Returns:
        One string per character of ``plain``: itself, maybe in the other case, and the marks
        that follow it.
    """
    from difflib import SequenceMatcher  # only --punct-only pays for it

    ours, theirs = _units(plain), _units(written)
    pieces = list(plain)
    matcher = SequenceMatcher(None, [u.key for u in ours], [u.key for u in theirs], autojunk=False)
    for kind, i1, i2, j1, j2 in matcher.get_opcodes():
        if kind == "equal" or i2 - i1 == j2 - j1:
            pairs = list(zip(ours[i1:i2], theirs[j1:j2], strict=True))
        else:  # a number written another way: what stands behind its end stands behind ours
            pairs = [(ours[i2 - 1], theirs[j2 - 1])] if i2 and j1 < j2 else []
        for our, their in pairs:
            if our.key == their.key:
                for place, other in zip(our.places, their.places, strict=True):
                    pieces[place] = written[other] + pieces[place][1:]
            elif _abbreviates(their) and their is not theirs[-1]:
                continue
            if not our.marks:
                pieces[our.end] += their.marks
                our.marks = their.marks
    return pieces


def _abbreviates(unit: _Unit) -> bool:
    """Whether a full stop may belong to the word: ``Mr.`` for ``mister``."""
    return unit.marks == "." and "".join(unit.key).isalpha()


def _units(text: str) -> list[_Unit]:
    units: list[_Unit] = []
    is_open = False
    for place, character in enumerate(text):
        if character.isalnum():
            single = ord(character) >= _SINGLE
            if is_open and not single:
                units[-1].places.append(place)
                units[-1].key += (character.lower(),)
                units[-1].end = place
            else:
                units.append(_Unit([place], (character.lower(),), place))
                is_open = not single
        elif is_open and character in "'’":
            units[-1].end = place
        elif is_open and _is_inside_number(text, place):
            continue
        else:
            is_open = False
            if units and character in MARKS:
                units[-1].marks += character
    return units


def _is_inside_number(text: str, place: int) -> bool:
    """Whether the mark is one of ``3.5``, ``1,000``, ``10:30``."""
    before, after = text[place - 1], text[place + 1 : place + 2]
    return text[place] in ".,:" and before.isdecimal() and after.isdecimal()
