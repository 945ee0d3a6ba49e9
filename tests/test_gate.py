"""asr.gate: statistics, metrics and the verdict."""

import dataclasses
import math

import numpy as np
import pytest
import records
from scipy.stats import wilcoxon

from asr.bench import record
from asr.bench.stats import signed_rank
from asr.gate import statistics
from asr.gate.budget import Accuracy, Budget, Device, Margins
from asr.gate.findings import Comparison, Finding, Verdict
from asr.gate.metrics import metrics_of, quiet_ns
from asr.gate.verdict import judge

MARGINS = Margins()


# ---------------------------------------------------------------- statistics


@pytest.mark.parametrize("count", [1, 5, 12, 30])
def test_signed_rank_is_the_exact_test(count):
    """The p-value is SciPy's exact one."""
    logs = np.random.default_rng(count).normal(0.01, 0.03, count)
    expected = wilcoxon(logs - 0.005, alternative="greater", method="exact").pvalue
    assert signed_rank(logs.tolist(), 0.005) == pytest.approx(expected, rel=1e-9)


def test_equal_pairs_prove_nothing():
    """Ties share their ranks; pairs exactly at the margin count against an accusation."""
    assert signed_rank([0.02] * 20, 0.02) == 1.0
    assert signed_rank([0.0, 0.0, 0.03], 0.0) == pytest.approx(5 / 8)
    assert signed_rank([], 0.0) == 1.0


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_interval_holds_the_truth_as_often_as_it_says(level):
    """Coverage with heavy tails; never below the level by more than chance allows."""
    generator = np.random.default_rng(3)
    held = [
        found.low <= 0.03 <= found.high
        for found in (
            statistics.estimate((0.03 + 0.02 * generator.standard_t(2, 13)).tolist(), level)
            for _ in range(600)
        )
    ]
    assert level - 0.03 < np.mean(held) < level + 0.05


def test_too_few_pairs_have_no_interval():
    """Five pairs cannot bound anything at 95 %."""
    found = statistics.estimate([0.01, 0.02, 0.01, 0.03, 0.02])
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.centre == pytest.approx(0.018, abs=0.003)


def test_holm_shares_one_error_rate():
    """The smallest p-value against rate / m, the next against rate / (m - 1); stop at a failure."""
    chances = {"a": 0.002, "b": 0.004, "c": 0.009, "d": 0.5}
    assert statistics.holm(chances, 0.01) == {"a"}
    assert statistics.holm({"a": 0.002, "b": 0.003, "c": 0.004}, 0.01) == {"a", "b", "c"}
    assert statistics.holm({}, 0.01) == set()


@pytest.mark.parametrize("count", [14, 24, 80])
def test_what_is_called_detectable_is_detected(count):
    """A slowdown of that size is found in 95 of 100 cases, one half as far beyond much less."""
    generator = np.random.default_rng(5)
    pairs, spread, metrics = count, 0.02, 20
    typical = statistics.Estimate(0.0, 0.0, 0.0, spread / math.sqrt(pairs), pairs)
    size = statistics.detectable(typical, 0.02, metrics, 0.01)

    def share_found(slowdown):
        draws = generator.normal(math.log1p(slowdown), spread, (400, pairs))
        found = [signed_rank(d.tolist(), math.log1p(0.02)) for d in draws]
        return np.mean(np.array(found) <= 0.01 / metrics)

    assert 0.91 <= share_found(size) <= 0.98
    assert share_found(0.02 + (size - 0.02) / 2) < 0.6


