"""Transcripts -> SubRip, WebVTT, LRC and tab-separated values.

Each takes the transcripts of one source: a single one, or one per channel, ``labelled`` then.
Channels are in one file, ordered by time; what two say at once overlaps.
"""

from collections.abc import Iterator, Sequence

from asr.formats.cues import MAX_LINES, Cue, clean, cues, duration_ms, pieces
from asr.records import Transcript


def label(transcript: Transcript) -> str:
    """Who speaks on a channel, as far as we know: ``Channel 1``."""
    return f"Channel {transcript.channel}"


def to_srt(heard: Sequence[Transcript], *, labelled: bool) -> str:
    """SubRip: numbered cues, times with a comma; ``-->`` in a text would end it, so it is an arrow.

    Returns:
        The file; empty without text.
    """
    return "\n".join(
        f"{number}\n{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}\n"
        + "".join(f"{line.replace('-->', '→')}\n" for line in cue.lines)
        for number, cue in enumerate(_in_lines(heard, labelled), 1)
    )


def to_vtt(heard: Sequence[Transcript], *, labelled: bool) -> str:
    """WebVTT: its signature, then cues; ``&``, ``<`` and ``>`` are escaped; a label is a voice.

    Returns:
        The file; the signature alone without text.
    """
    found = [(f"<v {label(t)}>" * labelled, cue) for t in heard for cue in cues(t)]
    found.sort(key=lambda one: one[1].start_ms)
    return "WEBVTT\n" + "".join(
        f"\n{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}\n"
        + voice
        + "".join(f"{_escaped(line)}\n" for line in cue.lines)
        for voice, cue in found
    )


def to_lrc(heard: Sequence[Transcript], *, labelled: bool) -> str:
    """LRC: ``[mm:ss.xx]text``, a line per cue of one line; minutes go on beyond 99.

    Returns:
        The file; empty without text.
    """
    return "".join(
        f"[{cue.start_ms // 60000:02}:{cue.start_ms // 1000 % 60:02}.{cue.start_ms // 10 % 100:02}]"
        f"{cue.lines[0]}\n"
        for cue in _in_lines(heard, labelled, max_lines=1)
    )


def _in_lines(
    heard: Sequence[Transcript], labelled: bool, *, max_lines: int = MAX_LINES
) -> list[Cue]:
    """Cues of all, by time; a label is a part of the text."""
    found = [
        cue for t in heard for cue in cues(t, max_lines=max_lines, label=f"{label(t)}:" * labelled)
    ]
    return sorted(found, key=lambda cue: cue.start_ms)


def to_tsv(heard: Sequence[Transcript], *, labelled: bool, words: bool = False) -> str:
    """Tab-separated ``start``, ``end``, ``text`` under a header; times in whole milliseconds.

    Args:
        heard: what was said; a text that was withheld has no rows.
        labelled: a column ``channel`` before the text.
        words: a row per word (per character where no spaces are written), not per segment.

    Returns:
        The table; the header alone without text. A tab or line break in a text is a space.
    """
    rows = []
    for t in heard:
        limit_ms, channel = duration_ms(t), f"{t.channel}\t" * labelled
        for start_s, end_s, raw in _rows(t, words=words):
            start_ms, end_ms = (min(round(s * 1000), limit_ms) for s in (start_s, end_s))
            if text := clean(raw):
                rows.append((start_ms, f"{start_ms}\t{end_ms}\t{channel}{text}\n"))
    if labelled:
        rows.sort(key=lambda row: row[0])
    return "start\tend\t" + "channel\t" * labelled + "text\n" + "".join(row for _, row in rows)


def to_turns(heard: Sequence[Transcript]) -> str:
    """A conversation: a line per stretch of speech, by time, each behind its channel's label.

    Returns:
        The lines; an empty one without text.
    """
    turns = sorted(
        (segment.start_s, t.channel or 0, f"{label(t)}: {clean(segment.text)}\n")
        for t in heard
        for segment in t.shown
    )
    return "".join(line for _, _, line in turns) or "\n"


def _rows(transcript: Transcript, *, words: bool) -> Iterator[tuple[float, float, str]]:
    for segment in transcript.shown:
        if words:
            yield from ((start_s, end_s, text) for _, text, start_s, end_s in pieces(segment))
        else:
            yield segment.start_s, segment.end_s, segment.text


def _clock(ms: int, point: str) -> str:
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02}{point}{ms % 1000:03}"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
