"""make instructions: budgets hold, a pass too many is caught, a missing tool is named."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tomllib

ROOT = Path(__file__).parent.parent
BUDGET = tomllib.loads((ROOT / "benchmarks/instructions.toml").read_text(encoding="utf-8"))


def count(root, *arguments, **environment):
    """Run the script of a checkout."""
    return subprocess.run(
        [sys.executable, root / "benchmarks/instructions.py", *arguments],
        cwd=root, env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.system
def test_each_stage_keeps_its_budget():
    """Every path is within its budget or named uncounted with the reason."""
    done = count(ROOT)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = re.findall(r"^(\w+) +([\w-]+) +(not counted: \S+|[\d,]+)", done.stdout, re.M)
    assert {(stage, path) for stage, path, _ in rows} == {
        *((stage, path) for stage in ("fbank", "ctc", "phrases")
          for path in ("scalar", "avx2", "avx512", "neon")),
        *((stage, path) for stage in ("lfr", "cmvn") for path in ("x86-64", "aarch64")),
    }  # fmt: skip
    for stage, path, found in rows:
        if path in ("scalar", "avx2", "x86-64"):
            assert not found.startswith("not counted"), (stage, path)
        if path == "avx512":
            assert found.startswith("not counted")


@pytest.mark.system
def test_one_more_pass_over_the_samples_is_caught(tmp_path):
    """An addition per sample, planted in a copy of the sources, is above the budget."""
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in ("rust_fe", "benchmarks"):
        shutil.copytree(ROOT / name, tmp_path / name)
    source = tmp_path / "rust_fe/src/fbank.rs"
    text = source.read_text()
    right = "        let mut out = vec![0.0; self.num_frames"
    assert text.count(right) == 1
    planted = "        std::hint::black_box(samples.iter().sum::<f32>());\n"
    source.write_text(text.replace(right, planted + right))
    done = count(
        tmp_path,
        "--stages",
        "fbank",
        "--paths",
        "avx2",
        CARGO_TARGET_DIR=str(ROOT / "target/planted"),
    )
    print(done.stdout)
    assert done.returncode == 10, done.stdout + done.stderr
    assert re.search(r"^fbank +avx2 .*ABOVE$", done.stdout, re.M)


def test_a_missing_tool_is_exit_7_with_the_line_that_installs_it(tmp_path):
    """Without valgrind the script says how to get it, before it builds anything."""
    (tmp_path / "cargo").symlink_to(sys.executable)
    done = count(ROOT, PATH=str(tmp_path))
    assert done.returncode == 7
    assert done.stderr == (
        "instructions: expected valgrind, found none; apt-get install valgrind\n"
    )


def test_every_path_has_a_budget_but_the_one_that_nobody_can_count():
    """No path is left out in silence; the margin is small."""
    assert BUDGET["margin_percent"] <= 1
    for stage in ("fbank", "ctc", "phrases"):
        assert set(BUDGET["stages"][stage]) == {"scalar", "avx2", "neon"}
    for stage in ("lfr", "cmvn"):
        assert set(BUDGET["stages"][stage]) == {"x86-64", "aarch64"}
