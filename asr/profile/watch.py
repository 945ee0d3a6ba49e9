"""The hook: every call, every native call and every allocated block of one thread."""

import gc
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from asr.profile import natives
from asr.records import Audio, Decoded, Features, Logits

if TYPE_CHECKING:
    import numpy.typing as npt

T = TypeVar("T")

#: Smaller growth is objects of the interpreter, larger is somebody's array.
BLOCK_BYTES = 4096

#: Between the stages: what the pipeline does itself.
BETWEEN = "-"

_HERE = str(Path(__file__).parent)


@dataclass(slots=True)
class Slice:
    """Something that began and ended, with what it was inside of.

    Attributes:
        kind: ``stage``, ``python`` or ``native``.
        name: ``fbank``, ``asr.frontend:FrontEnd.fbank``, ``rust_fe.Fbank.compute``.
        library: of a native call.
        stage: the contract's stage it belongs to; ``-`` between the stages.
        start_ns: ``time.perf_counter_ns``.
        end_ns: the same clock.
        stack: names from the outermost to this one.
        inside_ns: spent in slices within this one.
        rust_bytes: allocated by the Rust half; only a test build counts them.
    """

    kind: str
    name: str
    library: str
    stage: str
    start_ns: int
    end_ns: int
    stack: tuple[str, ...]
    inside_ns: int = 0
    rust_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """Memory that Python or NumPy allocated between two events of the hook.

    Several blocks that are gone again before the next event count once, as the largest sum that
    was alive at a time.
    """

    at_ns: int
    size_bytes: int
    name: str
    stage: str


@dataclass(frozen=True, slots=True)
class Step:
    """What one stage took and gave.

    Attributes:
        name: the stage.
        taken_bytes: arrays among its arguments.
        made_bytes: arrays of its result that lie in memory of their own.
        lent_bytes: arrays of its result that lie in memory of an argument.
    """

    name: str
    taken_bytes: int
    made_bytes: int
    lent_bytes: int


class Watch:
    """An observer that also sees what happens within the steps, on the thread that starts it.

    Args:
        source: what the caller hands to the pipeline; a result in its memory is lent, not made.

    Attributes:
        slices: in the order in which they ended.
        blocks: in the order in which they were allocated.
        steps: in the order in which they ended.
    """

    def __init__(self, source: object) -> None:
        from asr import _rust_fe

        self._known = (source,)
        self.slices: list[Slice] = []
        self.blocks: list[Block] = []
        self.steps: list[Step] = []
        self._open: list[Slice] = []
        self._base = 0
        self._names: dict[CodeType, str] = {}
        self._rust_bytes: Callable[[], int] | None = getattr(_rust_fe, "allocated_bytes", None)
        self._doors = natives.Doors(self._enter_door, self._leave_door)

    @property
    def counts_rust(self) -> bool:
        """Whether the Rust half was built with its counting allocator."""
        return self._rust_bytes is not None

    def start(self) -> None:
        """Look, until ``stop``; whoever looked before is kept out for so long.

        The cyclic garbage collector waits: what it calls belongs to no stage, and it would mostly
        be the slices kept here that bring it on.
        """
        self._was_collecting = gc.isenabled()
        gc.disable()
        self._replaced = sys.getprofile()
        self._was_tracing = tracemalloc.is_tracing()
        tracemalloc.start()
        self._doors.open()
        self._rebase()
        sys.setprofile(self._hook)

    def stop(self) -> None:
        """Look away."""
        sys.setprofile(self._replaced)
        self._doors.close()
        if not self._was_tracing:
            tracemalloc.stop()
        if self._was_collecting:
            gc.enable()

    def step(self, name: str, function: Callable[..., T], *arguments: object) -> T:
        """Call ``function(*arguments)`` as a stage."""
        self._note_block()
        self._push("stage", name)
        try:
            value = function(*arguments)
        finally:
            self._note_block()
            self._pop()
        sys.setprofile(None)  # what follows is ours
        self.steps.append(_step(name, [*arguments, *self._known], value))
        self._rebase()
        sys.setprofile(self._hook)
        return value

    def _hook(self, frame: FrameType, event: str, function: Any) -> None:  # noqa: ANN401
        code = frame.f_code
        if code.co_filename.startswith(_HERE):
            return
        self._note_block()
        if event == "call":
            self._push("python", self._name(frame))
        elif event == "c_call":
            self._enter(*natives.describe(function))
        elif self._open and self._open[-1].kind == ("python" if event == "return" else "native"):
            self._pop()

    def _enter_door(self, library: str, name: str) -> None:
        self._note_block()
        self._enter(library, name)

    def _leave_door(self) -> None:
        self._note_block()
        self._pop()

    def _enter(self, library: str, name: str) -> None:
        self._push("native", name, library)
        if library == "rust_fe" and self._rust_bytes:
            self._open[-1].rust_bytes = -self._rust_bytes()

    def _push(self, kind: str, name: str, library: str = "") -> None:
        outer = self._open[-1] if self._open else None
        stage = name if kind == "stage" else outer.stage if outer else BETWEEN
        stack = (*(outer.stack if outer else ()), name)
        now_ns = time.perf_counter_ns()
        self._open.append(Slice(kind, name, library, stage, now_ns, now_ns, stack))
        self._rebase()

    def _pop(self) -> None:
        ended = self._open[-1]
        ended.end_ns = time.perf_counter_ns()
        if ended.rust_bytes and self._rust_bytes:
            ended.rust_bytes += self._rust_bytes()
        self._open.pop()
        if self._open:
            self._open[-1].inside_ns += ended.end_ns - ended.start_ns
        self.slices.append(ended)
        self._rebase()

    def _note_block(self) -> None:
        """Put down what was allocated since the last event, in the name of who was running."""
        grown = tracemalloc.get_traced_memory()[1] - self._base
        if grown >= BLOCK_BYTES:
            now_ns, running = time.perf_counter_ns(), self._open[-1] if self._open else None
            where = (running.name, running.stage) if running else (BETWEEN, BETWEEN)
            self.blocks.append(Block(now_ns, grown, *where))
        self._rebase()

    def _rebase(self) -> None:
        tracemalloc.reset_peak()
        self._base = tracemalloc.get_traced_memory()[0]

    def _name(self, frame: FrameType) -> str:
        code = frame.f_code
        if code not in self._names:
            function = getattr(code, "co_qualname", code.co_name)  # since Python 3.11
            self._names[code] = f"{frame.f_globals.get('__name__', '?')}:{function}"
        return self._names[code]


def _step(name: str, arguments: list[object], value: object) -> Step:
    import numpy as np

    taken = list(_arrays(arguments))
    given = list(_arrays(value))
    lent = [g for g in given if any(np.may_share_memory(g, t) for t in taken)]
    sizes = [sum(a.nbytes for a in some) for some in (taken, given, lent)]
    return Step(name, sizes[0], sizes[1] - sizes[2], sizes[2])


def _arrays(value: object) -> "Iterator[npt.NDArray[Any]]":
    """The arrays in a record, a mapping or a sequence."""
    import dataclasses

    import numpy as np

    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, Mapping):
        yield from _arrays(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif isinstance(value, Audio | Features | Logits | Decoded):
        yield from _arrays([getattr(value, field.name) for field in dataclasses.fields(value)])
