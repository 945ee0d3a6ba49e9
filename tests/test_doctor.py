"""asr doctor: what it says of good, odd and broken models, what it sends back, what it compares."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
import soundfile
from conftest import ROOT
from fakes import model_folder, network, prepared_passes

from asr.doctor import clips, folder, hearing, peers
from asr.doctor.report import Report, redacted
from asr.errors import AudioError, LayoutError, UsageError
from asr.hub import manifest
from asr.layouts import open_layout

SCHEMA = json.loads((ROOT / "docs" / "doctor.schema.json").read_text(encoding="utf-8"))
NETWORKS = sorted(p for p in (ROOT / "tests" / "networks").iterdir() if p.is_dir())

#: A peer that hears what it is told to, clip by clip.
FAKE_SHERPA = """
import os
class OfflineRecognizer:
    @staticmethod
    def from_sense_voice(model, tokens, num_threads, language, use_itn):
        assert os.path.isfile(model) and os.path.isfile(tokens) and language == "auto"
        return OfflineRecognizer()
    def create_stream(self):
        return self
    def accept_waveform(self, rate, samples):
        assert rate == 16000 and samples.dtype == "float32"
        self.result = self
    def decode_stream(self, stream):
        pass
    tokens = ["a", "b"]
"""
FAKE_FUNASR = """
import json, os, numpy as np
class SenseVoiceSmall:
    def __init__(self, folder, quantize, intra_op_num_threads):
        assert quantize and os.path.isfile(folder + "/chn_jpn_yue_eng_ko_spectok.bpe.model")
        self.size = len(json.load(open(folder + "/tokens.json")))
        self.frontend = self.opts = self.frame_opts = self
        self.dither = 1.0
    def extract_feat(self, clips):
        assert self.dither == 0.0
        return np.zeros((1, 3, 560), "float32"), np.array([3], "int32")
    def infer(self, features, lengths, language, itn):
        scores = np.zeros((1, 7, self.size), "float32")
        scores[0, range(7), [5, 6, 7, 8, 20, 20, 21]] = 9
        return scores, np.array([7])
"""


def examined(cli, *arguments):
    """The report of a run, checked against the schema, and the run itself."""
    done = cli("doctor", *arguments, "--json")
    found = json.loads(done.out)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    return found, done


def sentences(found, *, good):
    return [f["text"] for f in found["findings"] if f["good"] is good]


def test_the_schema_is_a_schema():
    """Valid and closed: no member can be forgotten."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["additionalProperties"] is False


def test_the_built_in_model_is_healthy(cli):
    """Twenty clips of ours with their texts; the verdict on stderr, the JSON alone on stdout."""
    found, done = examined(cli, "tiny-en")
    assert (done.code, found["verdict"], found["error"], found["peers"]) == (
        0,
        "healthy",
        None,
        None,
    )
    assert done.err.splitlines()[-1] == "verdict: healthy"
    assert len(found["clips"]) == 20
    texts = {clip["name"]: clip["text"] for clip in found["clips"]}
    assert texts["en-stop"] == "stop"
    assert {name.partition("-")[0] for name in texts} == {"en", "zh", "yue", "ja", "ko"}
    assert found["tokens"]["agrees_with_tokenizer"] is True
    assert found["timings"]["audio_s"] == pytest.approx(
        sum(c["audio_s"] for c in found["clips"]), abs=0.02
    )
    assert found["optimised"] is None


