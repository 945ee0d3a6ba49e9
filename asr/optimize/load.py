"""The prepared network of a model, made now if there is none: only what is proved lossless.

Lossy quantisation happens where it is asked for, or where ``optimize.json`` in the model's folder
says of this very file that the text of its clips stayed the same.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asr import _rust_fe
from asr.engines.ort import default_threads, import_runtime
from asr.engines.preparation import CACHED, FIRST, OFF, Preparation
from asr.errors import LayoutError, MissingToolError, SystemAccessError
from asr.optimize import cache, folder
from asr.optimize.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from asr.layouts import Layout

#: A pass that makes another network of the same file must change this.
PASSES = "2"

#: The prepared file, with its weights in two orders, beside the network's own size.
_ROOM = 2.1


def prepared(layout: Layout, *, quantize: str | None, tell: Callable[[str], None]) -> Preparation:
    """Find or make the prepared network.

    Args:
        layout: the model.
        quantize: ``int8`` for byte weights made from its fp32 network.
        tell: told what takes time, a line each.

    Returns:
        what was found; its state is ``off`` where the network must stay as it is.

    Raises:
        UsageError: the model has no fp32 network to quantise.
        MissingToolError: quantising needs a package that is missing.
        LayoutError: the network cannot be loaded.
        SystemAccessError: the network cannot be read, or the cache not be used.
    """
    request = _request(layout, quantize)
    network = layout.folder / request.network
    checksum, noted = cache.sha256(network)
    if quantize is None:
        request = _as_proved(request, layout.folder, checksum)
    runtime = f"ONNX Runtime {import_runtime().__version__}"
    cpu = str(_rust_fe.build_info()["kernel_features"])
    name = cache.key(checksum, runtime, cpu, PASSES, f"{request.lossy} {request.int8}")
    state, entry = CACHED, cache.find(name)
    if entry is None:
        with cache.locked(lambda: tell(f"{network.name}: waiting for another preparation")):
            entry = cache.find(name)
            if entry is None:
                tell(f"preparing {network.name} for this CPU, this once")
                facts = {"source": str(network.resolve()), "runtime": runtime, "cpu": cpu}
                request = replace(request, sha256=checksum)
                state, entry = FIRST, _make(request, name, network, facts, tell)
    if not noted:
        cache.note(network, checksum)
    if entry.left is not None:
        return Preparation(OFF, entry.left)
    passes = tuple(p["name"] for p in entry.record["passes"] if p["kept"])
    found = Preparation(
        state, None, passes, entry.network, entry.disk_bytes, float(entry.record["wall_s"])
    )
    if state == FIRST:
        tell(f"{network.name} is ready ({found}); asr cache clean removes it")
    return found


def _request(layout: Layout, quantize: str | None) -> Request:
    info = _rust_fe.build_info()
    signed, panels = "vnni" in info["byte_features"], "asr.ByteMatMul" in info["operators"]
    network = layout.network.name
    request = Request(str(layout.folder), network, "", "", default_threads(), signed, panels)
    if quantize is None:
        return request
    if find_spec("onnx") is None:
        raise MissingToolError(
            "quantize: expected the package onnx, found none; pip install 'asr-rtf[optimize]'"
        )
    return replace(request, network=folder.fp32(layout).network.name, lossy=True, int8=True)


def _as_proved(request: Request, model: Path, checksum: str) -> Request:
    """Lossy where the record of ``asr optimize`` says that this file's texts stayed the same."""
    try:
        record = json.loads((model / folder.RECORD).read_text(encoding="utf-8"))
        texts = record["texts"] or {}
        of_this = record["schema"] == folder.SCHEMA and record["from"]["sha256"] == checksum
        kept = {step["name"] for step in record["passes"] if step["kept"]}
        proved = of_this and texts["clips"] > 0 and texts["changed"] == 0
    except (OSError, ValueError, KeyError, TypeError):
        return request
    if not proved or find_spec("onnx") is None:
        return request
    return replace(request, lossy=True, int8="quantize" in kept)


def _make(
    request: Request, name: str, network: Path, facts: dict[str, Any], tell: Callable[[str], None]
) -> cache.Entry:
    """Prepare it in a process of its own; call with the cache's lock held."""
    start_s = time.perf_counter()
    part = cache.new_part(name, int(_ROOM * network.stat().st_size))
    try:
        done = _run(replace(request, part=str(part)), tell)
        wall_s = time.perf_counter() - start_s
        return cache.finish(part, name, {**facts, **done, "wall_s": wall_s})
    finally:
        cache.remove(part)


_CHILD = """
import json, sys
sys.path[:] = json.loads(sys.argv[2])
from asr.optimize.build import main
main(sys.argv[1])
"""


def _run(request: Request, tell: Callable[[str], None]) -> dict[str, Any]:
    """Let a new process do it.

    Raises:
        LayoutError: the network cannot be loaded.
        SystemAccessError: the process ended without an answer, or could not write.
    """
    import subprocess

    python = sys.executable or ""
    if not Path(python).name.startswith("python") or getattr(sys, "frozen", False):
        raise SystemAccessError(
            f"{python or 'this program'}: expected to run inside a Python that can be started "
            "again, found another program"
        )
    command = [python, "-c", _CHILD, json.dumps(asdict(request)), json.dumps(sys.path)]
    answer: dict[str, Any] = {}
    # The process ends when its stdin does, so with this one, however that ends; a session of its
    # own keeps Ctrl-C from it.
    with subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as process:
        for line in process.stdout or ():
            answer = json.loads(line)
            if "step" in answer:
                tell(f"  {answer['step']}")
        code = process.wait()
    if "done" in answer:
        return dict(answer["done"])
    if "error" in answer:
        kind = LayoutError if answer["kind"] == "LayoutError" else SystemAccessError
        raise kind(answer["error"])
    raise SystemAccessError(
        f"{request.network}: the process that prepares it ended with code {code}"
    )
