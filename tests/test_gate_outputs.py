"""asr.gate.outputs: each form is what its reader expects, and hides nothing."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest
import records

from asr.gate.budget import Budget
from asr.gate.findings import Blame, Comparison, Finding, Verdict
from asr.gate.outputs import action, annotations, bencher, junit, markdown, plain, table, words
from asr.gate.verdict import judge

ROOT = Path(__file__).parent.parent
#: https://bencher.dev/bmf.json, in short: names -> measures -> numbers.
BMF = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {
            "type": "object",
            "properties": {
                "value": {"type": "number"},
                "lower_value": {"type": "number"},
                "upper_value": {"type": "number"},
            },
            "required": ["value"],
            "additionalProperties": False,
        },
    },
}


def slow():
    """fbank is slower by 60 %, against two bases; one of them cannot be compared."""
    same = {"count": 16, "factors": {"fbank": 1.6}}
    pairs = records.pairs(1, confirm=records.pair_list(7, **same), **same)
    comparisons = [Comparison("parent 1234567", pairs), Comparison("reference", None, "not here")]
    return judge(comparisons, Budget())


SLOW = slow()
CALM = judge([Comparison("parent", records.pairs(2, count=16, confirm=None, sd=0.005))], Budget())
HOSTILE = Verdict(
    "a|b",
    [Finding("m|x", "p\n::error::y,z:%", "regressed", "ns", 1.0, 2.0, ratio=2.0, low=1.9, high=2.1,
             margin=0.02, pairs=12, note="<b>\x07|*evil*\n\n# head")],
)  # fmt: skip


def test_the_table_tells_everything():
    """A row per compared metric, the blame, and the headline last."""
    text = table.text(SLOW)
    compared = [f for f in SLOW.findings if f.ratio is not None]
    assert all(f.metric in text for f in compared)
    assert "* against reference: not comparable; not here" in text
    assert re.search(r"\+\d+\.\d % in warm RTF at 5 s .*, of which fbank \+\d", text)
    assert text.splitlines()[-1].startswith(f"{SLOW.judged} fails (regressed): ")
    assert table.text(CALM).splitlines()[-1].startswith(f"{CALM.judged} passes: ")
    assert "warm/5 s/infer" not in table.text(CALM, every=False)


def test_nothing_compared_is_not_called_a_pass():
    """The headline says so."""
    assert "compared nothing" in table.text(judge([Comparison("parent", None, "gone")], Budget()))


def test_json_fits_its_published_schema():
    """docs/gate.schema.json; infinity never gets out."""
    schema = json.loads((ROOT / "docs/gate.schema.json").read_text())
    for verdict in (SLOW, CALM, HOSTILE, judge([], Budget())):
        told = json.loads(plain.text(verdict, 10), parse_constant=pytest.fail)
        jsonschema.validate(told, schema)
    told = json.loads(plain.text(SLOW, 10))
    assert told["blames"][0]["stage"] == "fbank"
    assert told["counts"]["regressed"] == sum(f["outcome"] == "regressed" for f in told["findings"])


def test_markdown_names_the_guilty_stage_first():
    """Headline, then the sentence of the issue; passes are folded away."""
    text = markdown.text(SLOW)
    assert text.startswith("### ❌ ")
    assert re.search(r"^\*\*\+\d+\.\d % in warm RTF at 1 s .*of which fbank \+", text, re.M)
    assert text.index("warm/5 s/fbank") < text.index("<details>") < text.index("warm/5 s/infer")
    assert markdown.text(CALM).startswith("### ✅ ")


def test_markdown_cannot_be_broken_by_a_name():
    """Every table row has its seven cells; no markup gets through."""
    text = markdown.text(HOSTILE)
    (row,) = [line for line in text.splitlines() if line.startswith("| m\\")]
    assert len(re.findall(r"(?<!\\)\|", row)) == 8
    assert "\n# head" not in text
    assert "<b>" not in text.replace("\\<b", "")


def test_annotations_are_one_command_a_line():
    """Errors for failures, warnings for what stays open; properties and data are escaped."""
    lines = annotations.text(SLOW).splitlines()
    assert lines[0].startswith("::error title=guilty stage::+")
    assert any(line.startswith("::warning title=*::") for line in lines)
    assert all(re.match(r"::(error|warning|notice) title=[^:,]*::[^\r\n]*$", x) for x in lines)
    hostile = annotations.text(HOSTILE)
    assert len(hostile.splitlines()) == 1
    assert "%0A::error::y,z:%25" in hostile
    assert "::error" not in annotations.text(CALM)


def test_github_shows_ten_of_a_kind():
    """The tenth line says how many more there are."""
    many = Verdict("x", [Finding(f"m{i}", "p", "regressed", ratio=1.1) for i in range(23)])
    lines = annotations.text(many).splitlines()
    assert len(lines) == 10
    assert "14 more" in lines[-1]


def test_junit_counts_what_it_lists():
    """A failure per failing finding, skipped for open ones; any text is valid XML."""
    suite = ElementTree.fromstring(junit.text(SLOW)).find("testsuite")
    assert int(suite.get("tests")) == len(suite.findall("testcase")) == len(SLOW.findings)
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) > 0
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped")) > 0
    assert "of which fbank" in suite.find("testcase/failure").text
    assert ElementTree.fromstring(junit.text(HOSTILE)) is not None


def test_bencher_metric_format():
    """Valid BMF; bounds around the value."""
    found = json.loads(bencher.text(SLOW))
    jsonschema.validate(found, BMF)
    row = found["warm/5 s/total"]["latency"]
    assert row["lower_value"] <= row["value"] * 1.05
    assert row["upper_value"] >= row["value"] * 0.95
    assert set(found["size/network"]) == {"file-size"}
    assert set(found["memory/peak"]) == {"memory"}


def test_github_action_benchmark():
    """A list of rows; each name once."""
    rows = json.loads(action.text(SLOW))
    names = [row["name"] for row in rows]
    assert len(names) == len(set(names))
    assert "warm/5 s/fbank" in names
    for row in rows:
        assert set(row) <= {"name", "unit", "value", "range", "extra"}
        assert isinstance(row["value"], int | float)
    assert next(r for r in rows if r["name"] == "warm/5 s/total")["range"].startswith("± ")


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(None, "ns", "-"), (1_234_567.0, "ns", "1.23 ms"), (950.0, "ns", "950 ns"),
     (2.5e9, "ns", "2.5 s"), (3_130_000, "bytes", "3.13 MB"), (0.25, "rtf", "0.25 rtf")],
)  # fmt: skip
def test_amounts(value, unit, said):
    """Three digits and a unit."""
    assert words.amount(value, unit) == said


def test_the_sentence_of_the_issue():
    """+11.0 % in warm RTF, of which fbank +9.6."""
    blame = Blame("5 s", "parent", 0.11, {"fbank": 0.096, "infer": 0.01, "read": 0.004})
    assert str(blame) == "+11.0 % in warm RTF at 5 s against parent, of which fbank +9.6"
    assert blame.stage == "fbank"
