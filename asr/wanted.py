"""What one call of a recogniser asks of every piece, and where a piece lies."""

from dataclasses import dataclass

from asr.languages import Languages
from asr.observe import Observer
from asr.phrases import PhraseList


@dataclass(frozen=True, slots=True)
class Place:
    """Where the frames that the network hears lie in the source.

    Attributes:
        start_s: seconds from the source's start.
        length_s: to the end of the piece, seconds.
    """

    start_s: float
    length_s: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one call asks of every piece, and who watches.

    Attributes:
        language_id: row of the prompt embedding.
        languages: those allowed; None lets the network choose.
        itn: whether inverse text normalisation is asked for.
        punctuated: whether punctuation and case of a second pass with ITN are.
        observer: sees every stage.
        phrases: the phrase list, if any.
        vad: whether pauses are left out of long sound.
        piece_s: longest piece, seconds.
    """

    language_id: int
    languages: Languages | None
    itn: bool
    punctuated: bool
    observer: Observer
    phrases: PhraseList | None
    vad: bool
    piece_s: float
