"""Text -> the words that are compared, and their characters."""

import unicodedata

from asr.text import is_unspaced

#: What the rule is called in reports; it changes when the rule does.
RULE = "Unicode NFKC, lower case, no punctuation, CJK by character"

_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\uff07": "'", "`": "'"})


def words(text: str) -> list[str]:
    """Split a text into the units of the word error rate.

    Args:
        text: as it was written down or heard.

    Returns:
        Lower-case words after Unicode NFKC. Punctuation and symbols separate words; an apostrophe
        between two letters belongs to its word. Each character of a script written without spaces
        is a unit. Numbers stay as they are written: ``2`` is not ``two``.
    """
    plain = unicodedata.normalize("NFKC", text.translate(_APOSTROPHES)).lower()
    return "".join(_kept(plain, place, character) for place, character in enumerate(plain)).split()


def characters(units: list[str]) -> str:
    """The units of the character error rate: the words without the spaces between them."""
    return "".join(units)


def _kept(text: str, place: int, character: str) -> str:
    """The character as it counts: itself, set apart by spaces, or a space."""
    if character == "'" and 0 < place < len(text) - 1:
        return "'" if text[place - 1].isalpha() and text[place + 1].isalpha() else " "
    category = unicodedata.category(character)
    if category == "Cf":  # soft hyphen, joiners: no reader sees them
        return ""
    if category[0] in "PSZC":
        return " "
    return f" {character} " if is_unspaced(character) else character
