"""asr.hub.pull: every file is checked before it gets its name, whatever the network does."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from http_server import HUGGING_FACE, MODELSCOPE, SHERPA, TOY, Hub, served, sha256, toy_model

import asr
from asr import hub as hub_package
from asr.errors import SourceError
from asr.hub import RECORD, manifest, sources, store, transfer
from asr.hub.pull import pull

TESTS = Path(__file__).parent
NETWORK = "model_quant.onnx"
SIZE = len(TOY[NETWORK])
PROGRAM = "import sys, http_server; sys.exit(http_server.main())"


@pytest.fixture
def hub():
    server = Hub(served())
    yield server
    server.close()


@pytest.fixture(autouse=True)
def machine(hub, tmp_path, monkeypatch):
    """An empty cache, both hubs on this machine, and nobody with much patience."""
    hub.settle(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(transfer, "TIMEOUT_S", 5.0)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "cache" / "models" / "toy"


class Watcher:
    def __init__(self):
        self.lines, self.steps = [], []

    def say(self, line):
        self.lines.append(line)

    def progress(self, file, have, size):
        self.steps.append((file, have, size))


def bring(name="toy", **options):
    """Pull without questions; returns what the watcher saw."""
    watcher = Watcher()
    pull(name, accept=lambda model: None, watcher=watcher, **options)
    return watcher


def refused(error=SourceError, **options):
    """The message: one line."""
    with pytest.raises(error) as seen:
        bring(**options)
    assert len(str(seen.value).splitlines()) == 1
    return str(seen.value)


def whole(folder, files=TOY):
    """The folder holds the model's files, its record and its notice, and nothing else."""
    names = {path.name for path in folder.iterdir()}
    assert names == {*files, RECORD, "NOTICE"}
    assert {name: (folder / name).read_bytes() for name in files} == files
    return json.loads((folder / RECORD).read_text())


# ------------------------------------------------------------------ when all goes well


def test_a_pull_brings_every_file_checks_it_and_says_where_it_came_from(hub, folder):
    """The record holds bytes, checksum and source of each file; the notice names the authors."""
    watcher = bring()
    record = whole(folder)
    assert (record["name"], record["layout"]) == ("toy", "funasr")
    assert record["files"][NETWORK] == {
        "bytes": SIZE,
        "sha256": sha256(TOY[NETWORK]),
        "source": f"modelscope {MODELSCOPE.repo}@master",
        "checked_against": "manifest",
    }
    assert hub.paths("modelscope") == list(TOY)
    assert hub.paths("hf") == []
    assert watcher.steps[-1] == (NETWORK, SIZE, SIZE)
    notice = (folder / "NOTICE").read_text()
    assert "SenseVoiceSmall" in notice
    assert "Alibaba" in notice
    assert MODELSCOPE.repo in notice


def test_find_model_knows_what_was_pulled(folder):
    """The name stands for the folder, once the pull is complete."""
    bring()
    assert hub_package.find_model("toy") == folder


def test_a_second_pull_asks_nobody(hub):
    """What is here and right is not fetched again; the licence is not shown again either."""
    bring()
    hub.asked.clear()

    def refuse(_model):
        raise AssertionError("asked about the licence")

    watcher = Watcher()
    pull("toy", accept=refuse, watcher=watcher)
    assert hub.asked == []
    assert watcher.lines == ["toy is on this machine and whole: nothing to pull"]


@pytest.mark.parametrize("damage", ["missing", "changed", "record"])
def test_a_pull_repairs(hub, folder, damage):
    """A file that is missing or has other bytes comes again, the others stay."""
    bring()
    hub.asked.clear()
    if damage == "missing":
        (folder / "config.yaml").unlink()
    elif damage == "changed":
        (folder / "config.yaml").write_bytes(b"other bytes\n")
    else:
        (folder / RECORD).write_text("{")
    bring()
    whole(folder)
    assert hub.paths() == ([] if damage == "record" else ["config.yaml"])


def test_a_built_in_model_needs_no_pull(hub):
    """Nothing is fetched for a model of this package."""
    assert bring("tiny-en").lines == ["tiny-en is built in: nothing to pull"]
    assert hub.asked == []


