"""rust_fe on emulated Arm cores: every path against scalar, one build for all of them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import arm  # noqa: E402 - a script's folder

#: What is compared on the emulated core: backends against scalar, stages, pieces of long sound.
TESTS = ("backends", "stages", "cut")


@pytest.fixture(scope="module")
def programs():
    """The crate's own tests, compiled once for the generic aarch64."""
    arm.need_emulator()
    chosen = [word for name in TESTS for word in ("--test", name)]
    built = arm.build(ROOT, ROOT / "target/cross", "--package", "rust_fe", "--profile",
                      "emulated", *chosen)  # fmt: skip
    return {re.match(r"[a-z]+", path.name)[0]: path for path in built}


@pytest.mark.system
@pytest.mark.parametrize("cpu", arm.CORES)
@pytest.mark.parametrize("name", TESTS)
def test_the_crate_passes_its_own_tests_on_the_core(programs, cpu, name):
    """With and without byte dot products: NEON is found, agrees with scalar, nothing crashes."""
    done = subprocess.run(
        arm.emulated(programs[name], cpu),
        cwd=ROOT / "rust_fe", capture_output=True, text=True, check=False,
    )  # fmt: skip
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    assert re.search(r"test result: ok\. [1-9]\d* passed; 0 failed; 0 ignored", done.stdout)
    if name == "backends":
        assert "backends this CPU can run: neon, scalar\n" in done.stderr


def test_without_the_emulator_there_is_an_error(monkeypatch):
    """A missing emulator is named with the line that installs it, never passed over."""
    monkeypatch.setattr(arm.shutil, "which", lambda _: None)
    with pytest.raises(arm.MissingToolError, match="apt-get install qemu-user"):
        arm.need_emulator()
