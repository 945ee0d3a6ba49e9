"""Transcript -> what is written: plain text and JSON."""

import json
from dataclasses import asdict
from typing import Any

from asr.records import Transcript

SCHEMA_ID = "asr-transcript/1"


def to_json(transcript: Transcript, source: str, **extra: object) -> str:
    """One line of JSON; the schema is ``docs/transcript.schema.json``.

    Args:
        transcript: what was said.
        source: the file it came from.
        extra: further top-level members, such as ``timings``.

    Returns:
        a JSON object without line breaks, so that many files make JSON Lines. Times are float
        seconds.
    """
    members: dict[str, Any] = {"schema": SCHEMA_ID, "source": source, **asdict(transcript), **extra}
    return json.dumps(members, ensure_ascii=False, allow_nan=False)
