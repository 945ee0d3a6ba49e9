"""Whole programs as their users start them, from spawn to exit: no worker of ours inside."""

from collections.abc import Sequence
from pathlib import Path

from contenders import ROOT, environment, padded
from networks import EDGE

from asr.bench.child import spawn
from asr.bench.hosts import runtime_library
from asr.bench.installs import running

#: Ours in Python, ours without, and the peer's own in C++; each with its int8 file of one network.
NAMES = ("asr", "asr-edge", "sherpa-onnx-offline")


def command(name: str, work: Path, sound: Path, threads: int) -> list[str]:
    """The words that transcribe a file.

    Args:
        name: one of ``NAMES``.
        work: the work folder.
        sound: a WAV file.
        threads: of the network.
    """
    if name == "asr":
        return [str(running().command), "transcribe", str(sound), "--threads", str(threads),
                "--model", str(work / "fp32-sherpa"), "--quantize", "int8"]  # fmt: skip
    if name == "asr-edge":
        return [str(EDGE), "--bundle", str(work / "edge-sherpa"), "--threads", str(threads),
                str(sound)]  # fmt: skip
    model = work / "int8-sherpa"
    return [str(ROOT / ".venv-sherpa-onnx/bin/sherpa-onnx-offline"),
            f"--tokens={model / 'tokens.txt'}", f"--num-threads={threads}",
            f"--sense-voice-model={model / 'model.int8.onnx'}", str(sound)]  # fmt: skip


def run(
    name: str, work: Path, sound: Path, threads: int, cores: Sequence[int] | None, round_: int
) -> dict[str, float]:
    """Run one to its exit: wall and CPU nanoseconds, most memory held."""
    words = command(name, work, sound, threads)
    around = {**environment(work), "ORT_DYLIB_PATH": str(runtime_library())}
    ended = spawn(words, name=name, cores=cores, environment=padded(around, round_))
    return {
        "wall_ns": ended.process_ns,
        "cpu_ns": ended.cpu_ns,
        "peak_bytes": ended.peak_rss_bytes,
    }
