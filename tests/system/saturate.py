"""Run a network whose byte weights are extreme, as its file has it, prepared, and signed by force.

    saturate.py MODEL CACHE

Prints JSON: what this CPU says of itself, and the hash of each run's decisions. The network is
prepared in this process: another one would not be emulated.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import numpy as np

from asr import _rust_fe, networks
from asr.engines.ort import OrtEngine
from asr.layouts import open_layout
from asr.observe import SILENT
from asr.optimize import build, load, raw, verify
from asr.optimize.probe import Roles


def main(model: str, cache: str) -> None:
    """Run it three times."""
    os.environ["ASR_CACHE"] = cache
    networks.LARGE_BYTES = 0
    load._run = build.build
    layout = open_layout(Path(model))
    plain = networks.find(layout, SILENT, optimize=False)
    prepared = networks.find(layout, SILENT)
    signed = OrtEngine(raw.sign(plain.model)[0], name="signed", threads=1)
    engines = {"plain": plain.engine(1), "prepared": prepared.engine(1), "signed": signed}
    roles = Roles.named(layout, signed.inputs, signed.outputs)
    told = {}
    for name, engine in engines.items():
        scores = np.concatenate(verify.scores(engine, roles, (5, 17, 64)))
        told[name] = hashlib.sha256(scores.argmax(-1).tobytes()).hexdigest()
    found = prepared.preparation
    cpu = _rust_fe.build_info()["byte_features"]
    print(json.dumps({"cpu": cpu, "state": found.state, "passes": found.passes, "best": told}))


if __name__ == "__main__":
    main(*sys.argv[1:])
