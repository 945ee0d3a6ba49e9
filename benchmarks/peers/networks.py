"""The networks of the comparison: a folder with one file each, from the full-size reference."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from asr.bench.hosts import runtime_library
from asr.errors import LayoutError, MissingToolError
from asr.hub.store import digest

#: Name of the folder in the reference, its int8 file, and what else a program needs.
LAYOUTS = {
    "sherpa": ("sherpa-torchscript-13-logits", "model.int8.onnx", ("tokens.txt",)),
    "funasr": (
        "funasr-torchscript-14-logits",
        "model_quant.onnx",
        ("am.mvn", "config.yaml", "tokens.json", "*.bpe.model"),
    ),
}


_ASR = Path(sys.executable).with_name("asr")
#: Our program without Python; ``make edge`` builds it.
EDGE = Path(__file__).resolve().parents[2] / "target/release/asr-edge"
#: Where lele's network becomes a library.
LELE = Path(__file__).resolve().with_name("lele")


def prepare(reference: Path, work: Path) -> None:
    """Make ``fp32-``, ``int8-`` and ``best-LAYOUT`` below the work folder.

    The first two are links; the last is our int8 file, for the peers. What is there stays.

    Args:
        reference: as ``models/reference/make.py --size full`` writes it.
        work: where to make them; 0.5 GB.

    Raises:
        LayoutError: the reference is not there.
        MissingToolError: ``asr optimize`` fails.
    """
    for layout, (folder, int8, others) in LAYOUTS.items():
        source = reference / folder
        if not (source / int8).is_file():
            raise LayoutError(
                f"{source / int8}: expected the full-size reference network, found none; make it "
                "with models/reference/make.py --size full, or name its folder with --networks"
            )
        for kind, network in (("fp32", "model.onnx"), ("int8", int8)):
            _link(source, work / f"{kind}-{layout}", (network, *others))
        _optimize(work / f"fp32-{layout}", work / f"best-{layout}", "--quantize", "int8")


def prepare_edge(work: Path) -> None:
    """Make ``edge-sherpa``: our int8 network as a bundle that asr-edge has prepared for this CPU.

    Raises:
        MissingToolError: asr-edge is not there, or fails.
    """
    if (work / "edge-sherpa/bundle.json").is_file():
        return
    environment = {**os.environ, "ORT_DYLIB_PATH": str(runtime_library())}
    with tempfile.TemporaryDirectory(dir=work) as folder:
        plain = f"{folder}/plain"
        # Processes of their own: the most memory that this one ever held counts for its children.
        for command in (
            [str(_ASR), "deploy", "bundle", str(work / "best-sherpa"), "-o", plain],
            [str(EDGE), "prepare", "--bundle", plain, "--out", str(work / "edge-sherpa")],
        ):
            try:
                done = subprocess.run(command, env=environment, stdout=sys.stderr, check=False)
            except OSError as error:
                raise MissingToolError(
                    f"{command[0]}: {error.strerror}; make edge builds asr-edge"
                ) from None
            if done.returncode:
                raise MissingToolError(f"{command[0]}: failed; what it said stands above")


def build_lele(work: Path) -> None:
    """Let lele compile sherpa-onnx's int8 network into Rust, and Cargo that, into ``work/lele``.

    Raises:
        MissingToolError: Cargo is not there, or fails.
    """
    built = work / "lele"
    if (built / "release/liblele_sensevoice.so").is_file():
        return
    built.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "LELE_NETWORK": str((work / "int8-sherpa/model.int8.onnx").resolve()),
        "LELE_WEIGHTS": str(built / "weights.bin"),
        "CARGO_TARGET_DIR": str(built),
        "RUSTFLAGS": "-C target-cpu=native",  # what its authors measure
    }
    command = ["cargo", "build", "--release", "--locked", "--quiet"]
    try:
        code = subprocess.run(command, cwd=LELE, env=environment, check=False).returncode
    except OSError as error:
        raise MissingToolError(f"cargo: cannot be started: {error.strerror}") from None
    if code:
        raise MissingToolError(f"{LELE}: cargo build failed; what it said stands above")


def _link(source: Path, folder: Path, patterns: tuple[str, ...]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for path in (found for pattern in patterns for found in source.glob(pattern)):
        link = folder / path.name
        link.unlink(missing_ok=True)
        link.symlink_to(path.resolve())


def _optimize(model: Path, folder: Path, *options: str) -> None:
    if (folder / "optimize.json").is_file():
        return
    command = [str(_ASR), "optimize", str(model), "-o",
               str(folder), "--threads", "1", *options]  # fmt: skip
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode:
        raise MissingToolError(f"{model}: asr optimize failed; what it said stands above")


def facts(work: Path) -> dict[str, dict[str, object]]:
    """Bytes and checksum of every network file, by folder."""
    found: dict[str, dict[str, object]] = {}
    for folder in sorted(work.glob("*-*/")):
        for path in sorted(folder.glob("model*")):
            found[f"{folder.name}/{path.name}"] = {
                "bytes": path.stat().st_size,
                "sha256": digest(path),
            }
    return found
