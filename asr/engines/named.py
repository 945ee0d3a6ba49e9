"""Engines by name: ``ort``, ``ort:PROVIDER``, ``openvino``."""

from pathlib import Path

from asr.engines.base import Engine
from asr.engines.ort import CPU, OrtEngine, read_model
from asr.engines.preparation import UNPREPARED
from asr.errors import UsageError

#: What is taken when nobody asks.
DEFAULT_ENGINE = "ort"


def is_default(name: str) -> bool:
    """Whether a name is one of ONNX Runtime's on the CPU, for which networks are prepared."""
    return name.lower() in (DEFAULT_ENGINE, "ort:cpu", "ort:cpuexecutionprovider")


def check(name: str) -> None:
    """Refuse what is no engine's name, without loading anything.

    Raises:
        UsageError: it is none.
    """
    kind, colon, provider = name.partition(":")
    if name != "openvino" and (kind != "ort" or (colon and not provider)):
        raise UsageError(f"engine: expected ort, ort:PROVIDER or openvino, found {name!r}")


def open_engine(name: str, network: Path, threads: int) -> Engine:
    """Load a network into the engine of a name.

    Args:
        name: ``ort`` is ONNX Runtime on the CPU; ``ort:CUDAExecutionProvider``, or short
            ``ort:cuda``, is its provider of that name; ``openvino`` is OpenVINO on the CPU.
        network: an ``.onnx`` file.
        threads: threads that one call may use.

    Raises:
        UsageError: no such engine.
        MissingToolError: its package, or its provider, is not installed here.
        EngineError: the provider is installed and would leave the whole network to the CPU.
        LayoutError: the engine cannot read the network.
        SystemAccessError: the file cannot be read.
    """
    check(name)
    if name == "openvino":
        from asr.engines.openvino import OpenVinoEngine

        return OpenVinoEngine(network, threads=threads)
    return OrtEngine(
        read_model(network),
        name=str(network),
        threads=threads,
        folder=network.parent,
        preparation=UNPREPARED,
        provider=name.partition(":")[2] or CPU,
    )
