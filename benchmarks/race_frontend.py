"""Race the front ends: fbank, LFR and CMVN of ours and of three peers, a process for each.

    make peers
    PYTHONPATH=. .venv-peers/bin/python benchmarks/race_frontend.py [--json FILE]

CPU time on one thread, rounds interleaved and their order rotated, medians. Before anything is
timed all must give the same features; otherwise there is no race. Exit code 11 when ours needs
more than 2x the time of asrfront, or is less than 10x as fast as funasr-onnx; 13 without a race.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # read when NumPy loads

import argparse  # noqa: E402
import json  # noqa: E402
import sys  # noqa: E402
import wave  # noqa: E402
from collections.abc import Callable  # noqa: E402
from importlib.metadata import version  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import NoReturn  # noqa: E402

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from asr.bench import machine  # noqa: E402
from asr.bench.measure import Contender, race  # noqa: E402
from asr.bench.report import table  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "asr" / "builtin" / "tiny-en"
RATE = 16000
Float32 = NDArray[np.float32]
FrontEnd = Callable[[Float32], Float32]


def ours() -> FrontEnd:
    """Return the path that `Recognizer` takes: three stages, each checked record included."""
    from asr.frontend import FrontEnd as OurFrontEnd
    from asr.layouts import open_layout
    from asr.records import Audio

    front_end = OurFrontEnd(open_layout(MODEL).front_end)

    def run(samples: Float32) -> Float32:
        audio = Audio(samples, RATE, "race")
        return front_end.cmvn(front_end.lfr(front_end.fbank(audio))).values

    return run


def asrfront() -> FrontEnd:
    """Return asrfront's public function; it caches the parsed am.mvn itself."""
    from asrfront import sensevoice

    am_mvn = str(MODEL / "am.mvn")
    return lambda samples: sensevoice.fbank(samples, cmvn=am_mvn)


def wav_frontend() -> "WavFrontend":  # noqa: F821 - imported below
    """Return funasr-onnx's front end object for our model, dither 0."""
    from funasr_onnx.utils.frontend import WavFrontend

    return WavFrontend(str(MODEL / "am.mvn"), lfr_m=7, lfr_n=6, dither=0.0)


def funasr_onnx() -> FrontEnd:
    """Return what funasr-onnx's SenseVoiceSmall runs."""
    front_end = wav_frontend()

    def run(samples: Float32) -> Float32:
        features, _ = front_end.fbank(samples)
        return front_end.lfr_cmvn(features)[0].astype(np.float32)

    return run


