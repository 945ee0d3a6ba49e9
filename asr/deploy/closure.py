"""What an image takes from the base: what its profile keeps, and every library that is needed."""

import os
import shutil
from pathlib import Path

from asr.deploy import elf, fetch, parts
from asr.deploy.contents import Profile
from asr.deploy.parts import Part
from asr.deploy.work import Work, files_of
from asr.errors import LayoutError


def take(work: Work, root: Path, profile: Profile) -> list[Part]:
    """Copy from the base into a tree.

    Args:
        work: holds the base.
        root: the tree, with the programs in it.
        profile: what to keep besides the libraries.

    Returns:
        the packages that anything was taken from.

    Raises:
        LayoutError: a library that something needs is in no package.
    """
    packages = fetch.packages_of(work)
    owner = {path: package["name"] for package in packages for path in package["files"]}
    libraries: dict[str, str] = {}
    for path in owner:
        if ".so" in path and "/gconv/" not in path:
            libraries.setdefault(path.rpartition("/")[2], path)
    taken: set[str] = set()
    for path in owner:
        if profile.keeps(path):
            taken |= _copy(work.base, root, path)
    have = {path.name for path in files_of(root)}
    waiting = [path for path in files_of(root) if path.is_file()]
    while waiting:
        path = waiting.pop()
        found = None if path.is_symlink() else elf.read(path)
        if found is None:
            continue
        wanted = {name: libraries.get(name) for name in found.needed if name not in have}
        if found.interpreter:
            wanted[found.interpreter] = found.interpreter if found.interpreter in owner else None
        for name, source in wanted.items():
            if source is None:
                raise LayoutError(
                    f"{path.relative_to(root)}: needs {name}, which no package of the base has; "
                    "add its package to asr/deploy/contents.toml"
                )
            copied = _copy(work.base, root, source)
            taken |= copied
            have |= {Path(p).name for p in copied}
            waiting += [root / p for p in copied]
    used = {owner[path] for path in taken if path in owner}
    return [parts.of_deb(work.base, package) for package in packages if package["name"] in used]


def _copy(base: Path, root: Path, path: str) -> set[str]:
    """Copy a file, or a link and what it leads to; return the paths."""
    source, target = base / path, root / path
    if os.path.lexists(target):
        return {path}
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_symlink():
        link = str(source.readlink())
        target.symlink_to(link)
        start = Path("/") if link.startswith("/") else Path("/") / path
        return {path} | _copy(base, root, os.path.normpath(start.parent / link).lstrip("/"))
    shutil.copyfile(source, target)
    target.chmod(source.stat().st_mode & 0o755)
    return {path}