def test_pairs_asked_for_bring_the_target_within_reach():
    """After pairs_for pairs of the same noise the target is detectable, not much before."""
    pilot = statistics.Estimate(0.0, 0.0, 0.0, 0.01, 14)
    wanted = statistics.pairs_for(pilot, 0.02, 0.05, 20, 0.01)
    for pairs, below in ((wanted, True), (wanted // 2, False)):
        error = 0.01 * math.sqrt(14 / pairs)
        later = statistics.Estimate(0.0, 0.0, 0.0, error, pairs)
        assert (statistics.detectable(later, 0.02, 20, 0.01) <= 0.0501) is below


def test_nothing_is_detectable_below_the_fewest_pairs():
    """2**n sign patterns must outnumber metrics / rate."""
    assert statistics.fewest_pairs(30, 0.01) == 12
    found = statistics.Estimate(0.0, 0.0, 0.0, 0.001, 11)
    assert statistics.detectable(found, 0.02, 30, 0.01) == math.inf
    assert statistics.detectable(dataclasses.replace(found, n=12), 0.02, 30, 0.01) < 0.04


# ---------------------------------------------------------------- metrics


def calls(*rows):
    return [record.Call(sum(row.values()), row) for row in rows]


def test_a_disturbed_stage_does_not_move_the_others():
    """Stages are taken one by one, from the undisturbed end, and summed."""
    quiet = [{"fbank": 100, "infer": 1000}] * 4
    noisy = [{"fbank": 100, "infer": 9000}] * 12 + [{"fbank": 5000, "infer": 1000}] * 4
    assert quiet_ns(calls(*quiet, *noisy)) == {"fbank": 100, "infer": 1000, "total": 1100}


def test_small_stages_are_not_judged_alone():
    """2 % of the call or 0.5 ms."""
    names = [m.name for m in metrics_of(records.pair_list(), MARGINS.worth)]
    assert "warm/1 s/total" in names
    assert "warm/5 s/infer" in names
    assert "load/import" in names
    assert "memory/peak" in names
    assert not any("resample" in n or "bind" in n for n in names)


# ---------------------------------------------------------------- the verdict


def verdict_of(seed=0, *, factors=None, again="same", count=16, **options):
    """The verdict on fake pairs; the confirming pairs have the same factors unless told."""
    confirm = records.pair_list(
        seed + 500, count=count, factors=factors if again == "same" else again
    )
    pairs = records.pairs(seed, count=count, factors=factors, confirm=confirm, **options)
    return judge([Comparison("parent", pairs)], Budget())


def outcomes(verdict, outcome="regressed"):
    return {f.metric for f in verdict.findings if f.outcome == outcome}


def test_the_same_code_passes():
    """No finding but passes and open questions, exit code 0."""
    verdict = verdict_of()
    assert verdict.exit_code() == 0
    assert set(verdict.counts) <= {"pass", "inconclusive"}
    assert verdict.blames == []


@pytest.mark.parametrize("stage", ["fbank", "infer", "decode"])
def test_a_slower_stage_is_named(stage):
    """+25 % of a stage is a confirmed regression of that stage, exit code 10."""
    verdict = verdict_of(factors={stage: 1.25})
    assert {f"warm/1 s/{stage}", f"warm/5 s/{stage}"} <= outcomes(verdict)
    assert {b.stage for b in verdict.blames} == {stage}
    assert verdict.exit_code(strict=True, require_verdict=True) == 10


def test_blame_adds_up():
    """+11 % in warm RTF, of which fbank 9.6: parts are shares of the whole call before."""
    verdict = verdict_of(factors={"infer": 1.10})
    (blame, _) = verdict.blames
    assert sum(blame.parts.values()) == pytest.approx(blame.change, abs=0.01)
    assert str(blame).startswith(f"+{100 * blame.change:.1f} % in warm RTF at ")
    assert f"of which infer +{100 * blame.parts['infer']:.1f}" in str(blame)


def test_a_guilty_stage_that_regressed_beats_a_larger_drift():
    """fbank regressed by itself; infer merely drifted by more nanoseconds."""
    verdict = verdict_of(factors={"fbank": 1.3, "infer": 1.015})
    assert {b.stage for b in verdict.blames} == {"fbank"}


def test_no_accusation_without_confirmation():
    """Slower in the first pairs alone is an open question that says so."""
    verdict = verdict_of(factors={"infer": 1.25}, again={})
    assert not outcomes(verdict)
    (finding,) = [f for f in verdict.findings if f.metric == "warm/5 s/infer"]
    assert (finding.outcome, finding.confirmed) == ("inconclusive", False)
    assert "not confirmed" in finding.note
    assert verdict.exit_code() == 0
    assert verdict.exit_code(require_verdict=True) == 13


def test_no_accusation_without_a_confirming_run():
    """A record whose confirm is null accuses nobody."""
    pairs = records.pairs(factors={"infer": 1.25}, count=16)
    verdict = judge([Comparison("parent", pairs)], Budget())
    assert not outcomes(verdict)
    assert any("no confirming re-run" in f.note for f in verdict.findings)


def test_a_change_within_the_margin_passes():
    """+1 % of everything, measured well, is let pass."""
    verdict = verdict_of(factors=dict.fromkeys(("read", "fbank", "infer", "text"), 1.01),
                         sd=0.004, count=30)  # fmt: skip
    assert {"warm/1 s/total", "warm/5 s/total"} <= outcomes(verdict, "pass")
    assert verdict.exit_code(require_verdict=True) in (0, 13)


def test_faster_is_improved():
    """The same evidence the other way round."""
    assert "warm/5 s/infer" in outcomes(verdict_of(factors={"infer": 0.8}), "improved")


def test_an_open_question_says_what_would_settle_it():
    """The smallest slowdown these pairs find, and how many more pairs are needed."""
    verdict = verdict_of(factors={"infer": 1.04}, sd=0.15)
    open_ones = [f for f in verdict.findings if f.outcome == "inconclusive"]
    assert open_ones
    assert all(f.more_pairs >= 1 and f.detectable > f.margin for f in open_ones)


def test_twice_the_metrics_share_the_same_error_rate():
    """Evidence that accuses alone does not accuse among forty questions."""
    one = records.pairs(count=7, factors={"infer": 1.6}, buckets=("5 s",), sd=0.002)
    alone = judge([Comparison("parent", one)], Budget(margins=Margins(error_rate=0.5)))
    assert any("slower" in f.note for f in alone.findings)
    among = judge([Comparison("parent", one)], Budget())
    assert not any("slower" in f.note for f in among.findings)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda p: dataclasses.replace(p, pairs=[]), "no pairs"),
        (lambda p: dataclasses.replace(p, b=dataclasses.replace(
            p.b, model=dataclasses.replace(p.b.model, network_sha256="9" * 64))), "models differ"),
    ],
)  # fmt: skip
def test_what_must_not_be_compared_is_not(change, said):
    """Another model is no regression; it is not comparable, and 14 if that was required."""
    verdict = judge([Comparison("parent", change(records.pairs(factors={"infer": 2})))], Budget())
    (finding,) = verdict.findings
    assert finding.outcome == "not_comparable"
    assert said in finding.note
    assert (verdict.exit_code(), verdict.exit_code(require_baseline=True)) == (0, 14)


