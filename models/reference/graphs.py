"""What became of an export: its operator set, and whether it computes what torch computes."""

import contextlib
import hashlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch


@contextlib.contextmanager
def exporter(name: str) -> Iterator[None]:
    """Make ``torch.onnx.export`` take ``torchscript`` or ``dynamo`` while the block runs.

    FunASR and sherpa-onnx do not say which they want and get what torch takes by default.
    """
    original = torch.onnx.export

    def export(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 - torch's own
        return original(*arguments, **{"dynamo": name == "dynamo", **options})

    torch.onnx.export = export
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.onnx.export = original


def strip_notes(path: Path) -> None:
    """Remove the newer exporter's notes on each node: source paths of the machine, in bulk."""
    model = onnx.load(path, load_external_data=False)
    things = (*model.graph.node, *model.graph.value_info, *model.graph.initializer)
    noted = [thing for thing in things if thing.metadata_props]
    for thing in noted:
        del thing.metadata_props[:]
    if noted:
        path.write_bytes(model.SerializeToString())


def opset_of(path: Path) -> int:
    """The version of the standard operators that a file uses."""
    model = onnx.load(path, load_external_data=False)
    return next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))


def scores(path: Path, features: np.ndarray, language: int, textnorm: int) -> np.ndarray:
    """Scores float32 (4 + t, vocab_size) of features float32 (t, 560), by ONNX Runtime."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    numbers = [np.array([n], np.int32) for n in (len(features), language, textnorm)]
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, [features[None], *numbers], strict=True)))[0][0]


def describe(path: Path) -> dict[str, object]:
    """Size and hash of a file."""
    data = path.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
