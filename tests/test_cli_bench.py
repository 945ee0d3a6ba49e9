"""asr bench: one small real run, and made-up records for what it says about them."""

import dataclasses
import json
import os
import re
import shlex
import shutil
import statistics
from pathlib import Path

import jsonschema
import pytest
import records

from asr.bench import hyperfine, installs, pages, record, run, summary, versus
from asr.bench.plan import Plan
from asr.cli import bench_pairs, bench_tables, build_parser

ROOT = Path(__file__).parent.parent
CLIP = ROOT / "golden/audio/seven-slt.wav"
SMALL = ("bench", "--quick", "--cold", "1", "--repeat", "4", "--idle", "0", "--threads", "1")


def manifest(tmp_path, text="seven", sha256=""):
    path = tmp_path / "clips.tsv"
    path.write_text(f"file\tsha256\twords\ttext\n{CLIP}\t{sha256}\tseven\t{text}\n")
    return path


def test_a_small_run_measures_every_state_and_writes_a_valid_record(cli, tmp_path):
    """All four states, pinned, of one clip; the record is valid and its summary follows from it."""
    out = tmp_path / "record.json"
    core = str(min(os.sched_getaffinity(0)))
    done = cli(*SMALL, "--pin", core, "--workload", manifest(tmp_path), "-o", out, "--label", "x")
    assert done.code == 0, done.err
    jsonschema.validate(json.loads(out.read_text()),
                        json.loads((ROOT / "docs/bench.schema.json").read_text()))  # fmt: skip
    found = record.read_bench(out)
    assert found.summary == summary.summarise(found.clips, found.samples)
    states = [s.state for s in found.samples]
    assert {s: states.count(s) for s in states} == {"cold": 1, "idle": 1, "evicted": 1, "warm": 4}
    (cold,) = (s for s in found.samples if s.state == "cold")
    # The whole is that of a second process, which may be a little faster than the first.
    assert 1.5 * cold.process_ns > sum(cold.load_ns.values()) > cold.wall_ns
    assert cold.load_ns.keys() >= {"python_start", "import", "session_create", "weight_prepare"}
    for sample in found.samples:
        assert sum(sample.stages_ns.values()) == sample.wall_ns
        assert {"read", "fbank", "infer", "decode"} <= sample.stages_ns.keys()
    assert (found.options.pin, found.options.threads, found.label) == ([int(core)], 1, "x")
    assert found.clips[0].cer == 0.0
    assert found.memory.peak_rss_bytes >= found.memory.rss_end_bytes > 20e6
    assert found.memory.peak_rss_bytes < 4 * pages.last_level_cache_bytes() + 20e6
    assert found.memory.calls == 4
    assert len(found.noise.probe_ns) == 5
    assert bench_tables.bench_text(found) + "\n" == done.out
    assert "energy     not measured" in done.out or found.energy


def test_a_noisy_run_is_measured_once_more(cli, tmp_path, monkeypatch):
    """All of it, once; the second attempt counts whatever it is."""
    heard = []
    monkeypatch.setattr("asr.bench.noise.classify", lambda *_: heard.append(1) or "noisy")
    out = tmp_path / "record.json"
    done = cli(*SMALL, "--workload", manifest(tmp_path), "-o", out)
    assert (done.code, len(heard)) == (0, 2)
    assert done.err.count("everything is measured once more") == 1
    assert done.err.count("cold 1/1") == 2
    found = record.read_bench(out)
    assert (found.noise.class_, found.noise.repeated) == ("noisy", True)
    assert [s.state for s in found.samples].count("cold") == 1


