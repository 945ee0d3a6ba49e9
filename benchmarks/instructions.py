"""Instructions that one call of each Rust stage runs, against benchmarks/instructions.toml.

Valgrind counts what x86-64 runs, QEMU with a plugin what an aarch64 build runs; neither minds what
else the machine does. A count is the difference between a run with more calls and one with one.
Exit code 0: within the budget; 10: above it; 7: a tool is missing, with the line that installs it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "benchmarks/instructions.toml"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
ARM = "aarch64-unknown-linux-musl"
#: Stages that are written for SIMD lanes have a path per instruction set, the others one per CPU.
STAGES = {
    stage: ("scalar", "avx2", "avx512", "neon") if wide else ("x86-64", "aarch64")
    for stage, wide in (
        ("fbank", True), ("lfr", False), ("cmvn", False), ("ctc", True), ("phrases", True)
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


def why_no_arm() -> str:
    """Why aarch64 cannot be counted here; empty when it can."""
    if shutil.which("qemu-aarch64") is None:
        return "not counted: no qemu-aarch64; apt-get install qemu-user"
    libraries = subprocess.run(
        ["rustc", "--print", "target-libdir", "--target", ARM],
        capture_output=True, text=True, check=False,
    ).stdout.strip()  # fmt: skip
    if not Path(libraries).is_dir():
        return f"not counted: no Rust for it; rustup target add {ARM}"
    linker = {"CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER": "rust-lld"}
    if not build("--target", ARM, **linker):
        return "not counted: the build for it failed"
    source, plugin = ROOT / "benchmarks/instructions/qemu_count.c", TARGET / "qemu_count.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", plugin, source], check=True)
    return ""


def run(path: str, stage: str, times: int) -> int:
    """Instructions of a whole run of the program with so many calls."""
    arm = path in ARM_PATHS
    folder = TARGET / ARM if arm else TARGET
    counter = (
        ["qemu-aarch64", "-plugin", TARGET / "qemu_count.so", "-d", "plugin"]
        if arm
        else ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    )
    backend = "any" if path in ("x86-64", "aarch64") else path
    done = subprocess.run(
        [*counter, folder / "profiling/instructions", stage, backend, str(times)],
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
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))
    rustc = subprocess.check_output(["rustc", "--version"], text=True).split()[1]
    if not build():
        return 1
    reasons = dict(UNCOUNTED)
    if set(options.paths or ARM_PATHS) & set(ARM_PATHS) and (reason := why_no_arm()):
        reasons |= {"neon": reason, "aarch64": reason}
    counted: dict[str, dict[str, int]] = {}
    above = []
    print(f"{'stage':<8} {'path':<8} {'instructions':>12} {'budget':>12}  change")
    for stage in options.stages:
        for path in STAGES[stage]:
            if options.paths and path not in options.paths:
                continue
            if path in reasons:
                print(f"{stage:<8} {path:<8} {reasons[path]}")
                continue
            calls = CALLS.get(stage, 1)
            found = (run(path, stage, 1 + calls) - run(path, stage, 1)) // calls
            counted.setdefault(stage, {})[path] = found
            allowed = budget["stages"].get(stage, {}).get(path, 0)
            change = 100 * (found / allowed - 1) if allowed else 100.0
            over = found > allowed * (1 + budget["margin_percent"] / 100)
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
        print(f"above the budget by more than {budget['margin_percent']} %: {', '.join(above)}"
              f" (budget: rustc {budget['rustc']}, here {rustc})")  # fmt: skip
    return 10 if above else 0


if __name__ == "__main__":
    sys.exit(main())
