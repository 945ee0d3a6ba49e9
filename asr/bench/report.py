"""Tables that line up."""

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]]) -> str:
    """Align columns: the first to the left, the others to the right.

    Args:
        rows: the head first; every row has as many cells.

    Returns:
        lines without trailing spaces.
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
