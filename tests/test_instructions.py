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
WIDE, PLAIN = ("fbank", "ctc", "phrases"), ("lfr", "cmvn", "energy", "cut")
ARM = ("neon", "aarch64")


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
        *((stage, path) for stage in WIDE for path in ("scalar", "avx2", "avx512", *ARM)),
        *((stage, path) for stage in PLAIN for path in ("x86-64", "aarch64")),
    }  # fmt: skip
    for stage, path, found in rows:
        assert found.startswith("not counted") == (path == "avx512"), (stage, path)


@pytest.mark.system
def test_a_count_under_emulation_is_the_same_twice():
    """Two runs, with another load on the machine: not one instruction differs."""
    first, again = (
        count(ROOT, "--stages", "fbank", "ctc", "cut", "--paths", *ARM).stdout for _ in range(2)
    )
    assert len(re.findall(r"[\d,]{5,}", first)) >= 10
    assert first == again


@pytest.mark.system
@pytest.mark.parametrize(("path", "passes"), [("avx2", 1), ("neon", 1), ("aarch64", 2)])
def test_more_passes_over_the_samples_are_caught(path, passes, planted):
    """An addition per sample and pass, planted in a copy of the sources, is above the budget."""
    done = count(
        planted(passes), "--stages", "fbank", "--paths", path,
        CARGO_TARGET_DIR=str(ROOT / "target/planted"),
    )  # fmt: skip
    print(done.stdout)
    assert done.returncode == 10, done.stdout + done.stderr
    assert re.search(rf"^fbank +{path} .*ABOVE$", done.stdout, re.M)


@pytest.fixture
def planted(tmp_path):
    """A function that copies the sources, with a front end that reads the samples too often."""
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in ("rust_fe", "benchmarks", "deploy"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "build").symlink_to(ROOT / "build")  # the compiler

    def plant(passes):
        source = tmp_path / "rust_fe/src/fbank.rs"
        text = source.read_text()
        right = "        let mut out = vec![0.0; self.num_frames"
        assert text.count(right) == 1
        wrong = "std::hint::black_box(std::hint::black_box(samples).iter().sum::<f32>());"
        loop = f"        for _ in 0..{passes} {{ {wrong} }}\n"
        source.write_text(text.replace(right, loop + right))
        return tmp_path

    return plant


def test_a_missing_tool_is_exit_7_with_the_line_that_installs_it(tmp_path):
    """Without valgrind the script says how to get it, before it builds anything."""
    (tmp_path / "cargo").symlink_to(sys.executable)
    done = count(ROOT, PATH=str(tmp_path))
    assert done.returncode == 7
    assert done.stderr == (
        "instructions: expected valgrind, found none; apt-get install valgrind\n"
    )


def test_without_the_emulator_nothing_on_arm_is_passed_over(tmp_path):
    """No qemu-aarch64: exit 7 and the line that installs it, before anything is built."""
    for name in ("cargo", "valgrind"):
        (tmp_path / name).symlink_to(sys.executable)
    done = count(ROOT, PATH=str(tmp_path))
    assert done.returncode == 7
    assert done.stderr == (
        "instructions: expected qemu-aarch64, found none; apt-get install qemu-user\n"
    )


def test_every_path_has_a_budget_but_the_one_that_nobody_can_count():
    """No path is left out in silence; the margins are small."""
    assert BUDGET["margin_percent"] <= 1
    assert BUDGET["arm_margin_percent"] <= 2  # a compiler moves with Debian's security updates
    for stage in WIDE:
        assert set(BUDGET["stages"][stage]) == {"scalar", "avx2", *ARM}
    for stage in PLAIN:
        assert set(BUDGET["stages"][stage]) == {"x86-64", "aarch64"}
