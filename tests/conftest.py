"""What every test file may use: the built-in model, a spoken clip, and two ways to run ``asr``."""

import os
import shutil
import subprocess
import sys
import wave
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest

import asr
from asr.cli import main

ROOT = Path(__file__).resolve().parents[1]

# The same commit gets the same verdict; `explore` looks for what nobody has seen yet.
hypothesis.settings.register_profile("dev", max_examples=25, derandomize=True, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=300, derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", max_examples=2000, deadline=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE") or "dev"  # make sets it empty outside of CI
hypothesis.settings.load_profile(PROFILE)

#: Runs the command as the console script does; `-B` so that no bytecode file is written.
COMMAND = [sys.executable, "-B", "-c", "import sys; from asr.cli import main; sys.exit(main())"]


class Run(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def pytest_report_header():
    """Say what ran the tests, so that a log can be compared with another."""
    import numpy
    import onnxruntime
    import soundfile

    from asr import _rust_fe

    info = _rust_fe.build_info()
    return (
        f"asr {info['version']} {info['profile']}, SIMD {info['backends']}, "
        f"numpy {numpy.__version__}, onnxruntime {onnxruntime.__version__}, "
        f"libsndfile {soundfile.__libsndfile_version__}, "
        f"hypothesis profile {PROFILE}"
    )


@pytest.fixture(autouse=True)
def no_dump(monkeypatch):
    """No test inherits a dump folder from the shell that started it."""
    monkeypatch.delenv("ASR_DUMP", raising=False)


@pytest.fixture(scope="session")
def clip():
    """Three seconds of speech: one to nine."""
    return ROOT / "golden" / "audio" / "transcribe_me.wav"


@pytest.fixture(scope="session")
def short_clip():
    """Less than a second of speech: a single word."""
    return ROOT / "golden" / "audio" / "seven-slt.wav"


@pytest.fixture(scope="session")
def recognizer():
    """The built-in model, loaded once."""
    return asr.Recognizer.load(threads=1)


@pytest.fixture
def cli(capfd, monkeypatch):
    """Run ``asr`` in this process: quick, for everything that is not about the process itself."""
    monkeypatch.setattr("warnings.showwarning", print)  # the command replaces it; restored after

    def run(*arguments):
        capfd.readouterr()
        try:
            code = main([str(a) for a in arguments])
        except SystemExit as stop:
            code = stop.code
        return Run(code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def asr_process():
    """Run ``asr`` as a process; ``env`` adds variables, ``program`` replaces the code."""

    def run(*arguments, env=None, program=None, **options):
        command = [*COMMAND[:-1], program] if program else COMMAND
        done = subprocess.run(
            [*command, *(os.fspath(a) for a in arguments)],
            cwd=options.pop("cwd", ROOT),
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            timeout=60,
            check=False,
            **options,
        )
        return Run(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def edge_program():
    """asr-edge and its library, built by cargo, which has nothing to do where nothing changed."""
    command = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "asr-edge"]
    subprocess.run(command, cwd=ROOT, check=True)
    return ROOT / "target/release/asr-edge"


@pytest.fixture(scope="session")
def tiny_bundle(edge_program, tmp_path_factory):
    """The bundle of the built-in model, for reading only."""
    from asr.deploy import bundle
    from asr.hub import find_model
    from asr.layouts import open_layout

    layout = open_layout(find_model("tiny-en"))
    return bundle.write(layout, "tiny-en", tmp_path_factory.mktemp("edge") / "bundle")


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    """The bundle of the built-in model, to damage."""
    return Path(shutil.copytree(tiny_bundle, tmp_path / "copy"))


@pytest.fixture(scope="session")
def conversation(tmp_path_factory):
    """40 s of clips with pauses of faint noise."""
    import numpy as np

    rng = np.random.default_rng(5)
    parts = []
    for path in sorted((ROOT / "golden/audio").glob("*.wav")) * 2:
        with wave.open(str(path)) as file:
            parts.append(np.frombuffer(file.readframes(file.getnframes()), "<i2"))
        parts.append(rng.normal(0, 20, int(rng.uniform(0.4, 1.6) * 16000)))
    path = tmp_path_factory.mktemp("long") / "long.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.concatenate(parts)[: 40 * 16000].astype("<i2").tobytes())
    return path
