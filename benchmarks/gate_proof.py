"""Prove the gate: plant real regressions and see them caught, plant none and hear nothing.

    python benchmarks/gate_proof.py [--runs 20] [--only NAME ...] [--core N] [--work FOLDER]
        [--write docs/gate-proof.md]

Every run is what ``asr gate`` does on one length of clip: measure, accuse, measure again, judge.
The judged side is a copy of the base with a plant from benchmarks/gate_plants. Results are kept
in build/gate-proof/results.jsonl: a run that is there is not repeated, so the proof can be stopped
and taken up again; another machine, or other code that measures and judges, starts a new one.
"""

import argparse
import datetime
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import gate_simulation

from asr.bench import clips, installs, machine, versus
from asr.bench.record import TOTAL, Pairs, read_pairs, write
from asr.gate.budget import Budget
from asr.gate.measure import QUICK, Effort, Side, compare_all
from asr.gate.metrics import metrics_of, quiet_ns
from asr.gate.priority import first_in_line
from asr.gate.verdict import judge

ROOT = Path(__file__).parent.parent
PLANTS = Path(__file__).parent / "gate_plants"
BUDGET = Budget()
BUCKET = "15 s"
SAME = "same code, another load on one core"


@dataclass(frozen=True, slots=True)
class Plant:
    """A regression: what wastes how much of which stage.

    Attributes:
        kind: as benchmarks/gate_plants knows it.
        stage: that must be named.
        share: of the time of ``of``.
        of: the stage, or the whole call.
    """

    kind: str
    stage: str
    share: float = 0.0
    of: str = TOTAL

    @property
    def name(self) -> str:
        """For the table."""
        if self.kind == "threads":
            return "threads in infer: two on one core"
        what = "the call" if self.of == TOTAL else self.of
        return f"{self.kind} in {self.stage}: +{100 * self.share:.0f} % of {what}"


SCENARIOS = (
    Plant("sleep", "infer", 0.05),
    Plant("copy", "fbank", 0.05),
    Plant("write", "cmvn", 0.05),
    Plant("threads", "infer"),
    Plant("copy", "read", 0.10, "read"),
    Plant("copy", "fbank", 0.10, "fbank"),
    Plant("copy", "infer", 0.10, "infer"),
    Plant("copy", "text", 0.10, "text"),
)


