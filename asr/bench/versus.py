"""Two versions side by side: pairs of processes in turns, as many as the noise demands."""

import hashlib
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from asr.bench import facts, machine, process
from asr.bench.clips import WorkClip, Workload, error_rate
from asr.bench.installs import Install
from asr.bench.noise import Listener, spread
from asr.bench.plan import threads_on, utc_now
from asr.bench.record import (
    PAIRS_SCHEMA,
    Change,
    Options,
    Pair,
    PairClip,
    PairMemory,
    Pairs,
    Side,
    Sizes,
    Version,
)
from asr.bench.stats import detectable, mad, signed_rank
from asr.bench.summary import changes, values
from asr.hub import DEFAULT_MODEL

Say = Callable[[str], object]
#: Makes one fresh process of an install hear a clip; tests put a fake here.
Start = Callable[[Install, WorkClip], tuple[Side, str]]
#: Makes one of each hear it, in this order.
StartAll = Callable[[Sequence[Install], WorkClip], list[tuple[Side, str]]]

#: How often chance alone may make a metric look slower, before the confirming re-run.
CHANCE = 0.01

#: With fewer pairs no result is as rare as that.
FEWEST = math.ceil(-math.log2(CHANCE))

#: Pairs per clip from which the noise is estimated; no fewer are taken unless asked for.
PILOT = FEWEST + 1


@dataclass(frozen=True, slots=True)
class Asked:
    """How two versions are compared.

    Attributes:
        model: folder or name; None takes each version's own built-in one.
        threads: of the network; None takes what ``asr transcribe`` would.
        pin: cores that all processes stay on.
        repeat: calls per process; the first is cold.
        language: hint.
        itn: whether to ask for inverse text normalisation.
        pairs: per clip; None takes as many as ``mde`` needs.
        mde: slowdown of a warm call that must not be missed, as a share.
        max_s: no pair is begun later; a confirming re-run may take as long again.
        confirm: whether what looks slower is measured once more.
    """

    model: str | None = None
    threads: int | None = None
    pin: tuple[int, ...] | None = None
    repeat: int = 6
    language: str = "auto"
    itn: bool = False
    pairs: int | None = None
    mde: float = 0.03
    max_s: float = 600.0
    confirm: bool = True


@dataclass(slots=True)
class _Texts:
    """What was heard: clip -> side -> texts."""

    heard: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def add(self, clip: str, side: str, text: str) -> None:
        self.heard.setdefault(clip, {"a": set(), "b": set()})[side].add(text)


