"""Tar files: the same tree is the same bytes. Python alone writes them."""

import gzip
import io
import stat
import tarfile
from collections.abc import Iterable
from pathlib import Path

from asr.deploy.work import files_of


def tar(folders: Iterable[Path], built_at_s: int) -> bytes:
    """Folders laid over one another, as a tar file.

    Sorted by path; owner root, except for ``tmp``'s sticky bit no mode but 755 and 644; every time
    is the same; links stay links.

    Args:
        folders: trees, the lowest first.
        built_at_s: seconds since 1970.
    """
    paths = {
        path.relative_to(folder).as_posix(): path for folder in folders for path in files_of(folder)
    }
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, path in sorted(paths.items()):
            entry = tarfile.TarInfo(name)
            mode = path.lstat().st_mode
            entry.mtime = built_at_s
            entry.uname = entry.gname = "root"
            entry.mode = 0o755 if mode & stat.S_IXUSR else 0o644
            if mode & stat.S_ISVTX:
                entry.mode = 0o1777
            if path.is_symlink():
                entry.type, entry.mode, entry.linkname = (
                    tarfile.SYMTYPE,
                    0o777,
                    str(path.readlink()),
                )
                archive.addfile(entry)
            elif path.is_dir():
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
            else:
                entry.size = path.stat().st_size
                with path.open("rb") as content:
                    archive.addfile(entry, content)
    return file.getvalue()


def compress(data: bytes) -> bytes:
    """Gzip without a name or a time."""
    return gzip.compress(data, 9, mtime=0)