class Proof:
    """The two sides, and what has been found so far.

    Args:
        work: folder of the results.
        core: that is measured on.
    """

    def __init__(self, work: Path, core: int) -> None:
        work.mkdir(parents=True, exist_ok=True)
        self.work = work
        self.core = core
        self.a = installs.snapshot(work / "a", "base")
        self.b = installs.snapshot(work / "b", "head")
        (work / "clips").mkdir(exist_ok=True)
        workload = clips.load(clips.DEFAULT, work / "clips")
        chosen = tuple(c for c in workload.clips if c.bucket == BUCKET)
        self.workload = clips.Workload(workload.name, chosen)
        state = installs.git_state(ROOT)
        self.commit = state.sha[:10] if state else "unknown"
        self.key = f"{method()} {machine.fingerprint()}"
        self.file = work / "results.jsonl"

    def results(self) -> list[dict]:
        """Those of this code and this machine."""
        if not self.file.exists():
            return []
        rows = [json.loads(line) for line in self.file.read_text().splitlines()]
        return [row for row in rows if row["key"] == self.key]

    def run(self, name: str, number: int, plant: Plant | None) -> dict:
        """One run of the gate."""
        start_s = time.monotonic()
        environment = {"PYTHONPATH": str(PLANTS), "ASR_PLANT": ""}
        base = replace(self.a, environment=environment)
        head = replace(self.b, environment=environment)
        effort = replace(QUICK, buckets=(BUCKET,), pin=(self.core,))
        size_ns = 0
        if plant is not None:
            size_ns = round(plant.share * self.usual_ns(base, effort)[plant.of])
            told = f"{plant.kind} {plant.stage} {size_ns}"
            head = replace(head, environment={**environment, "ASR_PLANT": told})
        comparisons = compare_all(
            [Side("base", base)], head, self.workload, effort, BUDGET.margins, lambda _: None
        )
        verdict = judge(comparisons, BUDGET)
        (comparison,) = comparisons
        assert comparison.pairs is not None
        if plant is None:
            write(comparison.pairs, self.work / f"same-{number:02}.json")
        regressed = [f for f in verdict.findings if f.outcome == "regressed"]
        total = next(f for f in verdict.findings if f.metric == f"warm/{BUCKET}/{TOTAL}")
        row = {
            "key": self.key,
            "name": name,
            "run": number,
            "planted_ns": size_ns,
            "regressed": [f.metric for f in regressed],
            "named": verdict.blames[0].stage if verdict.blames else None,
            "blame": str(verdict.blames[0]) if verdict.blames else "",
            "inconclusive": [f.metric for f in verdict.findings if f.outcome == "inconclusive"],
            "total": total.ratio,
            "pairs": total.pairs,
            "confirmed_pairs": len(comparison.pairs.confirm or []),
            "detectable": total.detectable,
            "load_1min": comparison.pairs.noise.load_1min,
            "seconds": time.monotonic() - start_s,
            "utc": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def usual_ns(self, base: installs.Install, effort: Effort) -> dict[str, float]:
        """Each stage of an undisturbed call of the base: what plants are shares of."""
        kept = self.work / "usual.json"
        if kept.exists():
            return json.loads(kept.read_text())
        asked = versus.Asked(threads=1, pin=effort.pin, repeat=20, pairs=4, confirm=False)
        with first_in_line():
            pairs = versus.compare(base, base, self.workload, asked, lambda _: None)
        rows = [quiet_ns(side.warm) for pair in pairs.pairs for side in (pair.a, pair.b)]
        found = {name: median(row[name] for row in rows) for name in rows[0]}
        kept.write_text(json.dumps(found))
        return found


def method() -> str:
    """A hash of the code that measures and judges."""
    package = ROOT / "asr"
    files = [
        *package.glob("gate/*.py"),
        package / "bench" / "versus.py",
        package / "bench" / "process.py",
        PLANTS / "sitecustomize.py",
    ]
    data = b"".join(path.read_bytes() for path in sorted(files))
    return hashlib.sha256(data).hexdigest()[:16]


@contextmanager
def another_load() -> Iterator[None]:
    """A process that never rests, wherever the system puts it.

    In a session of its own: in ours it would be first in line beside what is measured.
    """
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def prove(proof: Proof, runs: int, only: list[str]) -> None:
    """Run what is missing, round by round, so that a stopped proof has some of everything."""
    wanted = [(SAME, None), *((plant.name, plant) for plant in SCENARIOS)]
    for number in range(runs):
        for name, plant in wanted:
            if only and not any(word in name for word in only):
                continue
            if any((r["name"], r["run"]) == (name, number) for r in proof.results()):
                continue
            if plant is None:
                with another_load():
                    row = proof.run(name, number, plant)
            else:
                row = proof.run(name, number, plant)
            told = row["blame"] or ", ".join(row["regressed"]) or "no alarm"
            print(f"{number + 1}/{runs} {name}: {told} ({row['seconds']:.0f} s)", flush=True)


def page(proof: Proof, draws: int) -> str:
    """docs/gate-proof.md."""
    rows = proof.results()
    plants = {p.name: p for p in SCENARIOS}
    lines = [["planted", "size", "runs", "caught", "stage named", "call became", "pairs"]]
    for name, plant in plants.items():
        mine = [r for r in rows if r["name"] == name]
        if not mine:
            continue
        caught = [r for r in mine if any(m.startswith("warm/") for m in r["regressed"])]
        named = [r for r in caught if r["named"] == plant.stage]
        ratio = median(r["total"] for r in mine)
        size = f"{mine[0]['planted_ns'] / 1e3:.0f} µs" if mine[0]["planted_ns"] else "-"
        lines.append(
            [
                name, size, str(len(mine)), str(len(caught)), str(len(named)),
                f"{100 * (ratio - 1):+.1f} %", f"{min(r['pairs'] for r in mine)} to "
                f"{max(r['pairs'] for r in mine)}",
            ]
        )  # fmt: skip
    same = [r for r in rows if r["name"] == SAME]
    alarms = sum(bool(r["regressed"]) for r in same)
    records = [read_pairs(proof.work / f"same-{r['run']:02}.json") for r in same]
    fields = machine.fields()
    told = records[0].b.tool if records else None
    versions = (
        f"asr {told.version}, {told.backend}, ONNX Runtime {told.onnxruntime}, NumPy {told.numpy}, "
        f"Python {told.python}"
        if told
        else ""
    )
    text = [
        "# The gate, proved",
        "",
        "Made by `make gate-proof`; not edited by hand. What the words mean: [gate.md](gate.md).",
        "",
        f"{datetime.datetime.now(datetime.timezone.utc).date()}, {fields['cpu']}, "
        f"{fields['cores']} cores, {fields['memory_gib']} GiB, Linux {fields['kernel']}; "
        f"{versions}.",
        f"Load average during the runs: {_range(rows, 'load_1min')}. One run takes "
        f"{_range(rows, 'seconds')} s. Bucket {BUCKET}, one core.",
        "",
        "## Planted regressions",
        "",
        "A run counts as caught when a warm metric is a confirmed regression, exit code 10.",
        "",
        *_markdown(lines),
        "",
        "## The same code on both sides",
        "",
        f"- live, with another load on one core: {alarms} alarms in {len(same)} runs "
        f"({sum(r['confirmed_pairs'] > 0 for r in same)} measured again); "
        f"pairs find {_percents(same)} of the call or more.",
    ]
    if records:
        pooled = _pool(records)
        found = metrics_of(pooled.pairs, BUDGET.margins.worth)
        first, confirmed = gate_simulation.false_alarms(found, QUICK.pilot, draws)
        bound = 100 * gate_simulation.upper_bound(confirmed, draws)
        text.append(
            f"- {draws} re-draws of the {len(pooled.pairs)} recorded pairs, {QUICK.pilot} to a "
            f"verdict of {len(found)} metrics: {first} accused, {confirmed} alarms: at most "
            f"{bound:.2f} % (upper 95 % bound)."
        )
        text += [
            "",
            "## Which of a process's calls to take",
            "",
            "Spread of b / a from pair to pair in the same records, in %, by quantile of the warm",
            "calls. The gate takes 10 %.",
            "",
            "```text",
            gate_simulation.spreads(pooled.pairs),
            "```",
        ]
    return "\n".join(text) + "\n"


def _pool(records: list[Pairs]) -> Pairs:
    return replace(records[0], pairs=[p for r in records for p in r.pairs])


def _range(rows: list[dict], key: str) -> str:
    values = [r[key] for r in rows]
    return f"{min(values):.0f} to {max(values):.0f}" if values else "-"


def _percents(rows: list[dict]) -> str:
    values = [100 * r["detectable"] for r in rows if r["detectable"]]
    return f"{min(values):.1f} to {max(values):.1f} %" if values else "-"


def _markdown(rows: list[list[str]]) -> list[str]:
    head, *rest = rows
    return [
        f"| {' | '.join(head)} |",
        "|---|" + "---:|" * (len(head) - 1),
        *(f"| {' | '.join(row)} |" for row in rest),
    ]


def main() -> None:
    """Prove, then write or print the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=[], metavar="WORD")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "gate-proof")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), metavar="N")
    parser.add_argument("--write", type=Path, metavar="FILE")
    options = parser.parse_args()
    proof = Proof(options.work, options.core)
    prove(proof, options.runs, options.only)
    text = page(proof, options.draws)
    if options.write:
        options.write.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
