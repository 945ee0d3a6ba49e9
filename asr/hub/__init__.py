"""Model names -> folders."""

from pathlib import Path

from asr.errors import LayoutError

_BUILTIN = Path(__file__).parent.parent / "builtin"

DEFAULT_MODEL = "tiny-en"


def builtin_models() -> list[str]:
    """The names of the models inside this package."""
    return sorted(p.name for p in _BUILTIN.iterdir() if (p / "config.yaml").is_file())


def find_model(model: str | Path) -> Path:
    """The folder of a model.

    Args:
        model: a folder, or the name of a built-in model. A folder wins where both exist.

    Raises:
        LayoutError: neither; the message lists the names.
    """
    folder = Path(model)
    if folder.is_dir():
        return folder
    if str(model) in builtin_models():
        return _BUILTIN / str(model)
    names = ", ".join(builtin_models())
    found = "a file" if folder.exists() else "nothing of that name"
    raise LayoutError(f"{model}: expected a model folder or a name ({names}), found {found}")
