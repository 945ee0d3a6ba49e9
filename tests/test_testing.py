"""asr.testing, and what docs/gate.md and docs/ci/gate.yml tell people to do."""

import datetime
import os
import re
import shlex
import shutil
import subprocess
import sys
import wave
from pathlib import Path

import pytest
import records
import yaml

from asr.bench import record
from asr.cli import build_parser, main
from asr.errors import RecordError
from asr.gate.accepted import read_accepted
from asr.testing import gate_model

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/gate.md").read_text()
WORKFLOW = yaml.safe_load((ROOT / "docs/ci/gate.yml").read_text())


@pytest.fixture
def project(tmp_path, monkeypatch, short_clip):
    """Somebody else's project: a model folder, a table of clips, a noise, and the page's test."""
    shutil.copytree(ROOT / "asr/builtin/tiny-en", tmp_path / "models/ours")
    shutil.copy(short_clip, tmp_path / "seven.wav")
    (tmp_path / "clips.tsv").write_text("file\ttext\nseven.wav\tseven\n")
    with wave.open(str(tmp_path / "street-noise.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(32000))
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    (tmp_path / "test_ours.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_three_lines_gate_a_model(project):
    """The page's own test, run by pytest as it stands: it passes, and fails on another text."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_ours.py"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    (project / "clips.tsv").write_text("file\ttext\nseven.wav\televen\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "seven: expected 'eleven', heard 'seven'" in done.stdout


def test_everything_wrong_is_told_at_once(project):
    """Text, time with the stage that takes it, and a sound that is not withheld."""
    (project / "clips.tsv").write_text("file\ttext\nseven.wav\televen\n")
    with pytest.raises(AssertionError) as caught:
        gate_model("models/ours", "clips.tsv", rtf=1e-9, rejects=["seven.wav"], repeat=2)
    head, text, rtf, rejected = str(caught.value).splitlines()
    assert head == "models/ours fails its gate:"
    assert text == "seven: expected 'eleven', heard 'seven'"
    assert re.fullmatch(r"rtf: expected at most 1e-09, found \S+, of which [a-z]+ \S+", rtf)
    assert rejected == "seven.wav: expected to be rejected, heard 'seven'"


def test_the_figures_come_back(project):
    """Stages add up to the whole; silence is rejected."""
    found = gate_model("models/ours", "clips.tsv", rtf=50, rejects=["street-noise.wav"], repeat=2)
    assert 0 < sum(found.stages_rtf.values()) == pytest.approx(found.rtf)


def test_a_lock_needs_a_text(project):
    """A table without texts would lock nothing."""
    (project / "clips.tsv").write_text("file\nseven.wav\n")
    with pytest.raises(RecordError, match=r"clips\.tsv: expected a text for every clip.*seven"):
        gate_model("models/ours", "clips.tsv", rtf=1)


# ---------------------------------------------------------------- the page and the workflow


def commands():
    """The page's commands."""
    return re.findall(r"^    ((?:asr|python) .*)$", PAGE, re.M)


def test_the_long_command_is_what_ci_runs():
    """`asr gate --quick` takes minutes: make gate runs it, and .ci/run make gate."""
    recipe = re.search(r"^gate:.*\n\t(.*)", (ROOT / "Makefile").read_text(), re.M).group(1)
    assert recipe == f"$(BIN)/{commands()[0]}"
    assert re.search(r"make .*\bgate$", (ROOT / ".ci/run").read_text(), re.M)


@pytest.mark.parametrize("command", commands()[1:])
def test_the_pages_commands_work(command, tmp_path):
    """Run as they stand, beside records of those names."""
    record.write(records.pairs(2, count=14, sd=0.004), tmp_path / "pairs.json")
    record.write(records.bench(), tmp_path / "record.json")
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    bin_folder = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"}
    fewer = " --draws 10" if command.startswith("python") else ""
    done = subprocess.run(
        command + fewer, shell=True, cwd=tmp_path, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, bool(done.stdout)) == (0, True), done.stderr


def test_the_pages_options_exist(capsys):
    """Every option that the page names is in the help."""
    with pytest.raises(SystemExit):
        main(["gate", "--help"])
    told = capsys.readouterr().out
    for option in set(re.findall(r"`(--[a-z][a-z-]+)", PAGE)) - {"--repeat", "--workload"}:
        assert option in told, option


def test_the_pages_entry_is_valid(tmp_path):
    """The signed-off slowdown that people will copy."""
    (text,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.M | re.S)
    (tmp_path / "entry.toml").write_text(text)
    (entry,) = read_accepted(tmp_path, datetime.date(2026, 12, 1))
    assert entry.covers("warm/5 s/fbank", 1.05, lambda sha: True)


def steps():
    return [step for job in WORKFLOW["jobs"].values() for step in job["steps"]]


def test_the_workflow_has_what_the_gate_needs():
    """Whole history, a limit on time, no more rights than reading."""
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] for job in WORKFLOW["jobs"].values())
    depths = [s["with"]["fetch-depth"] for s in steps() if "checkout" in s.get("uses", "")]
    assert depths == [0, 0]
    assert all(("run" in step) != ("uses" in step) for step in steps())


@pytest.mark.parametrize("line", [s["run"] for s in steps() if "asr gate" in s.get("run", "")])
def test_the_workflows_commands_are_ours(line):
    """Every option is one that asr gate has; $(...) stands for a word."""
    words = shlex.split(re.sub(r"\$\{\{.*?\}\}", "x", line).replace("$(", "").replace(")", ""))
    assert words[0] == ".venv/bin/asr"
    options = build_parser().parse_args(words[1:])
    assert options.annotations
