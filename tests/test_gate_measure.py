"""asr.gate.measure: pairs until the noise allows a verdict, one more look before an accusation."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import pytest
import records

from asr.bench import versus
from asr.bench.clips import WorkClip, Workload
from asr.bench.facts import Facts
from asr.bench.installs import Install
from asr.gate import priority
from asr.gate.budget import Budget, Margins
from asr.gate.findings import Comparison
from asr.gate.measure import QUICK, Side, compare_all, needed
from asr.gate.metrics import metrics_of
from asr.gate.verdict import judge

MARGINS = Margins()
CLIPS = tuple(
    WorkClip(b, Path(f"{b}.wav"), b, records.sha(b), s, None, {})
    for b, s in records.SECONDS.items()
)
WORKLOAD = Workload("fake", CLIPS)


class Fake:
    """Starts made-up processes: pairs of ``records``, the head's slowed by factors."""

    def __init__(self, factors=None, sd=0.005, fades=10**9):
        self.clocks = {
            "base": records.Clock(1, sd), "head": records.Clock(2, sd, factors),
            "faded": records.Clock(3, sd),
        }  # fmt: skip
        self.started, self.fades = [], fades

    def __call__(self, install, clip):
        self.started.append((install.label, clip.bucket))
        faded = install.label == "head" and len(self.started) > self.fades
        clock = self.clocks["faded" if faded else install.label]
        load = clock.load()
        first = records.record.Call(*clock.call(clip.audio_s, 1.8))
        warm = [records.record.Call(*clock.call(clip.audio_s)) for _ in range(5)]
        return records.record.Side(10**9, 10**9, 10**8, load, first, warm), f"text {clip.id}"


@pytest.fixture
def run(monkeypatch):
    """compare_all with a fake; returns the comparisons and what was said."""
    told = Facts(records.TOOL, records.MODEL, "onnxruntime")
    monkeypatch.setattr(versus.facts, "ask", lambda install, model: told)
    monkeypatch.setattr("asr.bench.noise.probe_ns", lambda: 10**7)

    def go(fake, sides=("parent",), effort=QUICK):
        said = []
        base = Install("base", Path("a"), Path("p"))
        head = Install("head", Path("b"), Path("p"))
        found = compare_all(
            [Side(name, base) for name in sides], head, WORKLOAD, effort, MARGINS, said.append,
            start=fake,
        )  # fmt: skip
        return found, said

    return go


def test_the_same_code_is_measured_once(run):
    """Enough pairs, no confirming re-run, of the effort's clips only."""
    (comparison,), said = run(Fake())
    assert comparison.pairs.confirm is None
    assert {p.bucket for p in comparison.pairs.pairs} == set(QUICK.buckets)
    assert not any("once more" in line for line in said)
    assert judge([comparison], Budget()).exit_code() == 0


def test_what_looks_slower_is_measured_once_more(run):
    """As many confirming pairs; then it is a regression."""
    (comparison,), said = run(Fake({"infer": 1.3}))
    confirm = comparison.pairs.confirm
    assert len(confirm) == len(comparison.pairs.pairs)
    assert any("measured once more" in line and "infer" in line for line in said)
    verdict = judge([comparison], Budget())
    assert (verdict.exit_code(), verdict.blames[0].stage) == (10, "infer")


def test_a_slowdown_that_goes_away_accuses_nobody(run):
    """Slow in the first pairs only: the neighbour's build, say."""
    short = dataclasses.replace(QUICK, most=QUICK.pilot)
    first = 2 * len(QUICK.buckets) * QUICK.pilot + 2
    (comparison,), _ = run(Fake({"infer": 1.3}, fades=first), effort=short)
    verdict = judge([comparison], Budget())
    assert verdict.exit_code() == 0
    assert any(f.note == "slower once, not confirmed" for f in verdict.findings)


