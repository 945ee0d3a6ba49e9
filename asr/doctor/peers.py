"""What other programs make of the same clips: sherpa-onnx and funasr-onnx, where installed.

Each runs in a process of its own: two copies of ONNX Runtime in one process do not get on, and a
peer that crashes must not take the report with it.
"""

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from asr.layouts import Layout
from asr.records import Float32

PROMPT_ROWS = 4
TIMEOUT_S = 1800
#: name -> module, and the layout that it reads.
PEERS = {"sherpa-onnx": ("sherpa_onnx", "sherpa-onnx"), "funasr-onnx": ("funasr_onnx", "funasr")}
#: The only name under which funasr-onnx finds its tokenizer.
_TOKENIZER = "chn_jpn_yue_eng_ko_spectok.bpe.model"

#: Pieces of each clip.
Answer: TypeAlias = Callable[[Float32], list[str]]


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """What came back from one peer.

    Attributes:
        name: of the program.
        version: as installed; None where it is not.
        problem: why there is no answer; None where there is one.
        pieces: per clip, the tokens in its own spelling.
        load_ms: from import to ready.
        calls_ms: per clip.
    """

    name: str
    version: str | None
    problem: str | None
    pieces: tuple[tuple[str, ...], ...] = ()
    load_ms: float = 0.0
    calls_ms: tuple[float, ...] = ()


def ask(name: str, layout: Layout, clips: Sequence[Float32], threads: int) -> PeerAnswer:
    """Let a peer hear clips.

    Args:
        name: of ``PEERS``.
        layout: of the model folder.
        clips: float32 (num_samples,), 16 kHz.
        threads: of its network.

    Returns:
        its answer; whatever goes wrong is a ``problem``.
    """
    module, reads = PEERS[name]
    if importlib.util.find_spec(module) is None:
        return PeerAnswer(name, None, "not installed")
    version = _version(name)
    if layout.kind != reads:
        return PeerAnswer(name, version, f"reads the {reads} layout only")
    with tempfile.TemporaryDirectory() as scratch:
        np.savez(Path(scratch, "clips.npz"), *clips)
        order = {
            "name": name,
            "network": str(layout.network.resolve()),
            "folder": str(layout.folder.resolve()),
            "threads": threads,
        }
        Path(scratch, "order.json").write_text(json.dumps(order), encoding="utf-8")
        code = "import sys; from asr.doctor import peers; peers.answer(sys.argv[1])"
        try:
            done = subprocess.run(  # noqa: S603 - this very interpreter
                [sys.executable, "-c", code, scratch],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return PeerAnswer(name, version, f"no answer within {TIMEOUT_S} s")
        try:
            found = json.loads(Path(scratch, "answer.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return PeerAnswer(name, version, _last_words(done))
    pieces = tuple(tuple(tokens) for tokens in found["pieces"])
    return PeerAnswer(name, version, None, pieces, found["load_ms"], tuple(found["calls_ms"]))


def spelled(pieces: Sequence[str], argmax: Sequence[int], blank_id: int, name: str) -> list[str]:
    """Our tokens as a peer would tell them.

    sherpa-onnx drops the first four tokens where we drop the four prompt rows, and writes the word
    marker as a space.
    """
    rows = list(argmax if name == "sherpa-onnx" else argmax[PROMPT_ROWS:])
    tokens = [
        pieces[now]
        for before, now in zip([None, *rows], rows, strict=False)
        if now not in (before, blank_id)
    ]
    if name == "sherpa-onnx":
        return [piece.replace("\u2581", " ") for piece in tokens[PROMPT_ROWS:]]
    return tokens


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


def _last_words(done: "subprocess.CompletedProcess[bytes]") -> str:
    """Why a peer's process ended early: the kind of error only, its text may name folders."""
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    kind = lines[-1].partition(":")[0] if lines else ""
    return f"failed, {kind}" if kind.isidentifier() else f"failed, exit status {done.returncode}"


# ------------------------------------------------------------------ in the peer's process


def answer(scratch: str) -> None:
    """Do what ``ask`` wrote into a folder, and leave ``answer.json`` there."""
    folder = Path(scratch)
    order: dict[str, Any] = json.loads((folder / "order.json").read_text(encoding="utf-8"))
    start_s = time.perf_counter()
    hear = {"sherpa-onnx": _sherpa, "funasr-onnx": _funasr}[order["name"]](order, folder)
    load_ms = (time.perf_counter() - start_s) * 1e3
    pieces, calls_ms = [], []
    with np.load(folder / "clips.npz") as clips:
        for number in range(len(clips.files)):
            samples = clips[f"arr_{number}"]
            start_s = time.perf_counter()
            pieces.append(hear(samples))
            calls_ms.append((time.perf_counter() - start_s) * 1e3)
    found = {"pieces": pieces, "load_ms": load_ms, "calls_ms": calls_ms}
    (folder / "answer.json").write_text(json.dumps(found), encoding="utf-8")


def _sherpa(order: dict[str, Any], _: Path) -> Answer:
    import sherpa_onnx

    recognizer = sherpa_onnx.OfflineRecognizer.from_sense_voice(
        model=order["network"],
        tokens=str(Path(order["folder"], "tokens.txt")),
        num_threads=order["threads"],
        language="auto",
        use_itn=False,
    )

    def hear(samples: Float32) -> list[str]:
        stream = recognizer.create_stream()
        stream.accept_waveform(16000, samples)
        recognizer.decode_stream(stream)
        return list(stream.result.tokens)

    return hear


def _funasr(order: dict[str, Any], scratch: Path) -> Answer:
    """Its own front end and session, without dither; its text would lose where tokens begin."""
    from funasr_onnx import SenseVoiceSmall

    source, folder = Path(order["folder"]), scratch / "model"
    folder.mkdir()
    for path in source.iterdir():
        name = _TOKENIZER if path.name.endswith(".bpe.model") else path.name
        (folder / name).symlink_to(path)
    pieces = json.loads((folder / "tokens.json").read_text(encoding="utf-8"))
    quantised = Path(order["network"]).name == "model_quant.onnx"
    program = SenseVoiceSmall(
        str(folder), quantize=quantised, intra_op_num_threads=order["threads"]
    )
    program.frontend.opts.frame_opts.dither = 0.0

    def hear(samples: Float32) -> list[str]:
        features, lengths = program.extract_feat([samples])
        language, itn = np.array([0], np.int32), np.array([15], np.int32)
        scores, rows = program.infer(features, lengths, language, itn)
        best = scores[0, : int(rows[0])].argmax(axis=-1).tolist()
        return spelled(pieces, best, 0, "funasr-onnx")

    return hear
