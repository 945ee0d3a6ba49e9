"""Many files: some at a time, told in order, with progress and a summary of what failed."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future
    from typing import Any, TypeVar

    from asr.cli.outputs import Job
    from asr.observe import Observer

    T = TypeVar("T")

#: Failures that the summary lists.
_LISTED = 50


class Stop:
    """An observer that ends a call between two steps, once it is told to."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Call ``function(*arguments)``, see ``asr.observe.Observer``.

        Raises:
            KeyboardInterrupt: the user wants an end.
        """
        if self.told.is_set():
            raise KeyboardInterrupt(name)
        return function(*arguments)


def in_order(
    jobs: list[Job], hear: Callable[[Job, Observer], int], workers: int
) -> Iterator[tuple[Job, int]]:
    """Hear all files, some at a time.

    Args:
        jobs: one per file.
        hear: transcribes a file and returns its exit code; called from ``workers`` threads.
        workers: files at a time.

    Yields:
        Each job with its exit code, in order; what it has to say waits in ``later``.

    Raises:
        KeyboardInterrupt: after the calls under way have ended. What was finished is told.
    """
    from concurrent.futures import ThreadPoolExecutor

    stop = Stop()
    waiting: deque[tuple[Job, Future[int]]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="asr-job")
    try:
        for job in jobs:
            job.later = []
            waiting.append((job, pool.submit(hear, job, stop)))
            if len(waiting) > 4 * workers:  # results of many files need not wait in memory
                yield _first(waiting)
        while waiting:
            yield _first(waiting)
    except KeyboardInterrupt:
        stop.told.set()
        pool.shutdown(cancel_futures=True)
        for job, future in waiting:
            if not future.cancelled() and future.exception() is None:
                job.catch_up()
        raise
    finally:
        stop.told.set()  # also when the caller has had enough
        pool.shutdown(cancel_futures=True)


def _first(waiting: deque[tuple[Job, Future[int]]]) -> tuple[Job, int]:
    job, future = waiting[0]
    code = future.result()
    waiting.popleft()
    return job, code


def tell_all(
    results: Iterable[tuple[Job, int]], jobs: list[Job], options: argparse.Namespace, *, many: bool
) -> int:
    """Print each result when it is its turn, and a summary of the failures.

    Args:
        results: jobs with their exit codes, in order.
        jobs: all of them.
        options: of ``asr transcribe``.
        many: whether a folder or pattern was named.

    Returns:
        0, or the exit code of the first file that failed.
    """
    codes = []
    with progress(options, jobs) as shown:
        if shown.keeps:
            for job in jobs:
                job.later = []
        for job, code in results:
            codes.append(code)
            shown.clear()
            job.catch_up()
            shown.done(job)
            if job.hopeless:
                break
    if any(codes) and len(jobs) > 1 and (many or options.output is not None):
        summary(jobs, len(codes))
    return next((code for code in codes if code), 0)


def summary(jobs: list[Job], through: int) -> None:
    """List the failures, so that nobody has to search a long log for them."""
    failed = [job for job in jobs[:through] if job.failure]
    print(f"asr: {len(failed)} of {len(jobs)} files failed:", file=sys.stderr)
    for job in failed[:_LISTED]:
        print(f"asr:   {job.failure}", file=sys.stderr)
    if len(failed) > _LISTED:
        print(f"asr:   and {len(failed) - _LISTED} more", file=sys.stderr)
    if through < len(jobs):
        print(
            f"asr: stopped after {through} of {len(jobs)} files, no other can be written; "
            "--skip-existing goes on from there",
            file=sys.stderr,
        )


class Progress:
    """Say nothing: one file, ``--quiet``, or text on the same terminal.

    Attributes:
        keeps: whether a file's messages must wait until there is room for them.
    """

    keeps = False

    def __init__(self, total: int) -> None:
        self.total = total
        self.count = 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def clear(self) -> None:
        """Make room for a message."""

    def done(self, job: Job) -> None:
        """Another file is through."""
        self.count += 1
        self.show(job)

    def show(self, job: Job) -> None:
        """Tell about the file that is through."""


class Log(Progress):
    """A line per file, for a log."""

    def show(self, job: Job) -> None:
        """Print where its text went; a failure has told itself."""
        what = "skipped, its output exists" if job.skipped else ", ".join(
            map(str, job.targets.values())
        )  # fmt: skip
        if not job.failure:
            print(f"asr: {self.count}/{self.total} {job.path}: {what}", file=sys.stderr)


class Line(Progress):
    """One line of a terminal, written anew for each file."""

    keeps = True

    def __enter__(self) -> Progress:
        self._write(f"0/{self.total}")
        return self

    def clear(self) -> None:
        """Empty the line."""
        self._write("")

    def show(self, job: Job) -> None:
        """Write how far we are; as much of the name as fits."""
        try:
            width = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            width = 80
        # Half the width: a name may have characters of two columns.
        self._write(f"{self.count}/{self.total} {job.path.name[: max(0, width // 2 - 16)]}")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


class Bar(Progress):
    """The progress bar of the package rich."""

    keeps = True

    def __init__(self, total: int) -> None:
        super().__init__(total)
        import importlib

        console: Any = importlib.import_module("rich.console").Console(stderr=True)
        progress = importlib.import_module("rich.progress").Progress
        self._bar: Any = progress(console=console, transient=True, redirect_stdout=False)
        self._task = self._bar.add_task("transcribing", total=total)

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def show(self, job: Job) -> None:
        """Move the bar."""
        self._bar.advance(self._task)


def progress(options: argparse.Namespace, jobs: list[Job]) -> Progress:
    """What fits: nothing, a line per file in a log, a bar or a line on a terminal."""
    to_files = options.output is not None
    if options.quiet or len(jobs) < 2:
        return Progress(len(jobs))
    if not sys.stderr.isatty():
        return Log(len(jobs)) if to_files else Progress(len(jobs))
    if sys.stdout.isatty() and not to_files:
        return Progress(len(jobs))  # the text itself shows how far we are
    try:
        return Bar(len(jobs))
    except ImportError:
        return Line(len(jobs))
