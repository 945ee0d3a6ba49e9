"""Decoded -> Transcript: pieces, tags by prompt row, words, joining."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from asr.errors import DecodeError
from asr.records import Decoded, Segment, Token, Transcript, Word

WORD_MARKER = "\u2581"
_TAG = re.compile(r"<\|([^|<>]+)\|>\Z")
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")
_CONTROL = frozenset({"<s>", "</s>", "<pad>"})

# Scripts written without spaces: CJK ideographs, kana, and their punctuation and full-width forms.
# Hangul is absent: Korean puts spaces between words.
_UNSPACED = (
    (0x2E80, 0x303F),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF00, 0xFFEF),
    (0x20000, 0x3FFFF),
)


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script written without spaces (CJK, kana)."""
    code = ord(character)
    return code >= _UNSPACED[0][0] and any(low <= code <= high for low, high in _UNSPACED)


def join_segments(texts: Iterable[str]) -> str:
    """Join texts with a space, unless both neighbours are of a script written without spaces.

    Deliberate difference: FunASR's ``rich_transcription_postprocess`` glues Latin words.
    """
    joined = ""
    for text in texts:
        if not text:
            continue
        glue = not joined or (is_unspaced(joined[-1]) and is_unspaced(text[0]))
        joined += text if glue else " " + text
    return joined


class Vocabulary:
    """The pieces by id, and what they mean.

    Args:
        pieces: one per id, SentencePiece spelling: ``▁`` opens a word, ``<0xE4>`` is a byte,
            ``<|en|>`` is a tag.
        blank_id: the CTC blank; in SenseVoice it is the unknown piece, which is never text.

    Source: SentencePiece ``DecodeIds``. Deliberate difference: tags are no text.
    """

    def __init__(self, pieces: Sequence[str], *, blank_id: int = 0) -> None:
        self.pieces = pieces
        self.blank_id = blank_id

    def __len__(self) -> int:
        return len(self.pieces)

    def tag(self, token_id: int) -> str | None:
        """The name inside a tag piece, ``en`` for ``<|en|>``; None for any other piece."""
        match = _TAG.match(self.pieces[token_id])
        return match[1] if match else None

    def has_tag(self, name: str) -> bool:
        """Whether some id stands for this tag."""
        return f"<|{name}|>" in self.pieces

    def byte(self, token_id: int) -> int | None:
        """The value of a byte piece, 0xE4 for ``<0xE4>``; None for any other piece."""
        piece = self.pieces[token_id]
        match = _BYTE.match(piece) if piece[:1] == "<" else None  # few are: no pattern is tried
        return int(match[1], 16) if match else None

    def surface(self, token_id: int) -> str:
        """The text of a piece, word marker included; empty for tags and control pieces."""
        piece = self.pieces[token_id]
        if piece[:1] != "<":
            return piece
        return "" if piece in _CONTROL or _TAG.match(piece) else piece


class _Unit(NamedTuple):  # made for every token: a dataclass takes three times as long
    """A token on its way to a word: text with its marker, and its statistics."""

    text: str
    start_s: float
    end_s: float
    log_prob: float
    entropy: float