def test_a_side_that_is_not_there_says_why():
    """A shallow clone has no parent: said, not passed over."""
    verdict = judge([Comparison("parent", None, "git fetch --unshallow")], Budget())
    assert verdict.findings[0].note == "git fetch --unshallow"
    assert verdict.exit_code(require_baseline=True) == 14


def test_another_text_fails_at_any_speed():
    """12, even where everything is faster, and before a regression."""
    for factor in (0.5, 1.5):
        same = {"count": 16, "factors": {"infer": factor}}
        pairs = records.pairs(text_same=False, confirm=records.pair_list(9, **same), **same)
        verdict = judge([Comparison("parent", pairs)], Budget())
        assert verdict.exit_code() == 12
        assert "text" in outcomes(verdict, "text_changed")


def test_more_wrong_characters_fail():
    """A rise of the CER above the lock."""
    pairs = records.pairs()
    clips = [dataclasses.replace(c, cer_b=0.02) for c in pairs.clips]
    changed = dataclasses.replace(pairs, clips=clips)
    assert "cer" in outcomes(judge([Comparison("p", changed)], Budget()), "text_changed")
    lax = Budget(accuracy=Accuracy(cer=0.03))
    assert "cer" in outcomes(judge([Comparison("p", changed)], lax), "pass")


