"""Audio -> Transcript: the whole pipeline, one line per stage."""

import os
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from asr import audio, ctc, phrases, punctuation, rejection, segment, text
from asr.engines.base import Engine
from asr.engines.ort import OrtEngine, default_threads, read_model
from asr.errors import FrontEndError, LayoutError, UsageError
from asr.frontend import FrontEnd
from asr.hub import DEFAULT_MODEL, find_model
from asr.languages import Languages
from asr.layouts import Layout, open_layout
from asr.observe import SILENT, Observer, with_dump
from asr.phrases import Heard, PhraseList
from asr.records import Audio, Decoded, Features, Logits, Transcript

#: Below this nothing can be a word; the network is not asked. Its own window is 25 ms.
MIN_AUDIO_S = 0.1

#: More threads than any machine this runs on has cores: a typing mistake.
MAX_THREADS = 1024


class Recognizer:
    """A model ready to transcribe; may be shared between threads.

    Args:
        layout: what the model directory means.
        front_end: built from the layout's recipe.
        engine: the loaded network.

    Raises:
        LayoutError: the network does not fit the layout.
    """

    def __init__(self, layout: Layout, front_end: FrontEnd, engine: Engine) -> None:
        self.layout = layout
        self.front_end = front_end
        self.engine = engine
        self.phrases = _stored_phrases(layout)
        self._binding = layout.connect(engine.inputs, engine.outputs)
        self._broken_dumps: set[Path] = set()

    @classmethod
    def load(
        cls,
        model: str | os.PathLike[str] = DEFAULT_MODEL,
        *,
        threads: int | None = None,
        backend: str | None = None,
        observer: Observer = SILENT,
    ) -> "Recognizer":
        """Load a model.

        Args:
            model: a model directory, or the name of a built-in model.
            threads: threads of the network; None takes the cores this process may use, at most 4.
            backend: SIMD path of the Rust stages; None takes the best this CPU has.
            observer: sees the steps ``layout``, ``front_end``, ``model_read``, ``session_create``.

        Raises:
            LayoutError: the directory or a file in it is not what it should be.
            SystemAccessError: a file cannot be read.
            UsageError: ``threads`` is below 1 or absurd.
            FrontEndError: this CPU cannot run ``backend``.
        """
        if threads is not None and threads < 1:
            raise UsageError(f"threads: expected 1 or more, found {threads}")
        if threads is not None and threads > MAX_THREADS:
            raise UsageError(f"threads: expected at most {MAX_THREADS}, found {threads}")
        count = threads or default_threads()
        step = observer.step
        layout = step("layout", open_layout, find_model(os.fspath(model)))
        try:
            front_end = step("front_end", lambda: FrontEnd(layout.front_end, backend=backend))
        except FrontEndError as error:
            if backend is not None:
                raise
            raise LayoutError(f"{layout.recipe_file}: {error}") from None
        network = step("model_read", read_model, layout.network)
        engine = step(
            "session_create",
            lambda: OrtEngine(
                network, name=str(layout.network), threads=count, folder=layout.network.parent
            ),
        )
        return cls(layout, front_end, engine)

    def transcribe(
        self,
        source: audio.Source,
        *,
        sample_rate: int | None = None,
        language: str | Iterable[str] = "auto",
        itn: "bool | Literal['punctuation']" = False,
        raw: "audio.RawFormat | None" = None,
        channel: int | None = None,
        strict: bool = False,
        phrases: PhraseList | None = None,
        observer: Observer = SILENT,
    ) -> Transcript:
        """Turn sound into text.

        Args:
            source: a path, ``-`` for standard input, bytes, an array, or Audio; as
                ``asr.audio.read`` says.
            sample_rate: samples per second of an array; a file states its own.
            language: ``auto`` or one the model knows: a hint, not a constraint. Several, such as
                ``("zh", "en")``, are one: where the network hears another language, it is asked
                again with the best of these.
            itn: ask the network for inverse text normalisation (digits, punctuation).
                ``punctuation`` takes punctuation and case from it and leaves numbers in words;
                every piece is then heard twice.
            raw: how to read samples without a header.
            channel: the one to hear, counted from 1; None averages them.
            strict: refuse a damaged file instead of hearing what is left of it.
            phrases: hear nothing but these; None takes the model folder's ``phrases.txt``,
                without one everything can be heard.
            observer: sees every stage.

        Returns:
            A transcript; with an empty text and a ``reason`` when nothing was heard, or when the
            model's thresholds say that what was heard is not sure enough (``rejected``).

        Raises:
            UsageError: unknown language; punctuation asked for beside a phrase list.
            AudioError: the source is no sound.
            SystemAccessError: the file cannot be read.
            EngineError, DecodeError: the network failed, or returned NaN.
        """
        start_s = time.perf_counter()
        wanted = self._wanted(language, itn, phrases, observer)
        told: list[str] = []

        def read() -> Audio:
            return audio.read(
                source, sample_rate, raw=raw, channel=channel, strict=strict, warn=told.append
            )

        transcript = self._run(read, wanted)
        transcript = wanted.listed.judge(transcript, self.layout)
        return replace(
            transcript,
            channel=channel,
            warnings=(*told, *transcript.warnings),
            wall_s=time.perf_counter() - start_s,
        )

    def transcribe_channels(
        self,
        source: audio.Source,
        *,
        sample_rate: int | None = None,
        language: str | Iterable[str] = "auto",
        itn: "bool | Literal['punctuation']" = False,
        raw: "audio.RawFormat | None" = None,
        strict: bool = False,
        phrases: PhraseList | None = None,
        observer: Observer = SILENT,
    ) -> tuple[Transcript, ...]:
        """Turn each channel into text by itself: a caller left, a callee right.

        Args and errors are those of ``transcribe``.

        Returns:
            A transcript per channel, in order; its ``channel`` says which.
        """
        languages = language if isinstance(language, str) else tuple(language)
        self._wanted(languages, itn, phrases, observer)  # refuse before anything is read
        told: list[str] = []
        sounds = audio.read_channels(source, sample_rate, raw=raw, strict=strict, warn=told.append)
        found: list[Transcript] = []
        start_s = time.perf_counter()
        for number, sound in enumerate(sounds, 1):
            heard = self.transcribe(
                sound, language=languages, itn=itn, phrases=phrases, observer=observer
            )
            end_s = time.perf_counter()
            warned = (*told, *heard.warnings)
            found.append(replace(heard, channel=number, warnings=warned, wall_s=end_s - start_s))
            start_s = end_s
        return tuple(found)

    def _wanted(
        self,
        language: str | Iterable[str],
        itn: "bool | Literal['punctuation']",
        listed: PhraseList | None,
        observer: Observer,
    ) -> "_Wanted":
        listed = self.phrases if listed is None else listed
        if itn == "punctuation" and listed is not None:
            raise UsageError("punctuation: expected no phrase list, whose labels are the text")
        return _Wanted(
            language_id=self.layout.language_id(language if isinstance(language, str) else "auto"),
            languages=None if isinstance(language, str) else self.layout.languages(language),
            itn=itn is True,
            punctuated=itn == "punctuation",
            observer=with_dump(observer, _warn_user, self._broken_dumps),
            listed=_Listed(listed),
        )

    def _run(self, read: Callable[[], Audio], wanted: "_Wanted") -> Transcript:
        step = wanted.observer.step
        original = step("read", read)
        audio_s = original.duration_s
        if audio_s < MIN_AUDIO_S:
            return text.from_segments((), reason="too_short", audio_s=audio_s)
        sound: Audio = step("resample", audio.resample, original, self.sample_rate_hz)
        if sound.duration_s <= segment.MAX_PIECE_S:
            return self._piece(sound, 0.0, audio_s, wanted)
        pieces = step("vad", segment.split, sound, segment.MAX_PIECE_S)
        heard = [
            self._piece(piece, start_s, min(piece.duration_s, audio_s - start_s), wanted)
            for start_s, piece in pieces
        ]
        return text.merge(heard, audio_s=audio_s)

    def _piece(
        self, sound: Audio, offset_s: float, source_s: float, wanted: "_Wanted"
    ) -> Transcript:
        """Hear one piece in one call of the network; times count from the source's start.

        ``source_s`` is the piece's length in the source: resampling rounds, and no time may lie
        beyond the source's end.
        """
        step = wanted.observer.step
        features: Features = step("fbank", self.front_end.fbank, sound)
        if self.front_end.is_silent(features):  # some networks hear words in digital silence
            return text.from_segments((), reason="silence", no_speech_score=1.0, audio_s=source_s)
        features = step("lfr", self.front_end.lfr, features)
        features = step("cmvn", self.front_end.cmvn, features)
        logits, language, language_id = self._settle(features, wanted)
        decoded: Decoded = step("decode", self._decode, logits, wanted.listed)
        transcript: Transcript = step("text", self._text, decoded, source_s, offset_s, wanted.itn)
        if language is not None and transcript.language is not None:
            transcript = replace(transcript, language=language)
        if wanted.punctuated and transcript.segments:
            again = self._ask(features, language_id, True, wanted)
            decoded = step("decode", self._decode, again, wanted.listed)
            written: Transcript = step("text", self._text, decoded, source_s, offset_s, True)
            transcript = punctuation.apply(transcript, written)
        return wanted.listed.heed(transcript)

    def _settle(self, features: Features, wanted: "_Wanted") -> tuple[Logits, str | None, int]:
        """Scores, the language settled among those allowed, and its prompt row."""
        logits = self._ask(features, wanted.language_id, wanted.itn, wanted)
        if wanted.languages is None:
            return logits, None, wanted.language_id
        language, stands = wanted.languages.settle(logits.values[0])
        if stands:
            return logits, language, wanted.language_id
        language_id = self.layout.language_ids[language]
        return self._ask(features, language_id, wanted.itn, wanted), language, language_id

    def _ask(self, features: Features, language_id: int, itn: bool, wanted: "_Wanted") -> Logits:
        step = wanted.observer.step
        itn_id = self.layout.itn_ids[itn]
        tensors = step("bind", self._binding.bind, features, language_id, itn_id)
        return step("infer", self._infer, tensors, features.frame_shift_s)

    @property
    def sample_rate_hz(self) -> int:
        """The rate the network was trained on; other sound is resampled to it."""
        return self.layout.front_end.sample_rate_hz

    def _infer(self, tensors: dict[str, npt.NDArray[Any]], frame_shift_s: float) -> Logits:
        return self._binding.unbind(self.engine.run(tensors), frame_shift_s)

    def _decode(self, logits: Logits, listed: "_Listed") -> Decoded:
        if listed.phrases is not None:
            return listed.decode(listed.phrases, logits)
        return ctc.greedy(logits, blank_id=self.layout.blank_id)

    def _text(self, decoded: Decoded, audio_s: float, offset_s: float, itn: bool) -> Transcript:
        return text.transcribe(
            decoded, self.layout.vocabulary, audio_s=audio_s, offset_s=offset_s, requested_itn=itn
        )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What one call asks of every piece, and who watches.

    Attributes:
        language_id: row of the prompt embedding.
        languages: those allowed; None lets the network choose.
        itn: whether inverse text normalisation is asked for.
        punctuated: whether punctuation and case of a second pass with ITN are.
        observer: sees every stage.
        listed: the phrase list, if any.
    """

    language_id: int
    languages: Languages | None
    itn: bool
    punctuated: bool
    observer: Observer
    listed: "_Listed"


class _Listed:
    """A phrase list, if any, and what it found in each piece of one call."""

    def __init__(self, phrases: PhraseList | None) -> None:
        self.phrases = phrases
        self._heard: list[Heard] = []

    def decode(self, phrases: PhraseList, logits: Logits) -> Decoded:
        self._heard.append(phrases.decode(logits))
        return self._heard[-1].decoded

    def heed(self, transcript: Transcript) -> Transcript:
        """Forget what was found where the network says that nobody speaks."""
        if self._heard and transcript.no_speech:
            self._heard.pop()
        return transcript

    def judge(self, transcript: Transcript, layout: Layout) -> Transcript:
        """With a list its own rejection decides, without one the model folder's."""
        if self.phrases is None:
            return rejection.apply(transcript, layout.rejection)
        return phrases.judge(transcript, self._heard)


def _stored_phrases(layout: Layout) -> PhraseList | None:
    path = layout.folder / phrases.FILE_NAME
    if not path.is_file():
        return None
    try:
        return PhraseList.read(path, layout.vocabulary)
    except UsageError as error:
        raise LayoutError(str(error)) from None


def _warn_user(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
