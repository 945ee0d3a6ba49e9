"""The two libraries that only ``asr evaluate`` needs, imported when they are used."""

import importlib
from typing import Any

from asr.errors import MissingToolError

INSTALL = "pip install 'asr-rtf[evaluate]'"


def require(module: str) -> Any:  # noqa: ANN401 - a module, and its absence must not fail types
    """Import a module of an optional library.

    Args:
        module: the full name, such as ``rapidfuzz.distance.Levenshtein``.

    Raises:
        MissingToolError: the library is not installed; the message has the line that does it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != library:
            raise
        raise MissingToolError(
            f"asr evaluate needs {library}, which is not installed; run: {INSTALL}"
        ) from None
