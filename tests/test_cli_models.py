"""asr models: names to folders for people, with a licence in between and no network afterwards."""

import base64
import contextlib
import hashlib
import json
import os
import pty
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from http_server import TOY, Hub, served, toy_model

from asr import hub as hub_package
from asr.cli import main, models
from asr.hub import RECORD, manifest, transfer

ROOT = Path(__file__).parent.parent
NETWORK = "model_quant.onnx"
BUILT_IN = ROOT / "asr/builtin/tiny-en"
#: Ends the process as soon as anything opens a socket or looks up a host.
NO_SOCKETS = (
    "import os, sys; sys.addaudithook(lambda e, a: e.startswith('socket.') and os._exit(99));"
    "from asr.cli import main; sys.exit(main())"
)


@pytest.fixture
def hub():
    server = Hub(served())
    yield server
    server.close()


@pytest.fixture(autouse=True)
def machine(hub, tmp_path, monkeypatch):
    """An empty cache, and both hubs on this machine."""
    hub.settle(monkeypatch, tmp_path / "cache")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "models" / "toy"


# ------------------------------------------------------------------ pull


def test_pull_prints_the_folder_and_nothing_else_on_stdout(cli, folder):
    """Scripts read the folder; licence and progress go to stderr."""
    done = cli("models", "pull", "toy", "--yes")
    assert (done.code, done.out) == (0, f"{folder}\n")
    assert "FunASR Model Open Source License Agreement, version 1.1" in done.err
    assert "keep the model's name: SenseVoiceSmall" in done.err
    assert f"asr: {NETWORK}: 0.2 MB of 0.2 MB, 100 %\n" in done.err
    assert "asr: config.yaml: 1 kB of 1 kB, 100 %\n" in done.err
    assert "\r" not in done.err


def test_without_a_terminal_the_licence_must_be_accepted_by_option(cli, hub, folder):
    """Exit 2, what to do, and nothing was fetched."""
    done = cli("models", "pull", "toy")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(
        "asr: toy: its licence must be accepted, and there is no terminal to ask at; "
        "asr models pull toy --yes accepts it\n"
    )
    assert hub.asked == []
    assert not folder.exists()


def on_a_terminal(answer, *arguments):
    """Run ``asr models`` with a terminal on stdin and stderr; returns code and what it showed."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-B", "-c", "import sys, http_server; sys.exit(http_server.main())",
         "models", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    ) as process:  # fmt: skip
        os.close(theirs)
        os.write(ours, answer.encode() + b"\n")
        shown = b""
        with contextlib.suppress(OSError):  # raised when the other side is closed
            while piece := os.read(ours, 4096):
                shown += piece
    os.close(ours)
    return process.returncode, shown.decode()


def test_on_a_terminal_it_asks_and_shows_a_bar(folder):
    """Yes goes on; the bar shows percent, megabytes and speed, and leaves its line."""
    code, shown = on_a_terminal("y", "pull", "toy")
    assert code == 0
    assert "Accept? [y/N]" in shown
    assert "##] 100 %  0.2 MB of 0.2 MB" in shown
    assert shown.endswith("MB/s\r\n")
    assert (folder / RECORD).is_file()


def test_on_a_terminal_anything_but_yes_is_no(hub, folder):
    """Exit 2 and nothing fetched."""
    code, shown = on_a_terminal("", "pull", "toy")
    assert code == 2
    assert "toy: licence not accepted, nothing was downloaded" in shown
    assert hub.asked == []


def test_a_source_that_fails_is_exit_code_6(cli, hub):
    """With what to do about it, in one line."""
    hub.manners = {(h, NETWORK): ["wrong"] for h in ("hf", "modelscope")}
    done = cli("models", "pull", "toy", "--yes")
    assert done.code == 6
    assert "run asr models pull toy again" in done.err.splitlines()[-1]


def test_the_real_names_go_to_the_real_paths(cli, hub):
    """The manifest's own model asks both hubs for its first file, and says how to come by it."""
    done = cli("models", "pull", "sensevoice-small-int8", "--yes")
    assert done.code == 6
    assert hub.asked[:2] == [("modelscope", "config.yaml", None), ("hf", "config.yaml", None)]


def test_interrupted_it_says_how_to_go_on(cli, monkeypatch):
    """Ctrl-C: exit 130."""

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(transfer, "fetch", interrupt)
    done = cli("models", "pull", "toy", "--yes")
    assert done.code == 130
    assert done.err.endswith("interrupted; asr models pull toy goes on where it stopped\n")


