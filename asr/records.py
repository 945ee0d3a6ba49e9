"""The five records that flow: Audio, Features, Logits, Decoded, Transcript.

Each checks itself once, at birth, with a message that says what was wanted and what came.
No stage checks again.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from asr.errors import AudioError, DecodeError, FrontEndError

Float32 = npt.NDArray[np.float32]
Int32 = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Audio:
    """Mono sound.

    Attributes:
        samples: float32 (num_samples,), full scale ±1.0, C-contiguous, finite.
        sample_rate_hz: samples per second.
        source: what to call it in messages: a path, or ``array``.

    Raises:
        AudioError: the samples are of another type or shape, or one is NaN or infinite.
    """

    samples: Float32
    sample_rate_hz: int
    source: str

    def __post_init__(self) -> None:
        x = self.samples
        if x.dtype != np.float32 or x.ndim != 1 or not x.flags.c_contiguous:
            raise AudioError(
                f"{self.source}: expected contiguous float32 samples of shape (num_samples,), "
                f"found {x.dtype} {x.shape}"
            )
        # One pass without a temporary: a sum is finite unless a sample is not (or it overflows).
        with np.errstate(invalid="ignore", over="ignore"):
            total = x.sum(dtype=np.float32)
        if not np.isfinite(total):
            bad = np.flatnonzero(~np.isfinite(x))
            if bad.size:
                raise AudioError(
                    f"{self.source}: sample {bad[0]} is {x[bad[0]]}; expected finite values in ±1.0"
                )

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self.samples) / self.sample_rate_hz


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """What the front end makes of sound.

    Attributes:
        values: float32 (num_frames, dim), C-contiguous; natural-log mel energies after fbank.
        frame_shift_s: seconds from one row to the next; 0.010 after fbank, 0.060 after LFR.

    Raises:
        FrontEndError: the values are of another type or shape.
    """

    values: Float32
    frame_shift_s: float

    def __post_init__(self) -> None:
        v = self.values
        if v.dtype != np.float32 or v.ndim != 2 or not v.flags.c_contiguous:
            raise FrontEndError(
                "expected contiguous float32 features of shape (num_frames, dim), "
                f"found {v.dtype} {v.shape}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Logits:
    """Scores from the network, for one piece of sound.

    Attributes:
        values: float32 (prompt_frames + num_frames, vocab_size), raw scores or log-probabilities.
        frame_shift_s: seconds from one row to the next.
        prompt_frames: rows in front of the speech rows; 4 for SenseVoice.

    Raises:
        DecodeError: the values are of another type or shape.
    """

    values: Float32
    frame_shift_s: float
    prompt_frames: int

    def __post_init__(self) -> None:
        v = self.values
        if v.dtype != np.float32 or v.ndim != 2:
            raise DecodeError(
                "expected float32 scores of shape (prompt_frames + num_frames, vocab_size), "
                f"found {v.dtype} {v.shape}"
            )
        if len(v) < self.prompt_frames:
            raise DecodeError(
                f"expected at least {self.prompt_frames} rows of scores for the prompts, "
                f"found {len(v)}"
            )


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """Greedy CTC result with statistics for every row.

    Attributes:
        argmax: int32 (T,), the best id of each row, the lowest on ties.
        log_prob: float32 (T,), its natural-log probability, <= 0.
        entropy: float32 (T,), of the row's distribution, nats.
        token_ids: int32 (K,), after collapsing and dropping blanks, speech rows only.
        start_frame: int32 (K,), first row of the token's run, counted after the prompt rows.
        end_frame: int32 (K,), one past the last row of the run.
        log_probs: float32 (K,), of the run's most probable row.
        entropies: float32 (K,), of that same row.
        prompt_frames: how many of the T rows are prompts.
        frame_shift_s: seconds from one row to the next.
    """

    argmax: Int32
    log_prob: Float32
    entropy: Float32
    token_ids: Int32
    start_frame: Int32
    end_frame: Int32
    log_probs: Float32
    entropies: Float32
    prompt_frames: int
    frame_shift_s: float


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of text as the network emitted it.

    Attributes:
        text: the piece, without its word marker.
        start_s: start in the source, seconds.
        end_s: end in the source, seconds.
        confidence: probability of the token at its best row, 0 to 1.
        entropy: of that row, nats.
    """

    text: str
    start_s: float
    end_s: float
    confidence: float
    entropy: float


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or one character where the script writes no spaces.

    Attributes:
        text: the word.
        start_s: start in the source, seconds.
        end_s: end in the source, seconds.
        confidence: exp of the mean log-probability of its tokens, 0 to 1.
        entropy: mean entropy of its tokens, nats.
        tokens: what it is made of.
    """

    text: str
    start_s: float
    end_s: float
    confidence: float
    entropy: float
    tokens: tuple[Token, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of speech that the network heard in one call.

    Attributes:
        text: what was said.
        start_s: start in the source, seconds.
        end_s: end in the source, seconds.
        confidence: exp of the mean log-probability of its tokens; None without tokens.
        entropy: mean entropy of its tokens, nats; None without tokens.
        words: its words in order.
        rejected: whether it is left out of the transcript's text: the network was not sure enough.
    """

    text: str
    start_s: float
    end_s: float
    confidence: float | None
    entropy: float | None
    words: tuple[Word, ...]
    rejected: bool = False


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said in one source; plain Python, ready for JSON.

    Attributes:
        text: the segments that are not rejected, joined, or a phrase list's labels.
        language: from prompt row 0, such as ``en``; None when the row holds no language.
        emotion: from prompt row 1, such as ``NEUTRAL``.
        event: from prompt row 2, such as ``Speech``.
        itn: from prompt row 3: whether inverse text normalisation was applied.
        segments: stretches of speech in order.
        confidence: exp of the mean log-probability of all tokens; None without tokens.
        entropy: mean entropy of all tokens, nats; None without tokens.
        no_speech: whether nothing was heard.
        no_speech_score: mean blank probability of the speech rows; None when there are tokens.
        rejected: whether all that was heard was withheld: the network was not sure enough.
        reason: why the text is empty: ``too_short``, ``silence``, ``low_confidence``, or None.
        audio_s: seconds of source audio.
        wall_s: seconds spent from reading the source to this record.
        warnings: what a careful user should know, such as ``itn_not_honoured``;
            ``partly_withheld`` where some segments are rejected and some are not.
        channel: the one that was heard, counted from 1; None heard the mean of all.
    """

    text: str
    language: str | None
    emotion: str | None
    event: str | None
    itn: bool | None
    segments: tuple[Segment, ...]
    confidence: float | None
    entropy: float | None
    no_speech: bool
    no_speech_score: float | None
    rejected: bool
    reason: str | None
    audio_s: float
    wall_s: float
    warnings: tuple[str, ...]
    channel: int | None = None

    @property
    def shown(self) -> tuple[Segment, ...]:
        """The segments that are not rejected."""
        return tuple(segment for segment in self.segments if not segment.rejected)

    def of_call(self, channel: int | None, warned: list[str], wall_s: float) -> "Transcript":
        """The same as the answer to a call; every call comes by, and ``replace`` takes 5 µs more.

        Args:
            channel: the one that was heard, or None.
            warned: what was wrong with the source, told first.
            wall_s: seconds that it took.
        """
        return Transcript(
            self.text,
            self.language,
            self.emotion,
            self.event,
            self.itn,
            self.segments,
            self.confidence,
            self.entropy,
            self.no_speech,
            self.no_speech_score,
            self.rejected,
            self.reason,
            self.audio_s,
            wall_s,
            (*warned, *self.warnings),
            channel,
        )

    def withheld(self) -> "Transcript":
        """The same without its text: rejected, with the reason ``low_confidence``.

        The segments stay, for whoever wants to know what was withheld.
        """
        segments = tuple(replace(segment, rejected=True) for segment in self.segments)
        return replace(self, text="", segments=segments, rejected=True, reason="low_confidence")
