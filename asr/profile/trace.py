"""Profile -> a trace that Perfetto and Chrome show, and stacks that flame graphs are made of."""

import os
import threading
from collections import Counter
from typing import Any

from asr.profile.natives import COPYING, INTERPRETER
from asr.profile.run import Profile
from asr.profile.summary import summarise

#: Shorter calls of the interpreter's own functions would bury what matters.
_SHORTEST_NS = 20_000


def chrome(profile: Profile) -> dict[str, Any]:
    """Write a trace in Chrome's JSON format (https://perfetto.dev reads it).

    Args:
        profile: what was seen.

    Returns:
        a JSON-ready object, described by ``docs/profile.schema.json``: complete events ``X`` for
        stages, Python functions, native calls and nodes, instant events ``i`` for allocations, a
        counter of allocated bytes; ``otherData`` is the summary. Times in microseconds from the
        call's start.
    """
    main, process = threading.get_native_id(), os.getpid()
    threads = {thread.thread_id: thread.name for thread in profile.threads}
    for node in profile.nodes:
        threads.setdefault(node.thread_id, f"network {node.thread_id}")
    threads[main] = "main"

    def event(phase: str, name: str, category: str, at_ns: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        micros = (at_ns - profile.start_ns) / 1000
        head = {"ph": phase, "name": name, "cat": category, "ts": micros, "pid": process}
        return {**head, "tid": main, **more}

    events: list[dict[str, Any]] = [
        event("M", "process_name", "__metadata", profile.start_ns, args={"name": "asr"})
    ]
    events += [
        event("M", "thread_name", "__metadata", profile.start_ns, tid=i, args={"name": name})
        for i, name in threads.items()
    ]
    for one in sorted(profile.watch.slices, key=lambda one: (one.start_ns, -one.end_ns)):
        long_enough = one.end_ns - one.start_ns >= _SHORTEST_NS
        if one.kind == "stage" or long_enough or one.library not in ("", INTERPRETER):
            args: dict[str, Any] = {"stage": one.stage}
            if one.kind == "native":
                args["library"] = one.library
            if one.library == "rust_fe" and profile.watch.counts_rust:
                args["rust_bytes"] = one.rust_bytes
            duration_us = (one.end_ns - one.start_ns) / 1000
            events.append(event("X", one.name, one.kind, one.start_ns, dur=duration_us, args=args))
    for node in profile.nodes:
        args = {"node": node.name, "output_bytes": node.output_bytes}
        events.append(
            event("X", node.operator, "node", node.start_ns, tid=node.thread_id,
                  dur=node.duration_ns / 1000, args=args)
        )  # fmt: skip
    allocated = 0
    for block in profile.watch.blocks:
        kind = "copy" if block.name in COPYING else "allocation"
        args = {"bytes": block.size_bytes, "where": block.name, "stage": block.stage}
        title = f"{kind} {block.size_bytes} bytes"
        events.append(event("i", title, kind, block.at_ns, s="t", args=args))
        allocated += block.size_bytes
        counted = {"bytes": allocated}
        events.append(event("C", "allocated by Python", "memory", block.at_ns, args=counted))
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": summarise(profile)}


def folded(profile: Profile) -> str:
    """One line per stack with its own microseconds: what flamegraph.pl and inferno read."""
    own: Counter[tuple[str, ...]] = Counter()
    session: tuple[str, ...] = ()
    for one in profile.watch.slices:
        own[one.stack] += one.end_ns - one.start_ns - one.inside_ns
        if one.name == "onnxruntime.run":
            session = one.stack
    for node in profile.nodes:
        if session:
            own[(*session, node.operator)] += node.duration_ns
            own[session] -= node.duration_ns
    lines = (
        f"{';'.join(('asr', *stack))} {ns // 1000}" for stack, ns in sorted(own.items())
        if ns >= 1000
    )  # fmt: skip
    return "".join(f"{line}\n" for line in lines)