def test_long_files_are_told_of_by_quarters(capsys):
    """In a log: five lines for a large file, one for a small one."""
    progress = models._Progress()
    for have in range(0, 40_000_001, 1_000_000):
        progress.progress("large", have, 40_000_000)
    for have in range(0, 401, 100):
        progress.progress("small", have, 400)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(", ")[2].strip() for line in lines] == [
        "0 %", "25 %", "50 %", "75 %", "100 %", "100 %",
    ]  # fmt: skip


# ------------------------------------------------------------------ list and path


def test_the_list_lines_up(cli):
    """A table: every column begins at the same place in every row."""
    cli("models", "pull", "toy", "--yes")
    lines = cli("models", "list").out.splitlines()
    head, rows = lines[0], lines[1:]
    assert [row.split()[0] for row in rows][:2] == ["tiny-en", "sensevoice-small-int8"]
    for column in ("LANGUAGES", "LICENCE", "STATE"):
        start = head.index(column)
        assert all(row[start - 1] == " " != row[start] for row in rows)
    states = {row.split()[0]: row[head.index("STATE") :] for row in rows}
    assert states == {
        "tiny-en": "built in",
        "sensevoice-small-int8": "not pulled",
        "sensevoice-small": "not pulled",
        "toy": "pulled",
    }
    assert "242 MB  zh en yue ja ko  FunASR Model 1.1" in lines[2]


def test_the_list_shows_what_an_interrupted_pull_left(cli, folder):
    """How much is here already."""
    folder.mkdir(parents=True)
    (folder / (NETWORK + ".part")).write_bytes(bytes(100_000))
    assert cli("models", "list").out.splitlines()[-1].endswith("incomplete, 0.1 MB here")


def test_the_list_as_json(cli, folder):
    """The same facts for programs."""
    cli("models", "pull", "toy", "--yes")
    found = json.loads(cli("models", "list", "--json").out)
    assert found["folder"] == str(folder.parent)
    rows = {row["name"]: row for row in found["models"]}
    assert rows["toy"]["state"] == "pulled"
    assert rows["toy"]["folder"] == str(folder)
    assert rows["toy"]["bytes"] == sum(map(len, TOY.values()))
    assert rows["tiny-en"] | {"bytes": 0, "bytes_here": 0} == {
        "name": "tiny-en",
        "bytes": 0,
        "languages": ["en"],
        "licence": "see its README.md",
        "licence_url": None,
        "state": "built in",
        "folder": str(BUILT_IN),
        "bytes_here": 0,
        "layouts": [],
    }
    assert rows["sensevoice-small-int8"]["layouts"] == ["funasr", "sherpa-onnx"]


def test_path_prints_the_folder(cli, folder):
    """Of a built-in model, of a pulled one; for another the command that brings it."""
    assert cli("models", "path", "tiny-en") == (0, f"{BUILT_IN}\n", "")
    missing = "asr: toy is not on this machine: asr models pull toy (0.2 MB)\n"
    assert cli("models", "path", "toy") == (4, "", missing)
    cli("models", "pull", "toy", "--yes")
    assert cli("models", "path", "toy") == (0, f"{folder}\n", "")


def test_names_are_names_whatever_lies_in_this_folder(cli, folder, tmp_path, monkeypatch):
    """A folder of the same name in front of the user does not become the model."""
    (tmp_path / "toy").mkdir()
    monkeypatch.chdir(tmp_path)
    cli("models", "pull", "toy", "--yes")
    assert cli("models", "path", "toy").out == f"{folder}\n"
    assert cli("models", "verify", "toy").code == 0


# ------------------------------------------------------------------ verify and remove


def test_verify_hashes_every_file_again(cli, folder):
    """Right, changed and missing files; exit 6 and the command that repairs."""
    cli("models", "pull", "toy", "--yes")
    assert cli("models", "verify", "toy") == (0, "".join(f"{f}: right\n" for f in TOY), "")
    (folder / "config.yaml").write_text("other\n")
    (folder / NETWORK).unlink()
    done = cli("models", "verify", "toy")
    assert done.code == 6
    assert "config.yaml: expected sha256 " in done.out
    assert f"{NETWORK}: expected the file, found nothing\n" in done.out
    assert done.err.endswith("asr models pull toy brings them back\n")
    cli("models", "pull", "toy")
    assert cli("models", "verify", "toy").code == 0


def test_verify_believes_the_manifest_over_the_record(cli, folder):
    """A record that was changed with the file does not help a file that is wrong."""
    cli("models", "pull", "toy", "--yes")
    (folder / "config.yaml").write_text("other\n")
    record = json.loads((folder / RECORD).read_text())
    record["files"]["config.yaml"]["sha256"] = hashlib.sha256(b"other\n").hexdigest()
    (folder / RECORD).write_text(json.dumps(record))
    assert cli("models", "verify", "toy").code == 6