def kaldi_native_fbank() -> FrontEnd:
    """Return kaldi-native-fbank, with LFR and CMVN by NumPy indexing, which is cheap."""
    import kaldi_native_fbank as knf

    options = knf.FbankOptions()
    options.frame_opts.dither = 0.0
    options.frame_opts.window_type = "hamming"
    options.mel_opts.num_bins = 80
    neg_mean, inv_stddev = wav_frontend().cmvn.astype(np.float32)

    def run(samples: Float32) -> Float32:
        computer = knf.OnlineFbank(options)
        computer.accept_waveform(RATE, (samples * np.float32(32768)).tolist())
        count = computer.num_frames_ready
        features = np.empty((count, 80), np.float32)
        for i in range(count):
            features[i] = computer.get_frame(i)
        rows = 6 * np.arange(-(-count // 6))[:, None] + np.arange(-3, 4)
        stacked = features[np.clip(rows, 0, count - 1)].reshape(len(rows), 560)
        return (stacked + neg_mean) * inv_stddev

    return run


def void(reason: str) -> NoReturn:
    """End without a verdict."""
    print(f"no race: {reason}")
    sys.exit(13)


def our_version() -> str:
    """Return version and instruction set of ours; a debug build does not race."""
    from asr import _rust_fe

    build = _rust_fe.build_info()
    if build["profile"] != "release":
        void(f"asr._rust_fe is a {build['profile']} build, wanted release")
    return f"{build['version']} {build['backends'][0]}"


CONTENDERS = {
    "asr-rtf": ours,
    "asrfront": asrfront,
    "kaldi-native-fbank": kaldi_native_fbank,
    "funasr-onnx": funasr_onnx,
}


def speech(seconds: float) -> Float32:
    """Return the golden clips one after another, as often as needed; float32, full scale +-1.0."""
    parts = []
    for path in sorted((ROOT / "golden" / "audio").glob("*.wav")):
        with wave.open(str(path)) as clip:
            parts.append(np.frombuffer(clip.readframes(clip.getnframes()), "<i2"))
    samples = np.concatenate(parts).astype(np.float32) / np.float32(32768)
    return np.resize(samples, round(seconds * RATE))


def largest_difference(runners: dict[str, FrontEnd], samples: Float32) -> float:
    """Return the largest difference between any features and those of kaldi-native-fbank."""
    wanted = runners["kaldi-native-fbank"](samples)
    worst = 0.0
    for name, run in runners.items():
        found = run(samples)
        if found.shape != wanted.shape:
            void(f"{name} gives features {found.shape}, wanted {wanted.shape}")
        worst = max(worst, float(np.abs(found - wanted).max()))
    return worst


def worker(name: str, seconds: str) -> Callable[[], None]:
    """What a worker process measures: one front end on so much speech."""
    run, samples = CONTENDERS[name](), speech(float(seconds))

    def once() -> None:
        run(samples)

    return once


def main() -> int:
    """Check, race, print; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, nargs="+", default=[5.6, 30.0])
    parser.add_argument("--pairs", type=int, default=41)
    parser.add_argument("--core", type=int, default=0, help="that all workers share in turn")
    parser.add_argument("--max-vs-asrfront", type=float, default=1.0, metavar="X")
    parser.add_argument("--min-vs-funasr", type=float, default=10.0, metavar="X")
    parser.add_argument("--max-difference", type=float, default=1e-3, help="of features")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every time of every round")
    options = parser.parse_args()

    runners = {name: build() for name, build in CONTENDERS.items()}
    versions = {name: our_version() if name == "asr-rtf" else version(name) for name in runners}
    record = {"machine": machine.fields(), "versions": versions, "clips": []}
    over = False
    print("{cpu}, {cores} cores, Python {python}".format(**record["machine"]))
    for seconds in options.seconds:
        samples = speech(seconds)
        difference = largest_difference(runners, samples)
        if not difference <= options.max_difference:
            void(f"features differ by {difference:.2e}, allowed {options.max_difference}")
        here = Path(__file__).resolve()
        found = race(
            [Contender(name, here, "worker", (name, str(seconds))) for name in CONTENDERS],
            options.pairs,
            core=options.core,
        )
        print(
            f"\n{seconds:g} s of speech, {options.pairs} pairs; "
            f"features equal within {difference:.1e}"
        )
        rows = [["front end", "version", "CPU ms", "ours, CPU ms", "time / ours", "95 % interval"]]
        for name, pairs in found.items():
            ratio = pairs.ratio()
            rows.append(
                [
                    name,
                    versions[name],
                    f"{np.median([s.cpu_ns for s in pairs.b]) / 1e6:.3f}",
                    f"{np.median([s.cpu_ns for s in pairs.a]) / 1e6:.3f}",
                    f"{ratio.median:.2f}",
                    f"{ratio.low:.2f} - {ratio.high:.2f}",
                ]
            )
        print(table(rows))
        vs_asrfront = 1 / found["asrfront"].ratio().median
        vs_funasr = found["funasr-onnx"].ratio().median
        slow = vs_asrfront > options.max_vs_asrfront or vs_funasr < options.min_vs_funasr
        over = over or slow
        print(
            f"ours takes {vs_asrfront:.2f}x asrfront's time "
            f"(at most {options.max_vs_asrfront:g}) and is {vs_funasr:.1f}x as fast as funasr-onnx "
            f"(at least {options.min_vs_funasr:g}): {'TOO SLOW' if slow else 'ok'}"
        )
        record["clips"].append(
            {
                "seconds": seconds,
                "largest_difference": difference,
                "ours_and_theirs_cpu_ns": {
                    name: [[s.cpu_ns for s in pairs.a], [s.cpu_ns for s in pairs.b]]
                    for name, pairs in found.items()
                },
            }
        )
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 11 if over else 0


if __name__ == "__main__":
    sys.exit(main())
