"""Audio -> Transcript: the whole pipeline, one line per stage."""

import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy.typing as npt

from asr import audio, ctc, networks, phrases, punctuation, rejection, text, vad
from asr.engines.base import Engine
from asr.engines.named import DEFAULT_ENGINE, is_default, open_engine
from asr.engines.ort import default_threads
from asr.errors import FrontEndError, LayoutError, UsageError
from asr.frontend import FrontEnd
from asr.hub import DEFAULT_MODEL, find_model
from asr.layouts import Layout, open_layout
from asr.observe import SILENT, Observer, with_dump
from asr.phrases import Heard, PhraseList
from asr.records import Audio, Decoded, Features, Logits, Transcript
from asr.vad import Splitter
from asr.wanted import Place, Wanted

#: Below this nothing can be a word; the network is not asked. Its own window is 25 ms.
MIN_AUDIO_S = 0.1

#: Longest piece that the network hears in one call: attention grows with the square of the length.
PIECE_S = 20.0
#: What may be asked for in its place.
SHORTEST_PIECE_S, LONGEST_PIECE_S = 1.0, 60.0

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
        self._detectors = vad.Detectors(self.sample_rate_hz)

    @classmethod
    def load(
        cls,
        model: str | os.PathLike[str] = DEFAULT_MODEL,
        *,
        threads: int | None = None,
        backend: str | None = None,
        optimize: bool = True,
        quantize: "Literal['int8'] | None" = None,
        progress: Callable[[str], None] | None = None,
        engine: str = DEFAULT_ENGINE,
        observer: Observer = SILENT,
    ) -> "Recognizer":
        """Load a model.

        A large network is prepared for this CPU by its first load, which takes seconds, and kept
        in the user's cache (docs/optimize.md); the text stays the same.

        Args:
            model: a model directory, or the name of a built-in model.
            threads: threads of the network; None takes the cores this process may use, at most 4.
            backend: SIMD path of the Rust stages; None takes the best this CPU has.
            engine: what runs the network, as ``asr.engines.named.open_engine`` says.
            optimize: False runs the network as its file has it, and writes nothing.
            quantize: ``int8`` makes byte weights of the fp32 network, which can change the text.
            progress: told what the first load of a large network does, a line each.
            observer: sees the steps ``layout``, ``front_end``, ``prepare`` (large networks only),
                ``model_read``, ``session_create``.

        Raises:
            LayoutError: the directory or a file in it is not what it should be.
            SystemAccessError: a file cannot be read.
            UsageError: ``threads`` is below 1 or absurd.
            FrontEndError: this CPU cannot run ``backend``.
            MissingToolError, EngineError: ``engine`` is not to be had here.
        """
        if threads is not None and threads < 1:
            raise UsageError(f"threads: expected 1 or more, found {threads}")
        if threads is not None and threads > MAX_THREADS:
            raise UsageError(f"threads: expected at most {MAX_THREADS}, found {threads}")
        count = threads or default_threads()
        step = observer.step
        layout = step("layout", open_layout, find_model(os.fspath(model)))
        return cls.from_layout(
            layout,
            threads=count,
            backend=backend,
            engine=engine,
            optimize=optimize,
            quantize=quantize,
            progress=progress,
            observer=observer,
        )

    @classmethod
    def from_layout(
        cls,
        layout: Layout,
        *,
        threads: int,
        backend: str | None = None,
        optimize: bool = True,
        quantize: "Literal['int8'] | None" = None,
        progress: Callable[[str], None] | None = None,
        engine: str = DEFAULT_ENGINE,
        observer: Observer = SILENT,
    ) -> "Recognizer":
        """Load the model of a directory that is understood already; as ``load`` says."""
        step = observer.step
        try:
            front_end = step("front_end", lambda: FrontEnd(layout.front_end, backend=backend))
        except FrontEndError as error:
            if backend is not None:
                raise
            raise LayoutError(f"{layout.recipe_file}: {error}") from None
        if not is_default(engine):
            if quantize is not None:
                raise UsageError(f"quantize: expected the engine ort, found {engine}")
            other = step("session_create", open_engine, engine, layout.network, threads)
            return cls(layout, front_end, other)
        network = networks.find(
            layout, observer, optimize=optimize, quantize=quantize, tell=progress
        )
        loaded = step("session_create", network.engine, threads)
        return cls(layout, front_end, loaded)

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
        vad: bool = True,
        piece_s: float = PIECE_S,
        observer: Observer = SILENT,
    ) -> Transcript:
        """Turn sound into text.

        Sound longer than ``piece_s`` is read in blocks and heard in pieces; memory does not grow
        with its length.

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
            vad: cut longer sound at pauses and leave them out; without, all of it is heard, cut
                where it is quietest in the second half of each piece.
            piece_s: longest piece, 1 to 60 seconds.
            observer: sees every stage.

        Returns:
            A transcript; with an empty text and a ``reason`` when nothing was heard, or when the
            model's thresholds say that what was heard is not sure enough (``rejected``).

        Raises:
            UsageError: unknown language, or another ``piece_s``; punctuation asked for beside a
                phrase list.
            AudioError: the source is no sound.
            SystemAccessError: the file cannot be read.
            EngineError, DecodeError: the network failed, or returned NaN.
        """
        start_s = time.perf_counter()
        wanted = self._wanted(language, itn, phrases, observer, vad, piece_s)
        told: list[str] = []
        reader = audio.Reader(
            source, sample_rate, raw=raw, channel=channel, strict=strict, warn=told.append
        )
        with closing(reader):
            transcript = self._run(reader, wanted)
        return transcript.of_call(channel, told, time.perf_counter() - start_s)

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
        vad: bool = True,
        piece_s: float = PIECE_S,
        observer: Observer = SILENT,
    ) -> tuple[Transcript, ...]:
        """Turn each channel into text by itself: a caller left, a callee right.

        Args and errors are those of ``transcribe``.

        Returns:
            A transcript per channel, in order; its ``channel`` says which.
        """
        languages = language if isinstance(language, str) else tuple(language)
        # Refuse before anything is read.
        self._wanted(languages, itn, phrases, observer, vad, piece_s)
        told: list[str] = []
        sounds = audio.read_channels(source, sample_rate, raw=raw, strict=strict, warn=told.append)
        found: list[Transcript] = []
        start_s = time.perf_counter()
        for number, sound in enumerate(sounds, 1):
            heard = self.transcribe(
                sound,
                language=languages,
                itn=itn,
                phrases=phrases,
                vad=vad,
                piece_s=piece_s,
                observer=observer,
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
        vad: bool,
        piece_s: float,
    ) -> Wanted:
        if not SHORTEST_PIECE_S <= piece_s <= LONGEST_PIECE_S:
            raise UsageError(
                f"piece_s: expected {SHORTEST_PIECE_S:g} to {LONGEST_PIECE_S:g} seconds, "
                f"found {piece_s}"
            )
        listed = self.phrases if listed is None else listed
        if itn == "punctuation" and listed is not None:
            raise UsageError("punctuation: expected no phrase list, whose labels are the text")
        return Wanted(
            language_id=self.layout.language_id(language if isinstance(language, str) else "auto"),
            languages=None if isinstance(language, str) else self.layout.languages(language),
            itn=itn is True,
            punctuated=itn == "punctuation",
            observer=with_dump(observer, _warn_user, self._broken_dumps),
            phrases=listed,
            vad=vad,
            piece_s=piece_s,
        )

    def _run(self, reader: audio.Reader, wanted: Wanted) -> Transcript:
        step = wanted.observer.step
        sound: Audio = step("read", reader.head, wanted.piece_s)
        audio_s = sound.duration_s
        if audio_s < MIN_AUDIO_S:
            return text.from_segments((), reason="too_short", audio_s=audio_s)
        if audio_s <= wanted.piece_s:
            sound = step("resample", audio.resample, sound, self.sample_rate_hz)
            return self._piece(sound, 0.0, audio_s, wanted)
        heard = [
            self._piece(piece, start_s, min(piece.duration_s, reader.read_s - start_s), wanted)
            for start_s, piece in self._pieces(reader, sound, wanted)
        ]
        return text.merge(heard, audio_s=reader.read_s)

    def _pieces(
        self, reader: audio.Reader, head: Audio, wanted: Wanted
    ) -> Iterator[tuple[float, Audio]]:
        """Long sound, a block at a time: pieces to hear, with their place in seconds."""
        step = wanted.observer.step
        resampler = audio.Resampler(self.sample_rate_hz)
        splitter: Splitter | None = None
        block: Audio | None = head
        while block is not None:
            following: Audio | None = step("read", reader.next)
            last = following is None
            sound: Audio = step("resample", resampler.feed, block, last)
            if splitter is None:
                splitter = step("vad", self._splitter, wanted)
            yield from step("vad", splitter.feed, sound, last)
            block = following

    def _splitter(self, wanted: Wanted) -> Splitter:
        detector = self._detectors.new(speech=wanted.vad)
        return Splitter(detector, self.sample_rate_hz, wanted.piece_s)

    def _piece(self, sound: Audio, offset_s: float, source_s: float, wanted: Wanted) -> Transcript:
        """Hear one piece in one call of the network; times count from the source's start.

        ``source_s`` is the piece's length in the source: resampling rounds, and no time may lie
        beyond the source's end.
        """
        step = wanted.observer.step
        features: Features = step("fbank", self.front_end.fbank, sound)
        features, skipped = self.front_end.sounding(features)
        if not len(features.values):
            return text.from_segments((), reason="silence", no_speech_score=1.0, audio_s=source_s)
        skipped_s = skipped * features.frame_shift_s
        at = Place(offset_s + skipped_s, source_s - skipped_s)
        features = step("lfr", self.front_end.lfr, features)
        features = step("cmvn", self.front_end.cmvn, features)
        logits, language, language_id = self._settle(features, wanted)
        heard: list[Heard] = []
        decoded: Decoded = step("decode", self._decode, logits, wanted.phrases, heard.append)
        transcript: Transcript = step("text", self._text, decoded, at, wanted.itn, wanted, heard)
        if language is not None and transcript.language is not None:
            transcript = replace(transcript, language=language)
        if wanted.punctuated:
            transcript = self._punctuated(transcript, features, language_id, at, wanted)
        return replace(transcript, audio_s=source_s) if skipped else transcript

    def _punctuated(
        self,
        plain: Transcript,
        features: Features,
        language_id: int,
        at: Place,
        wanted: Wanted,
    ) -> Transcript:
        """With the marks and case of a second answer, with ITN."""
        if plain.segments:
            step = wanted.observer.step
            logits = self._ask(features, language_id, True, wanted)
            decoded: Decoded = step("decode", self._decode, logits, None, _forget)
            written: Transcript = step("text", self._text, decoded, at, True, wanted, [])
            plain = punctuation.apply(plain, written)
        return rejection.apply(plain, self.layout.rejection)

    def _settle(self, features: Features, wanted: Wanted) -> tuple[Logits, str | None, int]:
        """Scores, the language settled among those allowed, and its prompt row."""
        logits = self._ask(features, wanted.language_id, wanted.itn, wanted)
        if wanted.languages is None:
            return logits, None, wanted.language_id
        language, stands = wanted.languages.settle(logits.values[0])
        if stands:
            return logits, language, wanted.language_id
        language_id = self.layout.language_ids[language]
        return self._ask(features, language_id, wanted.itn, wanted), language, language_id

    def _ask(self, features: Features, language_id: int, itn: bool, wanted: Wanted) -> Logits:
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

    def _decode(
        self, logits: Logits, phrases: PhraseList | None, keep: Callable[[Heard], None]
    ) -> Decoded:
        if phrases is None:
            return ctc.greedy(logits, blank_id=self.layout.blank_id)
        heard = phrases.decode(logits)
        keep(heard)
        return heard.decoded

    def _text(
        self, decoded: Decoded, at: Place, itn: bool, wanted: Wanted, heard: list[Heard]
    ) -> Transcript:
        transcript = text.transcribe(
            decoded,
            self.layout.vocabulary,
            audio_s=at.length_s,
            offset_s=at.start_s,
            requested_itn=itn,
        )
        if wanted.phrases is not None:  # a list's own score decides
            return phrases.judge(transcript, heard[0])
        if wanted.punctuated:  # judged when it has its marks
            return transcript
        return rejection.apply(transcript, self.layout.rejection)


def _stored_phrases(layout: Layout) -> PhraseList | None:
    path = layout.folder / phrases.FILE_NAME
    if not path.is_file():
        return None
    try:
        return PhraseList.read(path, layout.vocabulary)
    except UsageError as error:
        raise LayoutError(str(error)) from None


def _forget(_: Heard) -> None:
    """Nobody asks for it."""


def _warn_user(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
