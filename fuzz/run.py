"""Fuzz the readers, the Python boundary and rust_fe: ``make fuzz``, or a target by its name.

    python fuzz/run.py --minutes 10
    python fuzz/run.py --minutes 1 wav pipe
    python fuzz/run.py --case wav 1 8123

A case is made of target, seed and number alone, so ``--case`` repeats one. Cases run in a process
of their own: a crash, a hang, too much memory and every exception that is not of ``asr.errors`` is
a finding; its bytes are made as few as still show it. Exit code 1 when there is one.
"""

import argparse
import json
import mmap
import os
import random
import re
import resource
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
#: A case that takes longer is a hang.
HANG_S = 10.0
#: Address space that a case may take beyond what its process has.
MEMORY_BYTES = 3 << 30
#: Progress of a process that imports.
NOT_BEGUN = b"\xff" * 8
#: Findings of one target after which the rest of its time is not worth spending.
MOST = 10


def case_of(name: str, seed: int, number: int) -> object:
    """Make one case again."""
    from targets import TARGETS

    return TARGETS[name].make(random.Random(f"{name}:{seed}:{number}"))


def failure(name: str, case: object) -> str:
    """Run one case: what is wrong, in a line, or nothing."""
    from targets import TARGETS

    try:
        TARGETS[name].check(case)
    except BaseException as error:  # a panic of Rust is no Exception
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        words = " ".join(str(error).split())[:300]
        return f"{type(error).__name__}: {words} ({Path(where.filename).name}:{where.lineno})"
    return ""


def work(options: argparse.Namespace) -> None:
    """The process that runs cases: its number is in shared memory, its findings on stdout."""
    sys.path.insert(0, str(HERE))
    used = int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, -1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if options.content is not None:
        case = case_of(options.work, options.seed, options.first)
        found = failure(options.work, case._replace(data=options.content.read_bytes()))
        print(json.dumps(found), flush=True)
        return
    with open(options.progress, "r+b") as file, mmap.mmap(file.fileno(), 8) as number:  # noqa: PTH123
        end, seen = time.monotonic() + options.seconds, set()
        for n in range(options.first, options.first + options.cases):
            number[:] = struct.pack("Q", n)
            found = failure(options.work, case_of(options.work, options.seed, n))
            if found and found[-60:] not in seen:
                seen.add(found[-60:])
                print(json.dumps([n, found]), flush=True)
            if time.monotonic() > end or len(seen) >= MOST:
                break
        number[:] = struct.pack("Q", n + 1)


def start(name: str, seed: int, *more: str) -> "subprocess.Popen[str]":
    """Start a process that runs cases."""
    command = [sys.executable, str(HERE / "run.py"), "--work", name, "--seed", str(seed), *more]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    # What decoders say about damage on their own goes nowhere.
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def fuzz(
    name: str, seed: int, seconds: float, cases: int = 1 << 62, hang_s: float = HANG_S
) -> tuple[int, list[tuple[int, str]]]:
    """Run a target until its time or its number of cases is up.

    Returns:
        executions, and findings as (number of the case, what is wrong).
    """
    end, first = time.monotonic() + seconds, 0
    findings: list[tuple[int, str]] = []
    with tempfile.NamedTemporaryFile() as progress:
        while first < cases and len(findings) < MOST and time.monotonic() < end:
            Path(progress.name).write_bytes(NOT_BEGUN)
            child = start(
                name, seed, "--first", str(first), "--cases", str(cases - first),
                "--seconds", str(end - time.monotonic()), "--progress", progress.name,
            )  # fmt: skip
            hung = _watch(child, Path(progress.name), hang_s)
            out, _ = child.communicate()
            for line in out.splitlines():
                number, what = json.loads(line)
                findings.append((number, what))
            if (begun := Path(progress.name).read_bytes()) != NOT_BEGUN:
                first = struct.unpack("Q", begun)[0]
            if hung:
                findings.append((first, f"hang: more than {hang_s:g} s"))
                first += 1
            elif child.returncode:
                findings.append((first, f"crash: the process ended with {child.returncode}"))
                first += 1
            else:
                break
    return first, findings


def _watch(child: "subprocess.Popen[str]", progress: Path, hang_s: float) -> bool:
    """Wait for the end; kill a process whose case does not end."""
    last, since = NOT_BEGUN, time.monotonic()
    while child.poll() is None:
        time.sleep(0.05)
        now = progress.read_bytes()
        if now != last:
            last, since = now, time.monotonic()
        elif time.monotonic() - since > (30 if now == NOT_BEGUN else hang_s):
            child.kill()
            child.wait()
            return True
    return False


