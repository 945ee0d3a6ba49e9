"""benchmarks/accepted/*.toml: slowdowns that somebody signed for, each with an end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from asr.errors import RecordError
from asr.gate.files import check_keys, read_toml, signed

_KEYS: dict[str, type | tuple[type, ...]] = {
    "metric": str, "sha": str, "at_most": (float, int), "reason": str, "signed_off_by": str,
    "expires": date,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Accepted:
    """One entry.

    Attributes:
        file: where it stands.
        metric: name, or a pattern such as ``warm/*/fbank``.
        sha: the commit that brought the slowdown, at least 7 digits.
        at_most: the ratio signed for; more than that is a regression as ever.
        reason: why the slowdown is worth it.
        signed_off_by: who says so.
        expires: the last day it holds.
    """

    file: Path
    metric: str
    sha: str
    at_most: float
    reason: str
    signed_off_by: str
    expires: date

    def covers(self, metric: str, ratio: float, brought: Callable[[str], bool]) -> bool:
        """Whether it excuses this finding.

        Args:
            metric: name.
            ratio: b / a found.
            brought: whether the compared stretch of history holds a commit.
        """
        return fnmatchcase(metric, self.metric) and ratio <= self.at_most and brought(self.sha)


def read_accepted(folder: Path, today: date) -> list[Accepted]:
    """Read all entries of a folder; none when it does not exist.

    Raises:
        SystemAccessError: a file cannot be read.
        RecordError: an entry is incomplete, or has expired: then it must be signed anew or go,
            not be forgotten.
    """
    found = []
    for path in sorted(folder.glob("*.toml")):
        table = read_toml(path)
        check_keys(table, _KEYS, str(path))
        signed(table, tuple(_KEYS), str(path))
        entry = Accepted(file=path, **table)
        if len(entry.sha) < 7 or entry.at_most <= 1:
            raise RecordError(f"{path}: expected 7 digits of sha and at_most above 1")
        if entry.expires < today:
            raise RecordError(
                f"{path}: expired on {entry.expires}: the slowdown of {entry.metric} "
                "must be mended or signed for anew"
            )
        found.append(entry)
    return found


def covering(
    entries: Sequence[Accepted], metric: str, ratio: float, brought: Callable[[str], bool]
) -> Accepted | None:
    """The first entry that excuses a finding."""
    return next((e for e in entries if e.covers(metric, ratio, brought)), None)
