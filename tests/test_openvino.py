"""asr.engines.openvino, for real: OpenVINO in an environment of its own (make test-system)."""

import json
import os
import subprocess
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-openvino/bin/python"

COMPARE = """
import json, sys
from pathlib import Path
from threading import Thread
from asr import Recognizer

clips = sorted(map(str, Path("golden/audio").glob("*.wav")))
texts = {}
for name in ("ort", "openvino"):
    recognizer = Recognizer.load(threads=1, engine=name)
    texts[name] = [recognizer.transcribe(clip).text for clip in clips]
found = {}
def hear(clip):
    found[clip] = recognizer.transcribe(clip).text
threads = [Thread(target=hear, args=(clip,)) for clip in clips[:6]]
[t.start() for t in threads]
[t.join() for t in threads]
texts["at once"] = [found[clip] for clip in clips[:6]]
print(json.dumps({**texts, "placement": recognizer.engine.placement,
                  "description": recognizer.engine.description}))
"""


def run(*arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [PYTHON, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def asr(*arguments):
    return run("-c", "from asr.cli import run_and_exit; run_and_exit()", *arguments)


def test_the_built_in_model_says_the_same_on_openvino():
    """Every golden clip, alone and from six threads at once; all nodes counted."""
    done = run("-c", COMPARE)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert len(told["ort"]) > 20
    assert sum(map(bool, told["ort"])) > 15
    assert told["openvino"] == told["ort"]
    assert told["at once"] == told["ort"][:6]
    assert told["description"].startswith("OpenVINO 20")
    assert told["placement"]["CPU"] > 100


LOAD = """
import sys
from pathlib import Path
from asr.engines.openvino import OpenVinoEngine
from asr.errors import LayoutError
try:
    OpenVinoEngine(Path(sys.argv[1]), threads=1)
except LayoutError as error:
    print(error)
"""


def test_openvino_refuses_an_operator_that_it_does_not_have(tmp_path):
    """One line with the file and what to do: such are the operators of asr optimize."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy")
    node = helper.make_node("DynamicQuantizeMatMul", ["x"], ["y"], domain="com.microsoft")
    graph = helper.make_graph([node], "g", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=opsets), path)
    done = run("-c", LOAD, str(path))
    (line,) = done.stdout.splitlines()
    assert line.startswith(f"{path}: expected a network that OpenVINO")
    assert "take another engine" in line


def test_the_command_line_runs_on_openvino():
    """Text, and where the nodes run."""
    done = asr("transcribe", "golden/audio/transcribe_me.wav", "--engine", "openvino")
    assert done.stdout == "one two three four five six seven eight nine\n"
    told = json.loads(asr("inspect", "tiny-en", "--engine", "openvino", "--json").stdout)
    assert told["engine"]["nodes"].endswith(" on CPU")
