"""asr.bench.record, .plain, .summary: what a measurement leaves behind."""

import copy
import dataclasses
import json
import statistics
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import records

from asr.bench import record, summary
from asr.bench.plain import to_plain
from asr.errors import RecordError, SystemAccessError

ROOT = Path(__file__).parent.parent
BENCH, PAIRS = records.bench(), records.pairs(factors={"infer": 1.2})


def schema(name):
    return json.loads((ROOT / f"docs/{name}.schema.json").read_text())


@pytest.mark.parametrize(("name", "made"), [("bench", BENCH), ("pairs", PAIRS)])
def test_a_record_fits_its_published_schema_and_comes_back(name, made, tmp_path):
    """Written, valid, read: the same value."""
    path = tmp_path / "record.json"
    record.write(made, path)
    jsonschema.validate(json.loads(path.read_text()), schema(name))
    assert record.read(path) == made
    assert [p.name for p in tmp_path.iterdir()] == ["record.json"]


def test_the_published_schemas_are_current():
    """docs/*.schema.json are what benchmarks/schemas.py makes of the classes."""
    command = [sys.executable, ROOT / "benchmarks/schemas.py", "--check"]
    assert subprocess.run(command, check=False).returncode == 0


def broken(change):
    value = copy.deepcopy(to_plain(BENCH))
    change(value)
    return json.dumps(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "expected a record in JSON"),
        ("[]", "expected schema asr-bench/1 or asr-pairs/1, found another file"),
        ('{"schema": "asr-bench/9"}', "expected schema"),
        (broken(lambda v: v.pop("clips")), "expected the key 'clips', found none"),
        (broken(lambda v: v["samples"][3].update(wall_ns="x")),
         r"\.samples\[3\]\.wall_ns: expected int, found 'x'"),
        (broken(lambda v: v["samples"][0]["stages_ns"].update(fbank=1.5)),
         r"stages_ns\.fbank: expected int, found '1.5'"),
        (broken(lambda v: v["noise"].update({"class": "loud"})),
         r"noise\.class: expected one of quiet, ok, noisy, found 'loud'"),
        (broken(lambda v: v.update(git=3)), r"\.git: expected an object"),
    ],
)  # fmt: skip
def test_a_damaged_record_is_refused_with_the_place(text, said, tmp_path):
    """One line with the file and the path inside."""
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(RecordError, match=f"bad.json.*{said}"):
        record.read(path)


def test_keys_of_a_newer_version_are_passed_over(tmp_path):
    """The same schema may grow."""
    path = tmp_path / "newer.json"
    path.write_text(broken(lambda v: v["tool"].update(allocator="mimalloc")))
    assert record.read(path) == BENCH


def test_no_file_and_the_other_kind(tmp_path):
    """A path that is not there is exit code 5; pairs where one version was wanted, 4."""
    with pytest.raises(SystemAccessError, match=r"gone.json: cannot read the record"):
        record.read(tmp_path / "gone.json")
    record.write(PAIRS, tmp_path / "pairs.json")
    with pytest.raises(RecordError, match=r"expected asr-bench/1, found asr-pairs/1"):
        record.read_bench(tmp_path / "pairs.json")
    with pytest.raises(SystemAccessError, match="cannot write the record"):
        record.write(PAIRS, tmp_path / "no/such/folder.json")


def test_rtfs_are_sums_of_medians_over_seconds():
    """rtf_warm of all buckets, rtf_infer of one and rtf_process, by hand."""
    found = summary.summarise(BENCH.clips, BENCH.samples)["rtf"]

    def median_s(state, clip, span):
        taken = [span(s) for s in BENCH.samples if (s.state, s.clip) == (state, clip)]
        return statistics.median(taken) / 1e9

    audio_s = sum(c.audio_s for c in BENCH.clips)
    warm = sum(median_s("warm", c.id, lambda s: s.wall_ns) for c in BENCH.clips) / audio_s
    infer = median_s("warm", "5 s", lambda s: s.stages_ns["infer"]) / 4.9
    process = median_s("cold", "1 s", lambda s: sum(s.load_ns.values()) + s.wall_ns) / 0.8
    assert found["rtf_warm"]["all"]["median"] == pytest.approx(warm)
    assert found["rtf_infer"]["5 s"]["median"] == pytest.approx(infer)
    assert found["rtf_process"]["1 s"]["median"] == pytest.approx(process)
    assert found["rtf_first"]["long"]["n"] == 5
    for rows in found.values():
        for row in rows.values():
            assert row["low"] <= row["median"] <= row["high"]


def test_stage_rows_are_per_call_and_their_shares_are_of_the_total():
    """median, p95 and share of one stage, by hand; shares nearly close."""
    rows = BENCH.summary["stages"]["warm"]["15 s"]
    taken = [s.stages_ns["fbank"] for s in BENCH.samples
             if (s.state, s.clip) == ("warm", "15 s")]  # fmt: skip
    assert rows["fbank"]["median_ns"] == statistics.median(taken)
    assert rows["fbank"]["p95_ns"] == pytest.approx(np.quantile(taken, 0.95))
    assert rows["fbank"]["share"] == rows["fbank"]["median_ns"] / rows["total"]["median_ns"]
    assert sum(r["share"] for n, r in rows.items() if n != "total") == pytest.approx(1, abs=0.05)
    load = BENCH.summary["load"]
    assert load["total"]["median_ns"] == statistics.median(
        sum(s.load_ns.values()) for s in BENCH.samples if s.load_ns
    )


@pytest.mark.parametrize(
    ("slowed", "metric", "bucket", "stage"),
    [
        ("infer", "warm", "5 s", "infer"),
        ("fbank", "first", "1 s", "fbank"),
        ("import", "load", None, "import"),
        ("memory", "memory", None, None),
    ],
)
def test_a_change_is_found_where_it_was_made(slowed, metric, bucket, stage):
    """30 % on one stage shows there, nearly whole, and not on its neighbours."""
    found = records.pairs(factors={slowed: 1.3}, count=16, sd=0.01).summary
    change = next(c for c in found if (c.metric, c.bucket, c.stage) == (metric, bucket, stage))
    assert change.low < 1.3 < change.high or change.ratio == pytest.approx(1.3, rel=0.02)
    assert change.n == (32 if bucket is None else 16)
    others = [c for c in found if c.stage not in (slowed, None, "unaccounted")]
    assert all(c.ratio == pytest.approx(1, abs=0.03) for c in others)


def test_more_pairs_detect_less():
    """Four times the pairs, about half the smallest change that can be seen."""
    few, many = (
        next(c for c in records.pairs(count=n).summary if c.metric == "warm" and c.stage is None)
        for n in (10, 160)
    )
    assert many.mde < 0.5 * few.mde


def test_stages_of_one_side_only_are_left_out():
    """A stage that the other version does not have has no ratio."""
    taken = records.pair_list(count=4)

    def without(side):
        call = dataclasses.replace(side.first, stages_ns={**side.first.stages_ns})
        del call.stages_ns["cmvn"]
        return dataclasses.replace(side, first=call)

    older = [dataclasses.replace(p, a=without(p.a)) for p in taken]
    stages = {c.stage for c in summary.changes(older) if c.metric == "first"}
    assert "cmvn" not in stages
    assert "lfr" in stages