def test_verify_says_when_the_record_is_damaged(cli, folder):
    """Exit 4, with the command that writes it again."""
    cli("models", "pull", "toy", "--yes")
    (folder / RECORD).write_text("[]")
    done = cli("models", "verify", "toy")
    assert done.code == 4
    assert "asr models pull toy writes it again" in done.err


def test_verify_of_a_built_in_model_uses_the_wheels_own_checksums(cli, monkeypatch):
    """As pip recorded them; a checkout has none and says so."""
    monkeypatch.setattr(metadata, "files", lambda _: [])
    done = cli("models", "verify", "tiny-en")
    assert done.code == 2
    assert "git status" in done.err

    def installed(file, data):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        value = digest.decode().rstrip("=")
        return SimpleNamespace(
            name=file,
            parts=("asr", "builtin", "tiny-en", file),
            hash=SimpleNamespace(mode="sha256", value=value),
        )

    mvn = (BUILT_IN / "am.mvn").read_bytes()
    monkeypatch.setattr(metadata, "files", lambda _: [installed("am.mvn", mvn)])
    assert cli("models", "verify", "tiny-en") == (0, "am.mvn: right\n", "")
    monkeypatch.setattr(metadata, "files", lambda _: [installed("am.mvn", mvn + b"x")])
    done = cli("models", "verify", "tiny-en")
    assert done.code == 6
    assert "pip install --force-reinstall asr-rtf" in done.err


def test_remove_deletes_the_folder(cli, folder):
    """It says how much was freed; again, there is nothing to remove; built-in models stay."""
    cli("models", "pull", "toy", "--yes")
    assert cli("models", "remove", "toy") == (0, "", "asr: removed toy: 0.2 MB\n")
    assert not folder.exists()
    assert cli("models", "remove", "toy") == (
        0,
        "",
        "asr: toy is not on this machine: nothing to remove\n",
    )
    done = cli("models", "remove", "tiny-en")
    assert done.code == 2
    assert "part of this package" in done.err
    assert BUILT_IN.is_dir()


