"""asr history: planted steps are found and explained, nothing else is; nothing gets lost."""

import csv
import dataclasses
import datetime
import functools
import io
import json
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pytest
import records

from asr.bench import record
from asr.bench.installs import Install
from asr.bench.plan import Plan
from asr.errors import RecordError, SystemAccessError, UsageError
from asr.history import backfill, keep, steps, store
from asr.history.index import Index
from asr.history.potts import fit, scale_of

ROOT = Path(__file__).parent.parent
TOTAL = "warm/5 s/total"


@functools.cache
def _made(n, seed, factors):
    return records.bench(seed, n=n, factors=dict(factors), sd=0.01, rounds=6)


def run(n, seed=None, *, factors=None, **other):
    """The n-th commit's run, a day after the one before."""
    made = _made(n, n if seed is None else seed, tuple((factors or {}).items()))
    day = datetime.date(2026, 1, 1) + datetime.timedelta(n)
    return dataclasses.replace(made, utc=f"{day}T12:00:00Z", **other)


def slower(n, at, stage="fbank", factor=3.0):
    return run(n, factors={stage: factor} if n >= at else None)


def keep_all(tmp_path, runs):
    kept = store.Folder(tmp_path / "history")
    keep.add_runs(kept, list(runs))
    return kept


def steps_of(tmp_path, runs, pattern=TOTAL):
    return steps.look(Index(keep_all(tmp_path, runs)), pattern)


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """A store in which commit 5 made fbank three times as slow: +11 % of the whole."""
    return keep_all(tmp_path_factory.mktemp("stepped"), (slower(n, 5) for n in range(9)))


def test_a_planted_step_has_its_commits_size_interval_and_stage(stepped):
    """Two bounds around the truth, the range of exactly one commit, and fbank as the culprit."""
    (step,) = steps.look(Index(stepped), TOTAL).steps
    assert step.commits == f"{records.git(4).sha[:9]}..{records.git(5).sha[:9]}"
    truth = 1 + 2 * records.STAGES["fbank"] / sum(records.STAGES.values())
    assert step.low - 0.01 < truth < step.high + 0.01
    assert step.low <= step.ratio <= step.high
    assert abs(step.ratio - truth) < 0.02
    assert step.runs == (5, 4)
    assert next(iter(step.parts)) == "fbank"
    assert abs(step.parts["fbank"] - (truth - 1)) < 0.02
    assert all(abs(part) < 0.02 for stage, part in step.parts.items() if stage != "fbank")


def test_usual_metrics_name_every_length_and_no_other(stepped):
    """The step shows in warm and cold calls of all lengths; load, memory, size have none."""
    found = {step.metric for step in steps.look(Index(stepped)).steps}
    assert found >= {f"warm/{b}/total" for b in records.SECONDS}
    assert not {m for m in found if m.split("/")[0] in ("load", "memory", "size")}


@pytest.mark.parametrize("at", [3, 6])
def test_three_runs_are_enough(tmp_path, at):
    """On either side."""
    (step,) = steps_of(tmp_path, (slower(n, at) for n in range(9))).steps
    assert step.runs == (at, 9 - at)


@pytest.mark.parametrize("at", [2, 7, 9])
def test_two_runs_are_not(tmp_path, at):
    """Nor is none."""
    assert steps_of(tmp_path, (slower(n, at) for n in range(9))).steps == []


def test_two_disturbed_runs_are_no_step(tmp_path):
    """A level does not follow runs that somebody disturbed, though they were twice as slow."""
    factors = dict.fromkeys(records.STAGES, 2.0)
    runs = (run(n, factors=factors if n in (4, 5) else None) for n in range(10))
    assert steps_of(tmp_path, runs).steps == []


def test_steps_below_the_smallest_are_not_told(tmp_path):
    """2 % is there, is found when asked for, and is not told by itself."""
    runs = [slower(n, 6, "infer", 1.025) for n in range(12)]
    quiet = [dataclasses.replace(r, samples=[]) for r in runs]
    index = Index(keep_all(tmp_path, quiet))
    assert steps.look(index, TOTAL).steps == []
    assert len(steps.look(index, TOTAL, 0.01).steps) == 1


