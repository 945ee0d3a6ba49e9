"""asr bench --host python --host edge: only the host differs."""

import json
import shutil

import pytest
from edge import (
    CLIP,
    PROGRAM,
    WORDS,
)

pytestmark = pytest.mark.usefixtures("edge_program")


@pytest.fixture
def workload(tmp_path):
    shutil.copy(CLIP, tmp_path / "clip.wav")
    (tmp_path / "clips.tsv").write_text("file\nclip.wav\n")
    return tmp_path / "clips.tsv"


def test_bench_compares_the_hosts(tiny_bundle, workload, tmp_path, cli):
    """Cold, idle, warm, memory, crossings; the record has what the table shows."""
    words = ["bench", "--host", "python", "--host", "edge", "--model", str(tiny_bundle), "--quick",
             "--threads", "1", "--workload", str(workload), "--edge", str(PROGRAM)]  # fmt: skip
    done = cli(*words, "-o", str(tmp_path / "hosts.json"))
    assert done.code == 0, done
    found = json.loads((tmp_path / "hosts.json").read_text())
    assert found["schema"] == "asr-hosts/1"
    assert [row["state"] for row in found["rows"]] == ["cold", "idle", "warm"]
    assert found["texts"] == {"clip": WORDS}
    cold = found["rows"][0]
    assert cold["edge_ms"] < cold["python_ms"], "no interpreter to start"
    assert found["peak_rss_bytes"]["edge"] < found["peak_rss_bytes"]["python"]
    assert found["native_calls"]["edge"] == 0 < found["native_calls"]["python"]
    for word in ("clip, cold", "clip, warm", "most memory held", "texts: the same"):
        assert word in done.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--host", "edge"], 2, "--host python --host edge, both"),
        (["--edge", "x"], 2, "--edge: needs --host"),
        (["--host", "python", "--host", "edge", "--itn"], 2, "--itn: not used with --host"),
        (["--host", "python", "--host", "edge", "--edge", "/nowhere"], 7, "make edge builds it"),
    ],
)
def test_bench_refuses_what_makes_no_sense(words, code, message, workload, cli):
    """Before anything is measured."""
    done = cli("bench", "--workload", str(workload), *words)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_bench_refuses_hosts_that_hear_different_texts(tiny_bundle, workload, tmp_path, cli):
    """A program that answers with another text is not faster."""
    liar = tmp_path / "liar"
    liar.write_text(
        '#!/bin/sh\nwhile read -r line; do echo \'{"wall_s": 0.1, "text": "no"}\'; done\n'
    )
    liar.chmod(0o755)
    done = cli("bench", "--host", "python", "--host", "edge", "--model", str(tiny_bundle),
               "--quick", "--threads", "1", "--workload", str(workload),
               "--edge", str(liar))  # fmt: skip
    assert done.code == 12
    assert "Python heard" in done.err
