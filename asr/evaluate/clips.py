"""Where a manifest's clips lie: files, or members of tar archives that stay packed."""

import contextlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from asr.errors import AudioError, SystemAccessError
from asr.records import Float32

#: What ``Recognizer.transcribe`` takes: a path and no rate, or samples and their rate.
Sound: TypeAlias = "tuple[Path | Float32, int | None]"


class Clips:
    """Finds sound by a manifest's paths; keeps each archive open until it is closed.

    Args:
        root: the folder that relative paths start from.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._archives: dict[Path, tuple[tarfile.TarFile, Mapping[str, tarfile.TarInfo]]] = {}

    def __enter__(self) -> "Clips":
        return self

    def __exit__(self, *_: object) -> None:
        for archive, _members in self._archives.values():
            archive.close()
        self._archives.clear()

    def find(self, path: str) -> Sound:
        """Find a clip.

        Args:
            path: ``archive.tar:member``, or a file. A file that does not exist is looked for in
                the archive named after its first folder: ``corpus/a/b.wav`` in ``corpus.tar``.

        Raises:
            AudioError: no such file, archive or member; not an archive; not sound.
            SystemAccessError: the archive cannot be read.
        """
        name, colon, member = path.partition(".tar:")
        if colon:
            return self._member(self._root / f"{name}.tar", member)
        file = self._root / path
        if not file.exists():
            archive = self._root / f"{path.partition('/')[0]}.tar"
            if archive.is_file():
                return self._member(archive, path)
        return file, None

    def _member(self, path: Path, member: str) -> Sound:
        archive, members = self._open(path)
        info = members.get(member.removeprefix("./"))
        if info is None or info.isdir():
            raise AudioError(f"{path}: expected a file {member} in it, found none of that name")
        try:
            stream = archive.extractfile(info)
            data = stream.read() if stream else b""
        except (tarfile.TarError, OSError, KeyError) as error:  # KeyError: a link to nowhere
            raise AudioError(f"{path}:{member}: the archive is damaged: {error}") from None
        return _decode(data, f"{path}:{member}")

    def _open(self, path: Path) -> tuple[tarfile.TarFile, Mapping[str, tarfile.TarInfo]]:
        if path not in self._archives:
            try:
                with contextlib.ExitStack() as stack:
                    archive = stack.enter_context(tarfile.open(path, "r:"))
                    members = {info.name.removeprefix("./"): info for info in archive.getmembers()}
                    stack.pop_all()  # it stays open until the whole is closed
            except FileNotFoundError:
                raise AudioError(f"{path}: file not found") from None
            except tarfile.TarError as error:
                raise AudioError(
                    f"{path}: expected an uncompressed tar archive, could not read it: {error}"
                ) from None
            except OSError as error:
                raise SystemAccessError(f"{path}: cannot read it: {error.strerror}") from None
            self._archives[path] = (archive, members)
        return self._archives[path]


def _decode(data: bytes, name: str) -> tuple[Float32, int]:
    """Sound in memory -> samples and their rate; channels are averaged as ``asr.audio`` does."""
    import soundfile

    try:
        samples, rate = soundfile.read(io.BytesIO(data), dtype="float32")
    except soundfile.LibsndfileError as error:
        raise AudioError(
            f"{name}: expected a sound file, could not decode {len(data)} bytes: "
            f"{error.error_string.strip(' .')}"
        ) from None
    if samples.ndim == 2:
        samples = samples.mean(axis=1, dtype=np.float32)
    return samples, rate
