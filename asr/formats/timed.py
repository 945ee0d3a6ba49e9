"""Transcript -> SubRip, WebVTT, LRC and tab-separated values."""

from collections.abc import Iterator

from asr.formats.cues import clean, cues, duration_ms, pieces
from asr.records import Transcript


def to_srt(transcript: Transcript) -> str:
    """SubRip: numbered cues, times with a comma; ``-->`` in a text would end it, so it is an arrow.

    Returns:
        The file; empty without text.
    """
    return "\n".join(
        f"{number}\n{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}\n"
        + "".join(f"{line.replace('-->', '→')}\n" for line in cue.lines)
        for number, cue in enumerate(cues(transcript), 1)
    )


def to_vtt(transcript: Transcript) -> str:
    """WebVTT: its signature, then cues; ``&``, ``<`` and ``>`` are escaped.

    Returns:
        The file; the signature alone without text.
    """
    return "WEBVTT\n" + "".join(
        f"\n{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}\n"
        + "".join(f"{_escaped(line)}\n" for line in cue.lines)
        for cue in cues(transcript)
    )


def to_lrc(transcript: Transcript) -> str:
    """LRC: ``[mm:ss.xx]text``, a line per cue of one line; minutes go on beyond 99.

    Returns:
        The file; empty without text.
    """
    return "".join(
        f"[{cue.start_ms // 60000:02}:{cue.start_ms // 1000 % 60:02}.{cue.start_ms // 10 % 100:02}]"
        f"{cue.lines[0]}\n"
        for cue in cues(transcript, max_lines=1)
    )


def to_tsv(transcript: Transcript, *, words: bool = False) -> str:
    """Tab-separated ``start``, ``end``, ``text`` under a header; times in whole milliseconds.

    Args:
        transcript: what was said; a text that was withheld has no rows.
        words: a row per word (per character where no spaces are written), not per segment.

    Returns:
        The table; the header alone without text. A tab or line break in a text is a space.
    """
    limit_ms = duration_ms(transcript)
    rows = [
        f"{min(round(start_s * 1000), limit_ms)}\t{min(round(end_s * 1000), limit_ms)}\t{text}\n"
        for start_s, end_s, raw in _rows(transcript, words=words)
        if (text := clean(raw))
    ]
    return "start\tend\ttext\n" + "".join(rows)


def _rows(transcript: Transcript, *, words: bool) -> Iterator[tuple[float, float, str]]:
    for segment in transcript.segments if transcript.text else ():
        if words:
            yield from ((start_s, end_s, text) for _, text, start_s, end_s in pieces(segment))
        else:
            yield segment.start_s, segment.end_s, segment.text


def _clock(ms: int, point: str) -> str:
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
