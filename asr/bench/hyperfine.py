"""A second opinion on the whole process: hyperfine, beside our own clock, on the same command."""

import json
import shlex
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from asr.bench import child, process
from asr.bench.installs import Install
from asr.errors import MissingToolError

#: Relative difference of two medians that counts as agreement.
AGREES = 0.05


def find() -> str:
    """The program.

    Raises:
        MissingToolError: it is not installed.
    """
    program = shutil.which("hyperfine")
    if program is None:
        raise MissingToolError(
            "--hyperfine needs the program hyperfine; run: apt install hyperfine, "
            "or cargo install hyperfine"
        )
    return program


def compare(
    program: str,
    install: Install,
    wanted: process.Wanted,
    clip: Path,
    runs: int,
    cores: Sequence[int] | None,
) -> dict[str, Any]:
    """Let hyperfine and us time ``asr transcribe CLIP`` from spawn to exit.

    Ours run half before and half after hyperfine's, so that drift hits both alike.

    Returns:
        hyperfine's own result (seconds), ``ours_process_ns``, ``ratio`` of the medians (ours over
        hyperfine's), ``agrees``.

    Raises:
        MissingToolError: hyperfine fails, or the command does.
    """
    arguments = wanted.arguments(clip)

    def ours(count: int) -> list[int]:
        return [process.run(install, arguments, cores).process_ns for _ in range(count)]

    times = ours(runs // 2)
    with tempfile.TemporaryDirectory() as folder, child.on(cores):
        out = Path(folder) / "result.json"
        asked = shlex.join(install.line(*arguments))
        command = [program, "--shell=none", "--style=none", "--warmup=1", f"--runs={runs}",
                   f"--export-json={out}", asked]  # fmt: skip
        done = subprocess.run(  # noqa: S603 - found by the user's own PATH
            command, capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
            raise MissingToolError(f"hyperfine failed: {last}")
        result = json.loads(out.read_text(encoding="utf-8"))["results"][0]
    times += ours(runs - runs // 2)
    ratio = statistics.median(times) / 1e9 / result["median"]
    return {**result, "ours_process_ns": times, "ratio": ratio, "agrees": abs(ratio - 1) <= AGREES}
