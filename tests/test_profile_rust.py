"""asr profile on the Rust half: a copy planted in it, or a lock that is kept, is found.

A test build counts what Rust allocates. The plants are made in a copy of the sources, so that the
sources hold none.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent
ACCOUNT = ROOT / "tests/system/native_calls.toml"

#: Runs ``asr`` on another build of its Rust half.
PROGRAM = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("asr._rust_fe", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
sys.modules["asr._rust_fe"] = module
import asr
asr._rust_fe = module
from asr.cli import main
sys.exit(main(sys.argv[2:]))
"""

#: What stands in rust_fe/src/py -> the same with a copy of the input.
PLANTS = {
    "|| self.0.compute(slice)": "|| self.0.compute(&slice.to_vec())",
    "|| lfr::lfr(values,": "|| lfr::lfr(&values.to_vec(),",
    "ctc::greedy(values,": "ctc::greedy(&values.to_vec(),",
    "|| cmvn::cmvn(values,": "|| cmvn::cmvn(values.to_vec().as_mut_slice(),",
}


def build(sources, features, destination):
    """Compile the Rust half with these features."""
    target = ROOT / "target/boundary"
    subprocess.run(
        ["cargo", "build", "--release", "--quiet", "--locked", "-p", "rust_fe",
         "--features", features, "--target-dir", target],
        cwd=sources, check=True,
    )  # fmt: skip
    shutil.copyfile(target / "release/librust_fe.so", destination)
    return destination


def profiled(build, clip):
    """Exit code and lines of ``asr profile --account`` on this build."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, build, "profile", clip, "--threads", "1",
         "--account", ACCOUNT],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_rust_allocates_what_the_account_says(clip, tmp_path):
    """The counting build: results and bounded work space, nothing else."""
    code, out, err = profiled(build(ROOT, "count-allocations", tmp_path / "rust_fe.so"), clip)
    print(out)
    assert (code, err) == (0, "")
    assert re.search(r"made +lent +rust\n", out)


def test_copies_and_a_kept_lock_in_rust_are_found(clip, tmp_path):
    """With .to_vec() in every function, and the lock kept, each function is named for both."""
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    for name in ("rust_fe", "benchmarks", "deploy"):
        shutil.copytree(ROOT / name, tmp_path / name)
    sources = {path: path.read_text() for path in (tmp_path / "rust_fe/src/py").glob("*.rs")}
    for right, planted in PLANTS.items():
        (path,) = (path for path, text in sources.items() if text.count(right) == 1)
        sources[path] = sources[path].replace(right, planted)
    for path, text in sources.items():
        path.write_text(text)
    planted = build(tmp_path, "count-allocations,hold-lock", tmp_path / "planted.so")
    code, _, err = profiled(planted, clip)
    print(err)
    assert code == 10
    for function in ("Fbank.compute", "lfr", "cmvn", "ctc_greedy"):
        assert re.search(rf"rust_fe.{function}: expected at most .* allocated in Rust", err), err
        assert f"rust_fe.{function}: expected the interpreter lock released" in err
    assert "onnxruntime.run: expected" not in err
