"""A worker process: builds one thing to be measured, then runs it when told.

Run as a script, in any environment, by ``asr.bench.measure``; it needs the standard library only:

    python worker.py CORES FILE.py FUNCTION [ARGUMENT ...]

FUNCTION of FILE.py gets the arguments (strings) and returns a callable. Each line on stdin asks
for one run, with the callable's arguments as a JSON list; the answer is one line of JSON: wall and
CPU nanoseconds, and what the callable returned, if that is a string (a text or a hash to compare).
CORES are the cores to stay on, such as ``0,1``, or ``any``.
"""

import json
import os
import runpy
import sys
import time
from collections.abc import Callable
from functools import partial


def measure_once(run: Callable[[], object]) -> dict[str, object]:
    """Run once between clock reads; CPU time counts all threads of this process."""
    cpu_ns, wall_ns = time.process_time_ns(), time.perf_counter_ns()
    value = run()
    wall_ns = time.perf_counter_ns() - wall_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    return {"wall_ns": wall_ns, "cpu_ns": cpu_ns, "value": value if isinstance(value, str) else ""}


def main(cores: str, file: str, function: str, *arguments: str) -> None:
    """Build, say so, then serve until stdin ends."""
    if cores != "any":
        os.sched_setaffinity(0, set(map(int, cores.split(","))))
    answers = os.fdopen(os.dup(1), "w")  # what the measured code prints must not mix with answers
    os.dup2(2, 1)
    run = runpy.run_path(file)[function](*arguments)
    answers.write("ready\n")
    answers.flush()
    for line in sys.stdin:
        answers.write(json.dumps(measure_once(partial(run, *json.loads(line)))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
