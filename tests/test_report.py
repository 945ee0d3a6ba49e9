"""asr report: what a record says, as a page, as Markdown, as a brief."""

import dataclasses
import re
import shlex
import sys
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import records

from asr.bench import record
from asr.errors import RecordError
from asr.history import keep, store
from asr.history.index import Index
from asr.report import blocks, brief, content, forms, past, words

ROOT = Path(__file__).parent.parent
RUN = records.bench(1, n=1, rounds=8)


class Page(HTMLParser):
    """Tags that open and close as they should, what they load, the text."""

    EMPTY = ("meta", "br")

    def __init__(self, html):
        super().__init__()
        self.open, self.tags, self.loads, self.text = [], [], [], ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.loads += [v for k, v in attributes if k in ("src", "href", "xlink:href", "data")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page(run=RUN, **more):
    html = forms.html(content.report(run, **more))
    return html, Page(html)


def test_the_page_needs_nothing_else():
    """No script, no link, no picture, no font, no address."""
    html, seen = page()
    assert seen.loads == []
    assert not {"script", "link", "img", "iframe", "object"} & set(seen.tags)
    assert not re.search(r"url\(|@import|https?://", html)
    for svg in re.findall(r"<svg.*?</svg>", html, re.S):
        ElementTree.fromstring(svg)


def test_it_says_everything_a_record_knows():
    """RTFs, four states, stages, load, distributions, memory, texts, machine, method."""
    _, seen = page()
    rtf = RUN.summary["rtf"]
    for name, found in rtf.items():
        assert name in seen.text
        assert f"{found['all']['median']:.4f}" in seen.text
    for word in (*words.STATES, *records.STAGES, "weight prepare", "fingerprint", "Example",
                 RUN.machine.fingerprint, RUN.clips[0].sha256[:12], *words.METHOD):  # fmt: skip
        assert word in seen.text, word
    assert seen.tags.count("svg") == 5  # four waterfalls, one of distributions
    total = RUN.summary["stages"]["warm"]["5 s"]["total"]["median_ns"]
    assert f"{total / 1e6:.3g} ms" in seen.text


def bars(run, state):
    """Left and right ends of a state's bars, in units of the chart."""
    html, _ = page(run)
    (svg,) = re.findall(rf"<figure>(<svg(?:(?!</svg>).)*</svg>)<figcaption>{state}:", html)
    rects = re.findall(r"<rect class='(\w+)' x='([\d.]+)' y='\d+' width='([\d.]+)'", svg)
    return [(kind, float(x), float(x) + float(w)) for kind, x, w in rects]


def test_a_waterfall_begins_each_phase_where_the_last_ended():
    """To within a drawn pixel; the network has most of a warm call, the load most of a cold one."""
    for state in words.STATES:
        found = bars(RUN, state)
        for (_, _, end), (_, begin, _) in pairwise(found):
            assert abs(begin - end) <= 0.7
    widths = {kind: sum(b - a for k, a, b in bars(RUN, "warm") if k == kind)
              for kind in ("net", "bar", "load")}  # fmt: skip
    share = RUN.summary["stages"]["warm"]["5 s"]["infer"]["share"]
    assert widths["net"] / sum(widths.values()) == pytest.approx(share, abs=0.02)
    assert widths["load"] == 0
    cold = bars(RUN, "cold")
    assert [kind for kind, _, _ in cold[:3]] == ["load"] * 3


def test_idle_evicted_and_warm_share_a_scale():
    """A warm call is shorter than an evicted one, on paper too."""
    ends = {state: max(end for _, _, end in bars(RUN, state)) for state in words.STATES}
    assert ends["warm"] < ends["idle"] < ends["evicted"]


def test_doubts_come_first():
    """Debug, dirty, noisy, another text: each is a warning at the top, in both forms."""
    doubtful = dataclasses.replace(
        RUN,
        tool=dataclasses.replace(RUN.tool, profile="debug"),
        git=dataclasses.replace(RUN.git, dirty=True),
        noise=dataclasses.replace(RUN.noise, class_="noisy"),
        clips=[dataclasses.replace(RUN.clips[0], text_as_expected=False), *RUN.clips[1:]],
    )
    made = content.report(doubtful)
    assert len(made.warnings) == 4
    for text in (forms.html(made), forms.markdown(made)):
        top = text[: text.index("Real-time factors")]
        assert all(w.replace("'", "&#x27;") in top or w in top for w in made.warnings)
    assert content.report(RUN).warnings == []


def test_names_cannot_break_the_page():
    """A label and a model's name are text, in HTML and in a Markdown table."""
    evil = dataclasses.replace(RUN, label="<script>alert(1)</script> | x",
                               model=dataclasses.replace(RUN.model, name="a<b>|c"))  # fmt: skip
    _, seen = page(evil)
    assert "script" not in seen.tags
    assert "a<b>|c" in seen.text
    text = forms.markdown(content.report(evil))
    row = next(line for line in text.splitlines() if line.startswith("| model |"))
    assert "<" not in text
    assert len(re.split(r"(?<!\\)\|", row)) == 4


def test_a_run_without_samples_idle_or_evicted_calls_has_a_page():
    """Pruned, or from a backfill."""
    thin = {**RUN.summary, "stages": {s: RUN.summary["stages"][s] for s in ("cold", "warm")}}
    _, seen = page(dataclasses.replace(RUN, samples=[], summary=thin))
    assert "samples were dropped" in seen.text
    assert seen.tags.count("svg") == 2


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Twelve runs; commit 6 made fbank slower, run 9 and later have another ONNX Runtime.

    Beside them the same commits on another machine.
    """
    runs = [records.bench(n, n=n, sd=0.01, rounds=5, factors={"fbank": 3.0} if n > 5 else None)
            for n in range(12)]  # fmt: skip
    newer = dataclasses.replace(RUN.tool, onnxruntime="1.33.0")
    runs[9:] = [dataclasses.replace(r, tool=newer) for r in runs[9:]]
    place = store.Folder(tmp_path_factory.mktemp("report") / "history")
    elsewhere = record.Machine("fedcba9876543210", {"arch": "aarch64"})
    others = [dataclasses.replace(r, run_id=f"x{r.run_id[1:]}", machine=elsewhere) for r in runs]
    keep.add_runs(place, [*runs, *others])
    return place, runs


def test_over_time_has_levels_borders_and_the_step(kept):
    """A dot per run, one dashed line, the step with its culprit; foreign runs are not drawn."""
    place, runs = kept
    (section,) = past.sections(Index(place), runs[-1])
    figures = [b for b in section.blocks if isinstance(b, blocks.Figure)]
    assert len(figures) == len(records.SECONDS)
    svg = figures[1].svg
    assert svg.count("class='dots'") == 12
    assert svg.count("class='border'") == 1
    heights = re.findall(r"class='level' d='M[\d.]+ ([\d.]+)H", svg)
    assert len(heights) == 12
    assert len(set(heights[:6])) == len(set(heights[6:9])) == 1
    assert float(heights[0]) > float(heights[6]) + 20
    told = "\n".join(b for b in section.blocks if isinstance(b, str))
    assert told.count("onnxruntime 1.32.0 -> 1.33.0") == 1
    (table,) = (b for b in section.blocks if isinstance(b, blocks.Table))
    (row,) = (r for r in table.rows if r[0] == "warm/5 s/total")
    assert row[1] == f"{records.git(5).sha[:9]}..{records.git(6).sha[:9]}"
    assert row[4].startswith("fbank +1")
    other = dataclasses.replace(RUN, run_id="nobody")
    assert "does not hold this run" in past.sections(Index(place), other)[0].blocks[0]


def test_before_and_after_with_patches(cli, tmp_path):
    """Ratios of a pairs file, the method of pairs, and the commits between the two."""
    import subprocess

    def git(*words):
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True,
                              check=True)  # fmt: skip
        return done.stdout.strip()

    pairs = records.pairs(factors={"fbank": 1.5})
    shas = git("rev-parse", "HEAD~1"), git("rev-parse", "HEAD")
    sides = {name: dataclasses.replace(getattr(pairs, name), git=record.Git(sha, False))
             for name, sha in zip("ab", shas, strict=True)}  # fmt: skip
    record.write(dataclasses.replace(pairs, **sides), tmp_path / "pairs.json")
    record.write(RUN, tmp_path / "run.json")
    done = cli("report", tmp_path / "run.json", "--pairs", tmp_path / "pairs.json", "--markdown",
               "--repo", ROOT)  # fmt: skip
    assert done.code == 0, done.err
    change = next(c for c in pairs.summary if (c.metric, c.bucket, c.stage) ==
                  ("warm", "5 s", "fbank"))  # fmt: skip
    assert f"| {change.ratio:.3f} | {change.low:.3f} - {change.high:.3f} |" in done.out
    assert git("log", "-1", "--format=%h") in done.out
    assert words.PAIRS_METHOD in done.out


def test_markdown_has_every_table_of_the_page(kept):
    """The same cells, without charts."""
    place, runs = kept
    made = content.report(runs[-1], past.sections(Index(place), runs[-1]), records.pairs())
    text, html = forms.markdown(made), Page(forms.html(made))
    tables = [b for s in made.sections for b in s.blocks if isinstance(b, blocks.Table)]
    assert len(tables) == html.tags.count("table") > 8
    for table in tables:
        for row in table.rows:
            assert "| " + " | ".join(row) + " |" in text
    assert "<svg" not in text


def test_the_brief_asks_one_question_with_numbers():
    """About the largest stage; stages with boundaries and source; the release profile."""
    text = brief.brief(RUN, "asr;read;open 100\nasr;infer;<run> 800\nasr;read;<run> 100\n", ROOT)
    rows = RUN.summary["stages"]["warm"]["5 s"]
    assert f"`infer` {rows['infer']['median_ns'] / 1e6:.3g} ms" in text
    assert text.count("?") == 1
    assert text.count("\n") < 75
    row = next(line for line in text.splitlines() if line.startswith("| fbank | samples | mel"))
    assert re.search(r"\| asr/frontend\.py:\d+, rust_fe/src/fbank\.rs \|$", row)
    assert "| `<run>` | 0.9 ms | 90.0 % |" in text  # code: nothing is escaped in it
    assert 'lto = "fat"' in text
    assert "inherits" not in text  # of the next profile
    assert "asr profile CLIP --folded" in brief.brief(RUN, None, ROOT)
    with pytest.raises(RecordError, match="expected stacks"):
        brief.brief(RUN, "{}", ROOT)
    assert "not known" in brief.brief(RUN, None, ROOT / "docs")


class Called:
    """An observer that notes which Python functions run within each stage."""

    def __init__(self):
        self.code = {}

    def step(self, name, function, *arguments):
        seen = self.code.setdefault(name, set())
        sys.setprofile(lambda frame, event, _: seen.add(frame.f_code) if event == "call" else None)
        try:
            return function(*arguments)
        finally:
            sys.setprofile(None)


def test_stages_and_their_sources_are_those_of_the_pipeline(recognizer, clip):
    """The function that is named runs within its stage, and its place is where it begins."""
    from asr.audio import read
    from asr.observe import STAGES

    assert list(words.STAGES) == [s for s in STAGES if s != "write"]
    samples = read(clip).samples
    called = Called()
    for times in (1, 12):  # long sound is cut
        recognizer.transcribe(np.tile(samples, times), sample_rate=16_000, observer=called)
    for stage, (_, _, name, rust) in words.STAGES.items():
        file, _, line = words.place_of(stage).rpartition(":")
        starts = {(Path(code.co_filename), code.co_firstlineno) for code in called.code[stage]}
        assert (ROOT / file, int(line)) in starts, stage
        found = (ROOT / file).read_text().splitlines()[int(line) - 1]
        assert f"def {name.rpartition(':')[2].rpartition('.')[2]}(" in found
        assert not rust or (ROOT / rust).is_file()


PAGE = (ROOT / "docs/report.md").read_text()
SHOWN = re.findall(r"^    asr (report .*)", PAGE, re.M)


@pytest.mark.parametrize("command", SHOWN)
def test_the_pages_commands_work(cli, tmp_path, monkeypatch, kept, command):
    """Each of docs/report.md, with a record, a history, pairs and stacks."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks/history").symlink_to(kept[0].path)
    record.write(kept[1][-1], "record.json")
    record.write(records.pairs(), "pairs.json")
    Path("stacks.txt").write_text("asr;read;open 100\n")
    done = cli(*shlex.split(command))
    assert (done.code, bool(done.out)) == (0, True), done.err
    if "-o" in command:
        text = Path(shlex.split(command)[-1]).read_text()
        assert text.startswith("<!DOCTYPE html>" if command.endswith("html") else "# ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["gone.json"], 5, "gone.json: cannot read the record"),
        (["pairs.json"], 4, "expected asr-bench/1, found asr-pairs/1"),
        (["run.json", "--folded", "x"], 2, "--folded: needs --brief"),
        (["run.json", "--brief", "--pairs", "x"], 2, "--pairs: not used with --brief"),
        (["run.json", "--brief", "--folded", "gone"], 5, "gone: cannot read the file"),
        (["run.json", "--history", "gone"], 2, "gone: expected a history, found none"),
    ],
)
def test_mistakes_are_one_line(cli, tmp_path, monkeypatch, arguments, code, said):
    """With what was expected."""
    monkeypatch.chdir(tmp_path)
    record.write(RUN, "run.json")
    record.write(records.pairs(), "pairs.json")
    done = cli("report", *arguments)
    assert (done.code, said in done.err) == (code, True), done.err
    assert len(done.err.splitlines()) == 1
