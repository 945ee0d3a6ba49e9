"""Text before and after a large network is prepared for this CPU: the model loaded both ways."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.doctor.clips import Clip
from asr.doctor.hearing import Heard, hear
from asr.recognizer import Recognizer


@dataclass(frozen=True, slots=True)
class Optimised:
    """What preparing a network did to 20 clips.

    Attributes:
        state: of the network that was examined; ``asr.engines.preparation`` has the words.
        passes: what was done to it.
        texts_changed: names of clips that the network as its file has it hears otherwise.
        ids_changed: how many clips have another best id in some row.
        speed: warm time of the network as it is, over that of the prepared one.
    """

    state: str
    passes: tuple[str, ...]
    texts_changed: tuple[str, ...]
    ids_changed: int
    speed: float

    def facts(self) -> dict[str, Any]:
        """The JSON member."""
        return {
            "state": self.state,
            "passes": list(self.passes),
            "texts_changed": list(self.texts_changed),
            "ids_changed": self.ids_changed,
            "speed": self.speed,
        }


def compare(
    recognizer: Recognizer,
    model: Path,
    clips: Sequence[Clip],
    heard: Sequence[Heard],
    progress: Callable[[str], None],
) -> Optimised | None:
    """Let the network as its file has it hear the same clips.

    Args:
        recognizer: the model, prepared.
        model: its folder.
        clips: what was heard.
        heard: what the prepared network said.
        progress: told what begins.

    Returns:
        None where nothing was prepared: small networks, or a cache that cannot be used.

    Raises:
        AsrError: it cannot be loaded, or cannot hear.
    """
    found = recognizer.engine.preparation
    if found.network is None:
        return None
    progress("the network as its file has it")
    plain = Recognizer.load(model, threads=recognizer.engine.threads, optimize=False)
    before = [hear(plain, clip) for clip in clips]
    pairs = list(zip(clips, before, heard, strict=True))
    return Optimised(
        found.state,
        found.passes,
        tuple(clip.name for clip, a, b in pairs if a.texts != b.texts),
        sum(a.argmax != b.argmax for _, a, b in pairs),
        _warm_ms(before) / _warm_ms(heard),
    )


def _warm_ms(heard: Sequence[Heard]) -> float:
    return sum(statistics.median(h.calls_ms[1:]) for h in heard)