def test_another_text_than_expected_fails_the_run(cli, tmp_path):
    """12, after the table and the record: nobody can say that it was faster."""
    done = cli(*SMALL, "--workload", manifest(tmp_path, text="eleven"))
    assert done.code == 12
    assert "CHANGED" in done.out
    assert done.err.endswith("seven-slt: expected the expected text, found another: these times do "
                             "not count\n")  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--pin", "9999"], 2, r"--pin: this process may use the cores \d"),
        (["--pin", "a"], 2, "expected core numbers such as 0,1, found 'a'"),
        (["--pairs", "3"], 2, "--pairs: needs --against"),
        (["--against", "HEAD", "--hyperfine"], 2, "--hyperfine: not used with --against"),
        (["--against", "HEAD", "--cold", "3"], 2, "--cold: not used with --against"),
        (["--repeat", "0"], 2, "expected a whole number from 1 on, found '0'"),
        (["--model", "nope"], 4, "nope: expected a model folder or a name"),
        (["--workload", "gone.tsv"], 5, "gone.tsv: cannot read the file"),
        (["-o", "no/such/folder/x.json"], 5, "no/such/folder/x.json: cannot write into its folder"),
        (["--engine", "other"], 2, "expected ort, ort:PROVIDER or openvino, found 'other'"),
        (["--engine", "ort", "--engine", "other"], 2, "found 'other'"),
        (["--engine", "ort:"], 2, "found 'ort:'"),
        (["--engine", "ort"] * 3, 2, "--engine: expected two at most"),
        (["--engine", "ort", "--engine", "ort:CPU", "--against", "HEAD"], 2, "one with --against"),
        (["--engine", "ort", "--engine", "openvino", "--cold", "3"], 2, "--cold: not used with"),
        (["--engine", "openvino", "--quick"], 7, "expected the package openvino"),
    ],
)
def test_what_cannot_be_measured_is_said_first(cli, arguments, code, said):
    """One line, the contract's code, before minutes are spent."""
    done = cli("bench", *arguments)
    assert done.code == code
    assert re.search(said, done.err.splitlines()[-1])
    assert done.out == ""


def test_a_clip_with_another_hash_aborts(cli, tmp_path):
    """Exit code 4, nothing measured."""
    done = cli(*SMALL, "--workload", manifest(tmp_path, sha256="0" * 64))
    assert (done.code, done.out) == (4, "")
    assert "another file would measure something else" in done.err


def test_without_hyperfine_the_line_that_installs_it(cli, tmp_path, monkeypatch):
    """Exit code 7."""
    monkeypatch.setattr(shutil, "which", lambda _: None)
    done = cli(*SMALL, "--hyperfine", "--workload", manifest(tmp_path))
    assert done.code == 7
    assert "run: apt install hyperfine" in done.err


class Noisy:
    """A run that has happened already."""

    def __init__(self, *_):
        pass

    def measure(self):
        found = records.bench()
        return dataclasses.replace(found, noise=dataclasses.replace(found.noise, class_="noisy"))


def test_strict_refuses_what_nobody_should_rely_on(cli, monkeypatch):
    """A noisy machine is 15 with --strict, marked without; dirty and debug are 2 at once."""
    clean = dataclasses.replace(installs.running(), git=records.git())
    monkeypatch.setattr(installs, "running", lambda: clean)
    monkeypatch.setattr(run, "Run", Noisy)
    monkeypatch.setattr("asr.bench.machine._read", lambda _: "")
    loud = cli("bench", "--strict")
    assert (loud.code, cli("bench").code) == (15, 0)
    assert "\nNOISY: " in loud.out
    assert "the machine was too noisy" in loud.err
    dirty = dataclasses.replace(clean, git=dataclasses.replace(clean.git, dirty=True))
    monkeypatch.setattr(installs, "running", lambda: dirty)
    done = cli("bench", "--strict")
    assert (done.code, done.out) == (2, "")
    assert "found uncommitted changes" in done.err
    monkeypatch.setattr("asr._rust_fe.build_info", lambda: {"profile": "debug", "backends": []})
    assert "expected a release build, found debug" in cli("bench", "--strict").err


def test_a_slow_governor_is_refused_by_strict(cli, monkeypatch):
    """A core that changes its frequency has no speed to be measured."""
    clean = dataclasses.replace(installs.running(), git=None)
    monkeypatch.setattr(installs, "running", lambda: clean)
    monkeypatch.setattr("asr.bench.machine._read", lambda _: "schedutil")
    done = cli("bench", "--strict")
    assert done.code == 15
    assert "found 'schedutil'" in done.err


def test_unfit_builds_are_marked():
    """A debug build and uncommitted changes show in the head line."""
    made = records.bench()
    bad = dataclasses.replace(
        made,
        tool=dataclasses.replace(made.tool, profile="debug"),
        git=dataclasses.replace(made.git, dirty=True),
    )
    assert "[DEBUG BUILD] [DIRTY]" in bench_tables.bench_text(bad).splitlines()[0]
    assert "[" not in bench_tables.bench_text(made).splitlines()[0]


