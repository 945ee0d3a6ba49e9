"""The physical limit: what the cores can multiply and read, and the least time that implies."""

import json
import subprocess
from pathlib import Path

from asr.errors import MissingToolError

SOURCE = Path(__file__).with_name("limit.c")

#: SenseVoiceSmall: 70 blocks of width 512, feed-forward 2048, input 560, 25055 pieces.
BLOCKS, WIDTH, FORWARD, INPUT, PIECES = 70, 512, 2048, 560, 25055
_BLOCK = 3 * WIDTH * WIDTH + WIDTH * WIDTH + 2 * WIDTH * FORWARD
#: Multiplications of all linear layers per row.
LINEAR = BLOCKS * _BLOCK + 3 * WIDTH * (INPUT - WIDTH) + WIDTH * PIECES


def build(work: Path) -> Path:
    """Compile the probe for this CPU.

    Raises:
        MissingToolError: no C compiler, or it fails.
    """
    program = work / "limit"
    command = ["cc", "-O3", "-march=native", "-o", str(program), str(SOURCE)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingToolError(f"cc: cannot be started: {error.strerror}") from None
    if done.returncode:
        raise MissingToolError(f"{SOURCE}: cc failed: {done.stderr.strip().splitlines()[0]}")
    return program


def probe(program: Path, cores: int, seconds: float = 0.7) -> dict[str, float]:
    """Run it on so many cores at once; what all of them reach together."""
    running = [
        subprocess.Popen([program, str(seconds)], stdout=subprocess.PIPE, text=True)
        for _ in range(cores)
    ]
    told = [json.loads(process.communicate()[0]) for process in running]
    return {name: sum(one[name] for one in told) for name in told[0]}


def least_ms(rows: int, peaks: dict[str, float], precision: str = "int8") -> float:
    """Least time of the network: linear layers at a precision, attention in fp32.

    Args:
        rows: of features, the prompt's included.
        peaks: as ``probe`` gives them.
        precision: ``int8``, ``fp32`` or ``bf16``; bf16 multiplies at twice the rate of fp32.
    """
    fp32 = peaks["fp32_gflops"]
    rate = {"int8": peaks["int8_gops"], "fp32": fp32, "bf16": 2 * fp32}[precision]
    bytes_ = LINEAR * {"int8": 1, "fp32": 4, "bf16": 2}[precision]
    linear_ms = 2e3 * LINEAR * rows / (rate * 1e9)
    attention_ms = 4e3 * rows**2 * WIDTH * BLOCKS / (fp32 * 1e9)
    reading_ms = 1e3 * bytes_ / (peaks["read_gbytes_per_s"] * 1e9)
    return max(linear_ms + attention_ms, reading_ms)
