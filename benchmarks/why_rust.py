"""Measure what Rust bought: each stage against the best NumPy version of it, in one run.

    .venv/bin/python benchmarks/why_rust.py [--pairs 21]

The table of docs/why-rust.md. Worker processes on one core, interleaved pairs, CPU time, one
thread. Both sides of a stage must give the same answer to the stated tolerance, or nothing is
timed.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from asr.bench import machine
from asr.bench.measure import Contender, race

ROOT = Path(__file__).resolve().parents[1]
RATE = 16000
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
Stage = Callable[[], np.ndarray]


def speech(seconds: float) -> np.ndarray:
    """Return golden clips one after another: float32 (num_samples,), full scale +-1.0."""
    import soundfile

    paths = sorted((ROOT / "golden/audio").glob("*.wav"))
    parts = [soundfile.read(path, dtype="float32")[0] for path in paths]
    return np.resize(np.concatenate(parts), round(seconds * RATE)).astype(np.float32)


def front_end():  # noqa: ANN201 - asr is imported in workers only
    """Return the front end of the built-in model."""
    from asr.frontend import FrontEnd
    from asr.hub import DEFAULT_MODEL, find_model
    from asr.layouts import open_layout

    return FrontEnd(open_layout(find_model(DEFAULT_MODEL)).front_end)


def mel_weights() -> np.ndarray:
    """Return Kaldi's 80 triangles, straight in mel: float32 (257, 80)."""
    mel = 1127 * np.log1p(np.arange(257) * (RATE / 512) / 700)
    edges = np.linspace(1127 * np.log1p(20 / 700), 1127 * np.log1p(8000 / 700), 82)
    up = (mel[:, None] - edges[:-2]) / (edges[1] - edges[0])
    down = (edges[2:] - mel[:, None]) / (edges[1] - edges[0])
    weights = np.maximum(np.minimum(up, down), 0)
    weights[256] = 0
    return weights.astype(np.float32)


def numpy_fbank(samples: np.ndarray) -> Stage:
    """All frames at once: strided view, rfft, one matrix product."""
    window = (0.54 - 0.46 * np.cos(2 * np.pi * np.arange(400) / 399)).astype(np.float32)
    weights = mel_weights()

    def run() -> np.ndarray:
        frames = np.lib.stride_tricks.sliding_window_view(samples * np.float32(32768), 400)[::160]
        frames = frames - frames.mean(axis=1, keepdims=True)
        emphasised = frames.copy()
        emphasised[:, 1:] -= np.float32(0.97) * frames[:, :-1]
        emphasised[:, 0] -= np.float32(0.97) * frames[:, 0]
        spectrum = np.fft.rfft(emphasised * window, 512)
        power = spectrum.real**2 + spectrum.imag**2
        return np.log(np.maximum(power @ weights, np.finfo(np.float32).eps))

    return run


def rust_fbank(samples: np.ndarray) -> Stage:
    """Return ours, record checks included."""
    from asr.records import Audio

    stages, audio = front_end(), Audio(samples, RATE, "race")
    return lambda: stages.fbank(audio).values


def numpy_lfr(fbank: np.ndarray) -> Stage:
    """Stack by one fancy index."""

    def run() -> np.ndarray:
        n = len(fbank)
        rows = 6 * np.arange(-(-n // 6))[:, None] + np.arange(-3, 4)
        return fbank[np.clip(rows, 0, n - 1)].reshape(len(rows), 560)

    return run


def rust_lfr(fbank: np.ndarray) -> Stage:
    """Return ours."""
    from asr.records import Features

    stages, features = front_end(), Features(fbank, 0.01)
    return lambda: stages.lfr(features).values


def numpy_cmvn(stacked: np.ndarray) -> Stage:
    """Add and multiply, the second in place."""
    config = front_end().config

    def run() -> np.ndarray:
        out = stacked + config.neg_mean
        out *= config.inv_stddev
        return out

    return run


def rust_cmvn(stacked: np.ndarray) -> Stage:
    """Return ours."""
    from asr.records import Features

    stages, features = front_end(), Features(stacked, 0.06)
    return lambda: stages.cmvn(features).values


def build(stage: str, side: str, seconds: str) -> Callable[[], object]:
    """Return one side of one stage, after checking it against the other."""
    samples = speech(float(seconds))
    fbank = rust_fbank(samples)()
    given = {"fbank": samples, "lfr": fbank, "cmvn": rust_lfr(fbank)()}[stage]
    sides = {s: globals()[f"{s}_{stage}"](given) for s in ("numpy", "rust")}
    difference = float(np.abs(sides["numpy"]() - sides["rust"]()).max())
    if difference > {"fbank": 5e-3, "lfr": 0.0, "cmvn": 1e-5}[stage]:
        raise SystemExit(f"no race: {stage} differs by {difference:.1e}")
    return sides[side]


def main() -> int:
    """Measure every stage at two lengths and print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=21)
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()
    here = Path(__file__)
    print("{cpu}, {backends}, NumPy {numpy}".format(**machine.fields(), numpy=np.__version__))
    print("| stage | audio | NumPy CPU ms | Rust CPU ms | NumPy / Rust (95 %) |")
    print("|---|---|---|---|---|")
    for stage in ("fbank", "lfr", "cmvn"):
        for seconds in ("5.6", "30"):
            sides = [
                Contender(side, here, "build", (stage, side, seconds), environment=THREADS)
                for side in ("rust", "numpy")
            ]
            pairs = race(sides, options.pairs, core=options.core)["numpy"]
            rust, numpy = (np.median([s.cpu_ns for s in p]) / 1e6 for p in (pairs.a, pairs.b))
            ratio = pairs.ratio()
            print(
                f"| {stage} | {seconds} s | {numpy:.3f} | {rust:.3f} | "
                f"{ratio.median:.2f} ({ratio.low:.2f} - {ratio.high:.2f}) |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