def test_tables_line_up_and_say_what_they_contain():
    """Every table's columns end together; the four RTFs with their boundaries; stages add up."""
    text = bench_tables.bench_text(records.bench())
    for block in text.split("\n\n")[1:6]:
        rows = [line for line in block.splitlines() if re.search(r"\d \w*$|\d$|%$|ok$|all$", line)]
        assert len({len(r) for r in rows}) <= 2, block
    for name in ("rtf_infer", "rtf_warm", "rtf_first", "rtf_process"):
        assert len(re.findall(rf"^{name} +\S", text, re.M)) == 2
    assert "weight prepare" in text
    share = [float(s) for s in re.findall(r"^(?!total)\w+ .* (\d+\.\d) %$",
                                          text.split("\n\n")[3], re.M)]  # fmt: skip
    assert sum(share) == pytest.approx(100, abs=2)


def test_a_comparison_names_what_is_slower(monkeypatch):
    """Confirmed: SLOWER and a sentence; not confirmed: no accusation."""
    slow = records.pair_list(seed=5, count=12, factors={"infer": 1.3})
    text = bench_pairs.pairs_text(records.pairs(count=12, factors={"infer": 1.3}, confirm=slow))
    assert re.search(r"^warm/5 s/infer .* SLOWER$", text, re.M)
    assert not re.search(r"^warm/5 s/fbank .* SLOWER$", text, re.M)
    assert re.search(r"slower, and confirmed by a second run: .*warm/5 s/infer \+\d", text)
    calm = records.pair_list(seed=6, count=12)
    text = bench_pairs.pairs_text(records.pairs(count=12, factors={"infer": 1.3}, confirm=calm))
    assert "a second run did not confirm it" in text
    assert "SLOWER" not in text
    text = bench_pairs.pairs_text(records.pairs(count=12, factors={"infer": 0.7}))
    assert re.search(r"^warm/5 s/infer .* faster$", text, re.M)
    text = bench_pairs.pairs_text(records.pairs(count=4, factors={"infer": 0.7}))
    assert "faster" not in text
    assert text.endswith("too few pairs to call anything slower: expected 7 or more per clip")
    text = bench_pairs.pairs_text(records.pairs(count=12, text_same=False))
    assert "texts: OTHER in 1 s, 5 s" in text
    assert "faster" not in text.splitlines()[-1]


@pytest.mark.parametrize(("same", "code"), [(True, 0), (False, 12)])
def test_against_wires_both_versions_to_the_comparison(cli, tmp_path, monkeypatch, same, code):
    """What was asked arrives; the pairs file is written; another text is 12."""
    seen = {}

    def compare(a, b, workload, asked, _say):
        seen.update(a=a, b=b, clips=len(workload.clips), asked=asked)
        return records.pairs(count=4, text_same=same)

    monkeypatch.setattr(versus, "compare", compare)
    monkeypatch.setattr(installs, "find", lambda name, *_: name)
    monkeypatch.setattr(installs, "snapshot", lambda _: "this")
    out = tmp_path / "pairs.json"
    done = cli("bench", "--against", "v1", "--mde", "5", "--threads", "2", "-o", out,
               "--workload", manifest(tmp_path))  # fmt: skip
    assert done.code == code, done.err
    assert (seen["a"], seen["b"], seen["clips"]) == ("v1", "this", 1)
    assert seen["asked"] == versus.Asked(threads=2, mde=0.05)
    assert record.read_pairs(out).clips[0].text_same is same


def test_two_engines_are_one_version_that_changes_one_thing(cli, tmp_path, monkeypatch):
    """The same install twice, named and run by engine; with --against both have the one engine."""
    seen = []
    monkeypatch.setattr(
        versus, "compare", lambda a, b, *_: seen.append((a, b)) or records.pairs(count=4)
    )
    this = installs.Install("here", Path("asr"), Path("python"))
    monkeypatch.setattr(installs, "find", lambda *_: dataclasses.replace(this, label="v1"))
    monkeypatch.setattr(installs, "snapshot", lambda _: this)
    some = ["--workload", manifest(tmp_path)]
    assert cli("bench", "--engine", "ort", "--engine", "openvino", *some).code == 0
    assert cli("bench", "--engine", "openvino", "--against", "v1", *some).code == 0
    assert [[(s.label, s.engine) for s in pair] for pair in seen] == [
        [("ort", "ort"), ("openvino", "openvino")],
        [("v1", "openvino"), ("here", "openvino")],
    ]
    assert seen[0][0].line("transcribe", "x") == ["asr", "transcribe", "x", "--engine", "ort"]
    assert this.line("inspect") == ["asr", "inspect"]


