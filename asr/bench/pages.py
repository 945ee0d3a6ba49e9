"""The page cache: whether files are in memory, and how to get them out of it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal


def drop(files: Iterable[Path]) -> None:
    """Ask the kernel to forget files: no rights needed, no other file is touched.

    Pages that some process has mapped stay; no other process of ours should run.
    """
    for path in files:
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass
        finally:
            os.close(descriptor)


def is_cached(path: Path) -> bool | None:
    """Whether the middle of a file is in memory; None where the system does not say."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        middle = os.fstat(descriptor).st_size // 2
        os.preadv(descriptor, [bytearray(1)], middle, os.RWF_NOWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return None
    else:
        return True
    finally:
        os.close(descriptor)


def state(path: Path) -> Literal["warm", "dropped", "unknown"]:
    """``is_cached`` as a record says it."""
    cached = is_cached(path)
    return "unknown" if cached is None else "warm" if cached else "dropped"


def files_of_a_start(*folders: Path) -> Iterator[Path]:
    """Everything a fresh process may read from these folders."""
    for folder in folders:
        yield from (p for p in folder.rglob("*") if p.is_file())


def last_level_cache_bytes(cpu: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Size of the largest cache that the first core sees; 32 MB where the kernel does not say."""
    units = {"K": 2**10, "M": 2**20}
    sizes = [32 * 2**20] if not any(cpu.glob("index*/size")) else []
    for file in cpu.glob("index*/size"):
        text = file.read_text(encoding="ascii").strip()
        sizes.append(int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text))
    return max(sizes)
