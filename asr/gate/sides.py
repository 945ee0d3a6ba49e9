"""Whom a version is held against: its parent, the reference, or what the user names."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from asr.bench import installs
from asr.bench.installs import Install
from asr.errors import MissingToolError, UsageError
from asr.gate.measure import Side
from asr.gate.reference import read_reference

Say = Callable[[str], object]

#: Below the root of the checkout.
REFERENCE = Path("benchmarks") / "reference.toml"


def checkout() -> Path | None:
    """The clone whose ``asr`` is running, else the one we stand in."""
    import asr

    places = (Path(asr.__file__).parent.parent, Path.cwd())
    return next((p for p in places if installs.git_state(p)), None)


def named(name: str, work: Path, say: Say) -> Side:
    """``--against NAME``: a wheel, a checkout or a commit.

    Raises:
        UsageError: it is none of them.
    """
    try:
        install = installs.find(name, work, say)
    except MissingToolError as error:
        return Side(name, None, str(error))
    return Side(install.label, install)


def usual(root: Path, say: Say) -> list[Side]:
    """The parent commit and the reference; of changed files, the commit they started from.

    Args:
        root: of the clone.
        say: told what is going on.

    Returns:
        one side if both are the same commit. A side that is not there says why.

    Raises:
        RecordError: the reference was moved without a new entry.
    """
    state = installs.git_state(root)
    if state is None:
        raise UsageError(f"{root}: expected a git clone; name what to compare with: --against")
    parent = state.sha if state.dirty else state.parent
    before = git(root, "show", f"{parent}:{REFERENCE.as_posix()}") if parent else None
    reference = read_reference(root / REFERENCE, before)
    sides = [_commit(parent, "parent", root, say)]
    if reference is None:
        return [*sides, Side("reference", None, f"no {REFERENCE} names one")]
    if reference.sha == parent:
        return sides
    if reference.sha == state.sha and not state.dirty:
        return [*sides, Side("reference", None, "this commit is the reference")]
    return [*sides, _commit(reference.sha, "reference", root, say)]


def _commit(sha: str | None, what: str, root: Path, say: Say) -> Side:
    if sha is None or git(root, "cat-file", "-e", f"{sha}^{{commit}}") is None:
        depth = "a first commit has none; " if sha is None else ""
        why = f"{depth}this clone does not hold it: git fetch --unshallow"
        return Side(what, None, why)
    against = f"{what} {sha[:7]}"
    try:
        return Side(against, installs.from_revision(sha, root, say))
    except MissingToolError as error:
        return Side(against, None, str(error))


def brought(root: Path | None) -> Callable[[str | None, str | None, str], bool]:
    """Whether the history from commit a, left out, to commit b holds a third."""

    def look(a: str | None, b: str | None, sha: str) -> bool:
        if root is None or a is None or b is None:
            return bool(b and b.startswith(sha))
        found = git(root, "rev-list", b, f"^{a}")
        return any(line.startswith(sha) for line in (found or b).splitlines())

    return look


def git(root: Path, *arguments: str) -> str | None:
    """What git prints; None when it fails."""
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def judged(work: Path, root: Path | None, say: Say) -> Install:
    """The version to be judged: built like the others where it is a clean commit of a clone.

    Changed files, and installed packages, are copied as they are.
    """
    state = installs.git_state(root) if root else None
    if root is None or state is None or state.dirty:
        return installs.snapshot(work / "judged")
    return installs.from_revision(state.sha, root, say)