def test_the_workloads_own_texts_are_locked():
    """A record, or a look at the judged version alone, counts as well."""
    bench = records.bench()
    clips = [dataclasses.replace(bench.clips[0], text_as_expected=False), *bench.clips[1:]]
    wrong = dataclasses.replace(bench, clips=clips)
    assert judge([], Budget(), record=wrong).exit_code() == 12
    assert judge([], Budget(), record=bench).exit_code() == 0
    assert judge([], Budget(), locked={"a": True, "b": False}).exit_code() == 12


@pytest.mark.parametrize(("wheel", "code"), [(4_900_000, 0), (5_100_000, 10)])
def test_bytes_need_no_second_look(wheel, code):
    """Sizes are exact."""
    pairs = records.pairs()
    sizes = {**pairs.sizes, "b": record.Sizes(wheel, 3_100_000)}
    changed = dataclasses.replace(pairs, sizes=sizes)
    assert judge([Comparison("parent", changed)], Budget()).exit_code() == code


def device(**promises):
    return Budget(devices=(Device("x", {"arch": "x86_*"}, "tiny-en", promises),))


def test_a_promise_is_held_against_the_upper_bound():
    """Just below the upper bound is broken though the median would keep it; 11."""
    bench = records.bench(sd=0.1)
    row = bench.summary["rtf"]["rtf_warm"]["all"]
    between = (row["median"] + row["high"]) / 2
    assert judge([], device(rtf_warm=between), record=bench).exit_code() == 11
    assert judge([], device(rtf_warm=1.01 * row["high"]), record=bench).exit_code() == 0


@pytest.mark.parametrize(
    "name",
    ["rtf_warm", "rtf_infer", "rtf_first", "rtf_process", "rtf_process/5 s", "peak_rss_mb",
     "network_mb", "wheel_mb"],
)  # fmt: skip
def test_pairs_keep_promises_too(name):
    """Without a record the judged side of the pairs is taken."""
    pairs = [Comparison("parent", records.pairs(count=12))]
    for limit, code in ((1e-9, 11), (1e9, 0)):
        assert judge(pairs, device(**{name: limit})).exit_code() == code


def test_no_promise_for_an_unknown_machine():
    """Said, and no failure."""
    budget = Budget(devices=(Device("x", {"arch": "riscv*"}, "tiny-en", {"rtf_warm": 1e-9}),))
    (finding,) = judge([], budget, record=dataclasses.replace(records.bench(), clips=[])).findings[
        :1
    ]
    assert finding.outcome == "not_comparable"


def test_exit_codes_take_precedence():
    """12, 11, 10, then 15, 14, 13."""
    order = ["text_changed", "over_budget", "regressed"]
    for i, expected in enumerate((12, 11, 10)):
        findings = [Finding("m", "p", outcome, ratio=1.0) for outcome in order[i:]]
        verdict = Verdict("x", findings, unfit=["noisy"])
        assert verdict.exit_code(strict=True) == expected
    open_one = Finding("m", "p", "inconclusive")
    assert Verdict("x", [open_one], unfit=["noisy"]).exit_code(
        strict=True, require_verdict=True, require_baseline=True) == 15  # fmt: skip
    both = Verdict("x", [open_one])
    assert both.exit_code(require_verdict=True, require_baseline=True) == 14
    assert both.exit_code(require_verdict=True) == 13
    assert both.exit_code() == 0


def test_an_unfit_record_is_named():
    """Noise, debug builds, uncommitted changes."""
    pairs = records.pairs()
    tool = dataclasses.replace(pairs.b.tool, profile="debug")
    git = dataclasses.replace(pairs.b.git, dirty=True)
    unfit = dataclasses.replace(
        pairs,
        b=dataclasses.replace(pairs.b, tool=tool, git=git),
        noise=dataclasses.replace(pairs.noise, class_="noisy"),
    )
    verdict = judge([Comparison("parent", unfit)], Budget())
    assert verdict.exit_code(strict=True) == 15
    assert [r.partition(": ")[2] for r in verdict.unfit] == [
        "the machine was noisy", "b is a debug build", "b differs from its commit",
    ]  # fmt: skip
