"""A fresh process from nothing to a first text: run by rows.py in each contender's environment.

    python fresh.py WORKER.py FILE MODEL THREADS [HOW]

Prints one JSON object: nanoseconds of wall and CPU time of the imports, the load and the first
call, and when the text was there, on the clock that all processes of a machine share.
"""

import importlib
import json
import runpy
import sys
import time


def main(worker: str, path: str, *loaded: str) -> None:
    """Import, load, hear, tell."""
    offered = runpy.run_path(worker)
    marks = [(time.perf_counter_ns(), time.process_time_ns())]

    def mark() -> None:
        marks.append((time.perf_counter_ns(), time.process_time_ns()))

    for module in offered["IMPORTS"]:
        importlib.import_module(module)
    mark()
    run = offered["warm"](*loaded)
    mark()
    text = run(path)
    mark()
    spans = zip(("imports", "load", "first"), marks, marks[1:], strict=False)
    found = {name: {"wall_ns": b[0] - a[0], "cpu_ns": b[1] - a[1]} for name, a, b in spans} | {
        "text_at_ns": marks[-1][0],
        "text": text,
    }
    sys.__stdout__.write("\n" + json.dumps(found) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
