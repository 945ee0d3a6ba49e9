"""Exports a training state to a model folder: fp32 and int8 ONNX, checked against torch.

int8 is dynamic quantisation of the matrix products with constant weights, per channel, QInt8, and
ONNX Runtime's basic optimisation, which changes no bit of the scores and loads faster.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

import checkpoint
from features import ROW_WIDTH
from model_folder import FP32_FILE, INT8_FILE, write_cmvn, write_config, write_pieces
from network import PROMPT_ROWS, TinySenseVoice

INPUTS = ["speech", "speech_lengths", "language", "textnorm"]
OUTPUTS = ["ctc_logits", "encoder_out_lens"]
OPSET = 17
FP32_TOLERANCE = 1e-3
"""Largest logit difference to torch."""


def example_inputs(batch: int, rows: int, seed: int) -> tuple[torch.Tensor, ...]:
    """Random inputs of unequal lengths, the first one full."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, rows + 1, (batch,), dtype=torch.int32, generator=random)
    lengths[0] = rows
    return (
        torch.randn(batch, rows, ROW_WIDTH, generator=random),
        lengths,
        torch.tensor([0, 4, 13][:batch] * (-(-batch // 3)), dtype=torch.int32)[:batch],
        torch.full((batch,), 15, dtype=torch.int32),
    )


def export_fp32(model: TinySenseVoice, path: Path) -> None:
    """Traced export with free batch and time."""
    axes = {
        "speech": {0: "batch_size", 1: "feats_length"},
        "speech_lengths": {0: "batch_size"},
        "language": {0: "batch_size"},
        "textnorm": {0: "batch_size"},
        "ctc_logits": {0: "batch_size", 1: "logits_length"},
        "encoder_out_lens": {0: "batch_size"},
    }
    torch.onnx.export(
        model,
        example_inputs(2, 50, seed=0),
        path,
        input_names=INPUTS,
        output_names=OUTPUTS,
        dynamic_axes=axes,
        opset_version=OPSET,
        dynamo=False,
    )


def export_int8(fp32: Path, int8: Path) -> None:
    """Quantises the weights of MatMul, one scale per output channel."""
    plain = int8.with_suffix(".plain.onnx")
    quantize_dynamic(
        fp32,
        plain,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        weight_type=QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(int8)
    onnxruntime.InferenceSession(plain, options, providers=["CPUExecutionProvider"])
    plain.unlink()


@torch.no_grad()
def largest_difference(model: TinySenseVoice, path: Path) -> float:
    """Largest absolute logit difference on real rows; raises if lengths differ."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst = 0.0
    for seed, (batch, rows) in enumerate([(1, 1), (2, 50), (1, 83), (3, 17)]):
        inputs = example_inputs(batch, rows, seed)
        expected, expected_lengths = model(*inputs)
        feed = {name: value.numpy() for name, value in zip(INPUTS, inputs, strict=True)}
        logits, lengths = session.run(OUTPUTS, feed)
        if lengths.tolist() != expected_lengths.tolist():
            raise ValueError(f"{path}: lengths {lengths} instead of {expected_lengths}")
        for clip, real in enumerate((inputs[1] + PROMPT_ROWS).tolist()):
            difference = np.abs(logits[clip, :real] - expected.numpy()[clip, :real]).max()
            worst = max(worst, float(difference))
    return worst


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="a full or slim checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the model folder to write")
    options = parser.parse_args()
    state = checkpoint.load(options.state)
    model = state.model.eval()
    options.out.mkdir(parents=True, exist_ok=True)
    fp32, int8 = options.out / FP32_FILE, options.out / INT8_FILE
    export_fp32(model, fp32)
    export_int8(fp32, int8)
    write_cmvn(options.out, state.normaliser)
    write_config(options.out, model.config)
    write_pieces(options.out, state.pieces)
    for path in (fp32, int8):
        difference = largest_difference(model, path)
        megabytes = path.stat().st_size / 1e6
        print(f"{path.name}: {megabytes:.2f} MB, largest logit difference {difference:.2g}")
        if path == fp32 and difference > FP32_TOLERANCE:
            raise ValueError(f"{path}: differs from torch by {difference}")


if __name__ == "__main__":
    main()
