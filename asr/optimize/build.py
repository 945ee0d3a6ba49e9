"""Prepare one network: the process that ``asr.optimize.load`` starts.

A process of its own, so that what it needs of memory is given back, a crash of it costs the caller
nothing, and when the caller is killed it sees that and leaves nothing behind.

``main`` gets a ``Request`` as JSON. Stdout has a JSON object per line: ``{"step": TEXT}`` while
it works, and at last ``{"done": FACTS}`` or ``{"error": TEXT, "kind": CLASS}``.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from asr.engines.ort import OrtEngine, read_model, save_prepared
from asr.errors import AsrError
from asr.layouts import open_layout
from asr.optimize import cache, raw, verify
from asr.optimize.passes import NoMatch
from asr.optimize.probe import Roles

if TYPE_CHECKING:
    from collections.abc import Callable

    from asr.layouts import Layout
    from asr.optimize.graph import Array

#: Frames to prove it on: the shortest, an odd one, 5.6 s, and the longest piece of 20 s.
LENGTHS = (1, 17, 93, 333)


@dataclass(frozen=True, slots=True)
class Request:
    """What to prepare.

    Attributes:
        model: the model folder.
        network: file name of its network.
        part: an empty folder for the result.
        threads: of the runs that prove it.
        signed: the CPU multiplies u8 x s8 without saturating.
        lossy: do every rewriting that fits, as ``asr optimize --verify`` does; needs ``onnx``.
        int8: also quantise the weights.
    """

    model: str
    network: str
    part: str
    threads: int
    signed: bool
    lossy: bool = False
    int8: bool = False


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
    if request.lossy:
        tell("rewriting the network")
        model, passes = _rewritten(layout, request)
    else:
        model, passes = read_model(layout.network), []
    tell("running the network as it is")
    before = _scores(layout, model, request.threads)
    if request.signed and not request.lossy:
        tell("making byte weights signed")
        try:
            model, places = raw.sign(model)
            passes = [{"name": "signed_weights", "places": places, "kept": places > 0}]
        except NoMatch as no_match:
            passes = [{"name": "signed_weights", "places": 0, "kept": False,
                       "reason": str(no_match)}]  # fmt: skip
    tell("writing it in this CPU's order")
    path = Path(request.part) / cache.NETWORK
    save_prepared(model, path, name=str(layout.network), threads=request.threads)
    del model
    tell("running the prepared network")
    found = verify.compare(before, _scores(layout, path, request.threads))
    facts = {"passes": passes, "scores": asdict(found), "lengths": LENGTHS}
    if found.verdict == verify.CHANGED:
        facts["left"] = f"a score moves by {found.largest:.2g} when the runtime saves the network"
        for file in path.parent.iterdir():
            file.unlink()
    return facts


def _rewritten(layout: Layout, request: Request) -> tuple[bytes, list[dict[str, Any]]]:
    from asr.optimize.rewrite import Wanted, rewrite

    wanted = Wanted(signed=request.signed, lossless=False, int8=request.int8)
    rewritten = rewrite(layout, wanted, threads=request.threads, lengths=LENGTHS)
    return rewritten.model, [asdict(step) for step in rewritten.steps]


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
