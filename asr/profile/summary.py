"""Profile -> numbers: per stage, per native function, per block of memory, per operator."""

from collections.abc import Iterable
from typing import Any

from asr.observe import STAGES
from asr.profile.natives import COPYING, INTERPRETER
from asr.profile.run import Profile
from asr.profile.watch import BETWEEN, Slice


def summarise(profile: Profile) -> dict[str, Any]:
    """Count what was seen.

    Returns:
        a JSON-ready record, described by ``$defs/summary`` of ``docs/profile.schema.json``; times
        in milliseconds, sizes in bytes.
    """
    calls = native_calls(profile)
    stages = [_stage(profile, name, calls) for name in _stage_names(profile)]
    plain_ms = profile.plain_ms["total"]
    model_ms = profile.plain_ms.get("infer", 0.0)
    profiled_ms = (profile.end_ns - profile.start_ns) / 1e6
    return {
        "source": profile.source,
        "text": profile.transcript.text,
        "audio_s": profile.transcript.audio_s,
        "state": "cold" if profile.cold else "warm",
        "engine": profile.engine,
        "threads": profile.engine_threads,
        "backend": profile.backend,
        "counts_rust": profile.watch.counts_rust,
        "total": {
            "native_calls": sum(call["times"] for call in calls),
            "allocated_bytes": _sum(stages, "allocated_bytes"),
            "copied_bytes": _sum(stages, "copied_bytes"),
            "made_bytes": _sum(stages, "made_bytes"),
            "plain_ms": plain_ms,
            "outside_model_ms": plain_ms - model_ms,
            "profiled_ms": profiled_ms,
        },
        "stages": stages,
        "calls": calls,
        "blocks": [
            {
                "stage": block.stage,
                "where": block.name,
                "bytes": block.size_bytes,
                "copy": block.name in COPYING,
            }
            for block in profile.watch.blocks
        ],
        "operators": _operators(profile),
        "cpu": [{"thread": t.name, "ms": t.cpu_ns / 1e6} for t in profile.threads],
    }


def native_calls(profile: Profile) -> list[dict[str, Any]]:
    """Calls out of Python, by stage and function, in the order of the first of each."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for one in sorted(_natives(profile), key=lambda one: one.start_ns):
        row = rows.setdefault(
            (one.stage, one.name),
            {
                "stage": one.stage,
                "call": one.name,
                "library": one.library,
                "times": 0,
                "ms": 0.0,
                "rust_bytes": 0,
                "lock_released": profile.lock_released.get(one.name),
            },
        )
        row["times"] += 1
        row["ms"] += (one.end_ns - one.start_ns) / 1e6
        row["rust_bytes"] += one.rust_bytes
    return list(rows.values())


def _natives(profile: Profile) -> Iterable[Slice]:
    slices = profile.watch.slices
    return (one for one in slices if one.kind == "native" and one.library != INTERPRETER)


def _stage_names(profile: Profile) -> list[str]:
    """Load phases as they came, stages in the contract's order, then what is between them."""
    seen = dict.fromkeys(one.name for one in profile.watch.slices if one.kind == "stage")
    return [
        *(name for name in seen if name not in STAGES),
        *(name for name in STAGES if name in seen),
        BETWEEN,
    ]


def _stage(profile: Profile, name: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    watch = profile.watch
    own = [call for call in calls if call["stage"] == name]
    blocks = [block for block in watch.blocks if block.stage == name]
    steps = [step for step in watch.steps if step.name == name]
    slices = [one for one in watch.slices if one.kind == "stage" and one.name == name]
    profiled_ns = sum(one.end_ns - one.start_ns for one in slices)
    plain_ms = profile.plain_ms.get(name)
    if name == BETWEEN:
        whole = [one for one in watch.slices if one.kind == "stage"]
        inside_ns = sum(one.end_ns - one.start_ns for one in whole)
        profiled_ns = profile.end_ns - profile.start_ns - inside_ns
    return {
        "stage": name,
        "plain_ms": plain_ms,
        "profiled_ms": profiled_ns / 1e6,
        "native_calls": sum(call["times"] for call in own),
        "allocated_bytes": sum(block.size_bytes for block in blocks),
        "copied_bytes": sum(block.size_bytes for block in blocks if block.name in COPYING),
        "rust_bytes": sum(call["rust_bytes"] for call in own) if watch.counts_rust else None,
        "taken_bytes": sum(step.taken_bytes for step in steps),
        "made_bytes": sum(step.made_bytes for step in steps),
        "lent_bytes": sum(step.lent_bytes for step in steps),
    }


def _sum(stages: list[dict[str, Any]], field: str) -> int:
    return sum(stage[field] for stage in stages)


def _operators(profile: Profile) -> list[dict[str, Any]]:
    """ONNX Runtime's nodes by operator, the slowest first."""
    rows: dict[str, dict[str, Any]] = {}
    for node in profile.nodes:
        row = rows.setdefault(
            node.operator, {"operator": node.operator, "times": 0, "ms": 0.0, "output_bytes": 0}
        )
        row["times"] += 1
        row["ms"] += node.duration_ns / 1e6
        row["output_bytes"] += node.output_bytes
    return sorted(rows.values(), key=lambda row: -float(row["ms"]))
