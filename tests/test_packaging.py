"""The wheel stands on its own: no Rust, no checkout, another folder."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CLIP = ROOT / "golden/audio/transcribe_me.wav"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The release wheel, built as a user of pip would get it."""
    out = tmp_path_factory.mktemp("dist")
    command = ["maturin", "build", "--release", "--locked", "--quiet", "--out", str(out)]
    subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)
    (path,) = out.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    """Model, stub and marker are inside; tests, goldens and Rust sources are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {
        "asr/_rust_fe.abi3.so",
        "asr/_rust_fe.pyi",
        "asr/py.typed",
        "asr/builtin/tiny-en/model_quant.onnx",
        "asr/builtin/tiny-en/README.md",
        "asr/cli/transcribe.py",
        "asr/bench/workload/default.tsv",
        "asr/bench/workload/seven-slt.wav",
    }
    assert wanted - names == set()
    tops = {name.partition("/")[0] for name in names}
    assert {t for t in tops if not t.startswith("asr_rtf-")} == {"asr"}
    assert wheel.stat().st_size < 6_000_000


def test_the_wheel_transcribes_in_an_empty_environment(wheel, tmp_path):
    """In a fresh environment without a compiler on the path, in another folder, words come out."""
    home = tmp_path / "env"
    venv.create(home, with_pip=True)
    python = home / "bin/python"
    subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel],
        check=True,
    )
    environment = {"PATH": str(home / "bin"), "HOME": str(tmp_path)}
    environment |= {k: v for k, v in os.environ.items() if k.startswith("OPENBLAS")}
    result = subprocess.run(
        [home / "bin/asr", "transcribe", CLIP],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout == "one two three four five six seven eight nine\n"
    assert result.stderr == ""