def compare(
    a: Install,
    b: Install,
    workload: Workload,
    asked: Asked,
    say: Say,
    *,
    start: Start | None = None,
) -> Pairs:
    """Measure b against a.

    Args:
        a: the base.
        b: the other.
        workload: both hear these clips.
        asked: how.
        say: told what is going on.
        start: what runs one process; None runs real ones, their calls in turns where both versions
            can.

    Raises:
        MissingToolError: a process fails.
    """
    name = asked.model or DEFAULT_MODEL
    facts_a, facts_b = facts.ask(a, name), facts.ask(b, name)
    threads = asked.threads or threads_on(asked.pin)
    wanted = process.Wanted(asked.model, threads, asked.language, asked.itn)

    in_turns = start is None and all(process.takes_turns(install) for install in (a, b))

    def real(install: Install, clip: WorkClip) -> tuple[Side, str]:
        return process.timed(install, wanted, clip.path, asked.repeat, asked.pin)

    def start_all(installs: Sequence[Install], clip: WorkClip) -> list[tuple[Side, str]]:
        if in_turns:
            return process.in_turns(installs, wanted, clip.path, asked.repeat, asked.pin)
        return [(start or real)(install, clip) for install in installs]

    listener, texts = Listener(), _Texts()
    turns = _Turns(a, b, start_all, texts)
    pairs = _enough_pairs(turns, workload.clips, asked, say, listener)
    confirm = None
    suspects = slower(pairs)
    if asked.confirm and suspects:
        clips = _clips_of(suspects, workload.clips)
        say(f"{len(suspects)} metrics look slower: measured once more before that is said")
        rounds = max(p.round for p in pairs) + 1
        confirm = turns.take(clips, range(rounds), end_s=time.monotonic() + asked.max_s, say=say)
    noise = listener.finish(_spreads(pairs), repeated=False)
    peaks = values(_longest(pairs, workload.clips), "memory")
    return Pairs(
        schema=PAIRS_SCHEMA,
        run_id=secrets.token_hex(8),
        utc=utc_now(),
        a=Version(a.label, a.git, facts_a.tool, facts_a.model),
        b=Version(b.label, b.git, facts_b.tool, facts_b.model),
        machine=machine.here(),
        noise=noise,
        options=Options(
            threads=threads,
            pin=None if asked.pin is None else list(asked.pin),
            warm_up=0,
            repeat=asked.repeat,
            half_width=None,
            language=asked.language,
            itn=asked.itn,
            seed=0,
            page_cache="warm",
            engine=" against ".join(dict.fromkeys((facts_a.engine, facts_b.engine))),
            pairs=max(p.round for p in pairs) + 1,
            workload=workload.name,
            prepared=facts_b.prepared,
            in_turns=in_turns,
        ),
        clips=[_pair_clip(clip, texts) for clip in workload.clips],
        pairs=pairs,
        confirm=confirm,
        memory={
            side: PairMemory(round(statistics.median(peak)))
            for side, peak in zip("ab", peaks, strict=True)
        },
        sizes={
            "a": Sizes(a.wheel_bytes, facts_a.model.network_bytes),
            "b": Sizes(b.wheel_bytes, facts_b.model.network_bytes),
        },
        summary=changes(pairs),
    )


@dataclass(frozen=True, slots=True)
class _Turns:
    """Starts processes of both versions."""

    a: Install
    b: Install
    start_all: StartAll
    texts: _Texts

    def take(
        self, clips: Sequence[WorkClip], rounds: Iterable[int], *, end_s: float, say: Say
    ) -> list[Pair]:
        """A pair per clip and round, the order swapped from round to round."""
        pairs: list[Pair] = []
        for number in rounds:
            if number and time.monotonic() > end_s:
                say(f"time is up after {number} pairs per clip")
                break
            say(f"pairs {number + 1}")
            for clip in clips:
                installs = {"a": self.a, "b": self.b}
                order: Literal["ab", "ba"] = "ba" if number % 2 else "ab"
                heard = self.start_all([installs[side] for side in order], clip)
                sides: dict[str, Side] = {}
                for side, (times, text) in zip(order, heard, strict=True):
                    sides[side] = times
                    self.texts.add(clip.id, side, text)
                pairs.append(Pair(number, order, clip.bucket, clip.id, sides["a"], sides["b"]))
        return pairs


def _enough_pairs(
    turns: _Turns, clips: Sequence[WorkClip], asked: Asked, say: Say, listener: Listener
) -> list[Pair]:
    """A pilot, then what its noise says is needed; even numbers, so that each order is as frequent.

    The first process of each side only warms the page cache.
    """
    turns.start_all((turns.a, turns.b), clips[0])
    end_s = time.monotonic() + asked.max_s
    first = PILOT if asked.pairs is None else min(PILOT, asked.pairs)
    pairs = turns.take(clips, range(first), end_s=end_s, say=say)
    listener.probe()
    wanted = asked.pairs if asked.pairs is not None else needed(pairs, asked.mde)
    say(f"{first} pairs per clip show the noise; {wanted} are needed")
    pairs += turns.take(clips, range(first, wanted), end_s=end_s, say=say)
    return pairs


