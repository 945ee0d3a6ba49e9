"""What the documentation tells people to do works, in both languages."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()


def blocks(text, language):
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def commands():
    """Each asr command in the sh blocks of the README and of docs/profile.md."""
    lines = "".join(blocks(README + (ROOT / "docs/profile.md").read_text(), "sh")).splitlines()
    return [line for line in lines if re.match(r"(\w+=\S+ )?asr ", line)]


def test_both_readmes_show_the_same_commands():
    """The Chinese page has the same code blocks in the same order."""
    for language in ("sh", "python"):
        assert blocks(README, language) == blocks(CHINESE, language)
    indented = re.compile(r"^    asr .*", re.M)
    assert indented.findall(README) == indented.findall(CHINESE)


def test_both_readmes_have_the_same_sections():
    """As many headings and table rows on both pages."""
    for pattern in (r"^## ", r"^\|"):
        assert len(re.findall(pattern, README, re.M)) == len(re.findall(pattern, CHINESE, re.M))


def test_make_targets_exist():
    """Every `make target` in the documents is a target."""
    rules = re.findall(r"^([a-z][a-z -]*):", MAKEFILE, re.M)
    targets = {name for rule in rules for name in rule.split()}
    for page in (README, CHINESE, (ROOT / "CONTRIBUTING.md").read_text()):
        assert set(re.findall(r"make ([a-z][a-z-]+)", page)) - targets == set()


def test_links_lead_somewhere():
    """Relative links of the pages name files that exist."""
    for page in (
        "README.md",
        "README.zh-CN.md",
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/models.md",
        "docs/audio.md",
        "docs/bench.md",
        "docs/output.md",
        "docs/evaluate.md",
        "docs/phrases.md",
        "docs/doctor.md",
        "docs/profile.md",
        "docs/history.md",
        "docs/report.md",
    ):
        folder = (ROOT / page).parent
        for link in re.findall(r"\]\(([^)#]+)\)", (ROOT / page).read_text()):
            assert link.startswith("http") or (folder / link).exists(), f"{page}: {link}"


@pytest.mark.parametrize("command", commands())
def test_readme_commands_work(command, tmp_path):
    """Each of those commands exits 0 and prints something."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        re.sub("/tmp/asr-(dump|profile)", str(tmp_path), command),
        shell=True,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, bool(result.stdout)) == (0, True), result.stderr


def test_the_readmes_python_works(capsys, monkeypatch):
    """The Python of the README runs as it stands."""
    monkeypatch.chdir(ROOT)
    (code,) = blocks(README, "python")
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("one two three")


def test_exit_codes_agree():
    """The contract's exit codes, the README's, and the classes' are the same."""
    import asr

    contract = (ROOT / "docs/architecture.md").read_text()
    codes = {getattr(asr, n).exit_code for n in asr.__all__ if n.endswith("Error")}
    listed = set(map(int, re.findall(r"(\d+) [a-z]", contract[contract.index("Exit codes") :])))
    assert codes <= listed
