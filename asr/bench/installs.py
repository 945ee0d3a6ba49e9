"""Versions of this package side by side, each in its own environment, with the same libraries.

An environment holds a copy of one version's ``asr`` and looks the libraries up where the running
one has them: what differs between two versions is then this package alone.
"""

import configparser
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from asr.bench.record import Git
from asr.errors import MissingToolError, RecordError, SystemAccessError, UsageError

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Install:
    """One version, ready to be run as a command.

    Attributes:
        label: for tables and messages.
        command: its ``asr``.
        python: its interpreter.
        environment: variables on top of ours.
        git: its source, where known.
        wheel_bytes: of the wheel it came from, where there was one.
        engine: that its processes are asked for, as ``--engine`` takes it; None says nothing.
    """

    label: str
    command: Path
    python: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    git: Git | None = None
    wheel_bytes: int | None = None
    engine: str | None = None

    def line(self, *arguments: str) -> list[str]:
        """The command line for its ``asr``, the engine included."""
        engine = [] if self.engine is None else ["--engine", self.engine]
        return [str(self.command), *arguments, *engine]

    @property
    def package(self) -> Path:
        """The folder of its ``asr`` package; of an environment made here."""
        return site_packages(self.command.parent.parent) / "asr"


def running() -> Install:
    """The version that runs this very code, where it is."""
    python = Path(sys.executable)
    return Install("here", python.parent / "asr", python, git=git_state(_checkout()))


def _checkout() -> Path:
    spec = importlib.util.find_spec("asr")
    assert spec is not None  # noqa: S101 - we are in it
    return Path(spec.origin or "").parent.parent


def snapshot(folder: Path, label: str = "here") -> Install:
    """Copy the running version, uncommitted changes included, into an environment of its own."""
    source = _checkout()
    site = _environment(folder)
    shutil.copytree(source / "asr", site / "asr", ignore=shutil.ignore_patterns("__pycache__"))
    return _finish(folder, "asr.cli:run_and_exit", label, git_state(source))


def from_wheel(wheel: Path, folder: Path, label: str | None = None) -> Install:
    """Unpack a wheel into an environment of its own.

    Raises:
        RecordError: it is no wheel of this package, or one for another machine.
    """
    site = _environment(folder)
    try:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        (points,) = site.glob("*.dist-info/entry_points.txt")
        parser = configparser.ConfigParser()
        parser.read(points, encoding="utf-8")
        start = parser["console_scripts"]["asr"]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise RecordError(f"{wheel}: expected a wheel of asr-rtf, found {error}") from None
    found = _finish(folder, start, label or wheel.name, None)
    return replace(found, wheel_bytes=wheel.stat().st_size)


