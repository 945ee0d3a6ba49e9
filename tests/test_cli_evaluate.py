"""asr evaluate: a table on stdout, progress and bad lines on stderr, pictures in a folder."""

import csv
import json
import os
import pty
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import jsonschema
import pytest
from conftest import COMMAND
from test_evaluate import parse

from asr.rejection import SCHEMA_ID, Thresholds

pytest.importorskip("rapidfuzz", reason="asr evaluate needs it: pip install rapidfuzz")

ROOT = Path(__file__).resolve().parents[1]
AUDIO = ROOT / "golden" / "audio"
SCHEMA = json.loads((ROOT / "docs" / "evaluation.schema.json").read_text(encoding="utf-8"))


def write(path, *lines, columns=("path", "transcript", "source", "split")):
    """A manifest of these lines."""
    path.write_text("\n".join("\t".join(line) for line in (columns, *lines)) + "\n")
    return path


@pytest.fixture(scope="session")
def said(recognizer):
    """What the model hears in six clips, so that errors can be put into a manifest."""
    names = ("transcribe_me", "digits-rms", "seven-slt", "yes-rms", "stop-awb", "up-slt")
    return {name: recognizer.transcribe(AUDIO / f"{name}.wav").text for name in names}


@pytest.fixture
def lines(said):
    """Nine words with one changed, four with one dropped, one with one added, three right."""
    nine, four = said["transcribe_me"].split(), said["digits-rms"].split()
    assert (len(nine), len(four)) == (9, 4)
    return [
        (f"{AUDIO}/transcribe_me.wav", " ".join(["zebra", *nine[1:]]), "strings", "test"),
        (f"{AUDIO}/digits-rms.wav", " ".join(four[:-1]), "strings", "test"),
        (f"{AUDIO}/seven-slt.wav", said["seven-slt"].upper() + ", please!", "words", "test"),
        (f"{AUDIO}/yes-rms.wav", said["yes-rms"], "words", "test"),
        (f"{AUDIO}/stop-awb.wav", said["stop-awb"], "words", "dev"),
        (f"{AUDIO}/up-slt.wav", "zebra", "words", "dev"),
    ]


def check(text):
    found = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found


def test_the_schema_is_a_schema():
    """docs/evaluation.schema.json is valid and closed: no member can be forgotten."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["additionalProperties"] is False


def test_counts_of_a_known_manifest(cli, tmp_path, lines):
    """One of each kind of error among 15 expected words, in the right source; by hand."""
    done = cli("evaluate", write(tmp_path / "m.tsv", *lines), "--json")
    assert (done.code, done.err) == (0, "")
    found = check(done.out)
    assert found["splits"] == ["test"]
    total, (strings, words) = found["total"], found["sources"]
    assert total["words"] == {"hits": 13, "substitutions": 1, "deletions": 1, "insertions": 1}
    assert total["wer"]["value"] == pytest.approx(3 / 15, abs=1e-6)
    assert total["clips_right"]["value"] == 0.25
    wer = strings["wer"]
    assert (strings["name"], wer["count"], wer["out_of"]) == ("strings", 2, 12)
    assert (words["words"]["deletions"], words["words_right"]["count"]) == (1, 2)
    assert found["rejection"]["chosen_on"] == []  # the built-in model's own thresholds
    assert [c["errors"] for c in found["worst"]] == [1, 1, 1]


def test_the_table(cli, tmp_path, lines):
    """A row per source and one for all, aligned; the confusions below."""
    done = cli("evaluate", write(tmp_path / "m.tsv", *lines))
    assert (done.code, done.err) == (0, "")
    rows = done.out.splitlines()
    assert rows[0].startswith("tiny-en on ")
    assert "split test: 4 clips" in rows[0]
    assert [row.split()[0] for row in rows[2:6]] == ["source", "strings", "words", "all"]
    assert {row.index("]") for row in rows[3:6]} == {rows[3].index("]")}
    assert "zebra > " in done.out


def test_without_splits_all_lines_count(cli, tmp_path, said):
    """Two columns suffice; paths start at the manifest's folder, or at --root."""
    manifest = write(
        tmp_path / "m.tsv", ("yes-rms.wav", said["yes-rms"]), columns=("path", "transcript")
    )
    found = check(cli("evaluate", manifest, "--root", AUDIO, "--json").out)
    assert found["total"]["clips_right"]["count"] == 1
    assert found["sources"][0]["name"] == "(no source)"
    table = cli("evaluate", manifest, "--root", AUDIO).out.splitlines()
    assert (table[3].split()[:2], table[4]) == (["(no", "source)"], "")  # no second row for all
    done = cli("evaluate", manifest)
    assert done.code == 3
    assert "yes-rms.wav: file not found" in done.err


