"""What every layout does with the files of its folder."""

from pathlib import Path

from asr.errors import LayoutError, SystemAccessError


def first_file(folder: Path, names: tuple[str, ...]) -> Path:
    """The first of these files that the folder holds.

    Raises:
        LayoutError: it holds none of them; the message lists what is there.
    """
    for name in names:
        if (folder / name).is_file():
            return folder / name
    found = ", ".join(sorted(p.name for p in folder.iterdir())) or "nothing"
    raise LayoutError(f"{folder}: expected {' or '.join(names)}, found {found}")


def read_bytes(path: Path, *, needs: str) -> bytes:
    """Read a file.

    Args:
        path: the file.
        needs: which files its layout needs, for whoever misses one.

    Raises:
        LayoutError: no such file.
        SystemAccessError: the file cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise LayoutError(f"{path}: file not found; {needs}") from None
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the file: {error.strerror}") from None


def read_text(path: Path, *, needs: str, encoding: str = "utf-8") -> str:
    """Read a text file as it stands, line ends included.

    Args:
        path: the file.
        needs: as for ``read_bytes``.
        encoding: ``utf-8-sig`` where a byte order mark may lead.

    Raises:
        LayoutError: no such file, or no text.
        SystemAccessError: the file cannot be read.
    """
    try:
        return read_bytes(path, needs=needs).decode(encoding)
    except UnicodeDecodeError:
        raise LayoutError(f"{path}: expected text, found binary data") from None