@pytest.mark.parametrize("changed", [False, True])
def test_a_prepared_network_is_compared_with_its_file(cli, tmp_path, monkeypatch, changed):
    """Same texts are good; other texts make it doubtful and are named."""
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("asr.networks.LARGE_BYTES", 0)
    path = next(p for p in NETWORKS if p.name == "funasr-torchscript-14-logits")
    if changed:
        real, calls = hearing.hear, []

        def hear(recognizer, clip):
            calls.append(clip)
            heard = real(recognizer, clip)
            return replace(heard, texts=frozenset({"other"})) if len(calls) == 1 else heard

        monkeypatch.setattr("asr.doctor.optimised.hear", hear)
    found, _ = examined(cli, path)
    facts = found["optimised"]
    passes = list(prepared_passes())
    assert (facts["state"], facts["passes"]) == ("first", passes)
    assert facts["texts_changed"] == ([found["clips"][0]["name"]] if changed else [])
    assert (facts["ids_changed"], found["verdict"]) == (0, "doubtful" if changed else "healthy")
    said = sentences(found, good=not changed)[-1]
    done = ", ".join([*passes, "prepacked"])
    assert said.startswith(f"optimised ({done}): the text of {int(changed)} ")


def test_the_verdict_for_people(cli):
    """Without --json: one line a finding, times, the verdict last; nothing on stderr."""
    done = cli("doctor", "tiny-en")
    lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert [line[:4] for line in lines] == ["good"] * 4 + ["time", "verd"]
    assert "first call" in lines[4]


@pytest.mark.parametrize("path", NETWORKS, ids=lambda p: p.name)
def test_reference_networks_of_both_layouts(cli, path):
    """SenseVoice's recipe and tags are found in each layout; nothing is odd."""
    found, done = examined(cli, path)
    assert (done.code, found["verdict"]) == (0, "healthy"), found["findings"]
    assert found["layout"] == ("sherpa-onnx" if path.name.startswith("sherpa") else "funasr")
    assert found["tokens"]["tags"] == 17


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda f: (f / "am.mvn").unlink(), "am.mvn: file not found"),
        (lambda f: (f / "model_quant.onnx").write_bytes(b"<html>"), "model_quant.onnx"),
        (lambda f: (f / "model_quant.onnx").write_bytes(network(tokens=7)), "7 columns"),
        (lambda f: (f / "tokens.json").write_text("{"), "tokens.json"),
        (lambda f: (f / "config.yaml").unlink(), "config.yaml: file not found"),
        (lambda f: (f / "model_quant.onnx").unlink(), "README.md, OTHER, am.mvn"),
        (lambda f: (f / "model_quant.onnx").write_bytes(network(weight=float("nan"))), "NaN"),
    ],
)
def test_broken_folders_give_a_report(cli, tmp_path, harm, message):
    """Exit 4, one line that says why; the JSON has it too, without the folder and own names."""
    model = model_folder(tmp_path)
    (model / "a-smith.wav").write_bytes(b"x")
    (model / "tiny-en.bpe.model").rename(model / "smith.bpe.model")
    harm(model)
    found, done = examined(cli, model)
    assert (done.code, found["verdict"]) == (4, "broken")
    assert message in found["error"]
    assert message in done.err
    assert "smith" not in done.out
    assert str(tmp_path) not in done.out
    assert found["other_files"] == 1


def test_no_such_model(cli):
    """Nothing to examine: the usual message and no report."""
    done = cli("doctor", "nowhere")
    assert (done.code, done.out) == (4, "")
    assert "expected a model folder or a name" in done.err


def test_what_is_odd_makes_a_model_doubtful(cli, tmp_path):
    """Another recipe and a repeated piece: usable, exit 0, each in a sentence."""
    model = model_folder(tmp_path)
    config = (model / "config.yaml").read_text()
    (model / "config.yaml").write_text(config.replace("frame_shift: 10", "frame_shift: 12"))
    pieces = json.loads((model / "tokens.json").read_text())
    pieces[-1] = pieces[-2]
    (model / "tokens.json").write_text(json.dumps(pieces))
    found, done = examined(cli, model)
    assert (done.code, found["verdict"]) == (0, "doubtful")
    odd = " | ".join(sentences(found, good=False))
    assert "frame_shift_ms is 12" in odd
    assert "1 pieces stand in the token table more than once" in odd
    assert "tokenizer (*.bpe.model) have different pieces" in odd
    assert done.err.count("ODD ") == 3