def test_clips_in_an_archive_are_heard_like_files(cli, tmp_path, said):
    """A tar beside the manifest, named or not, gives the same result."""
    with tarfile.open(tmp_path / "corpus.tar", "w") as archive:
        archive.add(AUDIO / "yes-rms.wav", "corpus/yes.wav")
    lines = [(p, said["yes-rms"], "words", "") for p in ("corpus.tar:corpus/yes.wav",
             "corpus/yes.wav", f"{AUDIO}/yes-rms.wav")]  # fmt: skip
    found = check(cli("evaluate", write(tmp_path / "m.tsv", *lines), "--json").out)
    assert found["total"]["clips_right"]["count"] == 3


def test_bad_lines_are_told_and_the_first_gives_the_exit_code(cli, tmp_path, lines):
    """The others are still evaluated; each failure has its line, in the manifest's order."""
    (tmp_path / "text.wav").write_text("no sound")
    lines = [("short line",), ("text.wav", "x", "words", "test"), *lines]
    lines += [("none.wav", "x", "words", "test")]
    manifest = write(tmp_path / "m.tsv", *lines)
    done = cli("evaluate", manifest, "--json")
    found = check(done.out)
    assert done.code == 2
    assert [(f["line"], f["exit_code"]) for f in found["failures"]] == [(2, 2), (3, 3), (10, 3)]
    assert found["total"]["clips"] == 4
    told = done.err.splitlines()
    assert [line.split(": ")[2] for line in told] == ["line 2", "line 3", "line 10"]
    assert all(line.startswith(f"asr: {manifest}: ") for line in told)


def test_many_clips_show_how_far_it_is(cli, tmp_path):
    """Ten plain lines where stderr is no terminal; the first ten of many failures are named."""
    done = cli("evaluate", write(tmp_path / "m.tsv", *[("none.wav", "x", "", "")] * 200))
    told = done.err.splitlines()
    assert told[:10] == [f"{n} of 200 clips" for n in range(20, 201, 20)]
    assert [line.partition("line ")[2].partition(":")[0] for line in told[10:20]] == [
        str(n) for n in range(2, 12)
    ]
    assert told[20:] == [f"asr: {tmp_path / 'm.tsv'}: and 190 more lines"]
    assert done.out.startswith("tiny-en on ")
    assert done.code == 3


def test_thresholds_are_chosen_on_one_split_and_shown_on_another(cli, tmp_path, lines):
    """The right clip of dev stays, the wrong one goes if it is less sure; the file is written."""
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    manifest = write(tmp_path / "m.tsv", *lines)
    out = tmp_path / "out"
    done = cli("evaluate", manifest, "--choose-threshold-on", "dev", "--json", "--out", out,
               "--max-right-rejected", "0")  # fmt: skip
    assert done.code == 0
    verdict = check(done.out)["rejection"]
    assert (verdict["chosen_on"], verdict["max_right_rejected"]) == (["dev"], 0)
    assert verdict["validation"]["right_rejected"]["count"] == 0
    assert verdict["reported"]["right_rejected"]["out_of"] == 1
    assert set(verdict["sources"]) == {"strings", "words"}
    stored = json.loads((out / "rejection.json").read_text())
    assert stored == {
        "schema": SCHEMA_ID, **verdict["thresholds"], "chosen_on": ["dev"],
        "max_right_rejected": 0,
    }  # fmt: skip
    assert (
        "shown when every word's confidence >="
        in cli("evaluate", manifest, "--calibrate-on", "dev").out
    )


