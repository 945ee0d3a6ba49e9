"""SenseVoice-class speech recognition on a CPU, with a real-time factor that can be audited.

>>> import asr
>>> recognizer = asr.Recognizer.load()          # the built-in English command model
>>> recognizer.transcribe("clip.wav").text      # doctest: +SKIP
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing typing costs start-up time
if TYPE_CHECKING:
    from typing import Any

    from asr.errors import (
        AsrError,
        AudioError,
        DecodeError,
        EngineError,
        FrontEndError,
        LayoutError,
        MissingToolError,
        NoisyError,
        RecordError,
        SourceError,
        SystemAccessError,
        TextChangedError,
        UsageError,
    )
    from asr.recognizer import Recognizer
    from asr.records import (
        Audio,
        Decoded,
        Features,
        Logits,
        Segment,
        Token,
        Transcript,
        Word,
    )

__all__ = [
    "AsrError",
    "Audio",
    "AudioError",
    "DecodeError",
    "Decoded",
    "EngineError",
    "Features",
    "FrontEndError",
    "LayoutError",
    "Logits",
    "MissingToolError",
    "NoisyError",
    "Recognizer",
    "RecordError",
    "Segment",
    "SourceError",
    "SystemAccessError",
    "TextChangedError",
    "Token",
    "Transcript",
    "UsageError",
    "Word",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562 returns whatever the name is
    """Import a public name when it is first used: ``asr --help`` must not load NumPy."""
    if name not in __all__:
        raise AttributeError(f"module 'asr' has no attribute {name!r}")
    import importlib

    for module in ("asr.errors", "asr.records", "asr.recognizer"):
        found = getattr(importlib.import_module(module), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module 'asr' has no attribute {name!r}")  # pragma: no cover


def __dir__() -> list[str]:
    return sorted(__all__)