def test_files_that_redirect_to_a_store_are_followed(hub, folder):
    """Both hubs answer large files with a redirect; a range survives it."""
    folder.mkdir(parents=True)
    (folder / (NETWORK + ".part")).write_bytes(TOY[NETWORK][:1000])
    hub.manners = {("modelscope", NETWORK): ["cdn"]}
    bring()
    whole(folder)
    assert [r for _, path, r in hub.asked if path == NETWORK] == ["bytes=1000-"] * 2


# ------------------------------------------------------------------ sources and exports


def test_a_hub_that_does_not_answer_is_replaced_by_the_other(hub, folder, monkeypatch):
    """Connection refused: the next source, which then comes first for the other files."""
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:1")
    watcher = bring()
    record = whole(folder)
    assert record["files"][NETWORK]["source"] == f"hf {HUGGING_FACE.repo}@{'0' * 12}"
    (line,) = watcher.lines  # one file tried the dead hub, the others did not
    assert line.startswith("config.yaml: modelscope: connection refused by http://127.0.0.1:1/")
    assert line.endswith("; asking hf")


def test_one_hub_can_be_asked_for(hub, folder):
    """--source: the other hub is not asked, not even when this one fails."""
    hub.manners = {("hf", NETWORK): ["404"]}
    with pytest.raises(SourceError) as seen:
        bring(hub="hf")
    assert hub.paths("modelscope") == []
    expected = f"{NETWORK}: no source gave it (hf: HTTP 404, no such file, from "
    assert str(seen.value).startswith(expected)
    assert not (folder / RECORD).exists()


def test_a_named_mirror_comes_first(monkeypatch):
    """Whoever sets HF_ENDPOINT alone wants it used, though the manifest names another first."""
    monkeypatch.delenv("MODELSCOPE_ENDPOINT")
    (file, *_) = manifest.MODELS["toy"].distributions[0].files
    assert [s.hub for s in sources.in_order(file, None, set())] == ["hf", "modelscope"]
    monkeypatch.delenv("HF_ENDPOINT")
    assert [s.hub for s in sources.in_order(file, None, set())] == ["modelscope", "hf"]
    assert sources.endpoint("hf") == "https://huggingface.co"
    assert sources.endpoint("modelscope") == "https://www.modelscope.cn"


def test_an_endpoint_is_a_web_address(monkeypatch):
    """A file address in a mirror's variable is refused; a bare host is taken as https."""
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    assert "HF_ENDPOINT: expected an http" in refused(asr.UsageError, hub="hf")
    monkeypatch.setenv("HF_ENDPOINT", "mirror.example/hf/")
    assert sources.endpoint("hf") == "https://mirror.example/hf"


def test_another_export_is_brought_only_when_asked_for(hub, folder):
    """--layout: the other export, in place of what an interrupted pull left of the first."""
    hub.manners = {(h, NETWORK): ["404"] for h in ("hf", "modelscope")}
    refused()
    bring(layout="sherpa-onnx")
    assert whole(folder, SHERPA)["layout"] == "sherpa-onnx"
    bring()  # now it is the one that is here
    assert "its sherpa-onnx export is on this machine" in refused(asr.UsageError, layout="funasr")


def test_sources_and_layouts_that_do_not_exist_are_refused():
    """The message lists what there is."""
    expected = "expected a layout of funasr, sherpa-onnx, found gguf"
    assert expected in refused(asr.UsageError, layout="gguf")
    expected = "expected a source of hf, found modelscope"
    assert expected in refused(asr.UsageError, layout="sherpa-onnx", hub="modelscope")


@pytest.mark.parametrize("name", ["modelscope", "hf"])
def test_without_a_checksum_of_ours_the_sources_own_is_checked_and_recorded(
    hub, folder, monkeypatch, name
):
    """Hugging Face: sha256 of large files, Git's id of small ones. ModelScope: sha256 of all."""
    monkeypatch.setitem(manifest.MODELS, "toy", toy_model(pinned=False))
    bring(hub=name)
    record = whole(folder)
    assert {e["checked_against"] for e in record["files"].values()} == {"source"}
    assert {f: e["sha256"] for f, e in record["files"].items()} == {
        f: sha256(data) for f, data in TOY.items()
    }
    hub.asked.clear()
    bring()
    assert hub.asked == []  # the recorded checksums serve from now on


