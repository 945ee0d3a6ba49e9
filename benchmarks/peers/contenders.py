"""Who takes part in the comparison: a program, the network file it runs, what that row shows."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asr.bench.measure import Contender

ROOT = Path(__file__).resolve().parents[2]
WORKERS = Path(__file__).resolve().parent / "workers"


@dataclass(frozen=True, slots=True)
class Program:
    """A program in an environment of its own.

    Attributes:
        worker: the file that loads and runs it; ``worker_ours.py`` shows what one offers.
        environment: folder of its virtual environment; None is ours.
        packages: whose versions a result names.
    """

    worker: str
    environment: str | None
    packages: tuple[str, ...]

    @property
    def python(self) -> Path:
        """Its interpreter."""
        if self.environment is None:
            return Path(sys.executable)
        return ROOT / self.environment / "bin/python"


PROGRAMS = {
    "ours": Program("worker_ours.py", None, ("onnxruntime", "numpy")),
    "ours-ort128": Program("worker_ours.py", ".venv-ort128", ("onnxruntime", "numpy")),
    "sherpa-onnx": Program("worker_sherpa_onnx.py", ".venv-sherpa-onnx", ("sherpa-onnx", "numpy")),
    "funasr-onnx": Program(
        "worker_funasr_onnx.py",
        ".venv-peers",
        ("funasr-onnx", "onnxruntime", "kaldi-native-fbank", "numpy"),
    ),
    "openvino": Program("worker_openvino.py", ".venv-openvino", ("openvino", "numpy")),
    "lele": Program("worker_lele.py", None, ()),
    "asrfront": Program("worker_asrfront.py", ".venv-asrfront", ("asrfront", "numpy")),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A program with a network.

    Attributes:
        name: in results and tables.
        program: a key of ``PROGRAMS``.
        network: folder of the network, below the work folder; see ``networks.py``.
        says: what the row shows.
        how: ours only: ``quantize`` and nothing are prepared by the first load, as ``--quantize
            int8`` and ``asr transcribe`` do it; ``as-is`` is ``--no-optimize``.
    """

    name: str
    program: str
    network: str
    says: str
    how: str = ""

    def loaded(self, threads: int) -> tuple[str, ...]:
        """Arguments of a worker that loads the network."""
        return (str(threads), *([self.how] if self.how else []))

    def contender(self, function: str, work: Path, *arguments: object) -> Contender:
        """What ``asr.bench.measure.Worker`` starts."""
        program = PROGRAMS[self.program]
        return Contender(
            self.name,
            WORKERS / program.worker,
            function,
            (str(work / self.network), *map(str, arguments)),
            str(program.python),
            environment(work),
        )


def environment(work: Path) -> dict[str, str]:
    """No telemetry, no threads of NumPy's beside the network's; our package; a cache of our own."""
    return {
        "ORT_DISABLE_TELEMETRY": "1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": f"{ROOT}:{WORKERS}",
        "XDG_CACHE_HOME": str(work / "cache"),
    }


def padded(surroundings: Mapping[str, str], round_: int) -> dict[str, str]:
    """The same environment, of another size in each round.

    Its size decides where a process's memory begins, and with that how a heap falls apart:
    sherpa-onnx holds 370 MB at most, or 490, for no other reason.
    """
    return {**surroundings, "PADDING": "." * (round_ * 611 % 4096)}


def _of(layout: str, peer: str) -> tuple[Entry, ...]:
    """One layout's: ours, its peer, and both with the other's file."""
    return (
        Entry(f"ours/{layout}", "ours", f"fp32-{layout}",
              "int8 made from the fp32 file, every pass", "quantize"),
        Entry(f"ours-lossless/{layout}", "ours", f"int8-{layout}",
              "the peer's int8 file, lossless passes only"),
        Entry(f"ours-as-is/{layout}", "ours", f"int8-{layout}",
              "the peer's int8 file, nothing changed", "as-is"),
        Entry(peer, peer, f"int8-{layout}", "as shipped, its int8 file"),
        Entry(f"{peer} fp32", peer, f"fp32-{layout}", "as shipped, fp32"),
        Entry(f"{peer} + our file", peer, f"best-{layout}", "the peer with our int8 file"),
    )  # fmt: skip


ENTRIES = {
    entry.name: entry
    for entry in (
        *_of("sherpa", "sherpa-onnx"),
        *_of("funasr", "funasr-onnx"),
        Entry("ours-ort128/sherpa", "ours-ort128", "best-sherpa",
              "ours on the ONNX Runtime that sherpa-onnx brings", "as-is"),
        Entry("openvino fp32", "openvino", "fp32-funasr",
              "our pipeline on OpenVINO, as it sets itself up"),
        Entry("lele", "lele", "int8-sherpa", "our pipeline on that file as lele compiles it"),
    )
}  # fmt: skip

#: Each peer with ours on the same weights and layout.
RIVALS = {"sherpa-onnx": "ours/sherpa", "funasr-onnx": "ours/funasr"}
MAIN = ("ours/sherpa", "sherpa-onnx", "ours/funasr", "funasr-onnx")


def ours_beside(name: str) -> str:
    """Which of ours a contender is compared with: that of the same layout."""
    return f"ours/{ENTRIES[name].network.rpartition('-')[2]}"