def test_steady_histories_have_no_steps():
    """In 200 series of 30 runs without a step, 2 % noise and spikes, at most 2 % show one."""
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(200):
        y = rng.normal(0, 0.02, 30) + rng.exponential(0.3, 30) * (rng.random(30) < 0.05)
        wrong += bool(fit(y, [scale_of(y)] * 30))
    assert wrong <= 4


def test_the_fit_is_the_best_of_all():
    """As cheap as the cheapest of all segmentations, tried one by one."""
    from itertools import combinations, pairwise
    from math import log

    from asr.history import potts

    rng = np.random.default_rng(3)

    def price(y, w, places):
        edges = [0, *places, len(y)]
        total = 2.5 * log(len(y)) * len(places)
        for a, b in pairwise(edges):
            costs = np.minimum(w[a:b] * np.abs(y[a:b, None] - y[None, a:b]).T, potts._CAP)
            total += costs.sum(axis=1).min()
        return total

    stepped = 0
    for _ in range(30):
        y = np.repeat(rng.normal(0, 3, 3), 4) + rng.normal(0, 0.3, 12)
        scales = rng.uniform(0.2, 0.8, 12)
        every = [c for k in range(4) for c in combinations(range(3, 10), k)
                 if all(b - a >= 3 for a, b in pairwise(c))]  # fmt: skip
        best = min(price(y, 1 / scales, list(c)) for c in every)
        found = fit(y, scales)
        stepped += bool(found)
        assert price(y, 1 / scales, found) == pytest.approx(best)
    assert stepped > 20


def other(part, **fields):
    """Runs from the sixth on have another one of these."""

    runs = [slower(n, 5) for n in range(10)]
    changed = dataclasses.replace(getattr(runs[5], part), **fields)
    return [*runs[:5], *(dataclasses.replace(r, **{part: changed}) for r in runs[5:])]


NET = records.sha("net")[:12]
KERNEL = {"fingerprint": "fedcba9876543210",
          "fields": {**records.MACHINE.fields, "kernel": "7.0"}}  # fmt: skip


@pytest.mark.parametrize(
    ("part", "fields", "said"),
    [
        ("tool", {"onnxruntime": "1.33.0"}, "onnxruntime 1.32.0 -> 1.33.0"),
        ("tool", {"backend": "avx512"}, "SIMD path avx2 -> avx512"),
        ("tool", {"rust": "rustc 1.95.0"}, "Rust compiler - -> rustc 1.95.0"),
        ("model", {"network_sha256": "f" * 64}, f"network {NET} -> ffffffffffff"),
        ("machine", KERNEL, "kernel - -> 7.0"),
    ],
)  # fmt: skip
def test_another_library_kernel_or_model_is_a_border_and_no_step(tmp_path, part, fields, said):
    """Though fbank took three times as long from there on."""
    seen = steps_of(tmp_path, other(part, **fields))
    assert seen.steps == []
    (border,) = seen.borders
    assert (border.changes, border.utc) == ([said], "2026-01-06T12:00:00Z")


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("machine", {"fingerprint": "fedcba9876543210", "fields": {"arch": "aarch64"}}),
        ("options", {"threads": 4}),
    ],
)
def test_another_machine_or_option_is_another_line(tmp_path, part, fields):
    """They are neither compared nor told as a border."""
    seen = steps_of(tmp_path, other(part, **fields))
    assert (seen.steps, seen.borders, seen.looked_at) == ([], [], 2)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda r: {"tool": dataclasses.replace(r.tool, profile="debug")}, "debug build"),
        (lambda r: {"git": dataclasses.replace(r.git, dirty=True)}, "uncommitted changes"),
        (lambda r: {"clips": [dataclasses.replace(r.clips[0], text_as_expected=False),
                              *r.clips[1:]]}, "other text: 1 s"),
    ],
)  # fmt: skip
def test_unfit_runs_are_listed_and_make_no_step(tmp_path, cli, change, why):
    """A debug build, uncommitted changes, or another text says nothing about its commit."""
    runs = [slower(n, 5) for n in range(9)]
    runs[5:] = [dataclasses.replace(r, **change(r)) for r in runs[5:]]
    assert steps_of(tmp_path, runs).steps == []
    listed = cli("history", "list", "--store", tmp_path / "history")
    assert listed.out.count(why) == 4