def minimise(name: str, seed: int, number: int, attempts: int = 150) -> bytes:
    """Leave out bytes of a case as long as it stays a finding of the same kind."""
    data = case_of(name, seed, number).data  # type: ignore[attr-defined]

    def outcome(content: bytes) -> str:
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            child = start(name, seed, "--first", str(number), "--content", file.name)
            try:
                out, _ = child.communicate(timeout=HANG_S + 5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.communicate()
                return "hang"
        return json.loads(out)[-40:] if child.returncode == 0 else f"crash {child.returncode}"

    wanted, step = outcome(data), len(data) // 2
    while wanted and step and attempts:
        place = 0
        while place < len(data) and attempts:
            shorter = data[:place] + data[place + step :]
            attempts -= 1
            if outcome(shorter) == wanted:
                data = shorter
            else:
                place += step
        step //= 2
    return data


def rust(seconds: float, seed: int) -> list[tuple[str, int, str]]:
    """Fuzz rust_fe: by coverage, with AddressSanitizer, where a nightly compiler can build that.

    Returns:
        target, executions and finding, if any, of each.
    """
    program = _coverage_guided()
    if program is None:
        command = ["cargo", "test", "--quiet", "--locked", "--release", "--test", "fuzz"]
        each = {"RUST_FE_FUZZ_SECONDS": str(max(1, int(seconds))), "RUST_FE_FUZZ_SEED": str(seed)}
        done = _output(command, each)
        found = dict(re.findall(r"^finding: (\w+) (.*)", done, re.M))
        counts = re.findall(r"^fuzz: (\w+): (\d+)", done, re.M)
        return [(f"rust_fe {n}", int(count), found.get(n, "")) for n, count in counts]
    results = []
    source = (ROOT / "rust_fe/tests/fuzz_targets/mod.rs").read_text()
    for name in re.findall(r'^    \("(\w+)", ', source, re.M):
        with tempfile.TemporaryDirectory() as folder:
            command = [
                str(program), f"-max_total_time={max(1, int(seconds))}", f"-seed={seed}",
                "-max_len=1024", f"-timeout={HANG_S:g}", "-rss_limit_mb=2048",
                "-print_final_stats=1", f"-artifact_prefix={folder}/",
            ]  # fmt: skip
            done = _output(command, {"RUST_FE_FUZZ_TARGET": name})
            count = re.search(r"number_of_executed_units: (\d+)", done)
            artifacts = [(p.name, p.read_bytes()) for p in Path(folder).iterdir()]
        said = re.search(r"panicked at .*\n.*|ERROR: .*", done)
        words = " ".join(said[0].split()) if said else ""
        found = f"{words} {artifacts}" if artifacts else ""
        if count is None:
            found = found or f"no count; its last words: {done[-300:]!r}"
        results.append((f"rust_fe {name} (coverage)", int(count[1]) if count else 0, found))
    return results


def _coverage_guided() -> Path | None:
    passes = ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"]
    flags = ["--cfg", "fuzzing", "-Zsanitizer=address", "-Cpasses=sancov-module"]
    flags += [f"-Cllvm-args=-sanitizer-coverage-{p}" for p in passes]
    target = "x86_64-unknown-linux-gnu"
    command = ["cargo", "+nightly", "build", "--release", "--locked", "--target", target,
               "--manifest-path", str(HERE / "rust_fe/Cargo.toml"),
               "--target-dir", str(ROOT / "target/fuzz")]  # fmt: skip
    try:
        done = subprocess.run(
            command, env={**os.environ, "RUSTFLAGS": " ".join(flags)}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
    except OSError:
        return None
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["no reason"]
        print(f"rust_fe without coverage, no nightly build: {why[0]}", flush=True)
        return None
    return ROOT / "target/fuzz" / target / "release/rust_fe-fuzz"


def _output(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def main() -> int:
    """Fuzz, and tell what was found."""
    parser = argparse.ArgumentParser(description="Fuzz the readers and rust_fe.")
    parser.add_argument("targets", nargs="*", help="default: all of Python's, and rust_fe")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--case", nargs=3, metavar=("TARGET", "SEED", "NUMBER"))
    for hidden in ("--work", "--progress"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--content", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--cases", type=int, default=1 << 62, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options)
        return 0
    sys.path.insert(0, str(HERE))
    from targets import TARGETS

    if options.case:
        name, seed, number = options.case
        case = case_of(name, int(seed), int(number))
        print(case, failure(name, case) or "no finding", sep="\n")
        return 0
    names = options.targets or [*TARGETS, "rust_fe"]
    # rust_fe has five targets, and the time of five.
    seconds = 60 * options.minutes / (len(names) + 4 * ("rust_fe" in names))
    rows = []
    for name in names:
        if name == "rust_fe":
            rows += [_tell(*row) for row in rust(seconds, options.seed)]
            continue
        count, findings = fuzz(name, options.seed, seconds)
        rows.append(_tell(name, count, *(f"case {n}: {what}" for n, what in findings)))
        for number, _ in findings:
            shown = f"--case {name} {options.seed} {number}"
            print(f"  {shown}: {minimise(name, options.seed, number)!r}", flush=True)
    total, found = sum(r[0] for r in rows), sum(r[1] for r in rows)
    print(f"fuzz: seed {options.seed}: {total} executions, {found} findings")
    return 1 if found else 0


def _tell(name: str, count: int, *findings: str) -> tuple[int, int]:
    found = [f for f in findings if f]
    print(f"{name:24} {count:10} executions {len(found):3} findings", flush=True)
    for what in found:
        print(f"  {what}", flush=True)
    return count, len(found)


if __name__ == "__main__":
    sys.exit(main())
