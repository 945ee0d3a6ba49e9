"""Signed byte weights on a CPU that saturates: the danger is real, and the CPU is asked first."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import fakes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from asr import _rust_fe

pytestmark = pytest.mark.system

HERE = Path(__file__).parent
#: AVX2 without VNNI: adds pairs of products in 16 bits.
HASWELL = ["qemu-x86_64", "-cpu", "Haswell"]


def extreme(folder):
    """A model folder whose byte weights are 0 or 255: pairs of products exceed 16 bits."""
    shutil.copytree(HERE / "networks/funasr-torchscript-14-logits", folder)
    network = onnx.load(folder / "model_quant.onnx")
    for tensor in network.graph.initializer:
        if tensor.data_type == TensorProto.UINT8 and len(tensor.dims) == 2:
            values = np.where(numpy_helper.to_array(tensor) > 127, 255, 0).astype(np.uint8)
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    onnx.save(network, folder / "model_quant.onnx")
    return folder


def ask(model, cache, *emulator):
    command = [*emulator, sys.executable, HERE / "system/saturate.py", model, cache]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(
    not _rust_fe.build_info()["target"].startswith("x86_64"), reason="16-bit sums are x86's"
)
def test_without_vnni_weights_stay_unsigned_and_right(tmp_path):
    """Under an emulated Haswell signed weights decide otherwise; asr leaves them unsigned there."""
    model = extreme(tmp_path / "model")
    here = ask(model, tmp_path / "here")
    there = ask(model, tmp_path / "there", *HASWELL)
    assert there["cpu"] == []
    assert (there["state"], there["passes"]) == ("first", [])
    assert there["best"]["signed"] != there["best"]["plain"]  # the danger
    assert there["best"]["prepared"] == there["best"]["plain"] == here["best"]["plain"]
    if "vnni" in here["cpu"]:
        assert here["passes"] == list(fakes.prepared_passes())
        assert len(set(here["best"].values())) == 1
