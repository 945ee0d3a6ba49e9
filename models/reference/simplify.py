"""What onnxsim and onnxslim make of the tiny reference networks: people hold such files, too.

    .venv/bin/pip install --target SITE --no-deps onnxsim==0.8.1 onnxslim==0.1.98 sympy mpmath \
        colorama ml_dtypes
    PYTHONPATH=SITE .venv/bin/python models/reference/simplify.py

Writes tests/networks_simplified/TOOL.NAME.FILE: every fp32 network, and one quantised one per tool.
"""

from pathlib import Path

import onnx
import onnxsim
import onnxslim

NETWORKS = Path(__file__).parent.parent.parent / "tests/networks"
QUANTISED = ("sherpa-torchscript-13-logits/model.int8.onnx",
             "funasr-torchscript-14-logits/model_quant.onnx")  # fmt: skip


def main() -> None:
    """Simplify them all."""
    out = NETWORKS.with_name("networks_simplified")
    out.mkdir(exist_ok=True)
    for file in [*sorted(NETWORKS.glob("*/model.onnx")), *(NETWORKS / q for q in QUANTISED)]:
        name = f"{file.parent.name}.{file.name}"
        simplified, right = onnxsim.simplify(onnx.load(file))
        if not right:
            raise SystemExit(f"{file}: onnxsim says that it computes something else")
        onnx.save(simplified, out / f"onnxsim.{name}")
        onnx.save(onnxslim.slim(onnx.load(file)), out / f"onnxslim.{name}")


if __name__ == "__main__":
    main()