def from_revision(revision: str, checkout: Path, say: Say, cache: Path | None = None) -> Install:
    """Build a commit and keep it: the second time it is there at once.

    Args:
        revision: anything git understands.
        checkout: a clone that has it.
        say: told what is going on.
        cache: where builds are kept; None takes ``builds_folder()``.

    Raises:
        UsageError: git does not know the revision.
        MissingToolError: git, maturin or Rust is missing, or the build fails.
    """
    found = _git(checkout, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not found:
        raise UsageError(f"{revision}: expected a commit of {checkout}, git knows none")
    kept = cache or builds_folder()
    place = kept / f"{found}-{sys.implementation.cache_tag}"
    label = revision if found.startswith(revision) else f"{revision} {found[:9]}"
    if not (place / "done").is_file():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        tree = place / "source"
        _git(checkout, "worktree", "prune")
        if _git(checkout, "worktree", "add", "--detach", "--force", str(tree), found) is None:
            raise MissingToolError(f"{revision}: git cannot check it out")
        try:
            _wheel(tree, place, kept / "target", say, label)
        finally:
            _git(checkout, "worktree", "remove", "--force", str(tree))
        (place / "done").touch()
    (wheel,) = place.glob("*.whl")
    git = Git(found, False, _git(checkout, "rev-parse", f"{found}^"))
    # An environment that is there may be in use; another one of ours has other libraries.
    env = place / f"env-{hashlib.sha256(_libraries().encode()).hexdigest()[:8]}"
    if not (env / "done").is_file():
        from_wheel(wheel, env)
        (env / "done").touch()
    return replace(_ready(env, label, git), wheel_bytes=wheel.stat().st_size)


def from_directory(folder: Path, target: Path, say: Say) -> Install:
    """Build a checkout as it is, uncommitted changes included.

    Raises:
        UsageError: the folder is no checkout of this package.
        MissingToolError: maturin or Rust is missing, or the build fails.
    """
    if not (folder / "rust_fe" / "Cargo.toml").is_file():
        raise UsageError(f"{folder}: expected a checkout of asr-rtf, a wheel or a commit")
    target.mkdir(parents=True, exist_ok=True)
    wheel = _wheel(folder, target, builds_folder() / "target", say, str(folder))
    return replace(from_wheel(wheel, target / "env", folder.absolute().name), git=git_state(folder))


def find(name: str, work: Path, say: Say) -> Install:
    """What ``--against NAME`` means: a wheel, a checkout, or a commit of the checkout we run from.

    Raises:
        UsageError: it is none of them.
        RecordError, MissingToolError: as the functions above say.
    """
    path = Path(name)
    if path.suffix == ".whl" and path.is_file():
        return from_wheel(path, work / hashlib.sha256(os.fsencode(path)).hexdigest()[:8])
    if path.is_dir():
        return from_directory(path, work / "built", say)
    checkout = next((p for p in (_checkout(), Path.cwd()) if git_state(p)), None)
    if checkout is None:
        raise UsageError(
            f"{name}: expected a wheel or a checkout; a commit needs a git clone of asr-rtf to "
            "be found in, start asr bench inside one"
        )
    return from_revision(name, checkout, say)


def builds_folder() -> Path:
    """Where built commits are kept: ``builds`` beside the pulled models."""
    from asr.hub import models_folder

    return models_folder().parent / "builds"


def git_state(folder: Path) -> Git | None:
    """Commit, parent, and whether tracked files differ; None outside the root of a clone."""
    if not (folder / ".git").exists():
        return None
    sha = _git(folder, "rev-parse", "HEAD")
    if not sha:
        return None
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return Git(sha, bool(changed), _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^"))


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, or None when it fails or is not there."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _wheel(tree: Path, out: Path, target: Path, say: Say, label: str) -> Path:
    """Build a release wheel of a checkout; with a shared target only this crate compiles anew."""
    say(f"building {label}")
    command = [sys.executable, "-m", "maturin", "build", "--release", "--locked", "--quiet",
               "--interpreter", sys.executable, "--out", str(out)]  # fmt: skip
    environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
    for old in out.glob("*.whl"):
        old.unlink()
    done = subprocess.run(  # noqa: S603
        command, cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    wheels = sorted(out.glob("*.whl"))
    if done.returncode or not wheels:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        hint = "; run: pip install 'maturin>=1.9.4,<2'" if "No module named maturin" in last else ""
        raise MissingToolError(f"{label}: could not be built: {last}{hint}")
    return wheels[-1]


def site_packages(environment: Path) -> Path:
    """Where an environment keeps its packages."""
    version = ".".join(platform.python_version_tuple()[:2])
    return environment / "lib" / f"python{version}" / "site-packages"


def _environment(folder: Path) -> Path:
    """An empty environment that sees the running one's libraries; returns its site-packages."""
    import venv

    try:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, symlinks=True, with_pip=False)
        site = site_packages(folder)
        (site / "libraries.pth").write_text(_libraries() + "\n", encoding="utf-8")
    except OSError as error:
        raise SystemAccessError(f"{folder}: cannot make it: {error.strerror}") from None
    return site


def _libraries() -> str:
    """Where the running environment keeps the libraries: where NumPy is."""
    spec = importlib.util.find_spec("numpy")
    assert spec is not None  # noqa: S101 - we need it ourselves
    return str(Path(spec.origin or "").parent.parent)


def _finish(folder: Path, start: str, label: str, git: Git | None) -> Install:
    """Write the command and compile the package, as pip does."""
    import compileall

    module, _, function = start.partition(":")
    command, python = folder / "bin" / "asr", folder / "bin" / "python"
    command.write_text(
        f"#!{python}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n",
        encoding="utf-8",
    )
    command.chmod(0o755)
    compileall.compile_dir(site_packages(folder), quiet=2)
    return _ready(folder, label, git)


def _ready(folder: Path, label: str, git: Git | None) -> Install:
    # A PYTHONPATH of the user's would put another package in front of this one.
    environment = {"PYTHONPATH": ""}
    return Install(label, folder / "bin" / "asr", folder / "bin" / "python", environment, git)
