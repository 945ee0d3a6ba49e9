"""What the documentation tells people to do works, in both languages."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr.cli import build_parser

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text()
#: Pages of docs/ whose commands run as the README's do.
PAGES = ("profile", "predict")
MAKEFILE = (ROOT / "Makefile").read_text()


def blocks(text, language):
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)


def commands():
    """Each asr command in the sh blocks of the README, of docs/profile.md and docs/predict.md."""
    pages = README + "".join((ROOT / f"docs/{page}.md").read_text() for page in PAGES)
    lines = "".join(blocks(pages, "sh")).splitlines()
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
    pages = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md")]
    for page in (*pages, *(ROOT / "docs").glob("*.md")):
        folder = page.parent
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
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


# The pages of docs/: every fenced block of sh and python is run, shown output is compared.

PAGES = sorted((ROOT / "docs").glob("*.md"))
#: Builds and measures for minutes, in a checkout.
NOT_RUN = {"why-rust.md"}
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```(?:\n\n```(text|json)\n(.*?)^```)?", re.M | re.S)
RUN = [
    pytest.param(page, *block, id=f"{page.stem}-{number}")
    for page in PAGES
    if page.name not in NOT_RUN
    for number, block in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), start=1)
]


@pytest.fixture
def sandbox(tmp_path, clip, short_clip, monkeypatch):
    """A folder with recordings named as the pages name them, and a cache of its own."""
    from asr.audio import raw

    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "cache"))

    talk, _ = soundfile.read(clip, dtype="float32")
    word, _ = soundfile.read(short_clip, dtype="float32")
    for name in ("calls", "recordings", "golden/audio"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("talk.wav", "calls/a.wav", "recordings/a.wav", "golden/audio/" + clip.name):
        (tmp_path / name).symlink_to(clip)
    for name in ("word.wav", "calls/b.wav", "recordings/b.wav"):
        (tmp_path / name).symlink_to(short_clip)
    (tmp_path / "word.raw").write_bytes((word * 32767).astype("<i2").tobytes())
    both = np.zeros((len(talk), 2), np.float32)
    both[:, 0], both[: len(word), 1] = talk, word
    for name in ("stereo.wav", "call.wav"):
        soundfile.write(tmp_path / name, both, 16000)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    pause = np.zeros(16000, np.float32)
    meeting = np.concatenate([part for _ in range(10) for part in (talk, pause)])
    soundfile.write(tmp_path / "meeting.wav", meeting, 16000)
    table = raw._table("alaw")
    order = np.argsort(table)
    codes = order[np.clip(np.searchsorted(table[order], talk[::2]), 0, 255)]
    (tmp_path / "call.alaw").write_bytes(codes.astype(np.uint8).tobytes())
    return tmp_path


def matches(shown, found):
    """Whether an output is as shown, where `...` stands for anything in a line."""
    pattern = re.escape(shown).replace(r"\.\.\.", r"[^\n]*")
    return re.fullmatch(pattern, found) is not None


@pytest.mark.parametrize(("page", "language", "code", "kind", "shown"), RUN)
def test_the_pages_are_true(page, language, code, kind, shown, sandbox, capsys, monkeypatch):
    """Commands and Python of every page run as they stand, and print what the page shows."""
    monkeypatch.chdir(sandbox)
    if language == "python":
        exec(compile(code, page.name, "exec"), {"__name__": "__main__"})
        out = capsys.readouterr().out
    else:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", code],
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        out = done.stdout
    if kind == "text":
        assert matches(shown, out), out
    elif kind == "json":
        same = lambda value: pytest.approx(value, abs=2e-3) if type(value) is float else value  # noqa: E731
        expected, found = flat(json.loads(shown)), flat(json.loads(out))
        assert expected.keys() == found.keys()
        del expected[".wall_s"]
        assert {k: found[k] for k in expected} == {k: same(v) for k, v in expected.items()}


def flat(value, path=""):
    """A nested value as one dictionary of paths."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list) and value:
        parts = enumerate(value)
    else:
        return {path: value}
    return {k: v for name, part in parts for k, v in flat(part, f"{path}.{name}").items()}


#: Indented commands; those of output.md have a test beside what they describe. What needs a model
#: that is brought over the network is left out: tests/test_cli_models.py has the commands.
INDENTED = [
    line
    for text in (README, *(page.read_text(encoding="utf-8") for page in PAGES))
    for line in re.findall(r"^ {4}(asr .*)", text, re.M)
    if "sensevoice" not in line.lower() and line != "asr models pull"
]


#: Commands that measure for minutes, or read what those leave behind: here their options are read,
#: tests/test_cli_bench.py, test_history.py, test_report.py and the system tests run them.
MEASURES = ("asr bench", "asr gate", "asr history", "asr report")


@pytest.mark.parametrize("command", sorted(c for c in set(INDENTED) if c.startswith(MEASURES)))
def test_commands_that_measure_are_understood(command):
    """The options exist and their values are read."""
    words = shlex.split(command)[1:]
    assert build_parser().parse_args(words).command == words[0]


@pytest.mark.parametrize("command", sorted(c for c in set(INDENTED) if not c.startswith(MEASURES)))
def test_indented_commands_work(command, sandbox, short_clip, cli, monkeypatch):
    """Each exits 0 in the same folder, with the lists that the pages tell of."""
    monkeypatch.chdir(sandbox)
    (sandbox / "clip.wav").symlink_to(short_clip)
    (sandbox / "FOLDER").symlink_to(ROOT / "asr/builtin/tiny-en")
    (sandbox / "digits.txt").write_text("five\nseven\n")
    (sandbox / "lamp.txt").write_text("seven => on\n")
    rows = [f"{f}\t{t}\t{s}" for s in ("dev", "test")
            for f, t in (("word.wav", "seven"), ("talk.wav", "no"))]  # fmt: skip
    (sandbox / "clips.tsv").write_text("\n".join(["path\ttranscript\tsplit", *rows]) + "\n")
    done = cli(*shlex.split(command.split(" > ")[0])[1:])
    assert done.code == 0, done
    assert done.out or "-o" in command


def test_every_page_is_in_the_index():
    """docs/README.md leads to every page, and the README to the index, in both languages."""
    index = (ROOT / "docs/README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(([\w.-]+\.md)\)", index))
    assert linked == {page.name for page in PAGES} - {"README.md"}
    assert all("docs/README.md" in readme for readme in (README, CHINESE))


def test_the_page_of_exit_codes_is_the_contracts():
    """The same codes as in the contract, and the classes as the code has them."""
    import asr

    page = (ROOT / "docs/exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|[^|]*\|([^|]*)\|", page, re.M)
    classes = {name: int(code) for code, names in rows for name in re.findall(r"`(\w+)`", names)}
    errors = [n for n in asr.__all__ if n.endswith("Error")]
    assert classes == {name: getattr(asr, name).exit_code for name in errors}
    contract = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    contract = contract[contract.index("Exit codes") :].split("\n- ")[0]
    assert {int(code) for code, _ in rows} == set(map(int, re.findall(r"(\d+) [a-z]", contract)))


def test_the_page_of_json_names_every_field():
    """Each field of the schema is explained."""
    page = (ROOT / "docs/json.md").read_text(encoding="utf-8")
    schema = json.loads((ROOT / "docs/transcript.schema.json").read_text(encoding="utf-8"))
    for name in schema["properties"]:
        assert f"`{name}`" in page or f"`--{name}`" in page or f'"{name}"' in page, name
