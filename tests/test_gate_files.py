"""asr.gate.budget, .accepted, .reference, .sides: what stands in files and in git."""

import dataclasses
import datetime
import subprocess
from pathlib import Path

import pytest
import records

from asr.errors import AsrError, RecordError, SystemAccessError
from asr.gate import sides
from asr.gate.accepted import read_accepted
from asr.gate.budget import Budget, Margins, read_budget
from asr.gate.findings import Comparison
from asr.gate.reference import read_reference
from asr.gate.verdict import judge

ROOT = Path(__file__).parent.parent
TODAY = datetime.date(2026, 12, 1)
ENTRY = """
metric = "warm/*/fbank"
sha = "1234567"
at_most = 1.4
reason = "exact mel sums"
signed_off_by = "A. Maintainer"
expires = 2026-12-31
"""


def write(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def test_the_repositorys_own_files_are_valid():
    """Budget, reference and accepted; the budget's margins are the defaults the proof is about."""
    budget = read_budget(ROOT / "benchmarks/budget.toml")
    assert budget.margins == Margins()
    assert budget.device({"arch": "x86_64"}, "tiny-en").promises["rtf_warm"] > 0
    assert len(read_reference(ROOT / "benchmarks/reference.toml").sha) == 40
    read_accepted(ROOT / "benchmarks/accepted", datetime.date.today())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[relative", "expected TOML"),
        ("[relativ]\n", "found the key 'relativ'"),
        ("[relative]\ntotel = 0.02\n", "found the key 'totel'"),
        ("[relative]\ntotal = '2 %'\n", "total: expected a number, found '2 %'"),
        ("[relative]\ntotal = true\n", "total: expected a number"),
        ("[relative]\ntotal = -0.1\n", "expected a share, found -0.1"),
        ("[relative]\nerror_rate = 0\n", "expected a share, found 0"),
        ("[relative]\ntotal = 0.06\n", "margins below find_total"),
        ("[device.x]\nmodel = 'm'\n", "at least one promise"),
        ("[device.x]\nrtf_warm = 1.0\n", "expected a model"),
        ("[device.x]\nmodel = 'm'\nrtf_hot = 1\n", "found the key 'rtf_hot'"),
        ("[device.x]\nmodel = 'm'\n'wheel_mb/5 s' = 1\n", "found the key 'wheel_mb/5 s'"),
    ],
)
def test_a_typing_mistake_lifts_no_limit(text, said, tmp_path):
    """Unknown keys, other types and senseless limits are one line with the file's name."""
    with pytest.raises(RecordError, match=r"budget\.toml.*") as caught:
        read_budget(write(tmp_path / "budget.toml", text))
    assert said in str(caught.value)


def test_a_missing_budget_is_told(tmp_path):
    """Only the default file may be missing."""
    with pytest.raises(SystemAccessError, match="nowhere"):
        read_budget(tmp_path / "nowhere.toml")


def judged_with(entries, brought=lambda a, b, sha: True, factor=1.3):
    same = {"count": 16, "factors": {"fbank": factor}, "sd": 0.01}
    pairs = records.pairs(1, confirm=records.pair_list(7, **same), **same)
    budget = Budget(margins=Margins(total=0.049))
    return judge([Comparison("parent", pairs)], budget, accepted=entries, brought=brought)


def test_a_signed_slowdown_is_told_and_does_not_fail(tmp_path):
    """It stays a regression in the table, with who signed and until when."""
    write(tmp_path / "fbank.toml", ENTRY)
    verdict = judged_with(read_accepted(tmp_path, TODAY))
    regressed = [f for f in verdict.findings if f.outcome == "regressed"]
    assert {f.metric for f in regressed} == {"warm/1 s/fbank", "warm/5 s/fbank"}
    assert all("A. Maintainer" in f.note and "2026-12-31" in f.note for f in regressed)
    assert verdict.exit_code() == 0
    assert judged_with([]).exit_code() == 10


@pytest.mark.parametrize(
    ("change", "factor"),
    [
        ({"metric": "warm/*/infer"}, 1.3),
        ({}, 1.6),
        ({"at_most": 1.1}, 1.3),
    ],
)
def test_no_more_than_was_signed_for(change, factor, tmp_path):
    """Another metric, or a larger ratio, fails as ever."""
    write(tmp_path / "fbank.toml", ENTRY)
    (entry,) = read_accepted(tmp_path, TODAY)
    verdict = judged_with([dataclasses.replace(entry, **change)], factor=factor)
    assert verdict.exit_code() == 10


