"""Promises about speed, as ratios in one run; a failure is measured once more before it counts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent
PEERS = ROOT / ".venv-peers/bin/python"


def measure_twice_before_accusing(command):
    """Run a benchmark; when it finds a limit exceeded (11), let one more run confirm it."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for _ in range(2):
        result = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        print(result.stdout)
        if result.returncode != 11:
            break
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_front_end_keeps_up_with_its_peers():
    """At most asrfront's CPU time, at least 10x faster than funasr-onnx, same features."""
    measure_twice_before_accusing([PEERS, "benchmarks/race_frontend.py"])


def test_the_decoder_is_near_the_least_that_it_could_take():
    """At least 3x as fast as row-blocked NumPy, at most 2.5x the time of summing the scores."""
    measure_twice_before_accusing([sys.executable, "benchmarks/race_decode.py"])


def test_a_cold_start_costs_little_more_than_its_imports():
    """asr transcribe at most 1.8x of importing NumPy and ONNX Runtime; --help 1.5x of argparse."""
    measure_twice_before_accusing([sys.executable, "benchmarks/cold_start.py"])
