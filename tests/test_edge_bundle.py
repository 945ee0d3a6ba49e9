"""Bundles: what is in them, what is refused, what prepare makes of them."""

import json
import os
import re
import shutil
import subprocess

import pytest
from edge import (
    CLIP,
    PROGRAM,
    ROOT,
    WORDS,
    assert_same,
    edge,
    environment,
    heard,
    python,
    samples_of,
)

from asr.deploy import bundle
from asr.errors import LayoutError, UsageError
from asr.hub import find_model
from asr.layouts import open_layout
from asr.recognizer import Recognizer

pytestmark = pytest.mark.usefixtures("edge_program")


def test_self_test_finds_every_changed_byte(tiny_bundle, copy):
    """Sizes at every start, checksums and the clip's text in the self-test."""
    done = edge(tiny_bundle, "--self-test")
    assert (done.returncode, done.stdout.decode()) == (0, f'tiny-en: self-test passed: "{WORDS}"\n')
    tokens = copy / bundle.TOKENS
    whole = tokens.read_bytes()
    tokens.write_bytes(whole[:-1] + b"?")
    assert (edge(copy, CLIP).returncode, edge(copy, "--self-test").returncode) == (0, 4)
    tokens.write_bytes(whole[:-1])
    done = edge(copy, CLIP)
    assert done.returncode == 4
    assert b"tokens.bin: expected" in done.stderr
    tokens.write_bytes(whole)
    clip = copy / bundle.TEST_CLIP  # not looked into for another sound
    clip.write_bytes(clip.read_bytes()[:-2])
    done = edge(copy, CLIP)
    assert done.returncode == 4
    assert b"self-test.wav: expected 96204 bytes, found 96202" in done.stderr
    shutil.copy(tiny_bundle / bundle.TEST_CLIP, clip)
    described = json.loads((copy / "bundle.json").read_text())
    described["self_test"]["spoken"] = "something else"
    (copy / "bundle.json").write_text(json.dumps(described))
    assert edge(copy, "--self-test").returncode == 12


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "asr-bundle/9"}', '{"schema": 1}'])
def test_a_description_that_is_none_is_refused(copy, text):
    """And an unknown schema, before anything else is looked at."""
    (copy / "bundle.json").write_text(text)
    done = edge(copy, CLIP)
    assert done.returncode == 4
    assert b"bundle.json" in done.stderr


def test_a_bundle_never_overwrites(tiny_bundle):
    """A folder with something in it is left alone."""
    with pytest.raises(UsageError, match="new or empty folder"):
        bundle.write(open_layout(find_model("tiny-en")), "x", tiny_bundle)


@pytest.mark.parametrize("command", ["deploy bundle", "optimize"])
def test_a_bundle_is_no_model_to_work_on(command, tiny_bundle, tmp_path, cli):
    """Both want the model that it was tiny_bundle from."""
    done = cli(*command.split(), str(tiny_bundle), "-o", str(tmp_path / "out"))
    assert done.code == 2
    assert "found a bundle" in done.err


def test_the_command_of_the_page_makes_a_bundle(tiny_bundle, tmp_path):
    """docs/bundle.md: the same files as asr.deploy.bundle writes."""
    from asr.cli import main

    page = (ROOT / "docs/bundle.md").read_text()
    assert "\nasr deploy bundle tiny-en -o bundle\n" in page
    assert main(["deploy", "bundle", "tiny-en", "-o", str(tmp_path / "bundle")]) == 0
    names = {path.name for path in (tmp_path / "bundle").iterdir()}
    assert names == {path.name for path in tiny_bundle.iterdir()}
    assert all(f"`{name}`" in page for name in names)


def test_prepare_gives_the_same_and_refuses_another_cpu(tiny_bundle, recognizer, tmp_path):
    """What is prepared has its weights in a file of their own, and can be prepared anew."""
    out = tmp_path / "prepared"
    for _ in range(2):
        assert edge(tiny_bundle, "prepare", "--out", out).returncode == 0
    assert (out / "model.data").stat().st_size > 1_000_000
    (ours,) = heard(out, CLIP)
    assert_same(ours, python(recognizer, CLIP))
    assert edge(out, "--self-test").returncode == 0
    assert edge(out, "prepare", "--out", tmp_path / "again").returncode == 4
    described = json.loads((out / "bundle.json").read_text())
    described["prepared"]["cpu"] = "another"
    (out / "bundle.json").write_text(json.dumps(described))
    done = edge(out, CLIP)
    assert done.returncode == 4
    assert b"run asr-edge prepare again" in done.stderr


def test_python_hears_the_bundle_too(tiny_bundle, recognizer):
    """So that only the host differs: asr transcribe --model BUNDLE."""
    ours = Recognizer.load(tiny_bundle, threads=1)
    assert list(ours.layout.vocabulary.pieces) == list(recognizer.layout.vocabulary.pieces)
    assert_same(python(ours, CLIP), python(recognizer, CLIP))


@pytest.mark.parametrize("damage", ["cmvn.f32", "tokens.bin", "bundle.json", "prepared"])
def test_python_refuses_a_damaged_bundle(copy, damage):
    """One line that names the folder, never a traceback."""
    if damage == "prepared":
        described = json.loads((copy / "bundle.json").read_text())
        described["prepared"] = {"runtime": "1", "cpu": "x"}
        (copy / "bundle.json").write_text(json.dumps(described))
    else:
        (copy / damage).write_bytes((copy / damage).read_bytes()[:-3])
    with pytest.raises(LayoutError, match="bundle"):
        open_layout(copy)


def test_every_kind_of_token_survives_the_table():
    """Text, tags, bytes, control pieces: the pieces that come out are those that went in."""
    from asr.layouts.bundle import pack_tokens, unpack_tokens
    from asr.text import Vocabulary

    pieces = ["<s>", "<|en|>", "<0xE4>", "\u2581one", "\u4e00", "\u2581", "</s>", "\udce4"]
    assert unpack_tokens(pack_tokens(Vocabulary(pieces))) == pieces


@pytest.mark.parametrize(
    "command", re.findall(r"^ {4}(asr-edge .*|echo .*)", (ROOT / "docs/edge.md").read_text(), re.M)
)
def test_the_commands_of_the_page_work(command, tiny_bundle, tmp_path):
    """docs/edge.md, as it stands."""
    (tmp_path / "bundle").symlink_to(tiny_bundle)
    if "prepared clip" in command:
        assert edge(tiny_bundle, "prepare", "--out", tmp_path / "prepared").returncode == 0
    (tmp_path / "clip.wav").symlink_to(CLIP)
    (tmp_path / "clip.pcm").write_bytes(samples_of(CLIP).astype("<i2").tobytes())
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=tmp_path, env=environment("/nowhere", PATH=path), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert WORDS.encode() in done.stdout or not command.endswith(("wav", "pcm", "--serve"))
