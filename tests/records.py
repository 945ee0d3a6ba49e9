"""Valid records of both kinds, made up from a seed: for tests of whatever reads them."""

import hashlib

import numpy as np

from asr.bench import record, summary
from asr.bench.record import BENCH_SCHEMA, PAIRS_SCHEMA

#: bucket -> seconds of audio.
SECONDS = {"1 s": 0.8, "5 s": 4.9, "15 s": 14.6, "30 s": 29.5, "long": 74.0}
#: Nanoseconds per second of audio; infer leads as in life.
STAGES = {"read": 20_000, "resample": 300, "fbank": 150_000, "lfr": 10_000, "cmvn": 12_000,
          "bind": 4_000, "infer": 2_400_000, "decode": 90_000, "text": 60_000}  # fmt: skip
LOAD = {"python_start": 16e6, "command_line": 4e6, "import": 75e6, "layout": 20e6,
        "front_end": 1e6, "model_read": 3e6, "session_create": 14e6,
        "weight_prepare": 6e6, "unaccounted": 1e5}  # fmt: skip

TOOL = record.Tool("0.1.0", "release", "avx2", "3.11.2", "1.32.0", "2.4.6")
MACHINE = record.Machine("0123456789abcdef", {"arch": "x86_64", "cpu": "Example", "cores": 2})
NOISE = record.Noise([10_000_000, 10_100_000, 10_050_000], 1.01, 0.0, 0.3, 40, 3, "quiet", False)


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def git(n=1):
    """The n-th commit of a made-up history."""
    return record.Git(sha(f"commit {n}")[:40], False, sha(f"commit {n - 1}")[:40])


MODEL = record.Model("tiny-en", "funasr", sha("net"), 3_100_000, sha("recipe"), sha("tokens"))
OPTIONS = record.Options(
    threads=1, pin=[0], warm_up=2, repeat=None, half_width=0.015, language="auto", itn=False,
    seed=0, page_cache="warm", engine="onnxruntime 1.32.0 CPU", cold=5, idle_s=2.0,
    evict_bytes=134_217_728, evicted_model="not mapped", workload=f"default {sha('w')[:16]}",
)  # fmt: skip


class Clock:
    """Durations with noise: sd a share, now and then a spike; factors slow stages down."""

    def __init__(self, seed=0, sd=0.02, factors=None):
        self.rng, self.sd, self.factors = np.random.default_rng(seed), sd, factors or {}

    def ns(self, name, ns):
        spike = 1 + self.rng.exponential(0.4) * (self.rng.random() < 0.03)
        noise = np.exp(self.rng.normal(0, self.sd))
        return int(ns * self.factors.get(name, 1.0) * noise * spike)

    def call(self, audio_s, slower=1.0):
        """(wall_ns, stages_ns) of one call."""
        stages = {s: self.ns(s, ns * audio_s * slower) + 1 for s, ns in STAGES.items()}
        stages["unaccounted"] = self.ns("unaccounted", 30_000)
        return sum(stages.values()), stages

    def load(self):
        return {phase: self.ns(phase, ns) for phase, ns in LOAD.items()}


def bench(seed=0, *, n=1, factors=None, sd=0.02, rounds=12, label=None):
    """A record of one version: commit number n, stages slowed by ``factors`` (stage -> factor)."""
    clock = Clock(seed, sd, factors)
    clips = [record.Clip(b, b, sha(b), s, sha(f"text {b}"), True, 0.0) for b, s in SECONDS.items()]
    samples = []
    for state, count, slower in (
        ("cold", 5, 1.8), ("idle", 3, 1.2), ("evicted", 3, 1.3), ("warm", rounds, 1.0)
    ):  # fmt: skip
        for i in range(count):
            for clip in clips:
                wall, stages = clock.call(clip.audio_s, slower)
                load = clock.load() if state == "cold" else None
                process = sum(load.values()) + wall + 5_000_000 if load else None
                cpu = int(0.98 * (process or wall))
                samples.append(record.Sample(state, clip.id, i, wall, cpu, stages, load, process))
    return record.Bench(
        schema=BENCH_SCHEMA, run_id=sha(f"{seed} {n}")[:16],
        utc=f"2026-01-{n % 28 + 1:02}T12:00:00Z", label=label,
        git=git(n), tool=TOOL, model=MODEL, options=OPTIONS, machine=MACHINE,
        noise=NOISE, clips=clips, samples=samples,
        memory=record.Memory(150_000_000, 140_000_000, 141_000_000, 1_000_000, rounds * 5),
        energy=None, hyperfine=None, summary=summary.summarise(clips, samples),
    )  # fmt: skip


def pair_list(seed=0, *, count=12, factors=None, sd=0.02, buckets=("1 s", "5 s")):
    """ABBA pairs; ``factors`` slow stages or load phases of b."""
    a, b = Clock(seed, sd), Clock(seed + 1000, sd, factors)

    def side(clock, audio_s):
        load = clock.load()
        first = record.Call(*clock.call(audio_s, 1.8))
        warm = [record.Call(*clock.call(audio_s)) for _ in range(5)]
        spent = sum(load.values()) + first.wall_ns + sum(c.wall_ns for c in warm)
        peak = clock.ns("memory", 150_000_000)
        return record.Side(spent + 5_000_000, int(0.98 * spent), peak, load, first, warm)

    found = []
    for i in range(count):
        for bucket in buckets:
            order = "ba" if i % 2 else "ab"
            audio_s = SECONDS[bucket]
            found.append(record.Pair(i, order, bucket, bucket, side(a, audio_s), side(b, audio_s)))
    return found


def pairs(seed=0, *, confirm=None, text_same=True, **options):
    """A record of two versions; ``options`` as of ``pair_list``."""
    taken = pair_list(seed, **options)
    buckets = dict.fromkeys(p.bucket for p in taken)
    clips = [
        record.PairClip(b, b, sha(b), SECONDS[b], sha(f"text {b}"),
                        sha(f"text {b}" if text_same else "other"), text_same, 0.0, 0.0)
        for b in buckets
    ]  # fmt: skip
    peaks = [record.PairMemory(int(np.median(peak)))
             for peak in summary.values(taken, "memory")]  # fmt: skip
    return record.Pairs(
        schema=PAIRS_SCHEMA, run_id=sha(f"pairs {seed}")[:16], utc="2026-01-01T12:00:00Z",
        a=record.Version("base", git(1), TOOL, MODEL),
        b=record.Version("head", git(2), TOOL, MODEL),
        machine=MACHINE, noise=NOISE, options=OPTIONS, clips=clips, pairs=taken, confirm=confirm,
        memory={"a": peaks[0], "b": peaks[1]},
        sizes={side: record.Sizes(4_000_000, 3_100_000) for side in "ab"},
        summary=summary.changes(taken),
    )  # fmt: skip
