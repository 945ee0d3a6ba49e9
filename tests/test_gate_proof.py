"""benchmarks/gate_proof, gate_simulation, gate_plants: the proof itself can fail."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import records
from scipy.stats import beta

from asr.bench import record
from asr.gate.budget import Margins
from asr.gate.metrics import metrics_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
import gate_proof  # noqa: E402
import gate_simulation as simulation  # noqa: E402

FOUND = metrics_of(records.pair_list(3, count=24, sd=0.01), simulation.MARGINS.worth)
NS = 30_000_000


@pytest.mark.parametrize(
    ("kind", "stage"), [("sleep", "infer"), ("copy", "fbank"), ("write", "cmvn")]
)
def test_a_plant_wastes_the_time_in_its_stage(kind, stage, asr_process, short_clip):
    """30 ms in that stage of every call, nowhere else; the text stays the same."""
    done = asr_process(
        "transcribe", short_clip, "--json", "--timings", "--repeat", "3", "--threads", "1",
        env={"PYTHONPATH": str(gate_proof.PLANTS), "ASR_PLANT": f"{kind} {stage} {NS}"},
    )  # fmt: skip
    told = json.loads(done.out)
    calls = [sample["stages"] for sample in told["timings"]["samples"]]
    assert told["text"] == "seven"
    assert all(call[stage] >= NS / 1e6 for call in calls)
    others = set(calls[0]) - {stage}
    assert min(max(call[name] for name in others) for call in calls) < NS / 1e6


def test_a_thread_too_many_is_planted(asr_process, short_clip):
    """What was asked for plus one."""
    done = asr_process(
        "transcribe", short_clip, "--json", "--timings", "--threads", "1",
        env={"PYTHONPATH": str(gate_proof.PLANTS), "ASR_PLANT": "threads infer 0"},
    )  # fmt: skip
    assert json.loads(done.out)["timings"]["threads"] == 2


@pytest.mark.parametrize(("alarms", "draws"), [(0, 1000), (4, 1000), (10, 1000), (1, 20)])
def test_the_upper_bound_is_clopper_and_pearsons(alarms, draws):
    """Against SciPy's beta distribution."""
    expected = beta.ppf(0.95, alarms + 1, draws - alarms)
    assert simulation.upper_bound(alarms, draws) == pytest.approx(expected, rel=1e-6)


def test_a_redraw_swaps_sides_by_a_coin():
    """Every drawn pair is a recorded one, as often the other way round; buckets stay together."""
    drawn = simulation.redraw(FOUND, 500, np.random.default_rng(1))
    ways = []
    for old, new in zip(FOUND, drawn, strict=True):
        known = set(zip(old.a, old.b, strict=True))
        pairs = list(zip(new.a, new.b, strict=True))
        assert all(p in known or p[::-1] in known for p in pairs)
        ways.append([p in known for p in pairs])
    assert 200 < sum(ways[0]) < 300
    assert ways[0] == ways[1]


def test_false_alarms_are_counted(monkeypatch):
    """None of the same code; many where nothing is let pass and every second alarm is fine."""
    assert simulation.false_alarms(FOUND, 14, 60) == (0, 0)
    nothing = dict.fromkeys(("total", "stage", "cold", "load", "memory"), 0.0)
    monkeypatch.setattr(simulation, "MARGINS", Margins(**nothing, error_rate=0.9))
    first, confirmed = simulation.false_alarms(FOUND, 14, 60)
    assert first > 10
    assert confirmed < first


def test_a_planted_slowdown_is_caught_and_named():
    """In re-draws of quiet pairs; a slowdown within the margin is not."""
    assert simulation.caught(FOUND, "5 s", "infer", 0.10, "infer", 20, 20) == (20, 20)
    assert simulation.caught(FOUND, "5 s", "infer", 0.01, "infer", 20, 20) == (0, 0)


def test_the_page_tells_what_was_found(tmp_path, monkeypatch):
    """Runs, catches, names; live alarms; re-draws; only rows of this code."""
    proof = object.__new__(gate_proof.Proof)
    proof.work, proof.file, proof.key = tmp_path, tmp_path / "results.jsonl", "k"
    plant = gate_proof.SCENARIOS[0]
    row = {"key": "k", "planted_ns": 680_000, "inconclusive": [], "total": 1.052, "pairs": 20,
           "confirmed_pairs": 20, "detectable": 0.04, "load_1min": 2.0, "seconds": 50.0,
           "regressed": [], "named": None, "blame": ""}  # fmt: skip
    guilty = {"regressed": ["warm/15 s/total"], "named": plant.stage}
    rows = [
        {**row, "name": plant.name, "run": 0, **guilty},
        {**row, "name": plant.name, "run": 1, **guilty, "named": "read"},
        {**row, "name": plant.name, "run": 2},
        {**row, "name": plant.name, "run": 3, **guilty, "key": "other code"},
        {**row, "name": gate_proof.SAME, "run": 0, "regressed": ["cold/15 s/total"]},
    ]
    proof.file.write_text("".join(json.dumps(r) + "\n" for r in rows))
    record.write(records.pairs(2, count=14), tmp_path / "same-00.json")
    text = gate_proof.page(proof, 20)
    assert f"| {plant.name} | 680 µs | 3 | 2 | 1 | +5.2 % | 20 to 20 |" in text
    assert "1 alarms in 1 runs" in text
    assert "20 re-draws of the 28 recorded pairs" in text
