"""One run of one version: cold, idle, evicted and warm calls over a workload, and how quiet it was.

Cold calls come first, while no other process of ours holds the files; then resident processes do
the rest.
"""

import json
import random
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.bench import facts, heat, hyperfine, machine, pages, process
from asr.bench.clips import WorkClip, Workload, judged
from asr.bench.energy import Meter
from asr.bench.installs import Install, running
from asr.bench.measure import Contender, Worker
from asr.bench.noise import Listener, spread
from asr.bench.plan import Plan, threads_on, utc_now
from asr.bench.record import (
    BENCH_SCHEMA,
    Bench,
    Clip,
    Energy,
    Memory,
    Noise,
    Options,
    Sample,
    State,
)
from asr.bench.summary import rtf_rows, summarise
from asr.engines.named import DEFAULT_ENGINE

Say = Callable[[str], object]

_RESIDENT = Path(__file__).with_name("resident.py")
#: Warm rounds before the interval is looked at, and between two looks.
_LEAST_ROUNDS, _LOOK_EVERY = 10, 5


@dataclass(frozen=True, slots=True)
class _Calls:
    """All calls of a run, of which the last attempt counts.

    Attributes:
        samples: cold, idle, evicted and warm.
        page_cache: state of the network's pages before cold calls.
        evicted_model: what became of them before evicted calls.
        memory: of the resident process.
        energy: of the warm calls.
        noise: during all of it.
    """

    samples: list[Sample]
    page_cache: Any
    evicted_model: str
    memory: Memory
    energy: Energy | None
    noise: Noise


