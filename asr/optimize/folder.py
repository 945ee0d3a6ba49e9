"""A model folder with a rewritten network, and the record of what was proved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asr.errors import SystemAccessError, UsageError
from asr.hub.store import digest

if TYPE_CHECKING:
    from asr.layouts import Layout
    from asr.optimize.rewrite import Rewritten

RECORD = "optimize.json"
SCHEMA = "asr-optimize/1"


def fp32(layout: Layout) -> Layout:
    """The same model with its fp32 network, whose name is the same in every layout.

    Raises:
        UsageError: there is none.
    """
    network = layout.folder / "model.onnx"
    if not network.is_file():
        raise UsageError(
            f"{layout.folder}: expected model.onnx, the fp32 network, to quantise; found "
            f"{layout.network.name} alone; leave --quantize out"
        )
    return replace(layout, network=network)


def record(layout: Layout, rewritten: Rewritten, facts: dict[str, Any]) -> dict[str, Any]:
    """What was done to which network, and how that was proved.

    Args:
        layout: the model as it was.
        rewritten: its network after the passes.
        facts: more to keep, such as runtime, CPU, texts compared.
    """
    return {
        "schema": SCHEMA,
        "from": {"network": layout.network.name, "sha256": digest(layout.network)},
        "to": {
            "bytes": len(rewritten.model),
            "sha256": hashlib.sha256(rewritten.model).hexdigest(),
        },
        "passes": [asdict(step) for step in rewritten.steps],
        "scores": asdict(rewritten.comparison),
        **facts,
    }


def write(layout: Layout, network_name: str, model: bytes, output: Path) -> Path:
    """Write a model folder: the files of the old one, but for its networks, and the new network.

    Args:
        layout: the model as it was.
        network_name: file name of the new network.
        model: its bytes.
        output: the folder; must not exist, or be empty.

    Returns:
        a folder beside ``output``, complete but for ``optimize.json``; ``settle`` gives it its
        name, and whoever does not settle it must remove it.

    Raises:
        UsageError: the folder holds something.
        SystemAccessError: it cannot be written.
    """
    import shutil
    import tempfile

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output}: expected a new or empty folder, found something in it")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
        part.chmod(0o755)
        for file in layout.folder.iterdir():
            if file.is_file() and not _is_network(file):
                shutil.copyfile(file, part / file.name)
        (part / network_name).write_bytes(model)
    except OSError as error:
        raise SystemAccessError(f"{output}: cannot write the model: {error.strerror}") from None
    return part


def settle(part: Path, output: Path, facts: dict[str, Any]) -> None:
    """Write the record and give the folder its name.

    Raises:
        SystemAccessError: it cannot be written.
    """
    try:
        text = json.dumps(facts, indent=1, allow_nan=False)
        (part / RECORD).write_text(text + "\n", encoding="utf-8")
        part.replace(output)
    except OSError as error:
        raise SystemAccessError(f"{output}: cannot write the model: {error.strerror}") from None


def _is_network(file: Path) -> bool:
    return file.suffix == ".onnx" or ".onnx." in file.name or file.name == RECORD
