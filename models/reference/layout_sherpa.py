"""The same weights the way sherpa-onnx's export script writes them.

Facts taken from its scripts/sense-voice/export-onnx.py: names and order of the tensors, opset 13,
the shapes it traces with, the metadata, and int8 as QUInt8 per tensor on MatMul only.
"""

import copy
import types
from pathlib import Path

import network
import onnx
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from source import Source

INPUTS = ("x", "x_length", "language", "text_norm")
OUTPUT = "logits"


def export(model: torch.nn.Module, source: Source, folder: Path, *, opset: int) -> None:
    """Write model.onnx, model.int8.onnx and tokens.txt.

    Args:
        model: the network; it is not changed.
        source: the files around it.
        folder: gets all three.
        opset: 13 in sherpa-onnx's script.
    """
    folder.mkdir(parents=True, exist_ok=True)
    model = copy.deepcopy(model)
    model.forward = types.MethodType(_forward, model)
    torch.manual_seed(0)
    examples = (
        torch.randn(2, 100, model.embed.embedding_dim),
        torch.tensor([80, 100], dtype=torch.int32),
        torch.tensor([0, 3], dtype=torch.int32),
        torch.tensor([14, 15], dtype=torch.int32),
    )
    axes = {name: {0: "N"} for name in INPUTS} | {name: {0: "N", 1: "T"} for name in ("x", OUTPUT)}
    path = folder / "model.onnx"
    with torch.no_grad():
        torch.onnx.export(
            model,
            examples,
            str(path),
            opset_version=opset,
            input_names=list(INPUTS),
            output_names=[OUTPUT],
            dynamic_axes=axes,
        )
    _add_metadata(path, metadata(model, source))
    quantize_dynamic(
        model_input=path,
        model_output=folder / "model.int8.onnx",
        op_types_to_quantize=["MatMul"],
        weight_type=QuantType.QUInt8,
    )
    source.write_tokens_txt(folder / "tokens.txt")


def metadata(model: torch.nn.Module, source: Source) -> dict[str, object]:
    """The facts that sherpa-onnx reads, under its names."""
    shift, scale = source.cmvn
    front_end = source.config["frontend_conf"]
    return {
        "lfr_window_size": front_end["lfr_m"],
        "lfr_window_shift": front_end["lfr_n"],
        "normalize_samples": 0,
        "neg_mean": ",".join(shift),
        "inv_stddev": ",".join(scale),
        "model_type": "sense_voice_ctc",
        "version": "2",
        "model_author": "none",
        "maintainer": "none",
        "vocab_size": len(source.pieces),
        "comment": "random weights",
        **{f"lang_{name}": row for name, row in model.lid_dict.items()},
        "with_itn": model.textnorm_dict["withitn"],
        "without_itn": model.textnorm_dict["woitn"],
        "url": "none",
    }


def _forward(
    self: torch.nn.Module,
    x: torch.Tensor,
    x_length: torch.Tensor,
    language: torch.Tensor,
    text_norm: torch.Tensor,
) -> torch.Tensor:
    return network.forward(self, x, x_length, language, text_norm)


def _add_metadata(path: Path, facts: dict[str, object]) -> None:
    """Loading and saving also takes weights in that the newer exporter left in a second file."""
    model = onnx.load(path)
    del model.metadata_props[:]
    for key, value in facts.items():
        model.metadata_props.add(key=key, value=str(value))
    onnx.save(model, path)
    path.with_name(path.name + ".data").unlink(missing_ok=True)
