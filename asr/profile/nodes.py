"""ONNX Runtime's own profile: one slice per node, on the clock of everything else."""

import json
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Node:
    """One node of the network, run once.

    Attributes:
        name: as the network calls it.
        operator: MatMulInteger, LayerNormalization ...
        start_ns: ``time.perf_counter_ns``.
        duration_ns: to the microsecond.
        output_bytes: what it made.
        thread_id: of the system, as the runtime tells it.
    """

    name: str
    operator: str
    start_ns: int
    duration_ns: int
    output_bytes: int
    thread_id: int


def read(path: Path, zero_ns: int) -> list[Node]:
    """Read the runtime's file.

    Args:
        path: as ``OrtEngine.end_profile`` returns it.
        zero_ns: its zero by ``time.time_ns``.

    Returns:
        the nodes in the order in which they ran.
    """
    # Between two clocks: read one between two readings of the other, take the closest of many.
    readings = [(time.perf_counter_ns(), time.time_ns(), time.perf_counter_ns()) for _ in range(20)]
    before_ns, wall_ns, after_ns = min(readings, key=lambda reading: reading[2] - reading[0])
    shift_ns = zero_ns - wall_ns + (before_ns + after_ns) // 2
    return [
        Node(
            event["name"].removesuffix("_kernel_time"),
            event["args"]["op_name"],
            event["ts"] * 1000 + shift_ns,
            event["dur"] * 1000,
            int(event["args"].get("output_size", 0)),
            event["tid"],
        )
        for event in json.loads(path.read_text(encoding="utf-8"))
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
    ]
