"""What a model directory means, and how its tensors are named."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asr.engines.base import TensorInfo
from asr.errors import LayoutError, UsageError
from asr.frontend import FrontEndConfig
from asr.languages import Languages
from asr.records import Features, Logits
from asr.rejection import Thresholds
from asr.text import Vocabulary

#: What a prompt may name beside languages.
_NO_LANGUAGES = ("auto", "nospeech")


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A model directory, understood.

    Attributes:
        kind: which convention the directory follows, such as ``funasr``.
        folder: the directory.
        network: the ONNX file.
        recipe_file: where the recipe was read from, for messages.
        front_end: the recipe of the features.
        vocabulary: the pieces by id.
        blank_id: the CTC blank.
        prompt_frames: rows of scores in front of the speech rows.
        language_ids: language -> row of the prompt embedding.
        itn_ids: with ITN / without -> row of the prompt embedding.
        rejection: what a text needs in order to be shown; None shows every text.
    """

    kind: str
    folder: Path
    network: Path
    recipe_file: Path
    front_end: FrontEndConfig
    vocabulary: Vocabulary
    blank_id: int
    prompt_frames: int
    language_ids: Mapping[str, int]
    itn_ids: Mapping[bool, int]
    rejection: Thresholds | None = None

    def language_id(self, language: str) -> int:
        """The prompt row for a language.

        Raises:
            UsageError: the model does not know it; the message suggests the nearest.
        """
        if language in self.language_ids:
            return self.language_ids[language]
        import difflib

        near = difflib.get_close_matches(language.lower(), self.language_ids, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(self.language_ids)
        raise UsageError(f"unknown language {language!r}: expected one of {known}{hint}")

    def languages(self, names: Iterable[str]) -> Languages:
        """The set of languages a text may be in.

        Raises:
            UsageError: none is named, or one is none that the model can answer with.
        """
        pieces = self.vocabulary.pieces
        known = [
            name
            for name in self.language_ids
            if name not in _NO_LANGUAGES and self.vocabulary.has_tag(name)
        ]
        names = list(names)
        for name in names:
            if name not in known and name in _NO_LANGUAGES:
                raise UsageError(f"{name!r} is no language: expected some of {', '.join(known)}")
            if name not in known:
                self.language_id(name)
        if not names:
            raise UsageError(f"languages: expected some of {', '.join(known)}, found none")
        silence = pieces.index("<|nospeech|>") if self.vocabulary.has_tag("nospeech") else None
        return Languages({pieces.index(f"<|{name}|>"): name for name in names}, silence)

    def connect(self, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...]) -> "Binding":
        """Find each tensor by name, in either spelling that exporters use.

        Args:
            inputs: what the network takes.
            outputs: what the network gives.

        Raises:
            LayoutError: a tensor is missing, or the sizes do not fit features or tokens.
        """
        roles = {
            role: _find(role, names, inputs, self.network) for role, names in _INPUT_NAMES.items()
        }
        logits = _find("logits", _OUTPUT_NAMES, outputs, self.network)
        dim = self.front_end.lfr_m * self.front_end.num_mel_bins
        _check_last(
            roles["speech"], dim, f"columns of features ({self.recipe_file.name})", self.network
        )
        _check_last(logits, len(self.vocabulary), "tokens (the token list)", self.network)
        return Binding(self, {role: t.name for role, t in roles.items()}, logits.name)


_INPUT_NAMES = {
    "speech": ("speech", "x"),
    "speech_lengths": ("speech_lengths", "x_length"),
    "language": ("language",),
    "textnorm": ("textnorm", "text_norm"),
}
_OUTPUT_NAMES = ("ctc_logits", "logits")


def _find(
    role: str, names: tuple[str, ...], tensors: tuple[TensorInfo, ...], network: Path
) -> TensorInfo:
    for tensor in tensors:
        if tensor.name in names:
            return tensor
    found = ", ".join(t.name for t in tensors)
    raise LayoutError(
        f"{network}: expected a SenseVoice network with a tensor {' or '.join(names)} ({role}), "
        f"found {found}; is this another kind of model?"
    )


def _check_last(tensor: TensorInfo, expected: int, what: str, network: Path) -> None:
    last = tensor.shape[-1] if tensor.shape else None
    if isinstance(last, int) and last != expected:
        raise LayoutError(
            f"{network}: tensor {tensor.name} has {last} columns, expected {expected} {what}; "
            "the files come from different models"
        )


class Binding:
    """Features to named tensors and back, for one layout and one network.

    Args:
        layout: what the directory means.
        inputs: role -> tensor name.
        logits: name of the scores.
    """

    def __init__(self, layout: Layout, inputs: Mapping[str, str], logits: str) -> None:
        self._layout = layout
        self._inputs = inputs
        self._logits = logits

    @property
    def inputs(self) -> Mapping[str, str]:
        """Role -> tensor name; the roles are speech, speech_lengths, language, textnorm."""
        return self._inputs

    @property
    def scores(self) -> str:
        """Name of the tensor of scores."""
        return self._logits

    def bind(
        self, features: Features, language_id: int, itn_id: int
    ) -> dict[str, npt.NDArray[Any]]:
        """Name the inputs of one call.

        Args:
            features: float32 (t, dim), borrowed, not copied.
            language_id: row of the prompt embedding.
            itn_id: row of the prompt embedding.

        Returns:
            speech float32 (1, t, dim), and int32 (1,) for lengths, language and ITN.
        """
        values = features.values
        names = self._inputs
        return {
            names["speech"]: values[np.newaxis],
            names["speech_lengths"]: np.array([len(values)], np.int32),
            names["language"]: np.array([language_id], np.int32),
            names["textnorm"]: np.array([itn_id], np.int32),
        }

    def unbind(self, outputs: Mapping[str, npt.NDArray[Any]], frame_shift_s: float) -> Logits:
        """Take the scores of one call.

        Args:
            outputs: named arrays; the scores are float32 (1, prompt_frames + t, vocab_size).
            frame_shift_s: of the features that went in.

        Raises:
            LayoutError: the number of scores per row is not that of the token list.
            DecodeError: scores of another type or shape.
        """
        scores = outputs[self._logits]
        expected = len(self._layout.vocabulary)
        if scores.ndim != 3 or scores.shape[-1] != expected:
            raise LayoutError(
                f"{self._layout.network}: expected scores (1, frames, {expected}) to fit the "
                f"token list, found {scores.shape}; the files come from different models"
            )
        return Logits(scores[0], frame_shift_s, self._layout.prompt_frames)
