"""Instructions that one call of each Rust stage runs, against benchmarks/instructions.toml.

Valgrind counts what x86-64 runs, QEMU with a plugin what an aarch64 build runs on a Cortex-A76;
neither minds what else the machine does. A count is the difference between a run with more calls
and one with one.
Exit code 0: within the budget; 10: above it; 7: a tool is missing, with the line that installs it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import arm
import tomllib

from asr.deploy import cross
from asr.errors import AsrError

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "benchmarks/instructions.toml"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
#: Stages that are written for SIMD lanes have a path per instruction set, the others one per CPU;
#: aarch64 is plain Rust there.
STAGES = {
    stage: ("scalar", "avx2", "avx512", "neon", "aarch64") if wide else ("x86-64", "aarch64")
    for stage, wide in (
        ("fbank", True), ("lfr", False), ("cmvn", False), ("ctc", True), ("phrases", True),
        ("energy", False), ("cut", False),
    )
}  # fmt: skip
ARM_PATHS = ("neon", "aarch64")
#: Calls between the two runs. A phrase list is prepared with hash tables of random seeds: what that
#: varies by is spread over several calls.
CALLS = {"phrases": 20}
#: Paths that nothing here can count.
UNCOUNTED = {"avx512": "not counted: valgrind hides AVX-512 from the program"}


def require(tool: str, install: str) -> None:
    """Leave with 7 when a program is not there."""
    if shutil.which(tool) is None:
        print(f"instructions: expected {tool}, found none; {install}", file=sys.stderr)
        sys.exit(7)


def build(*options: str, **environment: str) -> bool:
    """Compile the program to count."""
    command = ["cargo", "build", "--quiet", "--locked", "--profile", "profiling"]
    done = subprocess.run(
        [*command, "-p", "instructions", *options],
        cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        print(done.stderr, file=sys.stderr)
    return done.returncode == 0


def build_arm() -> None:
    """Compile the program and the counter for what runs under emulation."""
    arm.build(ROOT, TARGET / "cross", "--profile", "profiling", "--package", "instructions")
    arm.plugin(TARGET / "cross")


def run(path: str, stage: str, times: int) -> int:
    """Instructions of a whole run of the program with so many calls."""
    if path in ARM_PATHS:
        program = TARGET / "cross" / cross.TARGET / "profiling/instructions"
        counter = arm.emulated(program, arm.CORES[0], counter=TARGET / "cross/qemu_count.so")
    else:
        counter = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null",
                   str(TARGET / "profiling/instructions")]  # fmt: skip
    backend = {"x86-64": "any", "aarch64": "scalar"}.get(path, path)
    done = subprocess.run(
        [*counter, stage, backend, str(times)],
        env={}, executable=shutil.which(counter[0]), capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"(?:Collected :|instructions:) (\d+)", done.stdout + done.stderr)
    if done.returncode or not found:
        message = f"{stage} {path}: expected a count, found {done.returncode}: {done.stderr}"
        raise SystemExit(message)
    return int(found[1])


def main() -> int:
    """Count, print a table, compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--paths", nargs="+", help="only these (default: all)")
    parser.add_argument("--write", action="store_true", help="print the counts as a new budget")
    options = parser.parse_args()
    require("cargo", "install Rust: https://rustup.rs")
    require("valgrind", "apt-get install valgrind")
    if set(options.paths or ARM_PATHS) & set(ARM_PATHS):
        arm.need_emulator()  # before anything is built
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    rustc = subprocess.check_output(["rustc", "--version"], text=True).split()[1]
    if not build():
        return 1
    if set(options.paths or ARM_PATHS) & set(ARM_PATHS):
        build_arm()
        rustc += f", for aarch64 {arm.compiler()}"
    counted: dict[str, dict[str, int]] = {}
    above = []
    print(f"{'stage':<8} {'path':<8} {'instructions':>12} {'budget':>12}  change")
    for stage in options.stages:
        for path in STAGES[stage]:
            if options.paths and path not in options.paths:
                continue
            if path in UNCOUNTED:
                print(f"{stage:<8} {path:<8} {UNCOUNTED[path]}")
                continue
            calls = CALLS.get(stage, 1)
            found = (run(path, stage, 1 + calls) - run(path, stage, 1)) // calls
            counted.setdefault(stage, {})[path] = found
            allowed = budget["stages"].get(stage, {}).get(path, 0)
            change = 100 * (found / allowed - 1) if allowed else 100.0
            margin = budget["arm_margin_percent" if path in ARM_PATHS else "margin_percent"]
            over = found > allowed * (1 + margin / 100)
            print(f"{stage:<8} {path:<8} {found:>12,} {allowed:>12,} {change:+7.2f} %"
                  + ("  ABOVE" if over else ""), flush=True)  # fmt: skip
            if over:
                above.append(f"{stage} {path}")
    if options.write:
        for stage, paths in counted.items():
            print(f"\n[stages.{stage}]")
            print("\n".join(f"{path} = {found:_}" for path, found in paths.items()))
        return 0
    if above:
        print(f"above the budget by more than {budget['margin_percent']} %, on Arm "
              f"{budget['arm_margin_percent']} %: {', '.join(above)} (budget: rustc "
              f"{budget['rustc']}, for aarch64 {budget['arm_rustc']}; here {rustc})")  # fmt: skip
    return 10 if above else 0


if __name__ == "__main__":
    try:
        code = main()
    except AsrError as error:  # a tool that is missing, a build that fails
        print(f"instructions: {error}", file=sys.stderr)
        code = error.exit_code
    sys.exit(code)
