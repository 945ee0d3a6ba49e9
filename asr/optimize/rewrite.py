"""One network through the passes, each kept only if it does what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asr.engines.ort import OrtEngine, read_model
from asr.optimize import verify
from asr.optimize.graph import Array, Graph
from asr.optimize.passes import NoMatch, attention, fsmn, masks, quantize, shapes, signed_weights
from asr.optimize.probe import Meeting, Roles, observe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from asr.optimize.verify import Comparison
Pass = Callable[[Graph, list[Meeting]], int]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What may be done to a network.

    Attributes:
        signed: the CPU multiplies u8 x s8 without saturating: unsigned weights become signed.
        lossless: keep only what leaves every score as it was, or moves none by enough to decide
            otherwise; False keeps every pass that matches.
        int8: quantise the weights of an fp32 network; never lossless.
    """

    signed: bool
    lossless: bool = True
    int8: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one pass.

    Attributes:
        name: of the pass.
        places: how many it rewrote.
        kept: whether the network keeps that.
        reason: why not; None when kept.
    """

    name: str
    places: int
    kept: bool
    reason: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Rewritten:
    """A network after the passes.

    Attributes:
        model: the ONNX file, weights inside.
        steps: the passes in order.
        comparison: with the network as it was.
    """

    model: bytes
    steps: tuple[Step, ...]
    comparison: Comparison


#: Passes that change no bit by construction, and passes whose sums may round otherwise.
_EXACT: tuple[tuple[str, Pass], ...] = (
    ("signed_weights", lambda graph, _: signed_weights.run(graph)),
    ("masks", masks.run),
)
_ROUNDING: tuple[tuple[str, Pass], ...] = (
    ("shapes", shapes.run),
    ("fsmn", lambda graph, _: fsmn.run(graph)),
    ("attention", lambda graph, _: attention.run(graph)),
)
_LOSSY: tuple[tuple[str, Pass], ...] = (("quantize", lambda graph, _: quantize.run(graph)),)


def rewrite(network: Path, roles: Roles, wanted: Wanted, *, threads: int) -> Rewritten:
    """Take one network through the passes.

    Args:
        network: an ``.onnx`` file, with its weights inside or beside it.
        roles: its inputs.
        wanted: what may be done.
        threads: of the runs that prove it.

    Returns:
        the rewritten network and what was done; one that no pass knows comes back as it was.
    """
    import onnx

    source = onnx.load(network)
    graph = Graph(source)
    meetings = observe(graph, roles)
    judge = _Judge(network, roles, threads)
    steps = [
        Step(name, run(graph, meetings), kept=True)
        for name, run in _EXACT
        if wanted.signed or name != "signed_weights"
    ]
    best = graph.finish().SerializeToString()
    passes = _ROUNDING + (_LOSSY if wanted.int8 else ())
    for name, run in passes:
        graph = Graph(onnx.load_from_string(best))
        try:
            places = run(graph, meetings)
        except NoMatch as no_match:
            steps.append(Step(name, 0, kept=False, reason=str(no_match)))
            continue
        if places == 0:
            steps.append(Step(name, 0, kept=True))
            continue
        tried = graph.finish().SerializeToString()
        if wanted.lossless and (change := judge.quick(tried)).verdict == verify.CHANGED:
            reason = f"a score moves by {change.largest:.2g}"
            steps.append(Step(name, places, kept=False, reason=reason))
            continue
        steps.append(Step(name, places, kept=True))
        best = tried
    return Rewritten(best, tuple(steps), judge.full(best))


class _Judge:
    """Compares networks with the one they came from.

    Args:
        network: the file it came from.
        roles: its inputs.
        threads: of the runs.
    """

    def __init__(self, network: Path, roles: Roles, threads: int) -> None:
        self._network, self._roles, self._threads = network, roles, threads
        self._before = self._scores(read_model(network), verify.LENGTHS)

    def quick(self, model: bytes) -> Comparison:
        """Compare at the short lengths only: a pass that fails there need not be tried further."""
        lengths = verify.LENGTHS[: verify.SHORT]
        return verify.compare(self._before[: verify.SHORT], self._scores(model, lengths))

    def full(self, model: bytes) -> Comparison:
        """Compare at every length."""
        return verify.compare(self._before, self._scores(model, verify.LENGTHS))

    def _scores(self, model: bytes, lengths: Sequence[int]) -> list[Array]:
        engine = OrtEngine(
            model, name=str(self._network), threads=self._threads, folder=self._network.parent
        )
        return verify.scores(engine, self._roles, lengths)
