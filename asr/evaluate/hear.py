"""Let a recogniser hear a manifest's clips, and set each beside what was said."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from asr.errors import AsrError, SystemAccessError
from asr.evaluate import normalise
from asr.evaluate.align import Edits, Pair, align, count
from asr.evaluate.clips import Clips
from asr.evaluate.manifest import Failure, Row
from asr.recognizer import Recognizer
from asr.records import Transcript
from asr.rejection import least_word
from asr.text import join_segments


@dataclass(frozen=True, slots=True)
class HeardWord:
    """A word the network heard, after normalisation.

    Attributes:
        text: as it is compared.
        confidence: of the word it came from, 0 to 1.
        right: whether the alignment sets it beside the same word.
    """

    text: str
    confidence: float
    right: bool


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip of the manifest and what was heard in it.

    Attributes:
        row: the manifest's line.
        text: what was heard, also where the model would withhold it.
        pairs: expected and heard words side by side.
        words: counts of ``pairs``.
        characters: the same counts by character.
        heard: the heard words with their confidence.
        confidence: of the transcript; None without tokens.
        word_confidence: of its least sure word; None without words.
        entropy: of the transcript, nats; None without tokens.
        audio_s: seconds of sound.
        wall_s: seconds of hearing it.
    """

    row: Row
    text: str
    pairs: tuple[Pair, ...]
    words: Edits
    characters: Edits
    heard: tuple[HeardWord, ...]
    confidence: float | None
    word_confidence: float | None
    entropy: float | None
    audio_s: float
    wall_s: float

    @property
    def right(self) -> bool:
        """Whether every word was heard and none besides."""
        return self.words.errors == 0

    @property
    def silent(self) -> bool:
        """Whether nobody speaks in it, according to the manifest."""
        return self.words.expected == 0


def hear(
    recognizer: Recognizer,
    rows: Iterable[Row],
    clips: Clips,
    *,
    language: str = "auto",
    progress: Callable[[], None] = lambda: None,
) -> tuple[list[Clip], list[Failure]]:
    """Hear clips one after another; one that cannot be heard stops no other.

    Args:
        recognizer: a loaded model.
        rows: of a manifest.
        clips: where the sound lies.
        language: hint for rows without one.
        progress: called after each row.

    Returns:
        The clips heard, and the rows that could not be, both in order.
    """
    heard: list[Clip] = []
    failures: list[Failure] = []
    for row in rows:
        try:
            sound, rate = clips.find(row.path)
            transcript = recognizer.transcribe(
                sound, sample_rate=rate, language=row.language or language, itn=row.itn
            )
        except (AsrError, OSError) as error:
            reason = " ".join(str(error).split())
            code = getattr(error, "exit_code", SystemAccessError.exit_code)
            failures.append(Failure(row.line, row.path, reason, code))
        else:
            heard.append(compare(row, transcript))
        progress()
    return heard, failures


def compare(row: Row, transcript: Transcript) -> Clip:
    """Set a transcript beside what was said.

    Args:
        row: what was said.
        transcript: what was heard. Its segments count, not its text: a text that was withheld is
            judged too.
    """
    confident = [
        (unit, word.confidence)
        for segment in transcript.segments
        for word in segment.words
        for unit in normalise.words(word.text)
    ]
    expected, units = normalise.words(row.transcript), [unit for unit, _ in confident]
    pairs = align(expected, units)
    right = [left == unit for left, unit in pairs if unit is not None]
    return Clip(
        row=row,
        text=join_segments(segment.text for segment in transcript.segments),
        pairs=tuple(pairs),
        words=count(pairs),
        characters=count(align(normalise.characters(expected), normalise.characters(units))),
        heard=tuple(
            HeardWord(unit, confidence, ok)
            for (unit, confidence), ok in zip(confident, right, strict=True)
        ),
        confidence=transcript.confidence,
        word_confidence=least_word(transcript),
        entropy=transcript.entropy,
        audio_s=transcript.audio_s,
        wall_s=transcript.wall_s,
    )
