"""Whether a network was made ready for this CPU before it was loaded."""

from dataclasses import dataclass
from pathlib import Path

#: ``first``: prepared by this load; ``cached``: by an earlier one; ``off``: not, and why;
#: ``not applicable``: too small for it to matter.
FIRST, CACHED, OFF, NOT_APPLICABLE = "first", "cached", "off", "not applicable"


@dataclass(frozen=True, slots=True)
class Preparation:
    """What stands between a model's network and the one that runs.

    Attributes:
        state: one of the four words above.
        reason: why not, where the state is ``off``.
        passes: what was done to the network; bringing weights into the kernels' order is not
            among them.
        network: the prepared file.
        disk_bytes: of the prepared file and its weights.
        wall_s: seconds that making it took, also where that was an earlier load.
    """

    state: str
    reason: str | None = None
    passes: tuple[str, ...] = ()
    network: Path | None = None
    disk_bytes: int = 0
    wall_s: float = 0.0

    def __str__(self) -> str:
        """In words, for people."""
        if self.network is None:
            return self.state + (f": {self.reason}" if self.reason else "")
        done = ", ".join((*self.passes, "prepacked"))
        return (
            f"{self.state}: {done}; {self.disk_bytes / 1e6:.0f} MB in {self.network.parent}, made "
            f"in {self.wall_s:.1f} s"
        )


SMALL = Preparation(NOT_APPLICABLE)
UNPREPARED = Preparation(OFF, "done for ONNX Runtime on the CPU only")
