"""Emotion and event beside the text, as FunASR shows them; from the prompt rows, never the text."""

from asr.records import Transcript

#: By prompt row 2 (event) and 1 (emotion); every other tag shows nothing.
EVENTS = {
    "BGM": "🎼", "Applause": "👏", "Laughter": "😀", "Cry": "😭", "Sneeze": "🤧", "Cough": "🤧",
}  # fmt: skip
EMOTIONS = {
    "HAPPY": "😊", "SAD": "😔", "ANGRY": "😡", "FEARFUL": "😰", "DISGUSTED": "🤢",
    "SURPRISED": "😮",
}  # fmt: skip


def around(transcript: Transcript, style: str | None) -> str:
    """The text with what the prompt rows said.

    Args:
        transcript: what was said.
        style: ``emoji``: the event's in front, the emotion's behind, without spaces; ``tags``:
            ``<|en|><|NEUTRAL|><|Speech|><|woitn|>`` in front, as far as the rows hold tags; None:
            the text alone.

    Source: FunASR ``postprocess_utils.rich_transcription_postprocess``. Deliberate differences:
    nothing is ever deleted from the text, and a text that was withheld has no emoji either.
    """
    if style is None or transcript.rejected:
        return transcript.text
    if style == "tags":
        itn = {True: "withitn", False: "woitn", None: None}[transcript.itn]
        names = (transcript.language, transcript.emotion, transcript.event, itn)
        return "".join(f"<|{name}|>" for name in names if name) + transcript.text
    event = EVENTS.get(transcript.event or "", "")
    return event + transcript.text + EMOTIONS.get(transcript.emotion or "", "")
