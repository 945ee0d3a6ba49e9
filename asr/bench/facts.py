"""What an install is and what its model is made of, asked from outside: ``asr inspect --json``."""

import dataclasses
import hashlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asr.bench import process
from asr.bench.installs import Install
from asr.bench.record import Model, Tool
from asr.errors import MissingToolError

_VERSIONS = """
import importlib.metadata as m, json, platform
print(json.dumps([platform.python_version(), m.version("onnxruntime"), m.version("numpy")]))
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a record says about one version.

    Attributes:
        tool: what ran.
        model: what it ran.
        engine: what ran the network, in words.
        prepared: as ``Options.prepared`` of the record.
    """

    tool: Tool
    model: Model
    engine: str
    prepared: str | None = None


def ask(install: Install, model: str, *, optimize: bool = True) -> Facts:
    """Ask an install about itself and a model.

    Raises:
        MissingToolError: it cannot be run, or does not answer.
        LayoutError: the model's folder is not what it should be.
    """
    plain = [] if optimize else ["--no-optimize"]
    told = json.loads(process.run(install, ["inspect", model, "--json", *plain]).out)
    engine = told["engine"]
    version, profile, _ = engine["build"].split(", ", 2)
    done = subprocess.run(  # noqa: S603
        [str(install.python), "-c", _VERSIONS], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise MissingToolError(f"{install.label}: {done.stderr.strip().splitlines()[-1]}")
    python, onnxruntime, numpy = json.loads(done.stdout)
    # Versions before the field say nothing of their compiler.
    compiler = engine.get("compiler")
    tool = Tool(version, profile, engine["SIMD path"], python, onnxruntime, numpy, compiler)
    return Facts(
        tool,
        model_facts(model, Path(told["model"]["folder"])),
        engine["runtime"],
        _state(engine.get("prepared", "")),
    )


def _state(prepared: str) -> str | None:
    """What the processes to be measured will find: this one may have been the first."""
    word = prepared.split(":")[0]
    return {"first": "cached", "cached": "cached", "off": "off"}.get(word)


def model_facts(name: str, folder: Path) -> Model:
    """Hash what decides the answers and the work: network, recipe with CMVN, tokens."""
    from asr.layouts import open_layout

    layout = open_layout(folder)
    network = layout.network.read_bytes()
    recipe = {f.name: _plain(getattr(layout.front_end, f.name))
              for f in dataclasses.fields(layout.front_end)}  # fmt: skip
    return Model(
        name=name,
        layout=layout.kind,
        network_sha256=hashlib.sha256(network).hexdigest(),
        network_bytes=len(network),
        recipe_sha256=_sha256(json.dumps(recipe, sort_keys=True)),
        tokens_sha256=_sha256("\n".join(layout.vocabulary.pieces)),
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 - numbers, names and arrays
    return value.tolist() if hasattr(value, "tolist") else value


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