@pytest.mark.parametrize("file", ["config.yaml", NETWORK])
def test_a_published_checksum_is_believed_over_the_bytes(hub, monkeypatch, folder, file):
    """Bytes that do not fit the source's own checksum are refused, small file or large."""
    monkeypatch.setitem(manifest.MODELS, "toy", toy_model(pinned=False))
    hub.manners = {("hf", file): ["wrong"]}
    assert f"{file}: no source gave it (hf: expected " in refused(hub="hf")
    assert not (folder / file).exists()


@pytest.mark.parametrize("name", ["modelscope", "hf"])
def test_a_source_without_checksums_is_no_source(hub, monkeypatch, name):
    """No checksum at all, no download."""
    monkeypatch.setitem(manifest.MODELS, "toy", toy_model(pinned=False))
    hub.files = {}
    assert "expected a checksum of config.yaml, found none" in refused(hub=name)
    assert hub.paths() == []


# ------------------------------------------------------------------ a network that misbehaves

ANSWERS = {
    "404": "HTTP 404, no such file, from http",
    "403": "HTTP 403, not allowed, from http",
    "500": "HTTP 500 from http",
    "429": "HTTP 429, too many requests, from http",
    "html": "expected a file, found a web page at http",
    "loop": "expected a file, found redirects that lead nowhere at http",
    "long": f"expected {SIZE} bytes, found {SIZE + 4} at http",
    "cut:1000": f"expected {SIZE} bytes, found an end after 1000",
    "wrong": f"expected sha256 {sha256(TOY[NETWORK])}, found ",
}


@pytest.mark.parametrize("manner", ANSWERS)
def test_every_failure_is_one_line_with_what_was_expected_and_found(hub, folder, manner):
    """It names the file, both sources, what each did, and what to do; exit code 6."""
    again = "cut:0" if manner == "cut:1000" else manner
    hub.manners = {("modelscope", NETWORK): [manner, *[again] * 9], ("hf", NETWORK): [again] * 9}
    message = refused()
    assert message.startswith(f"{NETWORK}: no source gave it (modelscope: {ANSWERS[manner]}")
    assert f"; hf: {ANSWERS[manner]}" in message
    assert "run asr models pull toy again" in message
    assert SourceError.exit_code == 6
    assert not (folder / NETWORK).exists()
    assert not (folder / RECORD).exists()


@pytest.mark.parametrize("manners", [["500", "429"], ["cut:70000", "cut:30000"], ["cut:5", "500"]])
def test_what_passes_is_tried_again(hub, folder, manners):
    """Server errors and lost connections: the same source, from where it stopped."""
    hub.manners = {("modelscope", NETWORK): list(manners)}
    assert bring().lines == []
    whole(folder)
    assert hub.paths("hf") == []
    ranges = [r for _, path, r in hub.asked if path == NETWORK]
    if manners[0] == "cut:70000":
        assert ranges == [None, "bytes=70000-", "bytes=100000-"]


@pytest.mark.parametrize("manner", ["404", "403", "html", "long", "loop"])
def test_what_does_not_pass_is_not_tried_again(hub, manner):
    """A missing file is missing: straight to the other source."""
    hub.manners = {("modelscope", NETWORK): [manner] * 9}
    bring()
    asked = [h for h, path, _ in hub.asked if path == NETWORK]
    assert asked.count("hf") == 1
    assert asked.count("modelscope") == 1 or manner == "loop"


def test_wrong_bytes_from_one_hub_come_right_from_the_other(hub, folder):
    """A checksum that does not fit: not kept, and the next source is asked from the start."""
    hub.manners = {("modelscope", NETWORK): ["wrong"]}
    (line,) = bring().lines
    assert "expected sha256" in line
    assert "the file was not kept" in line
    assert hub.asked[-1] == ("hf", NETWORK, None)
    whole(folder)


@pytest.mark.parametrize("start", [b"other bytes" * 10, TOY[NETWORK] + b"more", TOY[NETWORK][:-1]])
def test_a_beginning_of_another_version_is_thrown_away_once(hub, folder, start):
    """A resumed file whose checksum is wrong is fetched again from scratch, from the same hub."""
    folder.mkdir(parents=True)
    (folder / (NETWORK + ".part")).write_bytes(start)
    assert bring().lines == []
    whole(folder)
    assert hub.paths("hf") == []


