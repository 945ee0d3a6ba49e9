"""The compiled half of asr: front end and CTC.

Inputs are borrowed without a copy and must be C-contiguous, of the dtype and shape stated;
anything else is an error that says what was expected and what was found. The interpreter lock
is released around the work. Every function and method may be called from several threads at once.
"""

from typing import TypeAlias, final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cutter", "Energy", "Fbank", "Phrases", "build_info", "cmvn", "ctc_greedy", "lfr"]

_F32: TypeAlias = NDArray[np.float32]
_I32: TypeAlias = NDArray[np.int32]
_F64: TypeAlias = NDArray[np.float64]
_Decoded: TypeAlias = tuple[_I32, _F32, _F32, _I32, _I32, _I32, _F32, _F32]

@final
class Cutter:
    """Cuts sound of any length into pieces, by a score per window of 32 ms.

    Every window with a score of at least 0.5 lies in a piece. A piece begins
    96 ms before speech, ends 192 ms behind it where a pause of 608 ms follows, or, where it would
    get too long, at the place of least speech in its second half.
    """

    def __new__(cls, sample_rate_hz: int, longest_s: float) -> Cutter:
        """Begin a sound.

        Args:
            sample_rate_hz: at least 1000 Hz.
            longest_s: no piece is longer; 1 to 3600 seconds.

        Raises:
            asr.errors.FrontEndError: one of them is something else.
        """

    def feed(self, scores: _F32) -> list[tuple[int, int]]:
        """Take the scores of the windows that follow.

        Args:
            scores: float32 (N,), 0 no speech to 1 speech; NaN counts as speech.

        Returns:
            The pieces that end with them: first sample, and one past the last.

        Raises:
            asr.errors.FrontEndError: wrong dtype, shape or strides.
        """

    def finish(self, num_samples: int) -> tuple[int, int] | None:
        """The last piece of a sound of so many samples in all, if one is open."""

    @property
    def needed_from(self) -> int:
        """Samples before this one lie in no piece that is still to come."""

@final
class Energy:
    """Scores per window of 32 ms from the energy alone."""

    def __new__(cls, sample_rate_hz: int, *, loudness: bool) -> Energy:
        """Begin a sound.

        Args:
            sample_rate_hz: samples per second.
            loudness: score how loud a window is, 0.5 to 1, instead of how far it rises above the
                quietest place within 2 s.
        """

    def feed(self, samples: _F32, last: bool) -> _F32:
        """Take the samples that follow.

        Args:
            samples: float32 (N,), in blocks of any length.
            last: whether the sound ends with them; a part of a window then counts as one.

        Returns:
            The scores known now, float32 (K,).

        Raises:
            asr.errors.FrontEndError: wrong dtype, shape or strides.
        """

@final
class Fbank:
    """Log mel filter bank energies, as Kaldi computes them."""

    def __new__(
        cls,
        *,
        sample_rate_hz: int,
        frame_length_ms: float,
        frame_shift_ms: float,
        window: str,
        num_mel_bins: int,
        low_freq_hz: float,
        high_freq_hz: float,
        preemphasis: float,
        sample_scale: float,
        backend: str | None = None,
    ) -> Fbank:
        """Check the recipe and compute window and filters.

        Args:
            sample_rate_hz: sampling rate of the input, Hz.
            frame_length_ms: length of a frame, ms.
            frame_shift_ms: distance between the starts of two frames, ms.
            window: "hamming", the only one that the models of this family use.
            num_mel_bins: number of triangular filters.
            low_freq_hz: lower edge of the first filter, Hz.
            high_freq_hz: upper edge of the last filter, Hz; zero or less counts down from
                half the sampling rate.
            preemphasis: pre-emphasis coefficient, 0 to 1.
            sample_scale: factor from full scale +-1.0 to the scale of the recipe (Kaldi: 32768).
            backend: instruction set by name, one of ``build_info()["backends"]``; None takes
                the best.

        Raises:
            asr.errors.FrontEndError: a field cannot be used, or the backend cannot run here.
        """

    def compute(self, samples: _F32) -> _F32:
        """Compute log mel energies.

        Args:
            samples: float32 (num_samples,), full scale +-1.0.

        Returns:
            float32 (num_frames, num_mel_bins), natural logarithm, at least ln(2**-23).

        Raises:
            asr.errors.FrontEndError: wrong dtype, shape or strides; a sample is not finite.

        Source: kaldi-native-fbank ``feature-fbank.cc``, FbankComputer::Compute. Deliberate
        difference: double precision up to the logarithm.
        """

    def num_frames(self, num_samples: int) -> int:
        """Rows that ``compute`` gives for so many samples."""

    @property
    def backend(self) -> str:
        """Name of the instruction set in use."""

