"""Instructions of one call of a network under ONNX Runtime on an emulated Cortex-A76.

    asr deploy fetch && asr deploy build --profile python
    .venv/bin/python benchmarks/count_network.py tiny-en [--rows 171] [--cpu cortex-a76]

What comes out belongs into asr/deploy/calibration.toml, [[counted]]: cycles is the longest of
vector instructions / 2, all / 4, loads and stores / 2. As root: a /proc/cpuinfo of the core is
mounted for the program, because the machine's own crashes ONNX Runtime's detection under qemu 7.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import arm

from asr.deploy import emulate, macs
from asr.deploy.tools import need
from asr.errors import AsrError, SystemAccessError
from asr.hub import find_model
from asr.layouts import open_layout

_CALLS = 4
#: Runs in the image's own interpreter.
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, onnxruntime as ort
options = ort.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
options.log_severity_level = 4
session = ort.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
frames, times = int(sys.argv[3]), int(sys.argv[4])
values = [np.random.default_rng(0).normal(size=(1, frames, 560)).astype(np.float32),
          *(np.array([n], np.int32) for n in (frames, 0, 15))]
inputs = dict(zip([i.name for i in session.get_inputs()], values))
for _ in range(times):
    session.run([session.get_outputs()[0].name], inputs)
"""


def count(root: Path, network: Path, frames: int, times: int, cpu: str, work: Path) -> list[int]:
    """All, vector, memory and dot-product instructions of a process with so many calls."""
    (work / "cpuinfo").write_text(emulate.cpuinfo(cpu), encoding="ascii")
    (work / "run.py").write_text(_PROGRAM, encoding="ascii")
    command = arm.emulated(root / "usr/bin/python3.11", cpu, counter=arm.plugin(work))
    command[command.index("-L") + 1] = str(root)
    mounted = f'mount --make-rprivate /; mount --bind {work}/cpuinfo /proc/cpuinfo; exec "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounted, "sh", *command, str(work / "run.py"),
         str(root / "opt/asr/lib"), str(network), str(frames), str(times)],
        env={"PATH": "/usr/bin:/bin:/usr/sbin", "ORT_DISABLE_TELEMETRY": "1",
             "PYTHONHASHSEED": "0", "PYTHONHOME": str(root / "usr")},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    found = re.search(r"instructions: (\d+) vector: (\d+) memory: (\d+) dot: (\d+)", done.stderr)
    if done.returncode or not found:
        raise SystemAccessError(f"expected a count, found {done.returncode}: {done.stderr[-500:]}")
    return [int(number) for number in found.groups()]


def main() -> None:
    """Count, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="model folder, or a name")
    parser.add_argument("--rows", type=int, default=171, help="prompt rows included (171: 10 s)")
    parser.add_argument("--cpu", choices=arm.CORES, default=arm.CORES[0])
    parser.add_argument("--root", type=Path, default=arm.WORK.profile("python") / "root",
                        help="a tree with python3.11 and onnxruntime for arm64")  # fmt: skip
    options = parser.parse_args()
    arm.need_emulator()
    need("unshare")
    layout = open_layout(find_model(options.model))
    frames = options.rows - layout.prompt_frames
    network = layout.network.resolve()
    with tempfile.TemporaryDirectory() as folder:
        few, many = (
            count(options.root.resolve(), network, frames, times, options.cpu, Path(folder))
            for times in (1, 1 + _CALLS)
        )
    all_, vector, memory, dot = ((b - a) // _CALLS for a, b in zip(few, many, strict=True))
    work = macs.of_layout(layout)
    cycles = max(vector / 2, all_ / 4, memory / 2)
    print(f"{options.model}, {options.rows} rows, {options.cpu}: {all_ / 1e6:.1f} M instructions, "
          f"{vector / 1e6:.1f} M vector, {memory / 1e6:.1f} M loads and stores, "
          f"{dot / 1e6:.2f} M dot products of 16 bytes for "
          f"{work.int8.at(options.rows) / 1e6:.1f} M MACs\n"
          f"cycles = {cycles / 1e6:.4g}e6")  # fmt: skip


if __name__ == "__main__":
    try:
        main()
    except AsrError as error:
        print(f"count_network: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
