"""Transcript -> what is written: plain text, JSON, subtitles, tables."""

import json
from dataclasses import asdict
from typing import Any

from asr.records import Transcript

SCHEMA_ID = "asr-transcript/1"

#: What ``render`` can make; each name is also the file name extension.
NAMES = ("txt", "json", "srt", "vtt", "tsv", "lrc")


def to_json(
    transcript: Transcript, source: str, *, ascii_only: bool = False, **extra: object
) -> str:
    """One line of JSON; the schema is ``docs/transcript.schema.json``.

    Args:
        transcript: what was said.
        source: the file it came from.
        ascii_only: escape everything else, for an output that is not UTF-8. A file name that is
            no UTF-8 is escaped always.
        extra: further top-level members, such as ``timings``.

    Returns:
        a JSON object without line breaks, so that many files make JSON Lines. Times are float
        seconds.
    """
    members: dict[str, Any] = {"schema": SCHEMA_ID, "source": source, **asdict(transcript), **extra}
    broken_name = not source.isascii() and any("\ud800" <= c <= "\udfff" for c in source)
    return json.dumps(members, ensure_ascii=ascii_only or broken_name, allow_nan=False)


def render(
    transcript: Transcript, name: str, *, source: str, rich: str | None = None,
    words: bool = False, ascii_only: bool = False, **extra: object,
) -> str:  # fmt: skip
    """One transcript as a whole file, line break at its end.

    Args:
        transcript: what was said.
        name: one of ``NAMES``.
        source: the file it came from; ``json`` tells it.
        rich: ``emoji`` or ``tags`` around the text of ``txt``; None leaves it plain.
        words: ``tsv`` has a row per word instead of per stretch of speech.
        ascii_only: for ``json``, see ``to_json``.
        extra: further members of ``json``.

    Returns:
        The text of the file; empty of cues, rows or lines where no text is shown.
    """
    if name == "txt":
        from asr.formats.rich import around

        return around(transcript, rich) + "\n"
    if name == "json":
        return to_json(transcript, source, ascii_only=ascii_only, **extra) + "\n"
    from asr.formats import timed

    if name == "tsv":
        return timed.to_tsv(transcript, words=words)
    return {"srt": timed.to_srt, "vtt": timed.to_vtt, "lrc": timed.to_lrc}[name](transcript)
