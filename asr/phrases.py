"""Logits -> Decoded, restricted to a list of phrases: read the list, search it, judge the find."""

import math
import os
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from asr import _rust_fe
from asr.errors import SystemAccessError, UsageError
from asr.records import Decoded, Logits, Transcript

#: A folder's own list.
FILE_NAME = "phrases.txt"
MAX_PHRASES = 5000
MAX_CHARACTERS = 200
#: The least score of a phrase that is accepted, chosen on validation clips: the least strict round
#: value that accepts fewer than 1 % of other speech. Measure your own (docs/phrases.md).
MIN_SCORE = -1.0

_WORD_MARKER = "\u2581"
_FIRST_UNSPACED = 0x2E80  # from here on scripts that may begin a word without a marker
#: The least of a token: exp() of less is zero, and a confidence has a logarithm.
LOWEST_LOG_PROB = -700.0


class Pieces(Protocol):
    """What a list needs to know of a vocabulary; ``asr.text.Vocabulary`` is one."""

    blank_id: int

    def __len__(self) -> int:
        """Number of pieces."""

    def surface(self, token_id: int) -> str:
        """The text of a piece, word marker included; empty for tags and control pieces."""

    def byte(self, token_id: int) -> int | None:
        """The value of a byte piece; None for any other piece."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """One line of a list.

    Attributes:
        text: what is said, as the network writes it.
        label: what it stands for; the text itself unless the line names another.
    """

    text: str
    label: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A phrase that was found.

    Attributes:
        text: the most probable text of its label.
        label: what was meant.
        runner_up: the next label; None if the list has no other that could be.
        log_prob: natural logarithm of the label's probability: all its texts, all their
            spellings in pieces, all alignments.
        margin: ``log_prob`` minus that of the runner-up, nats; infinite without one.
        posterior: probability among all labels and silence, 0 to 1.
        score: log-likelihood ratio against the best path without a list, per row with speech,
            nats; about 0 when the network hears just this, the lower the less it does.
        first_frame: first row that was searched, counted after the prompt rows.
        end_frame: the row after the last.
        num_tokens: how many of the tokens are this phrase's.
    """

    text: str
    label: str
    runner_up: str | None
    log_prob: float
    margin: float
    posterior: float
    score: float
    first_frame: int
    end_frame: int
    num_tokens: int


@dataclass(frozen=True, slots=True)
class Heard:
    """What a list made of the scores.

    Attributes:
        decoded: rows as greedy decoding sees them; the tokens of the phrases, or, without hits,
            those of greedy decoding. A token's log-probability and entropy are those of the row
            where it is most probable.
        hits: the phrases in order; none when silence is more probable than any.
        accepted: whether there are hits and all of them reach the least score and posterior.
    """

    decoded: Decoded
    hits: tuple[Hit, ...]
    accepted: bool