def test_nobody_is_accused_before_the_last_comparison(run):
    """Two bases: both are measured first, then both again."""
    fake = Fake({"infer": 1.3})
    found, said = run(fake, ("parent", "reference"))
    assert [line for line in said if line.startswith(("against", "slower"))][:2] == [
        "against parent", "against reference",
    ]  # fmt: skip
    assert all(c.pairs.confirm for c in found)


def test_only_suspicious_clips_are_measured_again(run, monkeypatch):
    """A slow start of the long clip does not cost pairs of the short one."""
    fake = Fake()
    real = fake.__call__

    def slow_when_long(install, clip):
        side, text = real(install, clip)
        if install.label == "head" and clip.bucket == "15 s":
            warm = [
                dataclasses.replace(c, stages_ns={**c.stages_ns, "infer": 2 * c.stages_ns["infer"]})
                for c in side.warm
            ]
            side = dataclasses.replace(side, warm=warm)
        return side, text

    (comparison,), _ = run(slow_when_long)
    assert {p.bucket for p in comparison.pairs.confirm} == {"15 s"}


def test_more_noise_asks_for_more_pairs():
    """By the spread alone: a slowdown does not change how many are needed."""

    def pairs(sd, factors=None):
        found = metrics_of(records.pair_list(3, count=20, sd=sd, factors=factors), MARGINS.worth)
        return needed(found, MARGINS)

    assert pairs(0.002) < pairs(0.03) < pairs(0.10)
    assert pairs(0.03, {"infer": 1.5}) == pytest.approx(pairs(0.03), rel=0.2)


def test_the_effort_is_a_limit(run):
    """However noisy, no more pairs than allowed."""
    (comparison,), _ = run(Fake(sd=0.2))
    assert len(comparison.pairs.pairs) == QUICK.most * len(QUICK.buckets)
    assert sorted({p.round for p in comparison.pairs.pairs}) == list(range(QUICK.most))


def test_a_side_that_is_not_there_costs_nothing(run):
    """It is carried through with its reason."""
    found = compare_all([Side("parent", None, "shallow")], Install("head", Path("b"), Path("p")),
                        WORKLOAD, QUICK, MARGINS, str)  # fmt: skip
    assert found == [Comparison("parent", None, "shallow")]


PRIORITIES = """
import os, subprocess, sys
from asr.gate import priority
def state():
    return os.getpriority(os.PRIO_PROCESS, 0), priority._session()
child = [sys.executable, "-c", "import os; print(os.getpriority(os.PRIO_PROCESS, 0))"]
os.nice(3)
before = state()
with priority.first_in_line() as granted:
    during = int(subprocess.run(child, capture_output=True, check=True).stdout)
print(granted, during, before[0], state() == before)
"""


def test_being_first_in_line_ends():
    """Granted or not, afterwards everything is as it was; children inherit it meanwhile."""
    done = subprocess.run([sys.executable, "-c", PRIORITIES], capture_output=True, text=True,
                          check=True, start_new_session=True)  # fmt: skip
    granted, during, before, restored = done.stdout.split()
    assert during == ("-20" if granted == "True" else before)
    assert restored == "True"


TERMINATED = """
import os, signal
from asr.gate import priority
os.nice(3)
before = os.getpriority(os.PRIO_PROCESS, 0), priority._session()
try:
    with priority.first_in_line():
        os.kill(os.getpid(), signal.SIGTERM)
except SystemExit as stop:
    print(stop.code, (os.getpriority(os.PRIO_PROCESS, 0), priority._session()) == before)
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""


def test_being_terminated_restores_it_too():
    """The session would keep the priority of a process that is gone."""
    done = subprocess.run([sys.executable, "-c", TERMINATED], capture_output=True, text=True,
                          check=True, start_new_session=True)  # fmt: skip
    assert done.stdout.split() == ["143", "True", "True"]


def test_who_may_not_be_first_measures_like_everybody(monkeypatch):
    """No error without the right."""

    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "setpriority", refuse)
    with priority.first_in_line() as granted:
        assert granted is False