def test_a_model_that_hears_nothing_is_doubtful(cli, tmp_path):
    """Scores of zero everywhere: the blank wins, and no clip has a word."""
    model = model_folder(tmp_path)
    (model / "model_quant.onnx").write_bytes(network(rows=560))
    found, _ = examined(cli, model)
    assert any("words in 0 of 20" in text for text in sentences(found, good=False)), found


def test_files_are_compared_with_the_published_ones(tmp_path, monkeypatch):
    """The very file, one of the same name and size but other bytes, and one of another size."""
    model = model_folder(tmp_path)
    paths = ("am.mvn", "config.yaml", "tokens.json")
    facts = {name: folder._fact(name, model / name) for name in paths}
    listed = tuple(
        manifest.File(name, fact.bytes + (name == "tokens.json"),
                      fact.sha256 if name == "am.mvn" else "0" * 64, ())
        for name, fact in facts.items()
    )  # fmt: skip
    toy = manifest.Model("toy", (), manifest.OWN_CARD, (manifest.Distribution("funasr", listed),))
    monkeypatch.setitem(manifest.MODELS, "toy", toy)
    found = {file.name: file for file in folder.files(model)[0]}
    assert found["am.mvn"].published_as == ("toy (funasr)",)
    assert [found[name].damaged for name in paths] == [False, True, False]
    assert found["model_quant.onnx"].published_as == ()


# ------------------------------------------------------------------ clips


def test_own_clips_are_numbers_without_texts(cli, tmp_path):
    """A folder's first twenty; what they say only when asked for; no name of theirs."""
    for number in range(21):
        shutil.copyfile(ROOT / "golden/audio/yes-rms.wav", tmp_path / f"mum-{number:02d}.wav")
    (tmp_path / "notes.txt").write_text("no sound")
    found, done = examined(cli, "tiny-en", "--clips", tmp_path)
    assert [c["name"] for c in found["clips"]] == [f"clip-{n:02d}" for n in range(1, 21)]
    assert {c["text"] for c in found["clips"]} == {None}
    assert "mum" not in done.out + done.err
    found, _ = examined(cli, "tiny-en", "--clips", tmp_path, "--texts")
    assert {c["text"] for c in found["clips"]} == {"yes"}


def test_clips_of_a_manifest(tmp_path):
    """As asr evaluate reads one; at most thirty seconds of each."""
    soundfile.write(tmp_path / "long.wav", np.zeros(8000 * 40), 8000)
    table = tmp_path / "m.tsv"
    table.write_text("path\ttranscript\nlong.wav\thello\n")
    (clip,) = clips.load(table)
    assert (clip.name, clip.sound.duration_s) == ("clip-01", 30)
    table.write_text("path\ttranscript\nlong.wav\n")
    with pytest.raises(UsageError, match="line 2: expected 2 tab-separated fields"):
        clips.load(table)
    soundfile.write(tmp_path / "empty.wav", np.zeros(0), 8000)
    (tmp_path / "long.wav").unlink()
    with pytest.raises(AudioError):
        clips.load(tmp_path)
    (tmp_path / "empty.wav").unlink()
    with pytest.raises(UsageError, match="expected at least one clip"):
        clips.load(tmp_path)