def transcribe(
    decoded: Decoded,
    vocabulary: Vocabulary,
    *,
    audio_s: float,
    requested_itn: bool,
    offset_s: float = 0.0,
) -> Transcript:
    """Turn ids into text with times, and prompt rows into fields.

    Args:
        decoded: rows and tokens of one piece of sound.
        vocabulary: the pieces by id.
        audio_s: length of the piece, seconds; no time goes beyond it.
        requested_itn: what the prompt asked for, compared with what row 3 answers.

        offset_s: where the piece begins in its source, seconds; added to all times.

    Returns:
        A transcript with one segment, or none when nothing was heard.

    Raises:
        DecodeError: an id outside the vocabulary.
    """
    if decoded.argmax.size and int(decoded.argmax.max()) >= len(vocabulary):
        raise DecodeError(
            f"expected token ids below {len(vocabulary)} (the token list), "
            f"found {int(decoded.argmax.max())}; model and token list do not belong together"
        )
    language, emotion, event, itn_tag = _prompt_fields(decoded, vocabulary)
    itn = {"withitn": True, "woitn": False}.get(itn_tag or "")
    warnings = () if itn is None or itn == requested_itn else ("itn_not_honoured",)
    silent = language == "nospeech"
    units = [] if silent else _units(decoded, vocabulary, audio_s, offset_s)
    words = tuple(_words(units))
    segments: tuple[Segment, ...] = ()
    if words:
        tokens = [token for word in words for token in word.tokens]
        confidence, entropy = _summary(tokens)
        segments = (
            Segment(
                text=_plain("".join(u.text for u in units)),
                start_s=words[0].start_s,
                end_s=words[-1].end_s,
                confidence=confidence,
                entropy=entropy,
                words=words,
            ),
        )
    return from_segments(
        segments,
        language=None if silent else language,
        emotion=emotion,
        event=event,
        itn=itn,
        no_speech_score=None if words else _mean_blank_probability(decoded, vocabulary.blank_id),
        reason=None if words else "silence",
        audio_s=audio_s,
        warnings=warnings,
    )


def from_segments(
    segments: tuple[Segment, ...],
    *,
    audio_s: float,
    reason: str | None,
    language: str | None = None,
    emotion: str | None = None,
    event: str | None = None,
    itn: bool | None = None,
    no_speech_score: float | None = None,
    warnings: tuple[str, ...] = (),
) -> Transcript:
    """Build the whole from its parts; without segments ``reason`` says why."""
    confidence: float | None
    entropy: float | None
    if len(segments) == 1:
        confidence, entropy = segments[0].confidence, segments[0].entropy
    else:
        tokens = [t for s in segments for w in s.words for t in w.tokens]
        confidence, entropy = _summary(tokens) if tokens else (None, None)
    return Transcript(
        text=join_segments(s.text for s in segments),
        language=language,
        emotion=emotion,
        event=event,
        itn=itn,
        segments=segments,
        confidence=confidence,
        entropy=entropy,
        no_speech=not segments,
        no_speech_score=no_speech_score,
        rejected=False,
        reason=reason,
        audio_s=audio_s,
        wall_s=0.0,
        warnings=warnings,
    )


def merge(parts: Sequence[Transcript], *, audio_s: float) -> Transcript:
    """Join the transcripts of one source's pieces, in order.

    Args:
        parts: none where a speech detector found nothing to hear.
        audio_s: length of the source, seconds.

    Returns:
        All segments, and the texts of those that are not withheld; language, emotion, event and
        ITN of the first piece in which something was heard, of the first piece otherwise.
    """
    if not parts:
        return from_segments((), reason="silence", no_speech_score=1.0, audio_s=audio_s)
    first = next((p for p in parts if p.segments), parts[0])
    scores = [p.no_speech_score for p in parts if p.no_speech_score is not None]
    silent = not first.segments
    texts = [p.text for p in parts if p.text]
    withheld = any(p.rejected for p in parts)
    whole = from_segments(
        tuple(s for p in parts for s in p.segments),
        language=first.language,
        emotion=first.emotion,
        event=first.event,
        itn=first.itn,
        no_speech_score=sum(scores) / len(scores) if silent and scores else None,
        reason="silence" if silent else None,
        audio_s=audio_s,
        warnings=tuple(dict.fromkeys(w for p in parts for w in p.warnings)),
    )
    if withheld and not texts:
        return whole.withheld()
    warnings = (*whole.warnings, "partly_withheld") if withheld else whole.warnings
    return replace(whole, text=join_segments(texts), warnings=warnings)


def _prompt_fields(decoded: Decoded, vocabulary: Vocabulary) -> list[str | None]:
    """Language, emotion, event, ITN: the tag of prompt rows 0 to 3, None where a row has none."""
    rows = decoded.argmax[: decoded.prompt_frames].tolist()
    tags = [vocabulary.tag(i) for i in rows]
    return (tags + [None] * 4)[:4]


