"""Prepare one network: the process that ``asr.optimize.load`` starts.

A process of its own, so that what it needs of memory is given back, a crash of it costs the caller
nothing, and when the caller is killed it sees that and leaves nothing behind.

``main`` gets a ``Request`` as JSON. Stdout has a JSON object per line: ``{"step": TEXT}`` while
it works, and at last ``{"done": FACTS}`` or ``{"error": TEXT, "kind": CLASS}``.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from asr.engines.ort import OrtEngine, read_model, save_prepared
from asr.errors import AsrError, SystemAccessError
from asr.layouts import open_layout
from asr.optimize import cache, panels, raw, verify
from asr.optimize.passes import NoMatch
from asr.optimize.probe import Roles
from asr.optimize.request import Request
from asr.optimize.rewrite import Step, Wanted, rewrite

if TYPE_CHECKING:
    from collections.abc import Callable

    from asr.layouts import Layout
    from asr.optimize.graph import Array

#: Frames to prove it on: the shortest, an odd one, 5.6 s, and the longest piece of 20 s.
LENGTHS = (1, 17, 93, 333)


def build(request: Request, tell: Callable[[str], None]) -> dict[str, Any]:
    """Rewrite, save as the runtime runs it, and compare what was saved with the original.

    Args:
        request: what to prepare.
        tell: told each step before it is taken.

    Returns:
        what was done; with ``left`` where the network must stay as it is.

    Raises:
        AsrError: the network cannot be loaded, or nothing can be written.
    """
    layout = open_layout(Path(request.model))
    layout = replace(layout, network=layout.folder / request.network)
    model = read_model(layout.network)
    if hashlib.sha256(model).hexdigest() != request.sha256:
        raise SystemAccessError(f"{layout.network}: expected a finished file, found one in change")
    facts: dict[str, Any] = {"passes": [], "lengths": LENGTHS}
    if raw.has_weights_outside(model):
        return {**facts, "scores": None, "left": "its weights lie in another file"}
    if request.lossy:
        tell("rewriting the network")
        model, facts["passes"], facts["rewritten"] = _rewritten(layout, request)
    tell("running the network as it is")
    before = _scores(layout, model, request.threads)
    if request.signed and not request.lossy:
        tell("making byte weights signed")
        try:
            model, places = raw.sign(model)
            reason = None if places else "nothing to rewrite"
        except NoMatch as no_match:
            places, reason = 0, str(no_match)
        facts["passes"] = [asdict(Step("signed_weights", places, places > 0, reason))]
    tell("writing it in this CPU's order")
    path = Path(request.part) / cache.NETWORK
    step = _save(model, path, layout.network, request)
    del model
    facts["passes"].append(asdict(step))
    tell("running the prepared network")
    found = verify.compare(before, _scores(layout, path, request.threads))
    facts["scores"] = asdict(found)
    if found.verdict == verify.CHANGED:
        facts["left"] = f"a score moves by {found.largest:.2g} when the runtime saves the network"
        for file in path.parent.iterdir():
            file.unlink()
    return facts


def _save(model: bytes, path: Path, network: Path, request: Request) -> Step:
    """Write the network for our operator where the CPU has it, else in the runtime's order."""
    places, reason = 0, "this CPU has no AVX-512 VNNI"
    if request.panels:
        saved = path.with_suffix(".saved")
        save_prepared(model, saved, name=str(network), threads=request.threads, prepack=False)
        try:
            places = panels.write(saved, path, path.with_name(f"{path.name}.data"))
            reason = "nothing to rewrite"
        except NoMatch as no_match:
            reason = str(no_match)
        saved.unlink()
    if places == 0:
        save_prepared(model, path, name=str(network), threads=request.threads)
        return Step("byte_matmul", 0, kept=False, reason=reason)
    return Step("byte_matmul", places, kept=True)


def _rewritten(
    layout: Layout, request: Request
) -> tuple[bytes, list[dict[str, Any]], dict[str, Any]]:
    """The network after every pass that fits, the passes, and how far scores moved."""
    wanted = Wanted(signed=request.signed, lossless=False, int8=request.int8)
    rewritten = rewrite(layout, wanted, threads=request.threads, lengths=LENGTHS)
    steps = [asdict(step) for step in rewritten.steps]
    return rewritten.model, steps, asdict(rewritten.comparison)


def _scores(layout: Layout, model: bytes | Path, threads: int) -> list[Array]:
    engine = OrtEngine(
        model, name=str(layout.network), threads=threads, folder=layout.network.parent
    )
    return verify.scores(engine, Roles.named(layout, engine.inputs, engine.outputs), LENGTHS)


def main(request: str) -> NoReturn:
    """Serve one request, and end the process."""
    asked = Request(**json.loads(request))
    threading.Thread(target=_end_with_caller, args=(asked.part,), daemon=True).start()

    def say(**facts: object) -> None:
        sys.stdout.write(json.dumps(facts) + "\n")
        sys.stdout.flush()

    try:
        say(done=build(asked, lambda step: say(step=step)))
    except AsrError as error:
        say(error=str(error), kind=type(error).__name__)
    os._exit(0)  # taking everything apart gains nothing


def _end_with_caller(part: str) -> None:
    """Stdin ends when the caller does, however it ends."""
    sys.stdin.buffer.read()
    shutil.rmtree(part, ignore_errors=True)
    os._exit(1)