def test_only_where_the_commit_is_in_between(tmp_path):
    """An entry speaks of one commit: a comparison that does not hold it is not excused."""
    write(tmp_path / "fbank.toml", ENTRY)
    asked = []
    entries = read_accepted(tmp_path, TODAY)
    verdict = judged_with(entries, lambda a, b, sha: asked.append((a, b, sha)))
    assert verdict.exit_code() == 10
    assert set(asked) == {(records.git(1).sha, records.git(2).sha, "1234567")}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2026-12-31", "2026-11-30", "expired on 2026-11-30"),
        ('reason = "exact mel sums"', "", "expected 'reason'"),
        ('signed_off_by = "A. Maintainer"', 'signed_off_by = " "', "expected 'signed_off_by'"),
        ("1234567", "12345", "7 digits"),
        ("1.4", "1.0", "at_most above 1"),
        ("2026-12-31", '"2026-12-31"', "expires: expected a date"),
        ("2026-12-31", "2026-12-31T00:00:00", "expires: expected a date"),
    ],
)
def test_an_entry_that_does_not_hold_fails_loudly(old, new, said, tmp_path):
    """Expired or incomplete: an error that names the file, never a silent pass."""
    write(tmp_path / "fbank.toml", ENTRY.replace(old, new))
    with pytest.raises(RecordError, match=said):
        read_accepted(tmp_path, TODAY)


def test_an_entry_holds_on_its_last_day(tmp_path):
    """Expiry is the last day, not the first after."""
    write(tmp_path / "fbank.toml", ENTRY)
    assert read_accepted(tmp_path, datetime.date(2026, 12, 31))
    assert read_accepted(tmp_path / "none", TODAY) == []


REFERENCE = """
[[reference]]
sha = "{}"
date = 2026-11-29
reason = "the start"
signed_off_by = "A. Maintainer"
"""


def test_the_reference_moves_by_a_new_entry_only(tmp_path):
    """The last entry counts; an old one may not change or go."""
    one, two = REFERENCE.format("1" * 40), REFERENCE.format("2" * 40)
    path = write(tmp_path / "reference.toml", one + two)
    assert read_reference(path, one).sha == "2" * 40
    write(path, two)
    with pytest.raises(RecordError, match="an old one changed"):
        read_reference(path, one)
    write(path, one.replace("the start", ""))
    with pytest.raises(RecordError, match="expected 'reason'"):
        read_reference(path, None)
    assert read_reference(tmp_path / "none.toml") is None


def repository(folder, commits=3):
    """A clone with a reference file; returns its commits, oldest first."""

    def git(*arguments):
        return subprocess.run(
            ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org",
             *arguments], check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip

    git("init", "-q")
    shas = []
    for i in range(commits):
        if i == 1:
            write(folder / sides.REFERENCE, REFERENCE.format(shas[0]))
        write(folder / "file", str(i))
        git("add", "-A")
        git("commit", "-qm", str(i))
        shas.append(git("rev-parse", "HEAD"))
    return shas


@pytest.fixture
def built(monkeypatch):
    """Commits that were asked to be built; nothing is."""
    asked = []

    def build(sha, root, say):
        asked.append(sha)
        return sides.Install(sha, Path("asr"), Path("python"))

    monkeypatch.setattr(sides.installs, "from_revision", build)
    return asked


def test_parent_and_reference_are_what_one_is_held_against(tmp_path, built):
    """Both, by name."""
    shas = repository(tmp_path, 3)
    found = sides.usual(tmp_path, str)
    assert built == [shas[1], shas[0]]
    assert [s.against for s in found] == [f"parent {shas[1][:7]}", f"reference {shas[0][:7]}"]


def test_changed_files_are_held_against_their_commit(tmp_path, built):
    """The working tree's parent is HEAD."""
    shas = repository(tmp_path, 3)
    (tmp_path / "file").write_text("changed")
    sides.usual(tmp_path, str)
    assert built == [shas[2], shas[0]]


def test_one_side_when_parent_and_reference_are_the_same(tmp_path, built):
    """Nothing is measured twice."""
    shas = repository(tmp_path, 2)
    assert [s.against for s in sides.usual(tmp_path, str)] == [f"parent {shas[0][:7]}"]


def test_a_shallow_clone_says_so(tmp_path, built):
    """No parent, no reference: two sides that say why, no crash and no build."""
    (tmp_path / "full").mkdir()
    repository(tmp_path / "full", 3)
    clone = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", f"file://{tmp_path}/full", str(clone)],
                   check=True)  # fmt: skip
    found = sides.usual(clone, str)
    assert built == []
    assert [s.install for s in found] == [None, None]
    assert all("git fetch --unshallow" in s.why for s in found)


def test_a_reference_rewritten_since_the_parent_is_refused(tmp_path, built):
    """git show PARENT:benchmarks/reference.toml is what it must continue."""
    shas = repository(tmp_path, 3)
    write(tmp_path / sides.REFERENCE, REFERENCE.format(shas[1]))
    with pytest.raises(AsrError, match="an old one changed"):
        sides.usual(tmp_path, str)


def test_which_commits_lie_between(tmp_path):
    """a is left out, b counts; without a clone only b itself is known."""
    shas = repository(tmp_path, 3)
    brought = sides.brought(tmp_path)
    assert [brought(shas[0], shas[2], s[:8]) for s in shas] == [False, True, True]
    assert sides.brought(None)(shas[0], shas[2], shas[2][:7])
    assert not sides.brought(None)(shas[0], shas[2], shas[1][:7])