# ------------------------------------------------------------------ peers


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put fake peers on the path of this process and of those it starts."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "sherpa_onnx.py").write_text(FAKE_SHERPA)
    (site / "funasr_onnx.py").write_text(FAKE_FUNASR)
    monkeypatch.syspath_prepend(site)
    path = os.pathsep.join([str(site), str(ROOT), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return site


SHERPA = next(p for p in NETWORKS if p.name.startswith("sherpa"))


def test_peers_that_are_not_installed(cli):
    """Said of each, and no fault of the model."""
    if any(__import__("importlib.util").util.find_spec(m) for m, _ in peers.PEERS.values()):
        pytest.fail("the tests' environment must not have the peers")
    found, _ = examined(cli, "tiny-en", "--peers")
    assert [(p["version"], p["problem"]) for p in found["peers"]] == [(None, "not installed")] * 2
    assert found["verdict"] == "healthy"


@pytest.mark.parametrize(
    ("model", "asked", "other"),
    [(SHERPA, "sherpa-onnx", "funasr-onnx"), ("tiny-en", "funasr-onnx", "sherpa-onnx")],
)
def test_a_peer_that_says_something_else_is_odd(cli, installed, model, asked, other):
    """It answers in a process of its own; the peer of the other layout is left out."""
    found, done = examined(cli, model, "--peers")
    rows = {row["name"]: row for row in found["peers"]}
    assert rows[asked]["problem"] is None
    assert rows[asked]["tokens"] == 40  # two in each clip
    assert rows[asked]["differing"] > 0
    assert rows[asked]["rtf"] > 0
    assert "layout only" in rows[other]["problem"]
    assert (done.code, found["verdict"]) == (0, "doubtful")
    assert any(text.startswith(asked) for text in sentences(found, good=False))


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("raise ImportError('/mine/secret.so: no')", "failed, ImportError"),
        ("import os; os._exit(9)", "failed, exit status 9"),
    ],
)
def test_a_peer_that_fails_is_a_line(cli, installed, code, problem):
    """Neither a crash nor a message with a path of the user reaches the report."""
    (installed / "sherpa_onnx.py").write_text(code)
    found, done = examined(cli, SHERPA, "--peers")
    assert found["peers"][0]["problem"] == problem
    assert found["peers"][0]["version"] == "unknown"
    assert "secret" not in done.out + done.err
    assert found["verdict"] == "doubtful"


def test_equal_answers_are_equal():
    """Spelled as each peer does: rows or tokens left out, the marker as it is or as a space."""
    pieces = ["<blank>", "<|en|>", "<|x|>", "\u2581a", "b"]
    rows = [1, 0, 2, 1, 3, 3, 0, 3, 4]
    assert peers.spelled(pieces, rows, 0, "funasr-onnx") == ["\u2581a", "\u2581a", "b"]
    assert peers.spelled(pieces, rows, 0, "sherpa-onnx") == [" a", "b"]


# ------------------------------------------------------------------ redaction


def test_what_is_told_to_strangers(tmp_path):
    """The folder, however it is written, and names of other files are cut out of a message."""
    (tmp_path / "mine.txt").write_text("")
    (tmp_path / "mine.bpe.model").write_text("")
    error = LayoutError(
        f"{tmp_path}/am.mvn: expected x in {tmp_path}, found mine.bpe.model, mine.txt"
    )
    assert redacted(error, tmp_path) == "am.mvn: expected x in MODEL, found *.bpe.model, OTHER"


def test_an_odd_finding_outweighs_good_ones():
    """healthy only while every finding is good; broken whatever they are."""
    report = Report()
    report.good("a")
    assert report.verdict == "healthy"
    report.bad("b")
    report.good("c")
    assert report.verdict == "doubtful"
    report.broken = LayoutError("x")
    assert report.verdict == "broken"


def test_a_tokenizer_that_cannot_be_read(tmp_path):
    """It does not agree, and nothing is raised."""
    model = model_folder(tmp_path)
    (tokenizer,) = model.glob("*.bpe.model")
    tokenizer.write_bytes(b"no tokenizer")
    assert folder.tokens(open_layout(model))["agrees_with_tokenizer"] is False


def test_nothing_opens_a_socket():
    """The whole examination, peers asked for, with sockets forbidden."""
    program = (
        "import sys\n"
        "def audit(event, _):\n"
        "    if event.startswith('socket.'): raise SystemExit(99)\n"
        "sys.addaudithook(audit)\n"
        "from asr.cli import main\n"
        "sys.exit(main(['doctor', 'tiny-en', '--peers']))"
    )
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