@pytest.mark.parametrize("manner", ["norange", "badrange"])
def test_a_server_that_cannot_resume_costs_only_time(hub, tmp_path, manner):
    """The whole file instead of a range, or the wrong one: right bytes before any checksum."""
    part = tmp_path / "part"
    part.write_bytes(TOY[NETWORK][:1000])
    hub.manners = {("hf", NETWORK): [manner]}
    transfer.fetch(sources.file_url(HUGGING_FACE, NETWORK), part, SIZE, lambda *_: None)
    assert part.read_bytes() == TOY[NETWORK]


def test_a_range_that_is_not_there_starts_over(hub, folder, monkeypatch):
    """HTTP 416: the part is thrown away."""
    folder.mkdir(parents=True)
    (folder / (NETWORK + ".part")).write_bytes(TOY[NETWORK][:1000])
    hub.manners = {("modelscope", NETWORK): ["416"]}
    assert bring().lines == []
    assert [r for _, path, r in hub.asked if path == NETWORK] == ["bytes=1000-", None]


def test_a_server_that_falls_silent_is_left(hub, folder, monkeypatch):
    """No byte for a while: again, from where it stopped."""
    monkeypatch.setattr(transfer, "TIMEOUT_S", 0.2)
    hub.manners = {("modelscope", NETWORK): ["stall:1000"]}
    assert bring().lines == []
    assert hub.asked[-1] == ("modelscope", NETWORK, "bytes=1000-")


def test_a_body_without_end_is_cut_off(hub, folder):
    """A server that does not say how much it sends cannot fill the disk."""
    folder.mkdir(parents=True)
    part = folder / "part"
    hub.manners = {("hf", NETWORK): ["endless"]}
    url = sources.file_url(HUGGING_FACE, NETWORK)
    with pytest.raises(transfer.AttemptError, match=f"expected {SIZE} bytes, found more"):
        transfer.fetch(url, part, SIZE, lambda *_: None)
    assert part.stat().st_size <= SIZE


def test_a_server_that_trickles_is_left(hub, folder, monkeypatch):
    """A byte now and then keeps a connection alive; that is not a download."""
    monkeypatch.setattr(transfer, "SLOW_WINDOW_S", 0.1)
    monkeypatch.setattr(transfer, "ATTEMPTS", 1)
    hub.manners = {("modelscope", NETWORK): [f"slow:{SIZE - 100}"]}
    (line,) = bring().lines
    assert " bytes per second" in line
    whole(folder)


@pytest.mark.parametrize(
    ("reason", "words", "again"),
    [
        (TimeoutError(), "no answer in 5 s", True),
        (ConnectionResetError(104, "reset"), "connection lost", True),
        ("unknown url type: ftp", "no usable address", False),
        (UnicodeError("label too long"), "no usable address", False),
    ],
)
def test_every_kind_of_silence_has_its_words(reason, words, again):
    """And is tried again only where that may help."""
    error = transfer._network_error(reason, "http://x")
    assert str(error).startswith(words)
    assert error.retry == again


def test_no_such_host_is_said_so(monkeypatch):
    """Without a network the message says that it may be the network."""
    monkeypatch.setenv("HF_ENDPOINT", "http://nowhere.invalid")
    assert "hf: no such host, or no network: http://nowhere.invalid/" in refused(hub="hf")


def test_a_wait_that_a_server_asks_for_has_a_limit():
    """Retry-After in seconds, at most a minute; a date counts as nothing."""
    for word, wait_s in (("7", 7.0), ("86400", 60.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None)):
        error = SimpleNamespace(code=429, headers={"Retry-After": word})
        assert transfer._http_error(error, "http://x").wait_s == wait_s


# ------------------------------------------------------------------ disk and permissions


def test_a_full_disk_is_seen_before_the_download(hub, monkeypatch, folder):
    """Room is compared with what is still missing."""
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=100_000))
    message = refused(asr.SystemAccessError)
    assert message.startswith(f"{folder}: expected 0.2 MB of free space, found 0.1 MB; ")
    assert hub.asked == []


