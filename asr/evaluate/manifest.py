"""A manifest of clips: tab-separated, one header line, one clip per line."""

from dataclasses import dataclass
from pathlib import Path

from asr.errors import SystemAccessError, UsageError

_NEEDED = ("path", "transcript")
_ITN = {"": False, "woitn": False, "withitn": True}


@dataclass(frozen=True, slots=True)
class Row:
    """A clip as the manifest describes it.

    Attributes:
        line: of the manifest, the header being line 1.
        path: of the sound, as written: relative to the root, or ``archive.tar:member``.
        transcript: what is said; empty where nothing is, such as noise.
        source: the corpus it belongs to.
        speaker: who speaks.
        split: such as ``test``.
        language: hint for the network; empty for the command's own.
        itn: whether the transcript has digits and punctuation, so that the network is asked for it.
    """

    line: int
    path: str
    transcript: str
    source: str = ""
    speaker: str = ""
    split: str = ""
    language: str = ""
    itn: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """A line of the manifest that could not be evaluated.

    Attributes:
        line: of the manifest.
        path: of the sound, as written; empty when the line has none.
        reason: one sentence for people.
        exit_code: what the command returns for it.
    """

    line: int
    path: str
    reason: str
    exit_code: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest holds: rows in order, and the lines that are none."""

    path: Path
    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]

    def splits(self) -> list[str]:
        """The names in the column ``split``, sorted; empty without the column."""
        return sorted({row.split for row in self.rows} - {""})


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Args:
        path: UTF-8 text. Columns ``path`` and ``transcript`` are needed; ``source``, ``speaker``,
            ``split``, ``language`` and ``text_normalization`` (``withitn`` or ``woitn``) are used
            where they exist; others are ignored. Fields are not quoted. Empty lines are skipped.

    Raises:
        UsageError: no such file, not UTF-8, or a needed column is missing.
        SystemAccessError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UsageError(f"{path}: file not found; expected a manifest") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: expected a manifest of UTF-8 text, found other bytes") from None
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the manifest: {error.strerror}") from None
    lines = text.split("\n")
    columns = [name.strip() for name in lines[0].rstrip("\r").split("\t")]
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        found = ", ".join(columns)[:80] or "an empty line"
        raise UsageError(
            f"{path}: line 1: expected tab-separated column names with {' and '.join(missing)}, "
            f"found {found}"
        )
    rows: list[Row] = []
    failures: list[Failure] = []
    for number, line in enumerate(lines[1:], 2):
        if line.strip():
            row = _row(number, line.rstrip("\r").split("\t"), columns)
            if isinstance(row, Row):
                rows.append(row)
            else:
                failures.append(row)
    return Manifest(path, tuple(rows), tuple(failures))


def _row(number: int, fields: list[str], columns: list[str]) -> Row | Failure:
    values = dict(zip(columns, (field.strip() for field in fields), strict=False))
    path = values.get("path", "")
    normalization = values.get("text_normalization", "")
    if len(fields) != len(columns):
        reason = f"expected {len(columns)} tab-separated fields as in line 1, found {len(fields)}"
    elif not path or "\0" in path:
        reason = f"expected a path, found {path!r}"
    elif normalization not in _ITN:
        reason = f"text_normalization: expected withitn or woitn, found {normalization!r}"
    else:
        return Row(
            number,
            path,
            values["transcript"],
            values.get("source", ""),
            values.get("speaker", ""),
            values.get("split", ""),
            values.get("language", ""),
            _ITN[normalization],
        )
    return Failure(number, path, reason, UsageError.exit_code)
