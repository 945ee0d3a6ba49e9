"""The C library: header, example, telemetry."""

import json
import shutil
import subprocess

import pytest
from edge import (
    CLIP,
    EDGE,
    ROOT,
    WORDS,
    environment,
)

pytestmark = pytest.mark.usefixtures("edge_program")


def test_the_c_library_has_at_most_eight_functions():
    """What the header declares is what the library exports."""
    header = (EDGE / "include/asr_edge.h").read_text()
    declared = {
        w for w in header.replace("(", " ").replace("*", " ").split() if w.startswith("asr_edge_")
    }
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", ROOT / "target/release/libasr_edge.so"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    exported = {name for name in exported if name.startswith("asr_edge_")}
    assert len(exported) == 8
    assert exported <= declared


@pytest.mark.parametrize("compiler", ["cc -std=c99", "c++ -x c++"])
def test_the_example_in_c_compiles_and_runs(tiny_bundle, tmp_path, compiler):
    """With every warning an error, in both languages."""
    program = tmp_path / "transcribe"
    subprocess.run(
        [*compiler.split(), "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L",
         EDGE / "examples/transcribe.c", "-I", EDGE / "include", "-x", "none",
         "-L", ROOT / "target/release", "-lasr_edge", "-o", program],
        check=True,
    )  # fmt: skip
    path = str(ROOT / "target/release")

    def run(*arguments, program=program, **more):
        words = [program, *map(str, arguments)]
        env = environment(tiny_bundle, LD_LIBRARY_PATH=path, **more)
        return subprocess.run(words, capture_output=True, text=True, env=env, check=False)

    done = run(tiny_bundle, CLIP)
    assert done.returncode == 0, done.stderr
    text, silence = done.stdout.splitlines()
    assert text == WORDS
    assert json.loads(silence)["reason"] == "silence"
    done = run("/nowhere", CLIP)
    assert (done.returncode, done.stdout) == (4, "")
    assert "expected a bundle" in done.stderr
    assert run(tiny_bundle, "nowhere.wav").returncode == 3
    quiet = tmp_path / "quiet"  # a program that says nothing about telemetry
    source = (EDGE / "examples/transcribe.c").read_text().replace("setenv(", "(void)(")
    (tmp_path / "quiet.c").write_text(source)
    build = [compiler.split()[0], "-w", tmp_path / "quiet.c", "-I", EDGE / "include"]
    link = ["-L", ROOT / "target/release", "-lasr_edge", "-o", quiet]
    subprocess.run([*build, *link], check=True)
    done = run(tiny_bundle, CLIP, program=quiet)
    assert done.returncode == 2
    assert "ORT_DISABLE_TELEMETRY: expected 1" in done.stderr


def test_the_header_compiles_for_the_board():
    """Where a compiler for aarch64 is installed, it takes header and example too."""
    compilers = [c for c in ("cc", "aarch64-linux-gnu-gcc") if shutil.which(c)]
    assert compilers
    for compiler in compilers:
        flags = ["-std=c99", "-Wall", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only"]
        files = ["-I", EDGE / "include", EDGE / "examples/transcribe.c"]
        subprocess.run([compiler, *flags, *files], check=True)
