"""``contents.toml``: what goes into each profile, what stays out, what it is licensed under."""

import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

PROFILES = ("rust", "python")


@dataclass(frozen=True, slots=True)
class Profile:
    """What an image is cut from and held to.

    Attributes:
        name: ``rust`` or ``python``.
        keep: patterns of the base's paths; the libraries that these need come along.
        prune: patterns of paths that stay out.
        largest_mb: of the compressed archive without a model, in 10^6 bytes.
        memory_mb: of the board on which it must work, in 2^20 bytes.
    """

    name: str
    keep: tuple[str, ...]
    prune: tuple[str, ...]
    largest_mb: int
    memory_mb: int

    def keeps(self, path: str) -> bool:
        """Whether a path of the base goes into the image."""
        return matches(path, self.keep) and not matches(path, self.prune)


def matches(path: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns fits; a star also stands for slashes."""
    return any(fnmatchcase(path, pattern) for pattern in patterns)


def _table() -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(Path(__file__).with_name("contents.toml").read_text(encoding="utf-8"))


def profile(name: str) -> Profile:
    """A profile by name."""
    row = _table()[name]
    return Profile(
        name, tuple(row["keep"]), tuple(row.get("prune", ())), row["largest_mb"], row["memory_mb"]
    )


def base() -> dict[str, Any]:
    """``suite``, ``packages`` and ``boot``: what is fetched from Debian."""
    found: dict[str, Any] = _table()["base"]
    return found


def licences() -> dict[str, str]:
    """SPDX expression per package."""
    found: dict[str, str] = _table()["licences"]
    return found
