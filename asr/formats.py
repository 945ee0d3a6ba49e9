"""Transcript -> what is written: plain text and JSON."""

import json
from dataclasses import asdict
from typing import Any

from asr.records import Transcript

SCHEMA_ID = "asr-transcript/1"


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
