"""Runs of commits of the past, so that a history need not wait for a year.

Every version is driven as in ``asr bench --against``: fresh processes of ``asr transcribe --json
--timings --repeat``, which old ones know too. All commits take turns, round by round, in another
order each: what the machine does meanwhile hits all of them alike.
"""

import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from asr.bench import facts, machine, process
from asr.bench.clips import WorkClip, Workload, judged
from asr.bench.installs import Install
from asr.bench.noise import Listener, spread
from asr.bench.plan import Plan, threads_on, utc_now
from asr.bench.record import BENCH_SCHEMA, Bench, Memory, Options, Sample, Side
from asr.bench.summary import summarise

Say = Callable[[str], object]
#: Makes one fresh process of an install hear a clip; tests put a fake here.
Start = Callable[[Install, WorkClip], tuple[Side, str]]

LABEL = "backfill"


@dataclass(frozen=True, slots=True)
class Turns:
    """How commits are measured.

    Attributes:
        rounds: runs per commit, a record each.
        processes: fresh processes per clip and run.
        repeat: calls per process; the first is cold.
    """

    rounds: int = 3
    processes: int = 2
    repeat: int = 6


def run(
    installs: Sequence[Install],
    workload: Workload,
    plan: Plan,
    turns: Turns,
    say: Say,
    start: Start | None = None,
) -> Iterator[Bench]:
    """Measure versions in turns.

    Args:
        installs: the versions.
        workload: the clips.
        plan: model, threads, cores, language; the rest of it is not used.
        turns: how often.
        say: told what is going on.
        start: what runs one process; None runs a real one.

    Yields:
        a record as soon as it is measured. Its warm samples have ``cpu_ns`` 0: nobody tells the
        CPU time of a single call of another process.

    Raises:
        MissingToolError: a process fails.
    """
    threads = plan.threads or threads_on(plan.pin)
    wanted = process.Wanted(plan.model, threads, plan.language, plan.itn)

    def real(install: Install, clip: WorkClip) -> tuple[Side, str]:
        return process.timed(install, wanted, clip.path, turns.repeat, plan.pin)

    told = {install.label: facts.ask(install, plan.model) for install in installs}
    order = random.Random(plan.seed)  # noqa: S311 - an order, not a secret
    for number in range(turns.rounds):
        for install in order.sample(list(installs), len(installs)):
            say(f"round {number + 1}/{turns.rounds}: {install.label}")
            one = _Once(install, workload, replace(plan, threads=threads), turns, start or real)
            yield one.measure(told[install.label])


class _Once:
    """One run of one version."""

    def __init__(
        self, install: Install, workload: Workload, plan: Plan, turns: Turns, start: Start
    ) -> None:
        self._install, self._workload, self._plan = install, workload, plan
        self._turns, self._start = turns, start

    def measure(self, told: facts.Facts) -> Bench:
        listener = Listener()
        samples: list[Sample] = []
        peaks: list[int] = []
        texts: dict[str, set[str]] = {}
        for number in range(self._turns.processes):
            for clip in self._workload.clips:
                side, text = self._start(self._install, clip)
                samples += _samples(side, clip.id, number)
                peaks.append(side.peak_rss_bytes)
                texts.setdefault(clip.id, set()).add(text)
        warm = [s for s in samples if s.state == "warm"]
        spreads = [spread([s.wall_ns for s in warm if s.clip == c]) for c in texts]
        clips = [judged(c, texts[c.id], told.model.network_sha256) for c in self._workload.clips]
        peak = max(peaks)
        plan = self._plan
        return Bench(
            schema=BENCH_SCHEMA,
            run_id=secrets.token_hex(8),
            utc=utc_now(),
            label=LABEL,
            git=self._install.git,
            tool=told.tool,
            model=told.model,
            options=Options(
                threads=plan.threads or 1,
                pin=None if plan.pin is None else list(plan.pin),
                warm_up=1,
                repeat=self._turns.repeat,
                half_width=None,
                language=plan.language,
                itn=plan.itn,
                seed=plan.seed,
                page_cache="unknown",
                engine=told.engine,
                cold=self._turns.processes,
                workload=self._workload.name,
            ),
            machine=machine.here(),
            noise=listener.finish(spreads, switches=(0, 0), repeated=False),
            clips=clips,
            samples=samples,
            memory=Memory(peak, peak, peak, 0, 0),
            energy=None,
            hyperfine=None,
            summary=summarise(clips, samples),
        )


def _samples(side: Side, clip: str, number: int) -> list[Sample]:
    cold = Sample(
        "cold", clip, number, side.first.wall_ns, side.cpu_ns, side.first.stages_ns,
        side.load_ns, side.process_ns,
    )  # fmt: skip
    return [cold, *(Sample("warm", clip, number, c.wall_ns, 0, c.stages_ns) for c in side.warm)]
