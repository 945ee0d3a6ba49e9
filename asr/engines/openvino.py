"""OpenVINO on the CPU."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from asr.engines.base import TensorInfo, Tensors
from asr.engines.ort import first_line, read_model
from asr.engines.preparation import UNPREPARED
from asr.errors import EngineError, LayoutError, MissingToolError

#: ONNX Runtime's words for OpenVINO's types, which the layouts compare.
_TYPES = {"f32": "tensor(float)", "i32": "tensor(int32)", "i64": "tensor(int64)"}


class OpenVinoEngine:
    """A network in OpenVINO's CPU plugin.

    Args:
        network: an ``.onnx`` file.
        threads: threads that one call may use.
        exact: compute in the precision of the file; False lets OpenVINO choose, which on CPUs with
            bf16 multipliers means rounding fp32 to bf16.

    Raises:
        MissingToolError: OpenVINO is not installed.
        LayoutError: OpenVINO cannot read the file, or has no operator that it needs.
    """

    def __init__(self, network: Path, *, threads: int, exact: bool = True) -> None:
        try:
            import openvino
        except ImportError:
            raise MissingToolError(
                "openvino: expected the package openvino, found none; "
                "pip install 'asr-rtf[openvino]'"
            ) from None
        read_model(network)  # refuse what is no network in our own words
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "PERFORMANCE_HINT": "LATENCY",
            "ENABLE_CPU_PINNING": False,
        }
        if exact:
            settings["EXECUTION_MODE_HINT"] = "ACCURACY"
        try:
            core = openvino.Core()
            model = core.read_model(network)
            self._compiled = core.compile_model(model, "CPU", settings)
        except Exception as error:  # the runtime's own exceptions share no base class
            raise LayoutError(
                f"{network}: expected a network that OpenVINO {_version()} can load, found one it "
                f"refuses ({first_line(error)}); take another engine, or a file as exported"
            ) from None
        self.description = f"OpenVINO {_version()}, CPU" + ("" if exact else ", its own precision")
        self.threads = threads
        self.preparation = UNPREPARED
        self._local = threading.local()
        # By place, not by name: compiling folds what stands behind an input, and its name with it.
        self.inputs = tuple(_info(port) for port in model.inputs)
        self.outputs = tuple(_info(port) for port in model.outputs)

    @property
    def placement(self) -> dict[str, int]:
        """Device -> nodes of the compiled network, inputs, outputs and constants left out."""
        aside = ("Input", "Output", "Parameter", "Result", "Constant")
        operations = self._compiled.get_runtime_model().get_ops()
        kinds = [op.get_rt_info()["layerType"].astype(str) for op in operations]
        return {"CPU": sum(kind not in aside for kind in kinds)}

    def run(self, inputs: Tensors) -> dict[str, npt.NDArray[Any]]:
        """Run the network once; see ``asr.engines.base.Engine.run``."""
        try:
            if not hasattr(self._local, "request"):  # one call at a time each
                self._local.request = self._compiled.create_infer_request()
            given = {place: inputs[info.name] for place, info in enumerate(self.inputs)}
            values = self._local.request.infer(given, share_inputs=True)
        except Exception as error:
            raise EngineError(f"the network failed to run: {first_line(error)}") from None
        return {info.name: np.asarray(values[place]) for place, info in enumerate(self.outputs)}


def _version() -> str:
    from importlib.metadata import version

    return version("openvino")


def _info(port: Any) -> TensorInfo:  # noqa: ANN401 - the runtime has no types
    kind = port.get_element_type().get_type_name()
    shape = tuple(
        size.get_length() if size.is_static else None for size in port.get_partial_shape()
    )
    return TensorInfo(port.get_any_name(), _TYPES.get(kind, kind), shape)
