"""Memory of a long-lived process, and what a pool of buffers would be worth."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def memory(clip, clips):
    """Resident kB after every 50 clips."""
    command = [sys.executable, HERE / "system/memory.py", clip, str(clips)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.system
def test_memory_is_flat_over_two_thousand_clips(clip):
    """After 50 clips the process is warm: 1,950 more of random length add at most 2 %."""
    found = memory(clip, 2000)
    print(f"resident: {found[0]} kB after 50 clips, {found[-1]} kB after 2,000, most {max(found)}")
    assert max(found) <= 1.02 * found[0] + 2048
