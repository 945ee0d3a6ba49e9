"""Transcript -> what is written: plain text, JSON, subtitles, tables."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from asr.records import Transcript

SCHEMA_ID = "asr-transcript/1"
CHANNELS_ID = "asr-channels/1"

#: What ``render`` can make; each name is also the file name extension.
NAMES = ("txt", "json", "srt", "vtt", "tsv", "lrc")


def to_json(
    heard: Transcript | Sequence[Transcript],
    source: str,
    *,
    ascii_only: bool = False,
    **extra: object,
) -> str:
    """One line of JSON; the schemas are ``docs/transcript.schema.json`` and ``channels``.

    Args:
        heard: what was said; or on each channel.
        source: the file it came from.
        ascii_only: escape everything else, for an output that is not UTF-8. A file name that is
            no UTF-8 is escaped always.
        extra: further top-level members, such as ``timings``.

    Returns:
        a JSON object without line breaks, so that many files make JSON Lines. Times are float
        seconds.
    """
    members: dict[str, Any]
    if isinstance(heard, Transcript):
        members = _members(heard, source)
    else:
        channels = [_members(t, source) for t in heard]
        members = {"schema": CHANNELS_ID, "source": source, "channels": channels}
    members |= extra
    broken_name = not source.isascii() and any("\ud800" <= c <= "\udfff" for c in source)
    return json.dumps(members, ensure_ascii=ascii_only or broken_name, allow_nan=False)


def _members(transcript: Transcript, source: str) -> dict[str, Any]:
    return {"schema": SCHEMA_ID, "source": source, **asdict(transcript)}


def render(
    heard: Transcript | Sequence[Transcript], name: str, *, source: str, rich: str | None = None,
    words: bool = False, ascii_only: bool = False, **extra: object,
) -> str:  # fmt: skip
    """What one source said as a whole file, line break at its end.

    Args:
        heard: what was said; or on each channel, whose number then stands beside each line, cue
            and row, in one order by time.
        name: one of ``NAMES``.
        source: the file it came from; ``json`` tells it.
        rich: ``emoji`` or ``tags`` around the text of ``txt``; None leaves it plain. Not for
            channels.
        words: ``tsv`` has a row per word instead of per stretch of speech.
        ascii_only: for ``json``, see ``to_json``.
        extra: further members of ``json``.

    Returns:
        The text of the file; empty of cues, rows or lines where no text is shown.
    """
    if name == "json":
        return to_json(heard, source, ascii_only=ascii_only, **extra) + "\n"
    if name == "txt" and isinstance(heard, Transcript):
        from asr.formats.rich import around

        return around(heard, rich) + "\n"
    from asr.formats import timed

    labelled = not isinstance(heard, Transcript)
    all_heard = [heard] if isinstance(heard, Transcript) else heard
    if name == "txt":
        return timed.to_turns(all_heard)
    if name == "tsv":
        return timed.to_tsv(all_heard, labelled=labelled, words=words)
    make = {"srt": timed.to_srt, "vtt": timed.to_vtt, "lrc": timed.to_lrc}[name]
    return make(all_heard, labelled=labelled)
