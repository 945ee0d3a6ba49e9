"""One network through the passes, each kept only if it does what was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asr.engines.ort import OrtEngine, read_model
from asr.optimize import verify
from asr.optimize.graph import Array, Graph
from asr.optimize.passes import (
    NoMatch,
    attention,
    bf16_attention,
    fsmn,
    masks,
    quantize,
    shapes,
    signed_weights,
)
from asr.optimize.probe import Meeting, Roles, observe

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from asr.layouts import Layout
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
        bf16: compute attention in bf16 with our own operator; never lossless.
    """

    signed: bool
    lossless: bool = True
    int8: bool = False
    bf16: bool = False

    def includes(self, name: str) -> bool:
        """Whether a pass may be tried."""
        return {
            "signed_weights": self.signed,
            "quantize": self.int8,
            "attention": not self.bf16,
            "bf16_attention": self.bf16,
        }.get(name, True)


@dataclass(frozen=True, slots=True)
class Step:
    """What became of one pass.

    Attributes:
        name: of the pass.
        places: how many it rewrote.
        kept: whether the network keeps that.
        reason: why not; None when kept.
        moved: largest change of a score at the short lengths, in its unit; None when not measured.
    """

    name: str
    places: int
    kept: bool
    reason: str | None = None
    moved: float | None = None

    def undone(self, reason: str) -> Step:
        """The same pass, taken back."""
        return replace(self, kept=False, reason=reason)


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


#: In this order; each docstring says what its pass assumes.
_PASSES: tuple[tuple[str, Pass], ...] = (
    ("signed_weights", lambda graph, _: signed_weights.run(graph)),
    ("masks", masks.run),
    ("shapes", shapes.run),
    ("fsmn", lambda graph, _: fsmn.run(graph)),
    ("attention", lambda graph, _: attention.run(graph)),
    ("bf16_attention", lambda graph, _: bf16_attention.run(graph)),
    ("quantize", lambda graph, _: quantize.run(graph)),
)


def rewrite(
    layout: Layout, wanted: Wanted, *, threads: int, lengths: Sequence[int] = verify.LENGTHS
) -> Rewritten:
    """Take one network through the passes.

    Even a pass that changes no value can let the runtime fuse, and so round, in another way: what
    is lossless is found by comparing scores, never by reasoning alone.

    Args:
        layout: the model directory; its network may keep its weights inside or beside it.
        wanted: what may be done.
        threads: of the runs that prove it.
        lengths: of those runs, frames; the first few of them must be quick to run.

    Returns:
        the rewritten network and what was done; one that no pass knows comes back as it was.
    """
    import onnx

    source = onnx.load(layout.network)
    roles = Roles.of(layout, source)
    judge = _Judge(layout.network, roles, threads, lengths)
    meetings = observe(Graph(source), roles)
    passes = [(name, run) for name, run in _PASSES if wanted.includes(name)]
    original = source.SerializeToString()
    best, steps = _try(original, passes, meetings, judge if wanted.lossless else None)
    comparison = judge.full(best)
    if wanted.lossless and comparison.verdict == verify.CHANGED:
        # Equal at the short lengths, not at the long ones: only what never moved a bit may stay.
        reason = f"a score moves by {comparison.largest:.2g} at greater length"
        exact = {s.name for s in steps if s.kept and s.moved == 0}
        kept = [(name, run) for name, run in passes if name in exact]
        best, _ = _try(original, kept, meetings, None)
        comparison = judge.full(best)
        if comparison.verdict == verify.CHANGED:
            best, exact, comparison = original, set(), judge.full(original)
        steps = [s if s.name in exact or not s.kept else s.undone(reason) for s in steps]
    return Rewritten(best, tuple(steps), comparison)


def _try(
    model: bytes, passes: Sequence[tuple[str, Pass]], meetings: list[Meeting], judge: _Judge | None
) -> tuple[bytes, list[Step]]:
    """Apply passes one by one; with a judge, keep only those that change no decision."""
    import onnx

    steps = []
    for name, run in passes:
        graph = Graph(onnx.load_from_string(model))
        try:
            places = run(graph, meetings)
        except NoMatch as no_match:
            steps.append(Step(name, 0, kept=False, reason=str(no_match)))
            continue
        if places == 0:
            steps.append(Step(name, 0, kept=False, reason="nothing to rewrite"))
            continue
        tried = graph.finish().SerializeToString()
        change = judge.quick(tried) if judge is not None else None
        if change is not None and change.verdict == verify.CHANGED:
            reason = f"a score moves by {change.largest:.2g}"
            steps.append(Step(name, places, kept=False, reason=reason, moved=change.largest))
            continue
        steps.append(Step(name, places, kept=True, moved=change.largest if change else None))
        model = tried
    return model, steps


class _Judge:
    """Compares networks with the one they came from.

    Args:
        network: the file it came from.
        roles: its inputs.
        threads: of the runs.
        lengths: of the runs, frames.
    """

    def __init__(self, network: Path, roles: Roles, threads: int, lengths: Sequence[int]) -> None:
        self._network, self._roles, self._threads = network, roles, threads
        self._lengths = lengths
        self._before = self._scores(read_model(network), lengths)

    def quick(self, model: bytes) -> Comparison:
        """Compare at the short lengths only: a pass that fails there need not be tried further."""
        lengths = self._lengths[: verify.SHORT]
        return verify.compare(self._before[: verify.SHORT], self._scores(model, lengths))

    def full(self, model: bytes) -> Comparison:
        """Compare at every length."""
        return verify.compare(self._before, self._scores(model, self._lengths))

    def _scores(self, model: bytes, lengths: Sequence[int]) -> list[Array]:
        engine = OrtEngine(
            model, name=str(self._network), threads=self._threads, folder=self._network.parent
        )
        return verify.scores(engine, self._roles, lengths)
