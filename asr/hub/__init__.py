"""Model names -> folders. Looking up a name opens no socket; only ``asr.hub.pull`` does."""

import os
from pathlib import Path

from asr.errors import LayoutError, SystemAccessError

_BUILTIN = Path(__file__).parent.parent / "builtin"

DEFAULT_MODEL = "tiny-en"

#: Written into a model's folder after its last file: a folder without it is not complete.
RECORD = "asr-model.json"


def builtin_models() -> list[str]:
    """The names of the models inside this package."""
    return sorted(p.name for p in _BUILTIN.iterdir() if (p / "config.yaml").is_file())


def models_folder() -> Path:
    """Where pulled models live: ``$ASR_CACHE/models``, else ``$XDG_CACHE_HOME/asr/models``.

    Raises:
        SystemAccessError: neither is set and there is no home directory.
    """
    if own := os.environ.get("ASR_CACHE"):
        return Path(own).absolute() / "models"
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # noqa: PTH117 - the standard says: ignore a relative one
        base = os.path.expanduser("~/.cache")  # noqa: PTH111 - Path.home() raises instead
    if not os.path.isabs(base):  # noqa: PTH117
        raise SystemAccessError(
            "no home directory to keep models in; set ASR_CACHE to a folder for them"
        )
    return Path(base) / "asr" / "models"


def find_model(model: str | Path) -> Path:
    """The folder of a model.

    Args:
        model: a folder, or the name of a built-in or pulled model. A folder wins where both exist.

    Raises:
        LayoutError: none of these; the message says what to pull, or lists the names.
        SystemAccessError: the folder of the pulled models cannot be looked into.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    name = str(model)
    if here := installed_model(name):
        return here
    from asr.hub import manifest

    if name in manifest.MODELS:
        raise LayoutError(f"{name} is not on this machine: {manifest.MODELS[name].advice}")
    found = "a file" if folder.exists() else "nothing of that name"
    names = ", ".join(known_models())
    raise LayoutError(
        f"{model}: expected a model folder or a name ({names}), found {found}{did_you_mean(name)}"
    )


def installed_model(name: str) -> Path | None:
    """The folder of a built-in model, or of one that was pulled to its end.

    Raises:
        SystemAccessError: the folder of the pulled models cannot be looked into.
    """
    if name in builtin_models():
        return _BUILTIN / name
    if not name or name.startswith(".") or "/" in name:
        return None
    folder = models_folder() / name
    try:
        return folder if (folder / RECORD).is_file() else None
    except OSError as error:
        raise SystemAccessError(f"{folder}: cannot look for the model: {error.strerror}") from None


def known_models() -> list[str]:
    """The built-in names, then those that can be pulled."""
    from asr.hub import manifest

    return [*builtin_models(), *(n for n in manifest.MODELS if n not in builtin_models())]


def did_you_mean(name: str) -> str:
    """``; did you mean 'tiny-en'?`` where a known name is near, else nothing."""
    import difflib

    near = difflib.get_close_matches(name.lower(), known_models(), n=1, cutoff=0.6)
    return f"; did you mean {near[0]}?" if near else ""


def dictation_hint(model: str | Path) -> str | None:
    """What to pull when a built-in model did not hear any words; None for other models."""
    if str(model) not in builtin_models():
        return None
    from asr.hub import manifest

    return (
        f"{model} knows short commands only; for free speech: "
        f"{manifest.MODELS['sensevoice-small-int8'].advice}"
    )
