"""ONNX Runtime: on the CPU, or on a provider asked for by name."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from asr.engines import cores
from asr.engines.base import TensorInfo, Tensors
from asr.engines.preparation import SMALL, Preparation
from asr.errors import (
    EngineError,
    LayoutError,
    MissingToolError,
    SystemAccessError,
    UsageError,
)

if TYPE_CHECKING:
    import onnxruntime

#: The provider that every build of ONNX Runtime has, and that is taken when nobody asks.
CPU = "CPUExecutionProvider"
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
    """A network in ONNX Runtime.

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
        provider: what computes, by ONNX Runtime's name; ``cuda`` is ``CUDAExecutionProvider``. It
            is never replaced by the CPU in silence; nodes that it does not know run there, and
            ``placement`` counts them.

    Raises:
        LayoutError: the runtime cannot read the file (truncated, damaged, too new).
        UsageError: ONNX Runtime knows no such provider.
        MissingToolError: this build of ONNX Runtime does not have it.
        EngineError: it cannot be used here, or no node would run on it.
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
        provider: str = CPU,
    ) -> None:
        ort = import_runtime()
        provider = _provider(ort, provider)
        options = _options(threads)
        if isinstance(model, Path):  # what the runtime would do at load was done then
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        elif folder is not None:
            entry = "session.model_external_initializers_file_folder_path"
            options.add_session_config_entry(entry, str(folder.absolute()))
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        if not prepack:
            options.add_session_config_entry("session.disable_prepacking", "1")
        if profile_prefix is not None:
            options.enable_profiling = True
            options.profile_file_prefix = profile_prefix
        try:
            self._session: onnxruntime.InferenceSession = ort.InferenceSession(
                str(model) if isinstance(model, Path) else model,
                options,
                providers=[provider] if provider == CPU else [provider, CPU],
            )
        except Exception as error:  # the runtime's own exceptions share no base class
            raise LayoutError(
                f"{name}: expected a network that ONNX Runtime {ort.__version__} can load, "
                f"found one it refuses ({first_line(error)}); download the file again"
            ) from None
        if provider != CPU:
            self._refuse_the_cpu_alone(provider)
        where = "CPU" if provider == CPU else provider
        self.description = f"ONNX Runtime {ort.__version__}, {where}"
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
            raise EngineError(f"the network failed to run: {first_line(error)}") from None
        return dict(zip(self._output_names, values, strict=True))

    @property
    def placement(self) -> dict[str, int]:
        """Provider -> nodes that run there; empty before ONNX Runtime 1.24, which does not tell."""
        if not hasattr(self._session, "get_provider_graph_assignment_info"):
            return {}
        found: dict[str, int] = {}
        for part in self._session.get_provider_graph_assignment_info():
            found[part.ep_name] = found.get(part.ep_name, 0) + len(part.get_nodes())
        return found

    def _refuse_the_cpu_alone(self, provider: str) -> None:
        """ONNX Runtime itself says nothing, or logs a line, and computes on the CPU.

        Raises:
            EngineError: as it says.
            MissingToolError: it does not tell.
        """
        if provider not in self._session.get_providers():
            raise EngineError(
                f"{provider}: expected a provider that works here, found that ONNX Runtime gave it "
                "up for the CPU; check its driver and libraries, or leave --engine out"
            )
        if not hasattr(self._session, "get_provider_graph_assignment_info"):
            raise MissingToolError(
                f"{provider}: expected ONNX Runtime 1.24 or later, which tells where nodes run, "
                f"found {import_runtime().__version__}; install a later version"
            )
        if not self.placement.get(provider):
            raise EngineError(
                f"{provider}: expected nodes of the network to run there, found none: all would "
                "run on the CPU; leave --engine out to want that"
            )

    def end_profile(self) -> tuple[Path, int]:
        """Close the profile.

        Returns:
            the file, and the time of its zero: nanoseconds of ``time.time_ns``.
        """
        start_ns: int = self._session.get_profiling_start_time_ns()
        return Path(self._session.end_profiling()), start_ns


def save_prepared(
    model: bytes, path: Path, *, name: str, threads: int, prepack: bool = True
) -> None:
    """Write a network as this runtime would run it on this CPU.

    Args:
        model: the bytes of an ``.onnx`` file with its weights inside.
        path: the file to write.
        name: what to call the network in messages.
        threads: of the load.
        prepack: beside ``path`` come the weights in a file of their own, to be mapped into memory,
            both as they are and in the kernels' order: loading then neither optimises, nor copies,
            nor reads what no kernel touches. False leaves them inside, in their own order.

    Raises:
        EngineError: the runtime cannot load or write it.
    """
    options = _options(threads)
    if prepack:
        prefix = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{prefix}_file_name", f"{path.name}.data")
        options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")
        entry = "session.save_external_prepacked_constant_initializers"
        options.add_session_config_entry(entry, "1")
    else:
        options.add_session_config_entry("session.disable_prepacking", "1")
    if error := _save(model, path, options):
        raise EngineError(f"{name}: cannot prepare the network: {first_line(error)}")


def save_portable(model: bytes, path: Path, *, name: str, folder: Path) -> None:
    """Write a network as this runtime rewrites it for any CPU, weights inside, in their own order.

    Args:
        model: the bytes of an ``.onnx`` file.
        path: the file to write.
        name: what to call the network in messages.
        folder: where to look for weights that the network keeps in files beside it.

    Raises:
        LayoutError: the runtime cannot load or write it.
    """
    ort = import_runtime()
    options = _options(1)
    # The next level arranges data for the CPU at hand.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.add_session_config_entry("session.disable_prepacking", "1")
    entry = "session.model_external_initializers_file_folder_path"
    options.add_session_config_entry(entry, str(folder.absolute()))
    if error := _save(model, path, options):
        raise LayoutError(f"{name}: cannot rewrite the network: {first_line(error)}")


def _save(model: bytes, path: Path, options: Any) -> Exception | None:  # noqa: ANN401
    """Load a network to write what became of it; what the runtime raised, if it did."""
    options.optimized_model_filepath = str(path)
    try:
        import_runtime().InferenceSession(model, options, providers=[CPU])
    except Exception as error:  # the runtime's own exceptions share no base class
        return error
    return None


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


def _provider(ort: Any, name: str) -> str:  # noqa: ANN401 - the runtime has no types
    """A provider's full name, if this build has it."""
    known: dict[str, str] = {p.lower(): p for p in ort.get_all_providers()}
    found = known.get(name.lower()) or known.get(f"{name.lower()}executionprovider")
    if found is None:
        raise UsageError(
            f"ort:{name}: expected a provider of ONNX Runtime such as CUDA or OpenVINO, "
            "found no such name"
        )
    if found not in ort.get_available_providers():
        raise MissingToolError(
            f"{found}: expected a build of ONNX Runtime that has it, found {ort.__version__} with "
            f"{', '.join(ort.get_available_providers())}; install its package in place of "
            "onnxruntime, such as onnxruntime-gpu or onnxruntime-openvino"
        )
    return found


def quick_session(model: bytes) -> Any:  # noqa: ANN401 - the runtime has no types
    """A bare session for a few runs: neither optimised nor prepacked, so it loads at once."""
    ort = import_runtime()
    options = _options(threads=1)
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _info(tensor: Any) -> TensorInfo:  # noqa: ANN401 - the runtime has no types
    return TensorInfo(tensor.name, tensor.type, tuple(tensor.shape))


def first_line(error: Exception) -> str:
    """What a runtime's exception says first."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