def test_a_disk_that_fills_keeps_what_is_there(hub, monkeypatch, folder):
    """The error names the file and says what to do."""
    limit_kib = 100
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_kib}*1024,)*2);"
        f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);{PROGRAM}"
    )
    done = process("pull", "toy", "--yes", program=code).communicate(timeout=30)
    assert f"{NETWORK}.part: cannot write the file: File too large; make room" in done[1]
    assert (folder / (NETWORK + ".part")).stat().st_size == limit_kib * 1024


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    """A file where the cache should be."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "file"))
    message = refused(asr.SystemAccessError)
    assert message.startswith(f"{tmp_path}/file/models/.toy.lock: cannot write it: Not a directory")


# ------------------------------------------------------------------ several processes


def process(*arguments, program=PROGRAM):
    """``asr models ...`` with the toy in its manifest."""
    return subprocess.Popen(
        [sys.executable, "-B", "-c", program, "models", *arguments],
        cwd=TESTS.parent,
        env=os.environ | {"PYTHONPATH": str(TESTS)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for(condition):
    deadline_s = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_killed_pull_leaves_a_part_that_the_next_one_continues(hub, folder):
    """kill -9 in the middle of the network: no file under its name, no record, no stale lock."""
    hub.manners = {("modelscope", NETWORK): ["stall:123456"]}
    part = folder / (NETWORK + ".part")
    with process("pull", "toy", "--yes") as first:
        wait_for(lambda: part.exists() and part.stat().st_size == 123456)
        first.send_signal(signal.SIGKILL)
    assert not (folder / NETWORK).exists()
    assert not (folder / RECORD).exists()
    assert store.state_of("toy") == "incomplete"
    hub.asked.clear()
    bring()
    assert hub.asked == [("modelscope", NETWORK, "bytes=123456-")]
    whole(folder)


def test_two_pulls_at_once_fetch_once(hub, folder):
    """The second waits, says so, and finds the work done."""
    hub.manners = {("modelscope", NETWORK): ["stall:1000"]}
    with process("pull", "toy", "--yes") as first:
        wait_for(lambda: (folder / (NETWORK + ".part")).exists())
        with process("pull", "toy", "--yes") as second:
            lines = iter(second.stderr.readline, "")
            assert any("waiting for another process" in line for line in lines)
            hub.gate.set()
            assert second.wait(20) == 0
        assert first.wait(20) == 0
    whole(folder)
    assert hub.paths() == list(TOY)


# ------------------------------------------------------------------ the manifest


def test_the_manifest_names_the_public_files_with_their_checksums(monkeypatch):
    """Addresses as both hubs use them; every checksum is a sha256."""
    model = manifest.MODELS["sensevoice-small-int8"]
    assert [d.layout for d in model.distributions] == ["funasr", "sherpa-onnx"]
    files = {f.path: f for d in model.distributions for f in d.files}
    network = files["model_quant.onnx"]
    monkeypatch.delenv("HF_ENDPOINT")
    monkeypatch.delenv("MODELSCOPE_ENDPOINT")
    assert [sources.file_url(s, network.path) for s in network.sources] == [
        "https://www.modelscope.cn/api/v1/models/iic/SenseVoiceSmall-onnx/repo"
        "?Revision=master&FilePath=model_quant.onnx",
        "https://huggingface.co/DennisHuang648/SenseVoiceSmall-onnx/resolve/"
        "0e0d0a81fe03a27c0d56329ff6fc2dcc3fe01f7e/model_quant.onnx",
    ]
    tokenizer = files["chn_jpn_yue_eng_ko_spectok.bpe.model"]
    assert [s.repo for s in tokenizer.sources] == [
        "iic/SenseVoiceSmall",
        "FunAudioLLM/SenseVoiceSmall",
    ]
    for model in manifest.MODELS.values():
        for distribution in model.distributions:
            for file in distribution.files:
                assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
                assert file.size > 0
                assert file.sources
            assert max(distribution.files, key=lambda f: f.size) == distribution.files[-1]


def test_an_unpinned_listing_is_asked_for_where_the_hubs_have_it(monkeypatch):
    """The addresses of both file lists."""
    monkeypatch.delenv("HF_ENDPOINT")
    monkeypatch.delenv("MODELSCOPE_ENDPOINT")
    assert sources.listing_url(HUGGING_FACE) == (
        f"https://huggingface.co/api/models/someone/Toy-onnx/tree/{'0' * 40}?recursive=true"
    )
    assert sources.listing_url(MODELSCOPE) == (
        "https://www.modelscope.cn/api/v1/models/iic/Toy-onnx/repo/files"
        "?Revision=master&Recursive=True"
    )