def _units(
    decoded: Decoded, vocabulary: Vocabulary, audio_s: float, offset_s: float
) -> list[_Unit]:
    """One unit per piece of text; a run of byte pieces is joined before it is decoded."""
    units: list[_Unit] = []
    pending: list[tuple[int, int]] = []  # (index into the tokens, byte value)
    carry = ""
    shift_s = decoded.frame_shift_s
    ids = decoded.token_ids.tolist()
    starts, ends = decoded.start_frame.tolist(), decoded.end_frame.tolist()
    log_probs, entropies = decoded.log_probs.tolist(), decoded.entropies.tolist()

    def seconds(frame: int) -> float:
        # LFR row i is centred on fbank frame 6 i, so its stretch begins half a row earlier.
        # The one place where rows become seconds; FunASR's timestamps use the same rule.
        return offset_s + min(max(frame * shift_s - shift_s / 2, 0.0), audio_s)

    def add(text: str, first: int, last: int) -> None:
        nonlocal carry
        text = carry + text
        carry = ""
        if not _plain(text):  # a marker alone belongs to the piece that follows
            carry = text
            return
        count = last - first + 1
        units.append(
            _Unit(
                text,
                round(seconds(starts[first]), 6),
                min(round(seconds(ends[last]), 6), offset_s + audio_s),
                log_probs[first] if count == 1 else sum(log_probs[first : last + 1]) / count,
                entropies[first] if count == 1 else sum(entropies[first : last + 1]) / count,
            )
        )

    def flush() -> None:
        if pending:
            text = bytes(value for _, value in pending).decode("utf-8", errors="replace")
            add(text, pending[0][0], pending[-1][0])
            pending.clear()

    for k, token_id in enumerate(ids):
        value = vocabulary.byte(token_id)
        if value is not None:
            pending.append((k, value))
            continue
        flush()
        add(vocabulary.surface(token_id), k, k)
    flush()
    return units


def _words(units: list[_Unit]) -> Iterable[Word]:
    """Group units: a marker opens a word, and so does a character written without spaces."""
    group: list[_Unit] = []
    for unit in units:
        if group and _opens_word(group[-1].text, unit.text):
            yield _word(group)
            group = []
        group.append(unit)
    if group:
        yield _word(group)


def _opens_word(before: str, text: str) -> bool:
    blank = text[0] == WORD_MARKER or text[0].isspace()
    return blank or is_unspaced(text[0]) or is_unspaced(before[-1])


def _word(group: list[_Unit]) -> Word:
    if len(group) == 1:  # most words, in scripts without spaces all: nothing to average
        ((marked, start_s, end_s, log_prob, entropy),) = group
        text, confidence = _plain(marked), math.exp(log_prob)
        token = Token(text, start_s, end_s, confidence, entropy)
        return Word(text, start_s, end_s, confidence, entropy, (token,))
    tokens = tuple(
        Token(_plain(u.text), u.start_s, u.end_s, math.exp(u.log_prob), u.entropy) for u in group
    )
    confidence, entropy = _summary(tokens)
    text = _plain("".join(u.text for u in group))
    return Word(text, tokens[0].start_s, tokens[-1].end_s, confidence, entropy, tokens)


def _plain(marked: str) -> str:
    """Turn word markers into spaces."""
    return marked.replace(WORD_MARKER, " ").strip()


def _summary(tokens: Sequence[Token]) -> tuple[float, float]:
    """Confidence = exp(mean log-probability), entropy = mean, of at least one token.

    No logarithm of zero: the best of V ids has a probability of at least 1 / V.
    """
    mean_log_prob = sum(math.log(t.confidence) for t in tokens) / len(tokens)
    return math.exp(mean_log_prob), sum(t.entropy for t in tokens) / len(tokens)


def _mean_blank_probability(decoded: Decoded, blank_id: int) -> float:
    """Mean over the speech rows of blank's probability; 0 where another id (a tag) was best."""
    best = decoded.argmax[decoded.prompt_frames :]
    rows = decoded.log_prob[decoded.prompt_frames :]
    return float(np.where(best == blank_id, np.exp(rows), 0).mean()) if rows.size else 1.0
