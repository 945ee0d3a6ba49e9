"""Where records are kept: a folder, or a branch of a git repository that shares no commit with it.

Either way one file per run, ``FINGERPRINT/UTC-RUN.json``: two people who add runs never conflict.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

from asr.bench.record import Bench
from asr.errors import MissingToolError, SystemAccessError, UsageError

#: The folder that is meant when none is named.
DEFAULT = "benchmarks/history"


class Store(Protocol):
    """A set of named texts."""

    def files(self) -> Iterator[tuple[str, str]]:
        """Every name with its text, by name."""
        ...

    def write(self, texts: Mapping[str, str], why: str) -> None:
        """Write these, all or, on a branch, none of them.

        Args:
            texts: name -> text; what is there under the name is replaced.
            why: for a commit's message.
        """
        ...


def name_of(run: Bench) -> str:
    """The name of a run's file."""
    return f"{run.machine.fingerprint}/{run.utc.replace(':', '')}-{run.run_id}.json"


class Folder:
    """A folder of records.

    Args:
        path: made when something is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def files(self) -> Iterator[tuple[str, str]]:
        """As ``Store``.

        Raises:
            SystemAccessError: a file cannot be read.
        """
        for file in sorted(self.path.glob("*/*.json")):
            yield str(file.relative_to(self.path)), _text(file)

    def write(self, texts: Mapping[str, str], why: str) -> None:
        """As ``Store``; each file whole under another name, then renamed.

        Raises:
            SystemAccessError: a file cannot be written.
        """
        for name, text in texts.items():
            place = self.path / name
            part = place.with_name(f".{place.name}.part")
            try:
                place.parent.mkdir(parents=True, exist_ok=True)
                part.write_text(text, encoding="utf-8")
                part.replace(place)
            except OSError as error:
                raise SystemAccessError(f"{place}: cannot write it: {error.strerror}") from None


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise SystemAccessError(f"{file}: cannot read it: {error.strerror}") from None


class Branch:
    """An orphan branch, read and written through git's objects: the work tree is not touched.

    Args:
        repository: a clone.
        name: of the branch; made when something is written.

    Raises:
        UsageError: the folder is no clone.
    """

    def __init__(self, repository: Path, name: str) -> None:
        self.repository, self._ref = repository, f"refs/heads/{name}"
        git(repository, "check-ref-format", self._ref)
        git(repository, "rev-parse", "--git-dir")

    def files(self) -> Iterator[tuple[str, str]]:
        """As ``Store``."""
        tip = self._tip()
        listed = git(self.repository, "ls-tree", "-r", "-z", "--name-only", tip) if tip else ""
        for name in filter(None, listed.split("\0")):
            if name.endswith(".json"):
                yield name, git(self.repository, "cat-file", "blob", f"{tip}:{name}")

    def write(self, texts: Mapping[str, str], why: str) -> None:
        """As ``Store``: one commit. Nothing is lost when another process commits meanwhile.

        Raises:
            SystemAccessError: another process committed first; run it again.
        """
        tip = self._tip()
        rows = [
            f"100644 {self._git('hash-object', '-w', '--stdin', told=text).strip()}\t{name}\n"
            for name, text in texts.items()
        ]
        with tempfile.TemporaryDirectory(prefix="asr-history-") as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            if tip:
                self._git("read-tree", tip, more=index)
            self._git("update-index", "--add", "--index-info", told="".join(rows), more=index)
            tree = self._git("write-tree", more=index).strip()
        parent = ["-p", tip] if tip else []
        commit = self._git("commit-tree", tree, *parent, "-m", why).strip()
        self._git("update-ref", self._ref, commit, tip or "0" * 40)

    def _tip(self) -> str:
        found = git(self.repository, "for-each-ref", "--format=%(objectname)", self._ref)
        return found.strip()

    def _git(self, *arguments: str, told: str = "", more: Mapping[str, str] | None = None) -> str:
        return git(self.repository, *arguments, told=told, more=more)


def git(
    folder: Path, *arguments: str, told: str = "", more: Mapping[str, str] | None = None
) -> str:
    """What git prints.

    Args:
        folder: a clone.
        arguments: of git.
        told: on its standard input.
        more: environment variables on top of ours.

    Raises:
        MissingToolError: there is no git.
        UsageError: the folder is no clone, or git knows none of what it was given.
        SystemAccessError: git cannot write.
    """
    command = ["git", "-C", str(folder), *arguments]
    environment = {**os.environ, **(more or {})}
    try:
        done = subprocess.run(  # noqa: S603
            command, input=told, capture_output=True, text=True, check=False, env=environment
        )
    except OSError:
        raise MissingToolError("git: not found; install git") from None
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it refuses"])[-1]
        if arguments[0] == "commit-tree":
            said += "; git needs a name: git config user.name NAME, git config user.email ADDRESS"
        writes = arguments[0] in ("update-ref", "hash-object", "write-tree", "commit-tree")
        raise (SystemAccessError if writes else UsageError)(f"{folder}: git {arguments[0]}: {said}")
    return done.stdout


def open_store(folder: str | None, branch: str | None, repository: Path) -> Store:
    """A store that should be there.

    Args:
        folder: of records.
        branch: instead of it.
        repository: the clone that has the branch.

    Raises:
        UsageError: both are given, or the folder does not exist.
    """
    if branch:
        if folder:
            raise UsageError("expected a folder or a branch, found both")
        return Branch(repository, branch)
    place = Path(folder or DEFAULT)
    if not place.is_dir():
        raise UsageError(f"{place}: expected a history, found none; see: asr history add")
    return Folder(place)


def commit_order(repository: Path) -> dict[str, int]:
    """Commit -> its place in the history of what is checked out, the oldest first.

    Empty outside of a clone: then runs are ordered by time.
    """
    try:
        told = git(repository, "rev-list", "--reverse", "--topo-order", "HEAD")
    except (UsageError, MissingToolError):
        return {}
    return {sha: place for place, sha in enumerate(told.split())}


def commits_of(repository: Path, span: str) -> list[str]:
    """The commits of ``A..B`` along the first parents, the oldest first.

    Raises:
        UsageError: git does not know them, or there are none.
    """
    found = git(repository, "rev-list", "--reverse", "--first-parent", span, "--").split()
    if not found:
        raise UsageError(f"{span}: expected commits, found none between the two")
    return found