def test_warm_rounds_end_when_the_interval_is_narrow_or_time_is_up():
    """A quiet workload needs the least rounds; a loud one goes on until the limit."""
    work = [run.WorkClip(c.id, CLIP, c.bucket, c.sha256, c.audio_s, None, {})
            for c in records.bench().clips]  # fmt: skip
    quiet = [s for s in records.bench(sd=0.002, rounds=10).samples if s.state == "warm"]
    loud = [s for s in records.bench(sd=0.3, rounds=10).samples if s.state == "warm"]
    assert run.half_width(work, quiet) < 0.015 < run.half_width(work, loud)
    measure = run.Run(Plan("tiny-en"), run.Workload("w", tuple(work)), print)
    assert measure._is_enough(10, quiet, end_s=float("inf"))
    assert not measure._is_enough(9, quiet, end_s=0.0)
    assert not measure._is_enough(10, loud, end_s=float("inf"))
    assert measure._is_enough(11, loud, end_s=0.0)


PAGE = (ROOT / "docs/bench.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^ {4}asr (.*)", PAGE, re.M)


def test_the_page_names_every_option(cli):
    """What --help offers is explained; what the page shows can be asked for."""
    words = set(re.findall(r"^  (--[a-z-]+)", cli("bench", "--help").out, re.M))
    told = set(re.findall(r"--[a-z-]+", PAGE))
    assert words - told == {"--language", "--itn", "--seed", "--label", "--engine"}
    for line in SHOWN:
        build_parser().parse_args(shlex.split(line))


@pytest.mark.system
@pytest.mark.parametrize("line", SHOWN)
def test_the_pages_commands_work(line, cli, tmp_path, monkeypatch):
    """Each command of docs/bench.md ends with 0, here with one short clip and little of it."""
    path = manifest(tmp_path)
    monkeypatch.setattr("asr.bench.clips.DEFAULT", path)
    monkeypatch.setattr("asr.bench.versus.PILOT", 2)
    short = [] if "--against" in line else ["--cold", "1", "--idle", "0", "--seconds", "1"]
    if "--host" in line:
        short = ["--cold", "1", "--idle", "0"]
    if "--mde" in line:
        short = ["--max-minutes", "0.1"]
    words = [str(tmp_path / w) if w.endswith((".json", ".tsv")) else w for w in shlex.split(line)]
    done = cli(*words, *short)
    assert done.code == 0, done.err


@pytest.mark.system
def test_hyperfine_and_we_agree(tmp_path, cli):
    """Medians of a whole process within 5 %, unless the machine was noisy; once more if not."""
    for _ in range(2):
        out = tmp_path / "record.json"
        done = cli(*SMALL[:2], "--hyperfine", "--workload", manifest(tmp_path), "-o", out)
        assert done.code == 0, done.err
        found = record.read_bench(out)
        compared = found.hyperfine
        if compared["agrees"] or found.noise.class_ == "noisy":
            break
    ours_s = statistics.median(compared["ours_process_ns"]) / 1e9
    assert compared["ratio"] == pytest.approx(ours_s / compared["median"])
    assert compared["agrees"] == (abs(compared["ratio"] - 1) <= hyperfine.AGREES)
    assert compared["agrees"] or found.noise.class_ == "noisy", compared["ratio"]


@pytest.mark.system
def test_this_commit_against_itself(cli, tmp_path):
    """Built by the real tools; nothing is slower than itself."""
    if installs.git_state(ROOT) is None:
        pytest.fail("the system tests run in a git clone")
    done = cli("bench", "--against", "HEAD", "--pairs", "8", "--repeat", "3", "--threads", "1",
               "--workload", manifest(tmp_path))  # fmt: skip
    assert done.code == 0, done.err
    assert "texts: the same" in done.out