@final
class Phrases:
    """A list of phrases as a graph of pieces, searched by exact CTC sums."""

    def __new__(
        cls,
        pieces: list[bytes],
        blank_id: int,
        texts: list[list[bytes]],
        groups: list[int],
    ) -> Phrases:
        """Build the graph.

        Args:
            pieces: the bytes of every column; empty for those that are no text.
            blank_id: column of the blank.
            texts: per phrase, one or more texts to spell with pieces.
            groups: per phrase, what it stands for, from 0; probabilities of a group are added.

        Raises:
            asr.errors.DecodeError: blank_id is no column, or the lengths differ.
        """

    def decode(
        self, logits: _F32, prompt_frames: int, *, many: bool, backend: str | None = None
    ) -> tuple[_Decoded, _I32, _F64]:
        """Find the most probable phrase, or sequence of phrases.

        Args:
            logits: float32 (T, V), raw scores or log-softmax, finite.
            prompt_frames: number of prompt rows in front; they hold no phrase.
            many: any number of phrases, one after another; otherwise one or none.
            backend: instruction set by name; None takes the best.

        Returns:
            decoded: as from ctc_greedy; the tokens are the best path of each phrase.
            facts: int32 (N, 6): phrase, the next group's phrase or -1, number of tokens, first
                row, row after the last (counted after the prompts), rows with speech.
            scores: float64 (N, 4): log-probability of the group; of the best path without a
                list; margin to the next group, nats; posterior among groups and silence.

        Raises:
            asr.errors.DecodeError: a score is NaN or infinite (row and column are named); wrong
                dtype, shape or strides; not one column per piece; fewer rows than prompt_frames.
            asr.errors.FrontEndError: the backend cannot run here.

        Source: Graves et al. 2006, section 4.1, on a graph instead of one sequence.
        """

    @property
    def spelled(self) -> list[bool]:
        """Per phrase: whether the pieces can spell it; the others are never found."""

    @property
    def num_nodes(self) -> int:
        """Prefixes in the graph."""

    @property
    def num_arcs(self) -> int:
        """Pieces in the graph: a decode costs rows times arcs."""

def lfr(features: _F32, m: int, n: int) -> _F32:
    """Stack m frames, every n frames (low frame rate).

    Args:
        features: float32 (T, D).
        m: frames in a stack; the first frame is repeated (m - 1) // 2 times on the left.
        n: frames from one stack to the next; the last frame is repeated on the right.

    Returns:
        float32 (ceil(T / n), m * D).

    Raises:
        asr.errors.FrontEndError: wrong dtype, shape or strides; m, n or D is zero.

    Source: FunASR ``funasr_onnx/utils/frontend.py``, apply_lfr.
    """

def cmvn(features: _F32, neg_mean: _F32, inv_stddev: _F32) -> _F32:
    """Shift and scale each column in place: ``(features + neg_mean) * inv_stddev``.

    Args:
        features: float32 (T, D), writable; its values are replaced.
        neg_mean: float32 (D,), minus the mean.
        inv_stddev: float32 (D,), one over the standard deviation.

    Returns:
        ``features`` itself.

    Raises:
        asr.errors.FrontEndError: wrong dtype, shape or strides; read-only, or lent to another
            call; lengths that do not match.

    Source: FunASR ``funasr_onnx/utils/frontend.py``, apply_cmvn.
    """

def ctc_greedy(
    logits: _F32, blank_id: int, prompt_frames: int, backend: str | None = None
) -> _Decoded:
    """Decode greedily, with statistics for every row.

    Consecutive rows of equal arg-max are one run; runs of blank are dropped. A token takes its
    log-probability and its entropy from the row of highest probability in its run, the first
    on ties. The prompt rows get statistics but never become tokens.

    Args:
        logits: float32 (T, V), raw scores or log-softmax, finite.
        blank_id: column of the blank.
        prompt_frames: number of prompt rows in front.
        backend: instruction set by name; None takes the best.

    Returns:
        argmax: int32 (T,), lowest id on ties.
        log_prob: float32 (T,), natural logarithm of the probability of argmax, at most 0.
        entropy: float32 (T,), nats.
        token_ids: int32 (K,).
        start_frame: int32 (K,), counted from the first row after the prompts.
        end_frame: int32 (K,), exclusive, counted alike.
        log_probs: float32 (K,).
        entropies: float32 (K,).

    Raises:
        asr.errors.DecodeError: a score is NaN or infinite (row and column are named); wrong
            dtype, shape or strides; blank_id is no column; fewer rows than prompt_frames.
        asr.errors.FrontEndError: the backend cannot run here.
    """

def build_info() -> dict[str, str | list[str]]:
    """Tell what this module was built as, and what this CPU can run.

    Returns:
        version, profile ("release" or "debug"), target, compiler, and backends (best first);
        byte_features, names of what multiplies bytes fast (vnni, dotprod, i8mm); kernel_features,
        equal on two machines only if a runtime picks the same kernels on both; operators, those of
        ours that a network may use on this CPU (the module's file is the library to register with
        ONNX Runtime).
    """
