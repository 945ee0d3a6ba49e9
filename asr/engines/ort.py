"""ONNX Runtime on the CPU."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from asr.engines import cores
from asr.engines.base import TensorInfo, Tensors
from asr.engines.preparation import SMALL, Preparation
from asr.errors import EngineError, LayoutError, SystemAccessError

if TYPE_CHECKING:
    import onnxruntime

#: The domain of our own operators, which every session of this module knows.
OPERATORS = "asr"

_POINTER = b"version https://git-lfs.github.com/spec/"


def read_model(path: Path) -> bytes:
    """Read a network file and refuse what cannot be one.

    Args:
        path: an ``.onnx`` file.

    Returns:
        its bytes.

    Raises:
        LayoutError: a Git LFS pointer, an empty file, or one that is no ONNX network.
        SystemAccessError: the file cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise SystemAccessError(f"{path}: cannot read the network: {error.strerror}") from None
    if data.startswith(_POINTER):
        raise LayoutError(
            f"{path}: expected an ONNX network, found a Git LFS pointer of {len(data)} bytes; "
            "fetch the real file (git lfs pull, or download it again)"
        )
    # Every ONNX file begins with protobuf field 1, ir_version, as a varint.
    if data[:1] != b"\x08":
        raise LayoutError(
            f"{path}: expected an ONNX network, found {_kind(data)}; download the file again"
        )
    return data


def _kind(data: bytes) -> str:
    if not data:
        return "an empty file"
    if data.lstrip()[:1] == b"<":
        return "a web page"
    return f"{len(data)} bytes that are something else"


def import_runtime() -> Any:  # noqa: ANN401 - the runtime has no types
    """Import ONNX Runtime with its telemetry off.

    From 1.29 on the official Linux wheels write a database below ``~/.cache/Microsoft`` and
    upload events by default. Speech recognition on a device does neither; the variable must be
    set before the library is loaded. A value that the user has set is left as it is.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    return onnxruntime


def default_threads() -> int:
    """Cores this process may use, at most 4: beyond that small networks wait for each other."""
    return min(4, cores.available())


class OrtEngine:
    """A network in ONNX Runtime's CPU provider.

    Args:
        model: the bytes of an ``.onnx`` file, or the path of one from ``save_prepared``.
        name: what to call it in messages, usually its path.
        threads: threads that one call may use.
        folder: where to look for weights that the file keeps in files beside it.
        prepack: whether the weights are brought into the kernels' own order at load; False only
            to measure what that costs.
        profile_prefix: the runtime writes the time of every node to a file that begins so;
            None keeps it from looking.
        preparation: how ``model`` came to be, for whoever asks.

    Raises:
        LayoutError: the runtime cannot read the file (truncated, damaged, too new).
    """

    def __init__(
        self,
        model: bytes | Path,
        *,
        name: str,
        threads: int,
        folder: Path | None = None,
        prepack: bool = True,
        profile_prefix: str | None = None,
        preparation: Preparation = SMALL,
    ) -> None:
        ort = import_runtime()
        options = _options(threads)
        if isinstance(model, Path):  # what the runtime would do at load was done then
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        elif folder is not None:
            entry = "session.model_external_initializers_file_folder_path"
            options.add_session_config_entry(entry, str(folder.absolute()))
        if not prepack:
            options.add_session_config_entry("session.disable_prepacking", "1")
        if profile_prefix is not None:
            options.enable_profiling = True
            options.profile_file_prefix = profile_prefix
        try:
            self._session: onnxruntime.InferenceSession = ort.InferenceSession(
                str(model) if isinstance(model, Path) else model,
                options,
                providers=["CPUExecutionProvider"],
            )
        except Exception as error:  # the runtime's own exceptions share no base class
            raise LayoutError(
                f"{name}: expected a network that ONNX Runtime {ort.__version__} can load, "
                f"found one it refuses ({_first_line(error)}); download the file again"
            ) from None
        self.description = f"ONNX Runtime {ort.__version__}, CPU"
        self.threads = threads
        self.preparation = preparation
        self.inputs = tuple(_info(t) for t in self._session.get_inputs())
        self.outputs = tuple(_info(t) for t in self._session.get_outputs())
        self._output_names = [t.name for t in self.outputs]

    def run(self, inputs: Tensors) -> dict[str, npt.NDArray[Any]]:
        """Run the network once; see ``asr.engines.base.Engine.run``."""
        try:
            values = self._session.run(self._output_names, dict(inputs))
        except Exception as error:
            raise EngineError(f"the network failed to run: {_first_line(error)}") from None
        return dict(zip(self._output_names, values, strict=True))

    def end_profile(self) -> tuple[Path, int]:
        """Close the profile.

        Returns:
            the file, and the time of its zero: nanoseconds of ``time.time_ns``.
        """
        start_ns: int = self._session.get_profiling_start_time_ns()
        return Path(self._session.end_profiling()), start_ns


def save_prepared(model: bytes, path: Path, *, name: str, threads: int) -> None:
    """Write a network as this runtime would run it on this CPU, to be mapped into memory.

    Beside ``path`` come the weights in a file of their own, both as they are and in the kernels'
    order: loading then neither optimises, nor copies, nor reads what no kernel touches.

    Args:
        model: the bytes of an ``.onnx`` file with its weights inside.
        path: the file to write.
        name: what to call the network in messages.
        threads: of the load.

    Raises:
        EngineError: the runtime cannot load or write it.
    """
    ort = import_runtime()
    options = _options(threads)
    options.optimized_model_filepath = str(path)
    prefix = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{prefix}_file_name", f"{path.name}.data")
    options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")
    options.add_session_config_entry("session.save_external_prepacked_constant_initializers", "1")
    try:
        ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EngineError(f"{name}: cannot prepare the network: {_first_line(error)}") from None


def _options(threads: int) -> Any:  # noqa: ANN401 - the runtime has no types
    """What every session is made with."""
    from asr import _rust_fe

    options = import_runtime().SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # failures reach the user as our errors, not as log lines
    # Waiting threads that spin cost 12 % more CPU time and, on a loaded machine, 2.5x in wall
    # time for 2-7 % gain at best (measured at full size).
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.register_custom_ops_library(_rust_fe.__file__)  # our operators; 0.2 ms, measured
    return options


def quick_session(model: bytes) -> Any:  # noqa: ANN401 - the runtime has no types
    """A bare session for a few runs: neither optimised nor prepacked, so it loads at once."""
    ort = import_runtime()
    options = _options(threads=1)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _info(tensor: Any) -> TensorInfo:  # noqa: ANN401 - the runtime has no types
    return TensorInfo(tensor.name, tensor.type, tuple(tensor.shape))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