def test_a_step_within_a_commit_is_the_machines(tmp_path):
    """Three slow runs after three of the same commit accuse nobody."""
    runs = [run(1, seed=i, factors={"infer": 1.5} if i > 2 else None) for i in range(6)]
    runs = [dataclasses.replace(r, utc=f"2026-01-0{i + 1}T00:00:00Z") for i, r in enumerate(runs)]
    (step,) = steps_of(tmp_path, runs).steps
    assert step.same_commit


def test_commits_have_their_own_order(tmp_path):
    """Runs of old commits that were measured last stand where their commits do."""
    late = (f"2026-02-{20 - n:02}T00:00:00Z" for n in range(9))
    kept = keep_all(
        tmp_path, [dataclasses.replace(slower(n, 5), utc=u) for n, u in enumerate(late)]
    )
    order = {records.git(n).sha: n for n in range(9)}
    (step,) = steps.look(Index(kept, order), TOTAL).steps
    assert (step.before.sha, step.after.sha) == (records.git(4).sha, records.git(5).sha)
    assert step.ratio > 1
    (backwards,) = steps.look(Index(kept), TOTAL).steps
    assert backwards.ratio < 1


def git(folder, *arguments):
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True,
                          check=True)  # fmt: skip
    return done.stdout


@pytest.fixture
def clone(tmp_path, monkeypatch):
    """A repository with one commit and an uncommitted change."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.org")
    folder = tmp_path / "clone"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "file").write_text("first")
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", "first")
    (folder / "file").write_text("changed")
    (folder / "new").write_text("not tracked")
    return folder


def test_a_branch_keeps_records_and_leaves_the_work_tree_alone(clone, stepped):
    """Two commits on an orphan branch; status, index and head are as before."""
    before = git(clone, "status", "--porcelain=v2", "--branch"), (clone / ".git/index").read_bytes()
    branch = store.Branch(clone, "asr-history")
    assert list(branch.files()) == []
    keep.add_runs(branch, [run(1), run(2)])
    keep.add_runs(branch, [run(2), run(3)])
    assert git(clone, "rev-list", "--count", "asr-history").strip() == "2"
    assert subprocess.run(["git", "-C", str(clone), "merge-base", "main", "asr-history"],
                          capture_output=True, check=False).returncode == 1  # fmt: skip
    folder = keep_all(clone.parent, [run(n) for n in (1, 2, 3)])
    assert list(branch.files()) == list(folder.files())
    after = git(clone, "status", "--porcelain=v2", "--branch"), (clone / ".git/index").read_bytes()
    assert after == before
    with pytest.raises(UsageError, match="git rev-parse"):
        store.Branch(clone.parent, "asr-history")


def test_a_branch_needs_a_name_for_its_commits(clone, monkeypatch):
    """Where git knows none, it is told how to give one, and no branch is made."""
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.delenv(f"GIT_{who}_EMAIL")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    git(clone, "config", "user.useConfigOnly", "true")
    branch = store.Branch(clone, "asr-history")
    with pytest.raises(SystemAccessError, match=r"git config user\.email"):
        keep.add_runs(branch, [run(1)])
    assert list(branch.files()) == []


def test_prune_drops_old_samples_alone(tmp_path, cli):
    """Samples of old runs go, numbers and steps stay, and a second time there is nothing to do."""
    kept = keep_all(tmp_path, (slower(n, 5) for n in range(9)))
    before = steps.look(Index(kept))
    limit = datetime.datetime(2026, 1, 6, tzinfo=datetime.timezone.utc)
    number, saved = keep.prune(kept, limit)
    assert number == 5
    assert saved > 5 * 10_000
    texts = dict(kept.files())
    sampled = [bool(json.loads(text)["samples"]) for text in texts.values()]
    assert sampled == [False] * 5 + [True] * 4
    assert steps.look(Index(kept)) == before
    assert keep.prune(kept, limit) == (0, 0)
    done = cli("history", "prune", "--store", kept.path)  # all of them are in the past
    assert done.out.startswith(("samples of 4 runs", "samples of 0 runs"))


def test_adding_twice_keeps_once_and_refuses_what_is_no_run(tmp_path, cli):
    """The files lie under their fingerprint; a record of two versions is refused."""
    paths = [tmp_path / name for name in ("run.json", "pairs.json")]
    record.write(run(1), paths[0])
    record.write(records.pairs(), paths[1])
    place = ("--store", tmp_path / "history")
    first = cli("history", "add", paths[0], *place)
    assert first.out == f"added {run(1).run_id}\n"
    assert cli("history", "add", paths[0], *place).out == "1 there already\n"
    (file,) = (tmp_path / "history").rglob("*.json")
    assert file.parent.name == records.MACHINE.fingerprint
    assert file.read_bytes() == paths[0].read_bytes()
    refused = cli("history", "add", *paths, *place)
    assert (refused.code, "expected asr-bench/1, found asr-pairs/1" in refused.err) == (4, True)


def test_what_steps_prints(stepped, cli):
    """A row, a sentence with the stage, and how much was looked at; the same as JSON."""
    done = cli("history", "steps", "--store", stepped.path, "--metric", TOTAL)
    assert done.code == 0
    span = f"{records.git(4).sha[:9]}..{records.git(5).sha[:9]}"
    assert f"{TOTAL} {span} +1" in done.out
    assert "%, of which fbank +1" in done.out
    assert "1 steps in 1 series" in done.out
    told = json.loads(cli("history", "steps", "--store", stepped.path, "--metric", TOTAL,
                          "--json").out)  # fmt: skip
    assert [s["metric"] for s in told["steps"]] == [TOTAL]


def test_compare_gives_ratios_within_a_segment_alone(tmp_path, cli):
    """Of another machine only the numbers, and why."""
    runs = [run(1, label="one"), run(2, label="two", factors={"fbank": 3.0})]
    moved = run(3, label="three", machine=record.Machine("fedcba9876543210", {"arch": "aarch64"}))
    keep_all(tmp_path, [*runs, moved])
    place = ("--store", tmp_path / "history")
    done = cli("history", "compare", "one", runs[1].run_id[:6], *place, "--metric", "warm/5 s/fb*")
    ratio = float(done.out.splitlines()[1].split()[-3])
    assert 2.9 < ratio < 3.1
    assert "asr bench --against" in done.out
    done = cli("history", "compare", "one", "three", *place)
    assert "b / a" not in done.out
    assert "not comparable" in done.out
    assert cli("history", "compare", "one", "nobody", *place).code == 2


def test_show_has_a_row_per_run(stepped, cli):
    """With value and interval; an unknown metric is told."""
    done = cli("history", "show", "warm/5 s/fb*", "--store", stepped.path)
    assert len(done.out.splitlines()) == 2 + 9
    assert cli("history", "show", "nothing", "--store", stepped.path).code == 2


def test_exports(stepped, cli, tmp_path):
    """Every number of every run in CSV and JSON; the newest run for Bencher and the action."""
    place = ("--store", stepped.path, "--metric", "*/5 s/total")
    rows = list(csv.DictReader(io.StringIO(cli("history", "export", *place).out)))
    told = json.loads(cli("history", "export", "--form", "json", *place).out)
    assert [float(r["value"]) for r in rows] == [r["value"] for r in told]
    assert len(rows) == 9 * len({r["metric"] for r in rows})
    newest = {v.metric: v for v in Index(stepped).values(run(8).run_id).values()}
    cli("history", "export", "--form", "bencher", *place, "-o", tmp_path / "b.json")
    bencher = json.loads((tmp_path / "b.json").read_text())
    assert bencher[TOTAL]["latency"]["value"] == newest[TOTAL].value
    assert bencher[TOTAL]["latency"]["lower_value"] < newest[TOTAL].value
    action = json.loads(cli("history", "export", "--form", "benchmark-action", *place).out)
    assert {(r["name"], r["unit"]) for r in action} == {(m, "ns") for m in bencher}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["list"], 2, "benchmarks/history: expected a history, found none; see: asr history add"),
        (["list", "--store", "a", "--branch", "b"], 2, "expected a folder or a branch, found both"),
        (["list", "--branch", "a..b"], 2, "git check-ref-format"),
        (["add", "gone.json"], 5, "gone.json: cannot read the record"),
        (["backfill", "HEAD..HEAD", "--store", "x"], 2, "expected commits, found none"),
    ],
)
def test_mistakes_are_one_line(cli, tmp_path, monkeypatch, clone, arguments, code, said):
    """With what to do."""
    monkeypatch.chdir(clone)
    done = cli("history", *arguments)
    assert (done.code, said in done.err) == (code, True), done.err
    assert len(done.err.splitlines()) == 1


def test_a_broken_file_of_the_store_is_named(tmp_path):
    """Not passed over."""
    kept = keep_all(tmp_path, [run(1)])
    (kept.path / "x").mkdir()
    (kept.path / "x/y.json").write_text("{}")
    with pytest.raises(RecordError, match=r"x/y\.json: expected asr-bench/1"):
        Index(kept)


def test_a_backfill_takes_turns_and_finds_the_step(tmp_path, monkeypatch):
    """Three rounds over four versions, each in another order; the second half is slower."""
    from asr.bench import clips, facts

    workload = clips.load(clips.DEFAULT, tmp_path)
    told = facts.Facts(records.TOOL, records.MODEL, "onnxruntime 1.32.0 CPU")
    monkeypatch.setattr(facts, "ask", lambda install, model: told)
    monkeypatch.setattr("asr.bench.noise.probe_ns", lambda: 10_000_000)
    versions = [Install(str(n), Path("asr"), Path("python"), git=records.git(n)) for n in range(4)]
    clocks = {v.label: records.Clock(i, 0.01, {"decode": 4.0} if i > 1 else {})
              for i, v in enumerate(versions)}  # fmt: skip
    order = []

    def start(install, clip):
        order.append(install.label)
        clock = clocks[install.label]
        calls = [record.Call(*clock.call(clip.audio_s)) for _ in range(4)]
        return record.Side(9**9, 9**9, 150_000_000, clock.load(), calls[0], calls[1:]), "text"

    plan = Plan(model="tiny-en", threads=1, pin=(0,))
    found = list(backfill.run(versions, workload, plan, backfill.Turns(), print, start))
    assert len(found) == 12
    per = len(workload.clips) * 2
    turns = [order[i] for i in range(0, len(order), per)]
    assert [sorted(turns[i : i + 4]) for i in (0, 4, 8)] == [list("0123")] * 3
    assert len({tuple(turns[i : i + 4]) for i in (0, 4, 8)}) > 1
    index = Index(keep_all(tmp_path, [dataclasses.replace(f, clips=[
        dataclasses.replace(c, text_as_expected=True) for c in f.clips]) for f in found]),
        {v.git.sha: i for i, v in enumerate(versions)})  # fmt: skip
    (step,) = steps.look(index, TOTAL).steps
    assert (step.before.sha, step.after.sha) == (versions[1].git.sha, versions[2].git.sha)
    assert next(iter(step.parts)) == "decode"


PAGE = (ROOT / "docs/history.md").read_text()
SHOWN = re.findall(r"^    asr (history .*)", PAGE, re.M)


@pytest.mark.parametrize("command", [c for c in SHOWN if "backfill" not in c])
def test_the_pages_commands_work(cli, tmp_path, monkeypatch, command):
    """Each of docs/history.md, with a history of two runs and a third to be added."""
    monkeypatch.chdir(tmp_path)
    kept = store.Folder(tmp_path / "benchmarks/history")
    keep.add_runs(kept, [run(1, label="first"), run(2, label="second")])
    record.write(run(3), "record.json")
    done = cli(*shlex.split(command))
    assert (done.code, bool(done.out)) == (0, True), done.err


def test_the_pages_backfill_works(cli, tmp_path, monkeypatch, clone):
    """Its command measures what the range names: here commits that need no building."""
    (command,) = (c for c in SHOWN if "backfill" in c)
    monkeypatch.chdir(clone)
    for name in ("second", "third"):
        git(clone, "commit", "-q", "--allow-empty", "-m", name)
    asked = []

    def built(sha, repo, say):
        asked.append(sha)
        return Install(sha[:9], Path("asr"), Path("python"), git=record.Git(sha, False))

    monkeypatch.setattr("asr.bench.installs.from_revision", built)
    monkeypatch.setattr(
        backfill,
        "run",
        lambda installs, *_: iter([run(i, git=v.git) for i, v in enumerate(installs)]),
    )
    done = cli(*shlex.split(command))
    assert done.code == 0, done.err
    assert asked == [s[:12] for s in git(clone, "rev-list", "--reverse", "HEAD~2..HEAD").split()]
    assert "2 runs of 2 commits added" in done.out
    assert len(list((clone / "benchmarks/history").rglob("*.json"))) == 2