def test_a_split_of_one_kind_chooses_nothing(cli, tmp_path, lines):
    """Without a wrong text there is nothing to choose: said on stderr, the rest is still told."""
    manifest = write(tmp_path / "m.tsv", *lines[:-1])
    done = cli("evaluate", manifest, "--calibrate-on", "dev", "--json")
    assert (done.code, check(done.out)["rejection"]["chosen_on"]) == (0, [])
    assert "no threshold chosen" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--split", "nope"), "no line of split 'nope', found dev, test"),
        (("--calibrate-on", "test", "--split", "test"), "cannot both choose"),
        (("--calibrate-on", "test", "dev"), "cannot both choose"),
        (("--max-right-rejected", "5"), "needs --calibrate-on"),
        (("--language", "klingon"), "unknown language"),
        (("--max-right-rejected", "101"), "from 0 to 100"),
    ],
)
def test_what_cannot_be_asked(cli, tmp_path, lines, options, message):
    """Exit code 2 before the first clip is heard."""
    done = cli("evaluate", write(tmp_path / "m.tsv", *lines), *options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err


def test_an_empty_manifest(cli, tmp_path):
    """Nothing to evaluate is usage, not a table of zeros."""
    done = cli("evaluate", write(tmp_path / "m.tsv"))
    assert (done.code, done.out) == (2, "")
    assert "expected at least one clip" in done.err


@pytest.mark.parametrize(
    ("library", "options"), [("rapidfuzz", ()), ("matplotlib", ("--out", "x"))]
)
def test_a_missing_library(cli, tmp_path, lines, monkeypatch, library, options):
    """Exit code 7 with the line that installs it, before anything is heard or written."""
    for name in [m for m in sys.modules if m.partition(".")[0] == library] + [library]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.chdir(tmp_path)
    done = cli("evaluate", write(tmp_path / "m.tsv", *lines), *options)
    assert (done.code, done.out) == (7, "")
    assert f"needs {library}" in done.err
    assert "pip install 'asr-rtf[evaluate]'" in done.err
    assert not (tmp_path / "x").exists()


@pytest.fixture
def out(cli, tmp_path, lines):
    """The folder of an evaluation, with an empty clip and a line that fails."""
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    lines = [*lines, ("none.wav", "x", "words", "test")]
    folder = tmp_path / "deep" / "out"
    done = cli("evaluate", write(tmp_path / "m.tsv", *lines), "--out", folder)
    assert done.code == 3
    assert f"see {folder / 'report.html'}" in done.err
    return folder


def test_the_folder(out):
    """The page holds its pictures; they lie beside it as PNG too; the JSON is the --json one."""
    assert sorted(p.name for p in out.iterdir()) == [
        "clips.tsv", "errors.png", "evaluation.json", "rejection.png", "reliability.png",
        "report.html",
    ]  # fmt: skip
    for picture in out.glob("*.png"):
        assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    check((out / "evaluation.json").read_text())
    found = parse((out / "report.html").read_text())
    sources = [value for tag, name, value in found.seen if name == "src"]
    assert len(sources) == 3
    assert all(value.startswith("data:image/png;base64,") for value in sources)
    assert "Lines that could not be evaluated: 1" in " ".join(found.text)


def test_the_clips_table(out, lines, said):
    """One line per clip with what was said, what was heard, and how sure it was."""
    with (out / "clips.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["path"] for row in rows] == [line[0] for line in lines[:4]]
    assert rows[3]["heard"] == said["yes-rms"]
    assert [(row["errors"], row["right"], row["shown"]) for row in rows] == [
        ("1", "0", "1"), ("1", "0", "1"), ("1", "0", "1"), ("0", "1", "1")
    ]  # fmt: skip
    assert all(0 < float(row["confidence"]) <= 1 and float(row["entropy"]) >= 0 for row in rows)


def test_a_folder_that_cannot_be_written(cli, tmp_path, lines):
    """Refused before the first clip is heard; the exit code is the system's."""
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    (tmp_path / "file").touch()
    done = cli("evaluate", write(tmp_path / "m.tsv", *lines), "--out", tmp_path / "file")
    assert (done.code, done.out) == (5, "")
    assert done.err == f"asr: {tmp_path / 'file'}: cannot make the folder: File exists\n"


def test_progress_on_a_terminal_is_one_line(tmp_path, lines):
    """On a terminal the line is drawn over itself and gone at the end; a pipe sees none of it."""
    manifest = write(tmp_path / "m.tsv", *lines)
    master, slave = pty.openpty()
    done = subprocess.run(
        [*COMMAND, "evaluate", str(manifest)], cwd=ROOT, stdout=subprocess.PIPE, stderr=slave,
        check=True, timeout=60,
    )  # fmt: skip
    os.close(slave)
    shown = os.read(master, 4096).decode()
    os.close(master)
    assert shown.startswith("\r1 of 4 clips")
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown
    assert done.stdout.startswith(b"tiny-en on ")


def test_thresholds_of_a_model_folder(cli, tmp_path, lines):
    """A rejection.json in the folder is judged, and what it withholds is still compared."""
    model = tmp_path / "model"
    shutil.copytree(ROOT / "asr/builtin/tiny-en", model)
    manifest = write(tmp_path / "m.tsv", *lines)
    before = check(cli("evaluate", manifest, "--json").out)
    (model / "rejection.json").write_text(Thresholds(1.0, 0.0).to_json())
    found = check(cli("evaluate", manifest, "--model", model, "--json").out)
    assert found["total"]["words"] == before["total"]["words"]
    verdict = found["rejection"]
    assert (verdict["chosen_on"], verdict["max_right_rejected"]) == ([], None)
    assert verdict["validation"] is None
    assert verdict["reported"]["right_rejected"]["value"] == 1