class PhraseList:
    """A closed list of phrases, ready to search; may be shared between threads.

    Args:
        phrases: texts, or texts with labels.
        vocabulary: the model's pieces.
        many: whether phrases may follow one another; otherwise there is one or none.
        min_score: the least score of a phrase that is accepted.
        min_posterior: the least posterior, 0 to 1; 0 asks nothing.
        source: what to call the list in messages.
        lines: the line of each phrase, for messages; counted from 1 if not given.

    Raises:
        UsageError: no phrase, too many, one that is too long, twice there, or not to be spelled.
    """

    def __init__(
        self,
        phrases: Iterable[str | Phrase],
        vocabulary: Pieces,
        *,
        many: bool = False,
        min_score: float = MIN_SCORE,
        min_posterior: float = 0.0,
        source: str = "phrases",
        lines: Iterable[int] | None = None,
    ) -> None:
        self.phrases = tuple(Phrase(p, p) if isinstance(p, str) else p for p in phrases)
        self.many = many
        self.min_score = min_score
        self.min_posterior = min_posterior
        self._blank_id = vocabulary.blank_id
        numbers = range(1, len(self.phrases) + 1) if lines is None else tuple(lines)
        places = [f"{source}: line {number}" for number in numbers]
        if not self.phrases:
            raise UsageError(f"{source}: expected one phrase per line, found none")
        if len(self.phrases) > MAX_PHRASES:
            raise UsageError(
                f"{source}: expected at most {MAX_PHRASES} phrases, found {len(self.phrases)}"
            )
        if not math.isfinite(min_score):
            raise UsageError(f"{source}: min_score: expected a number, found {min_score}")
        if not 0 <= min_posterior <= 1:
            raise UsageError(f"{source}: min_posterior: expected 0 to 1, found {min_posterior}")
        pieces = [_spelling(vocabulary, token_id) for token_id in range(len(vocabulary))]
        alphabet = {c for piece in pieces for c in piece.decode("utf-8", "ignore")}
        single = {piece[0] for piece in pieces if len(piece) == 1}
        seen: dict[str, str] = {}
        self.spellings: list[list[bytes]] = []
        for phrase, place in zip(self.phrases, places, strict=True):
            text = _normal(phrase.text, place)
            known = _fit(text, alphabet, single, place)
            if known in seen:
                raise UsageError(f"{place}: expected each phrase once, found it on {seen[known]}")
            seen[known] = place.rpartition(": ")[2]
            self.spellings.append(_spellings(known))
        labels = list(dict.fromkeys(p.label for p in self.phrases))
        number_of = {label: number for number, label in enumerate(labels)}
        self._graph = _rust_fe.Phrases(
            pieces,
            vocabulary.blank_id,
            self.spellings,
            [number_of[p.label] for p in self.phrases],
        )
        for phrase, place, fits in zip(self.phrases, places, self._graph.spelled, strict=True):
            if not fits:
                raise UsageError(
                    f"{place}: expected text that the model's pieces can spell, "
                    f"found {phrase.text!r}"
                )

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Pieces,
        *,
        many: bool = False,
        min_score: float = MIN_SCORE,
        min_posterior: float = 0.0,
    ) -> "PhraseList":
        """Read a list: UTF-8, one phrase per line, ``text`` or ``text => label``.

        Empty lines and lines that begin with ``#`` are left out.

        Raises:
            UsageError: a line is not what it should be; the message names it.
            SystemAccessError: the file cannot be read.
        """
        path = Path(path)
        try:
            content = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            number = error.object[: error.start].count(b"\n") + 1
            raise UsageError(
                f"{path}: line {number}: expected UTF-8 text, found other bytes"
            ) from None
        except OSError as error:
            raise SystemAccessError(f"{path}: cannot read the file: {error.strerror}") from None
        numbered = []
        for number, line in enumerate(content.split("\n"), start=1):
            text = line.strip()
            if text and not text.startswith("#"):
                numbered.append((number, _parse(text, f"{path}: line {number}")))
        return cls(
            [phrase for _, phrase in numbered],
            vocabulary,
            many=many,
            min_score=min_score,
            min_posterior=min_posterior,
            source=str(path),
            lines=[number for number, _ in numbered],
        )

    def __len__(self) -> int:
        return len(self.phrases)

    def decode(self, logits: Logits) -> Heard:
        """Find the most probable phrase, or sequence of phrases.

        Args:
            logits: float32 (prompt_frames + num_frames, vocab_size); raw scores and
                log-probabilities give the same result.

        Raises:
            DecodeError: a score is NaN or infinite, or there is not one column per piece.

        Source: Graves et al. 2006, section 4.1, summed over all spellings of a phrase.
        """
        arrays, facts, scores = self._graph.decode(
            logits.values, logits.prompt_frames, many=self.many
        )
        if not len(facts):  # what was heard instead, for whoever wants to know
            arrays = _rust_fe.ctc_greedy(logits.values, self._blank_id, logits.prompt_frames)
        decoded = Decoded(*arrays, logits.prompt_frames, logits.frame_shift_s)
        decoded.log_probs.clip(min=LOWEST_LOG_PROB, out=decoded.log_probs)
        hits = tuple(
            self._hit(*whole, *real)
            for whole, real in zip(facts.tolist(), scores.tolist(), strict=True)
        )
        accepted = bool(hits) and all(
            hit.score >= self.min_score and hit.posterior >= self.min_posterior for hit in hits
        )
        return Heard(decoded, hits, accepted)

    def _hit(
        self,
        phrase: int,
        runner_up: int,
        num_tokens: int,
        first_frame: int,
        end_frame: int,
        speech_frames: int,
        log_prob: float,
        free_log_prob: float,
        margin: float,
        posterior: float,
    ) -> Hit:
        return Hit(
            text=self.phrases[phrase].text,
            label=self.phrases[phrase].label,
            runner_up=None if runner_up < 0 else self.phrases[runner_up].label,
            log_prob=log_prob,
            margin=margin,
            posterior=posterior,
            score=(log_prob - free_log_prob) / speech_frames,
            first_frame=first_frame,
            end_frame=end_frame,
            num_tokens=num_tokens,
        )