def needed(pilot: Sequence[Pair], mde: float) -> int:
    """Pairs per clip with which a warm call slower by ``mde`` is found, by the pilot's noise.

    The noisiest clip decides. A median of n pairs errs by 1.2533 of their standard deviation over
    the root of n; spikes beyond three robust deviations are cut to that, a median ignores them.
    """
    worst = 0.0
    for bucket in {p.bucket for p in pilot}:
        a, b = values(pilot, "warm", bucket)
        logs = [math.log(y / x) for x, y in zip(a, b, strict=True)]
        middle = statistics.median(logs)
        limit = 3 * 1.4826 * mad(logs)
        cut = [middle + max(-limit, min(limit, v - middle)) for v in logs]
        worst = max(worst, statistics.stdev(cut) if len(cut) > 1 else 0.0)
    pairs = (1.2533 * worst * math.log1p(detectable(1.0)) / math.log1p(mde)) ** 2
    return max(PILOT, 2 * math.ceil(pairs / 2))


def slower(pairs: Sequence[Pair]) -> list[Change]:
    """The metrics that matter and look slower: by chance alone one in a hundred would.

    Of the stages those matter that take 2 % of their call or load, or half a millisecond.
    """
    return _told_apart(pairs, 1)


def faster(pairs: Sequence[Pair]) -> list[Change]:
    """The metrics that matter and look faster, by the same rule."""
    return _told_apart(pairs, -1)


def _told_apart(pairs: Sequence[Pair], sign: int) -> list[Change]:
    def chance(change: Change) -> float:
        a, b = values(pairs, change.metric, change.bucket, change.stage)
        return signed_rank([sign * math.log(y / x) for x, y in zip(a, b, strict=True)])

    found = changes(pairs)
    totals = {(c.metric, c.bucket): c.median_a for c in found if c.stage is None}
    return [c for c in found if matters(c, totals[c.metric, c.bucket]) and chance(c) < CHANCE]


def matters(change: Change, total: float) -> bool:
    """Whether anybody would miss the time; ``total`` is that of its call or load, in ns."""
    return change.stage is None or change.median_a > min(0.02 * total, 500_000)


def confirmed(record: Pairs) -> list[Change]:
    """What was slower in both runs: the only thing that may be called slower.

    Returns:
        the changes of the first run whose confirming re-run agrees.
    """
    if record.confirm is None:
        return []
    again = {(c.metric, c.bucket, c.stage) for c in slower(record.confirm)}
    return [c for c in slower(record.pairs) if (c.metric, c.bucket, c.stage) in again]


def _clips_of(suspects: Sequence[Change], clips: Sequence[WorkClip]) -> list[WorkClip]:
    """The clips whose pairs these metrics come from; load and memory come from all."""
    buckets = {c.bucket for c in suspects}
    return [clip for clip in clips if None in buckets or clip.bucket in buckets]


def _longest(pairs: Sequence[Pair], clips: Sequence[WorkClip]) -> list[Pair]:
    longest = max(clips, key=lambda c: c.audio_s).id
    return [p for p in pairs if p.clip == longest]


def _spreads(pairs: Sequence[Pair]) -> list[float]:
    """Standard deviation over mean of a's warm calls, by clip."""
    found: dict[str, list[float]] = {}
    for pair in pairs:
        found.setdefault(pair.clip, []).extend(c.wall_ns for c in pair.a.warm)
    return [spread(times) for times in found.values()]


def _pair_clip(clip: WorkClip, texts: _Texts) -> PairClip:
    heard_a, heard_b = texts.heard[clip.id]["a"], texts.heard[clip.id]["b"]

    def cer(heard: set[str]) -> float | None:
        return None if clip.words is None else max(error_rate(clip.words, t) for t in heard)

    return PairClip(
        id=clip.id,
        bucket=clip.bucket,
        sha256=clip.sha256,
        audio_s=clip.audio_s,
        text_sha256_a=_sha256(heard_a),
        text_sha256_b=_sha256(heard_b),
        text_same=heard_a == heard_b and len(heard_a) == 1,
        cer_a=cer(heard_a),
        cer_b=cer(heard_b),
    )


def _sha256(texts: set[str]) -> str:
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()
