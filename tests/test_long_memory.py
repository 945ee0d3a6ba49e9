"""Memory does not grow with the recording; measured in fresh processes."""

import importlib.util
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

SCRIPT = Path(__file__).parent.parent / "benchmarks/long_memory.py"


@pytest.mark.parametrize("vad", [True, False])
def test_thirty_minutes_take_the_memory_of_five(tmp_path, vad):
    """Within 10 %; docs/audio.md tells how to measure two hours."""
    spec = importlib.util.spec_from_file_location("long_memory", SCRIPT)
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    peaks = []
    for minutes in (5, 30):
        path = tmp_path / f"{minutes}.wav"
        said = bench.record(path, minutes, gap_s=20)
        found = bench.hear(path, vad=vad)
        assert found["words"] == said if vad else found["words"] > said / 2
        peaks.append(found["peak_mib"])
    print(peaks)
    assert peaks[1] <= 1.1 * peaks[0]