def judge(transcript: Transcript, heard: Heard) -> Transcript:
    """Put the labels in the place of a piece's text, or withhold it if it is not sure enough.

    Args:
        transcript: made from ``heard.decoded``.
        heard: what the list found in the piece of sound.

    Returns:
        The same when nobody speaks; ``rejected`` with the reason ``low_confidence`` when what was
        said is not on the list, or a hit is not accepted. Segments, words, confidence and entropy
        stay those of the spoken text.
    """
    if transcript.no_speech:
        return transcript
    if not heard.accepted:
        return transcript.withheld()
    return replace(transcript, text=" ".join(hit.label for hit in heard.hits))


def _parse(line: str, place: str) -> Phrase:
    text, arrow, label = (part.strip() for part in line.partition("=>"))
    if not text or (arrow and not label):
        raise UsageError(f"{place}: expected 'text' or 'text => label', found {line[:60]!r}")
    return Phrase(text, label or text)


def _normal(text: str, place: str) -> str:
    """NFKC, single spaces, no character that cannot be said."""
    normal = " ".join(unicodedata.normalize("NFKC", text).split())
    if not normal:
        raise UsageError(f"{place}: expected a phrase, found {text!r}")
    if len(normal) > MAX_CHARACTERS:
        raise UsageError(
            f"{place}: expected at most {MAX_CHARACTERS} characters, found {len(normal)}"
        )
    return normal


def _fit(text: str, alphabet: set[str], single: set[int], place: str) -> str:
    """The text as written, or in lower case if only that can be spelled."""

    def unknown(candidate: str) -> list[str]:
        return [
            c
            for c in dict.fromkeys(candidate)
            if c != " " and c not in alphabet and not set(c.encode()) <= single
        ]

    missing = unknown(text)
    if not missing:
        return text
    missing = unknown(text.lower())
    if not missing:
        return text.lower()
    found = " ".join(f"{c!r}" for c in missing[:5])
    raise UsageError(f"{place}: expected characters that the model knows, found {found}")


def _spelling(vocabulary: Pieces, token_id: int) -> bytes:
    """The bytes that a piece stands for; none for tags, control pieces and the blank."""
    if token_id == vocabulary.blank_id:
        return b""
    value = vocabulary.byte(token_id)
    if value is not None:
        return bytes([value])
    return vocabulary.surface(token_id).encode("utf-8", "surrogatepass")


def _spellings(text: str) -> list[bytes]:
    """The text with word markers; the first is optional before a script without spaces."""
    marked = text.replace(" ", _WORD_MARKER)
    spellings = [_WORD_MARKER + marked]
    if ord(text[0]) >= _FIRST_UNSPACED:
        spellings.append(marked)
    return [spelling.encode("utf-8") for spelling in spellings]
