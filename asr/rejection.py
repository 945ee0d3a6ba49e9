"""When a text is withheld: the thresholds of a model folder, read and applied."""

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from asr.errors import LayoutError, SystemAccessError
from asr.records import Transcript

FILE_NAME = "rejection.json"
SCHEMA_ID = "asr-rejection/2"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a text needs in order to be shown.

    Attributes:
        word_confidence: the least of its least sure word, 0 to 1; 0 asks nothing. One wrong word
            makes a text wrong, and the mean over all words hides it.
        entropy: the most, nats; None asks nothing.
    """

    word_confidence: float
    entropy: float | None

    def accept(self, word_confidence: float | None, entropy: float | None) -> bool:
        """Whether a text is shown; None has no text to show.

        Args:
            word_confidence: of its least sure word, as ``least_word`` says.
            entropy: of the transcript, nats.
        """
        if word_confidence is None or entropy is None:
            return False
        enough = word_confidence >= self.word_confidence
        return enough and (self.entropy is None or entropy <= self.entropy)

    def to_json(self, **facts: object) -> str:
        """The file ``rejection.json`` of a model folder; ``facts`` say where it comes from."""
        return json.dumps({"schema": SCHEMA_ID, **asdict(self), **facts}, indent=2) + "\n"


def read(folder: Path) -> Thresholds | None:
    """The thresholds of a model folder; None when it has none and every text is shown.

    Raises:
        LayoutError: ``rejection.json`` is not what ``asr evaluate`` writes.
        SystemAccessError: it cannot be read.
    """
    path = folder / FILE_NAME
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the file: {error.strerror}") from None
    except ValueError as error:
        raise LayoutError(f"{path}: expected JSON: {error}") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA_ID:
        raise LayoutError(f"{path}: expected an object with schema {SCHEMA_ID}")
    confidence: Any = found.get("word_confidence")
    entropy: Any = found.get("entropy")
    if not _is_number(confidence) or not 0 <= confidence <= 1:
        raise LayoutError(f"{path}: word_confidence: expected 0 to 1, found {confidence!r}")
    if entropy is not None and not (_is_number(entropy) and 0 <= entropy < math.inf):
        raise LayoutError(f"{path}: entropy: expected null or nats from 0, found {entropy!r}")
    return Thresholds(float(confidence), None if entropy is None else float(entropy))


def least_word(transcript: Transcript) -> float | None:
    """Confidence of the least sure word; None without words."""
    words = (word.confidence for segment in transcript.segments for word in segment.words)
    return min(words, default=None)


def apply(transcript: Transcript, thresholds: Thresholds | None) -> Transcript:
    """Withhold the text of one piece of sound if it is not sure enough.

    Returns:
        The same, or one with an empty text, ``rejected`` and the reason ``low_confidence``; its
        segments stay, for whoever wants to know what was withheld.
    """
    if thresholds is None or transcript.no_speech:
        return transcript
    if thresholds.accept(least_word(transcript), transcript.entropy):
        return transcript
    return transcript.withheld()


def _is_number(value: Any) -> bool:  # noqa: ANN401 - any JSON
    return isinstance(value, (int, float)) and not isinstance(value, bool)