def test_a_removal_that_fails_leaves_no_model(cli, folder, monkeypatch):
    """Half a folder is not taken for a whole one."""
    cli("models", "pull", "toy", "--yes")

    def fail(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", fail)
    done = cli("models", "remove", "toy")
    assert done == (5, "", f"asr: {folder}: cannot remove it: Permission denied\n")
    assert cli("models", "path", "toy").code == 4


def test_remove_leaves_what_is_not_a_models_folder(cli, folder, tmp_path):
    """A link in the place of the folder is not followed."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path / "precious")
    assert cli("models", "remove", "toy").code == 5
    assert (tmp_path / "precious" / "file").read_text() == "x"


# ------------------------------------------------------------------ usage


@pytest.mark.parametrize("action", ["pull", "path", "verify", "remove"])
def test_unknown_names_get_a_suggestion(cli, action):
    """Exit 4, one line, the names there are, and the nearest."""
    done = cli("models", action, "SenseVoice-small-int")
    assert done.code == 4
    assert "did you mean sensevoice-small-int8?" in done.err
    assert len(done.err.splitlines()) == 1
    for name in ("../tiny-en", ".", "/"):
        assert cli("models", action, name).code == 4


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", "toy"],
        ["pull"],
        ["path"],
        ["path", "toy", "--yes"],
        ["list", "--source", "hf"],
        ["verify", "toy", "--layout", "funasr"],
        ["pull", "toy", "--json"],
        ["install", "toy"],
        ["pull", "toy", "--source", "github"],
        [],
    ],
)
def test_wrong_usage_is_exit_code_2(cli, arguments):
    """No option is taken and then ignored."""
    done = cli("models", *arguments)
    assert done.code == 2
    assert done.err


def test_the_commands_of_the_help_are_the_commands(cli):
    """Every action is explained."""
    done = cli("models", "--help")
    assert done.code == 0
    for action in models._ACTIONS:
        assert f"\n{action} " in done.out


# ------------------------------------------------------------------ find_model


def test_a_known_name_that_is_not_here_says_what_to_pull(cli, clip):
    """asr transcribe: exit 4 and the command, with its size."""
    done = cli("transcribe", clip, "--model", "sensevoice-small-int8")
    assert done == (
        4,
        "",
        "asr: sensevoice-small-int8 is not on this machine: "
        "asr models pull sensevoice-small-int8 (242 MB)\n",
    )


def test_a_misspelt_name_gets_a_suggestion():
    """The nearest name, also where only case differs."""
    for wrong, right in (("tiny_en", "tiny-en"), ("SenseVoiceSmall", "sensevoice-small")):
        with pytest.raises(hub_package.LayoutError, match=f"did you mean {right}") as seen:
            hub_package.find_model(wrong)
        assert len(str(seen.value).splitlines()) == 1


def test_a_name_is_no_path(folder):
    """No look-up leaves the folder of the models, whatever lies there."""
    for place in (folder.parent, folder.parent.parent, folder / "sub", folder.parent / ".hidden"):
        place.mkdir(parents=True, exist_ok=True)
        (place / RECORD).write_text("{}")
    for name in ("", ".", "..", "toy/sub", ".hidden"):
        assert hub_package.installed_model(name) is None


def test_the_cache_follows_the_xdg_standard(monkeypatch):
    """ASR_CACHE, else an absolute XDG_CACHE_HOME, else ~/.cache."""
    monkeypatch.setenv("ASR_CACHE", "here")
    assert hub_package.models_folder() == Path.cwd() / "here/models"
    monkeypatch.delenv("ASR_CACHE")
    monkeypatch.setenv("HOME", "/h")
    for value, folder in (("/x", "/x/asr/models"), ("x", "/h/.cache/asr/models")):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert hub_package.models_folder() == Path(folder)
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert hub_package.models_folder() == Path("/h/.cache/asr/models")


def test_the_hint_names_a_model_only_for_built_in_ones():
    """Whoever uses another model knows what they do."""
    assert "asr models pull sensevoice-small-int8 (242 MB)" in hub_package.dictation_hint("tiny-en")
    assert hub_package.dictation_hint("toy") is None


def test_speech_that_the_built_in_model_cannot_hear_leads_to_the_hint(cli):
    """Ten sentences of four other languages: most are withheld, each with what to pull instead."""
    clips = [p for p in sorted((ROOT / "asr/doctor/clips").glob("*.flac")) if p.name[:2] != "en"]
    done = cli("transcribe", *clips)
    assert done.code == 0
    withheld = done.err.count("no text (low_confidence)")
    assert len(clips) == 10
    assert withheld >= 7
    advice = "for free speech: asr models pull sensevoice-small-int8 (242 MB)"
    assert done.err.count(advice) == withheld


# ------------------------------------------------------------------ offline and start-up


@pytest.fixture
def pulled(hub, monkeypatch):
    """The built-in network under another name, pulled: a real model that is not built in."""
    files = {p.name: p.read_bytes() for p in BUILT_IN.iterdir() if p.name != "README.md"}
    hub.files = served(files)
    monkeypatch.setitem(manifest.MODELS, "toy", toy_model(files))
    assert main(["models", "pull", "toy", "--yes"]) == 0
    hub.close()
    return "toy"


def test_once_pulled_nothing_opens_a_socket(pulled, asr_process, clip, recognizer):
    """Transcribing by name, listing and verifying: not one socket."""
    text = recognizer.transcribe(clip).text + "\n"
    done = asr_process("transcribe", clip, "--model", pulled, program=NO_SOCKETS)
    assert done == (0, text, "")
    assert asr_process("models", "list", program=NO_SOCKETS).code == 0
    probe = NO_SOCKETS.replace("from asr", "import socket; socket.socket(); from asr")
    assert asr_process("models", "list", program=probe).code == 99


@pytest.mark.skipif(
    shutil.which("unshare") is None
    or subprocess.run(["unshare", "-rn", "true"], capture_output=True, check=False).returncode != 0,
    reason="unshare -rn is not allowed here; the test above covers the same by an audit hook",
)
def test_once_pulled_it_works_without_a_network(pulled, clip, recognizer):
    """In a network namespace that has not even a loopback device."""
    text = recognizer.transcribe(clip).text + "\n"
    done = subprocess.run(
        ["unshare", "-rn", sys.executable, "-B", "-c",
         "import sys; from asr.cli import main; sys.exit(main())",
         "transcribe", str(clip), "--model", pulled],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, text, "")


WATCHED = ["urllib.request", "http.client", "ssl", "socket", "fcntl", "json", "difflib",
           "asr.hub.manifest", "asr.hub.store", "asr.hub.pull", "dataclasses"]  # fmt: skip


def loaded(asr_process, *arguments, watched):
    """Which of the watched modules a command loads."""
    program = (
        "import sys; from asr.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print(*[m for m in {watched!r} if m in sys.modules], file=sys.stderr)"
    )
    return asr_process(*arguments, program=program).err.splitlines()[-1].split()


def test_help_and_transcribe_pay_nothing_for_pulling(pulled, asr_process, clip):
    """`asr --help` loads no part of the hub, and a run by name no part that pulls."""
    assert loaded(asr_process, "--help", watched=[*WATCHED, "asr.hub", "pathlib"]) == []
    ours = [m for m in WATCHED if m.startswith("asr.hub.") or m in ("urllib.request", "ssl")]
    for model in (pulled, "tiny-en"):
        assert loaded(asr_process, "transcribe", clip, "--model", model, watched=ours) == []
