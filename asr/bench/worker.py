"""A worker process: builds one thing to be measured, then runs it when told.

Run as a script, in any environment, by ``asr.bench.measure``; it needs the standard library only:

    python worker.py CORE FILE.py FUNCTION [ARGUMENT ...]

FUNCTION of FILE.py gets the arguments (strings) and returns a callable without arguments. Each
line on stdin asks for one run; the answer is one line of JSON: wall and CPU nanoseconds, and what
the callable returned, if that is a string (a text or a hash to compare). CORE is a core number to
stay on, or ``any``.
"""

import json
import os
import runpy
import sys
import time
from collections.abc import Callable


def measure_once(run: Callable[[], object]) -> dict[str, object]:
    """Run once between clock reads; CPU time counts all threads of this process."""
    cpu_ns, wall_ns = time.process_time_ns(), time.perf_counter_ns()
    value = run()
    wall_ns = time.perf_counter_ns() - wall_ns
    cpu_ns = time.process_time_ns() - cpu_ns
    return {"wall_ns": wall_ns, "cpu_ns": cpu_ns, "value": value if isinstance(value, str) else ""}


def main(core: str, file: str, function: str, *arguments: str) -> None:
    """Build, say so, then serve until stdin ends."""
    if core != "any":
        os.sched_setaffinity(0, {int(core)})
    answers = os.fdopen(os.dup(1), "w")  # what the measured code prints must not mix with answers
    os.dup2(2, 1)
    run = runpy.run_path(file)[function](*arguments)
    answers.write("ready\n")
    answers.flush()
    for _ in sys.stdin:
        answers.write(json.dumps(measure_once(run)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
