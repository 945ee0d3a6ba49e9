"""fuzz/: a short seeded run of every target, and a harness that finds what was planted."""

import random
import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "fuzz"))

import run as fuzzing
import targets

#: Executions in a plain test run; `make fuzz` has minutes.
CASES = {"wav": 300, "compressed": 150, "others": 150, "containers": 50, "pipe": 100, "raw": 500,
         "array": 500, "boundary": 1000}  # fmt: skip


def test_no_seeded_case_is_a_finding():
    """Readers and boundary: a result that keeps its promises, or one line of ours."""
    assert list(CASES) == list(targets.TARGETS)
    for name, cases in CASES.items():
        count, findings = fuzzing.fuzz(name, seed=1, seconds=60, cases=cases)
        assert (cases, []) == (count, findings), name


PLANTED = """
import ctypes, time
import targets

def planted(case):
    if case.data == b"{wanted}":
        {fault}

targets.TARGETS["planted"] = targets.Target(
    lambda dice: targets.Case(bytes([97 + dice.randrange(26)])), planted
)
"""


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("ctypes.string_at(0)", "crash: the process ended with -11"),
        ("time.sleep(60)", "hang: more than 1 s"),
        ("raise KeyError('planted')", "KeyError: 'planted'"),
        ("bytearray(1 << 34)", "MemoryError"),
        ("targets.read(b'no sound', b'no sound')", ""),
    ],
    ids=["crash", "hang", "exception", "memory", "no finding"],
)
def test_a_planted_fault_is_found_and_the_rest_goes_on(tmp_path, monkeypatch, fault, found):
    """Each kind of finding, at the case that has it; executions behind it are made and counted."""
    (tmp_path / "sitecustomize.py").write_text(PLANTED.format(wanted="q", fault=fault))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    cases = 80
    count, findings = fuzzing.fuzz(
        "planted", seed=3, seconds=60, cases=cases, hang_s=1 if "hang" in found else 20
    )
    if not found:
        assert (cases, []) == (count, findings)
        return
    letters = [bytes([97 + random.Random(f"planted:3:{n}").randrange(26)]) for n in range(cases)]
    expected = [n for n, letter in enumerate(letters) if letter == b"q"]
    assert count == cases, findings
    assert all(found in what for _, what in findings)
    # Of one exception's many cases the first is told.
    assert [n for n, _ in findings] == (expected[:1] if "Error" in found else expected)


def test_a_finding_is_made_small(tmp_path, monkeypatch):
    """Bytes that have nothing to do with it are left out."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "sitecustomize.py").write_text("""
import targets

def planted(case):
    assert b"x" not in case.data or b"y" not in case.data

targets.TARGETS["planted"] = targets.Target(
    lambda dice: targets.Case(bytes(range(97, 123))), planted
)
""")
    monkeypatch.setitem(
        targets.TARGETS,
        "planted",
        targets.Target(lambda _: targets.Case(bytes(range(97, 123))), lambda _: None),
    )
    assert fuzzing.minimise("planted", 1, 0) == b"xy"
