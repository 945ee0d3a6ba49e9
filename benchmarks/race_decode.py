"""Race the decoder: greedy CTC with log-probability and entropy for every row, 97 x 25,055 scores.

    .venv/bin/python benchmarks/race_decode.py [--pairs 21] [--json FILE]

Against the best row-blocked NumPy version (several block sizes are tried, the fastest counts) and
against summing the same matrix once, which no decoder can beat by much. Worker processes on one
core, interleaved pairs, CPU time. Exit code 11 when ours is less than 3x as fast as NumPy or takes
more than 2.5x the time of the sum.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from asr.bench import machine
from asr.bench.measure import Contender, race

ROWS, VOCAB = 97, 25055
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def scores() -> np.ndarray:
    """Make float32 (97, 25055) scores like a network's: noise, blank on two rows of three."""
    values = np.random.default_rng(0).normal(0, 2, (ROWS, VOCAB)).astype(np.float32)
    rng = np.random.default_rng(1)
    best = np.where(np.arange(ROWS) % 3, 0, rng.integers(1, VOCAB, ROWS))
    values[np.arange(ROWS), best] += 15
    return values


def digest(argmax: np.ndarray) -> str:
    """Return a short hash of the best ids, for the harness to compare."""
    return hashlib.sha256(np.asarray(argmax, np.int64).tobytes()).hexdigest()[:12]


def ours() -> Callable[[], str]:
    """Decode and collapse, all eight arrays."""
    from asr import _rust_fe

    values = scores()
    expected = digest(values.argmax(axis=1))

    def run() -> str:
        argmax = _rust_fe.ctc_greedy(values, 0, 4)[0]
        return expected if argmax[0] == values[0].argmax() else "other"

    check = _rust_fe.ctc_greedy(values, 0, 4)[0]
    if digest(check) != expected:
        raise SystemExit("no race: the decoder's best ids are not NumPy's")
    return run


def numpy_statistics(values: np.ndarray, block: int) -> tuple[np.ndarray, ...]:
    """Arg-max, log-probability and entropy of every row, `block` rows at a time."""
    rows = len(values)
    argmax = np.empty(rows, np.int32)
    log_prob = np.empty(rows, np.float32)
    entropy = np.empty(rows, np.float32)
    below = np.empty((block, values.shape[1]), np.float32)
    exps = np.empty_like(below)
    for start in range(0, rows, block):
        part = values[start : start + block]
        n = len(part)
        best = part.argmax(axis=1)
        np.subtract(part, part[np.arange(n), best][:, None], out=below[:n])
        np.exp(below[:n], out=exps[:n])
        total = exps[:n].sum(axis=1)
        weighted = np.einsum("ij,ij->i", below[:n], exps[:n])
        argmax[start : start + n] = best
        log_prob[start : start + n] = -np.log(total)
        entropy[start : start + n] = np.log(total) - weighted / total
    return argmax, log_prob, entropy


def numpy_blocked(block: str) -> Callable[[], str]:
    """Return the NumPy version with so many rows a block."""
    values = scores()
    expected = digest(values.argmax(axis=1))

    def run() -> str:
        argmax, _, _ = numpy_statistics(values, int(block))
        return expected if argmax[0] == values[0].argmax() else "other"

    return run


def sum_once() -> Callable[[], object]:
    """Read the matrix once and add it up."""
    values = scores()
    return lambda: float(values.sum())


def best_block() -> int:
    """Find the block size that is fastest here, by CPU time, best of five."""

    def cpu_ns(block: int) -> int:
        values = scores()
        times = []
        for _ in range(5):
            start = time.process_time_ns()
            numpy_statistics(values, block)
            times.append(time.process_time_ns() - start)
        return min(times)

    return min((1, 2, 4, 8, 16, 32), key=cpu_ns)


def main() -> int:
    """Race, print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--max-vs-sum", type=float, default=2.5, metavar="X")
    parser.add_argument("--min-vs-numpy", type=float, default=3.0, metavar="X")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every sample")
    options = parser.parse_args()

    block = best_block()
    here = Path(__file__)
    blocked, summed = f"NumPy {np.__version__}, blocks of {block}", "sum of the matrix"
    contenders = [
        Contender("asr-rtf", here, "ours", environment=THREADS),
        Contender(blocked, here, "numpy_blocked", (str(block),), environment=THREADS),
        Contender(summed, here, "sum_once", environment=THREADS),
    ]
    found = race(contenders, options.pairs, core=options.core)
    vs_numpy, vs_sum = found[blocked].ratio(), found[summed].ratio()
    print("{cpu}, {cores} cores, {backends}".format(**machine.fields()))
    print(f"{ROWS} x {VOCAB} scores, {options.pairs} interleaved pairs, CPU time, one thread")
    for name, pairs in found.items():
        ratio = pairs.ratio()
        ours_ms = np.median([s.cpu_ns for s in pairs.a]) / 1e6
        print(
            f"{name:<28} {np.median([s.cpu_ns for s in pairs.b]) / 1e6:8.2f} ms, "
            f"ours {ours_ms:.2f} ms, time / ours {ratio.median:.2f} "
            f"({ratio.low:.2f} - {ratio.high:.2f})"
        )
    slow = vs_numpy.median < options.min_vs_numpy or 1 / vs_sum.median > options.max_vs_sum
    print(
        f"ours is {vs_numpy.median:.1f}x as fast as NumPy (at least {options.min_vs_numpy:g}) and "
        f"takes {1 / vs_sum.median:.2f}x the time of the sum (at most {options.max_vs_sum:g}): "
        f"{'TOO SLOW' if slow else 'ok'}"
    )
    if options.json:
        samples = {
            name: {"ours_cpu_ns": [s.cpu_ns for s in p.a], "cpu_ns": [s.cpu_ns for s in p.b]}
            for name, p in found.items()
        }
        options.json.write_text(json.dumps({"machine": machine.fields(), "samples": samples}))
    return 11 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