class Run:
    """Measure one version.

    Args:
        plan: what is asked for.
        workload: the clips.
        say: told what is going on.
        install: whose command is run fresh, and whose engine; the resident process is always this
            very version.
    """

    def __init__(
        self, plan: Plan, workload: Workload, say: Say, install: Install | None = None
    ) -> None:
        self._plan, self._workload, self._say = plan, workload, say
        self._install = install or running()
        self._random = random.Random(plan.seed)  # noqa: S311 - an order, not a secret
        self._texts: dict[str, set[str]] = {clip.id: set() for clip in workload.clips}

    def measure(self) -> Bench:
        """Do it all.

        Raises:
            MissingToolError: a process of ours fails, or hyperfine is not installed.
            LayoutError: the model is none.
        """
        plan, clips = self._plan, self._workload.clips
        told = facts.ask(self._install, plan.model, optimize=plan.optimize)
        program = hyperfine.find() if plan.hyperfine else None
        watch = heat.Watch()
        threads = plan.threads or threads_on(plan.pin)
        wanted = process.Wanted(plan.model, threads, plan.language, plan.itn, plan.optimize)
        calls = self._calls(wanted, repeated=False)
        if calls.noise.class_ == "noisy":
            self._say("noisy: everything is measured once more")
            calls = self._calls(wanted, repeated=True)
        compared = self._hyperfine(program, wanted) if program else None
        found = [judged(c, self._texts[c.id], told.model.network_sha256) for c in clips]
        return Bench(
            schema=BENCH_SCHEMA,
            run_id=secrets.token_hex(8),
            utc=utc_now(),
            label=plan.label,
            git=self._install.git,
            tool=told.tool,
            model=told.model,
            options=Options(
                threads=threads,
                pin=None if plan.pin is None else list(plan.pin),
                warm_up=plan.warm_up,
                repeat=plan.repeat,
                half_width=None if plan.repeat else plan.half_width,
                language=plan.language,
                itn=plan.itn,
                seed=plan.seed,
                page_cache=calls.page_cache,
                engine=told.engine,
                cold=plan.cold,
                idle_s=plan.idle_s,
                evict_bytes=_evict_bytes(),
                evicted_model=calls.evicted_model,
                workload=self._workload.name,
                prepared=told.prepared,
            ),
            machine=machine.here(),
            noise=calls.noise,
            clips=found,
            samples=calls.samples,
            memory=calls.memory,
            energy=calls.energy,
            hyperfine=compared,
            summary=summarise(found, calls.samples),
            heat=watch.finish(),
        )

    def _calls(self, wanted: process.Wanted, *, repeated: bool) -> "_Calls":
        """Everything once, and how quiet it was meanwhile."""
        listener = Listener()
        cache, cold = self._cold(wanted)
        listener.probe()
        with self._resident() as worker:
            pages_were, others = self._idle_and_evicted(worker)
        listener.probe()
        with self._resident() as worker:  # a new one: filling the caches took memory
            start = self._ask(worker, "state")
            warm, energy = self._warm(worker, listener)
            end = self._ask(worker, "state")
        voluntary, involuntary = (
            end[f"{kind}_switches"] - start[f"{kind}_switches"]
            for kind in ("voluntary", "involuntary")
        )
        noise = listener.finish(
            _spreads(warm), switches=(voluntary, involuntary), repeated=repeated
        )
        memory = Memory(
            peak_rss_bytes=end["peak_rss_bytes"],
            rss_start_bytes=start["rss_bytes"],
            rss_end_bytes=end["rss_bytes"],
            growth_bytes=end["rss_bytes"] - start["rss_bytes"],
            calls=len(warm),
        )
        return _Calls([*cold, *others, *warm], cache, pages_were, memory, energy, noise)

    def _resident(self) -> Worker:
        """A process that has the model loaded and has heard every clip."""
        plan = self._plan
        settings = {
            "model": plan.model,
            "threads": plan.threads or threads_on(plan.pin),
            "engine": self._install.engine or DEFAULT_ENGINE,
            "language": plan.language,
            "itn": plan.itn,
            "optimize": plan.optimize,
        }
        arguments = (json.dumps(settings),)
        worker = Worker(Contender("resident process", _RESIDENT, "resident", arguments), plan.pin)
        for clip in self._workload.clips:
            for _ in range(plan.warm_up):
                self._call(worker, clip, "warm", 0)
        return worker

    @staticmethod
    def _ask(worker: Worker, *words: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(worker.run(*words).value)
        return answer

    def _call(self, worker: Worker, clip: WorkClip, state: State, number: int) -> Sample:
        answer = self._ask(worker, "call", str(clip.path))
        self._texts[clip.id].add(answer["text"])
        return Sample(
            state, clip.id, number, answer["wall_ns"], answer["cpu_ns"], answer["stages_ns"]
        )

    def _shuffled(self) -> list[WorkClip]:
        return self._random.sample(self._workload.clips, len(self._workload.clips))

    def _cold(self, wanted: process.Wanted) -> tuple[Any, list[Sample]]:
        """Fresh processes: one with --timings for the phases, one as users start it for the whole.

        The second is needed because --timings, once the text is there, creates further sessions
        to find out what preparing the weights costs.
        """
        from asr.hub import find_model
        from asr.optimize import cache

        plan, samples, states = self._plan, [], set()
        network_folder = find_model(plan.model)
        network = max(network_folder.glob("*.onnx"), key=lambda p: p.stat().st_size)
        process.run(self._install, wanted.arguments(self._workload.clips[0].path), plan.pin)
        # Only now is there a prepared network, if there is to be one.
        folders = (*_library_folders(), network_folder, cache.folder())
        files = list(pages.files_of_a_start(*folders))
        for number in range(plan.cold):
            self._say(f"cold {number + 1}/{plan.cold}")
            for clip in self._shuffled():
                self._forget(files)
                states.add(pages.state(network))
                side, text = process.timed(self._install, wanted, clip.path, 1, plan.pin)
                self._texts[clip.id].add(text)
                self._forget(files)
                whole = process.run(self._install, wanted.arguments(clip.path), plan.pin)
                samples.append(
                    Sample("cold", clip.id, number, side.first.wall_ns, whole.cpu_ns,
                           side.first.stages_ns, side.load_ns, whole.process_ns)
                )  # fmt: skip
        return (states.pop() if len(states) == 1 else "unknown"), samples

    def _hyperfine(self, program: str, wanted: process.Wanted) -> dict[str, Any]:
        self._say("hyperfine")
        clips = self._workload.clips
        clip = next((c for c in clips if c.bucket == "5 s"), clips[0])
        runs = max(10, 2 * self._plan.cold)
        return hyperfine.compare(program, self._install, wanted, clip.path, runs, self._plan.pin)

    def _forget(self, files: Sequence[Path]) -> None:
        if self._plan.drop_page_cache:
            pages.drop(files)

    def _idle_and_evicted(self, worker: Worker) -> tuple[str, list[Sample]]:
        plan, samples, model_pages = self._plan, [], "not measured"
        for number in range(plan.others):
            self._say(f"idle and evicted {number + 1}/{plan.others}")
            for clip in self._shuffled():
                time.sleep(plan.idle_s)
                samples.append(self._call(worker, clip, "idle", number))
                model_pages = self._ask(worker, "evict", str(_evict_bytes()))["model_pages"]
                samples.append(self._call(worker, clip, "evicted", number))
        return model_pages, samples

    def _warm(self, worker: Worker, listener: Listener) -> tuple[list[Sample], Energy | None]:
        """Rounds over all clips until every bucket's interval is narrow, or time is up.

        The noise is probed once on the way; a round that is not counted then refills the caches.
        """
        plan, meter = self._plan, Meter()
        samples: list[Sample] = []
        end_s = time.monotonic() + plan.warm_s
        number = 0
        while not self._is_enough(number, samples, end_s):
            samples += [self._call(worker, clip, "warm", number) for clip in self._shuffled()]
            number += 1
            if number == min(_LEAST_ROUNDS, plan.repeat or _LEAST_ROUNDS) // 2:
                listener.probe()
                for clip in self._workload.clips:
                    self._call(worker, clip, "warm", number)
        joules = meter.joules()
        heard_s = {clip.id: clip.audio_s for clip in self._workload.clips}
        audio_s = sum(heard_s[s.clip] for s in samples)
        if joules is None or meter.source is None:
            return samples, None
        return samples, Energy(joules, meter.source, audio_s)

    def _is_enough(self, rounds: int, samples: Sequence[Sample], end_s: float) -> bool:
        if self._plan.repeat is not None:
            return rounds >= self._plan.repeat
        if rounds < _LEAST_ROUNDS:
            return False
        if time.monotonic() >= end_s:
            return True
        if rounds % _LOOK_EVERY:
            return False
        width = half_width(self._workload.clips, samples)
        self._say(f"warm, {rounds} rounds, half of the interval {100 * width:.1f} %")
        return width <= self._plan.half_width


def half_width(clips: Sequence[WorkClip], warm: Sequence[Sample]) -> float:
    """Half of the widest bucket's 95 % interval of rtf_warm, as a share of it."""
    plain = [Clip(c.id, c.bucket, c.sha256, c.audio_s, "", True, None) for c in clips]
    rows = rtf_rows("rtf_warm", plain, warm)
    widths = [(row["high"] - row["low"]) / 2 / row["median"] for row in rows.values()]
    return float(max(widths))


def _spreads(warm: Sequence[Sample]) -> list[float]:
    by_clip: dict[str, list[float]] = {}
    for sample in warm:
        by_clip.setdefault(sample.clip, []).append(sample.wall_ns)
    return [spread(times) for times in by_clip.values()]


def _evict_bytes() -> int:
    return 4 * pages.last_level_cache_bytes()


def _library_folders() -> list[Path]:
    """This package and the two libraries that make up nearly all of what a start reads."""
    import importlib.util

    specs = [importlib.util.find_spec(name) for name in ("asr", "onnxruntime", "numpy")]
    return [Path(s.origin).parent for s in specs if s is not None and s.origin]
