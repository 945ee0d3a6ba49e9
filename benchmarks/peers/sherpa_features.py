"""Read sherpa-onnx's own features out of it, through the only thing it shows: tokens.

    python -m venv /tmp/peek && /tmp/peek/bin/pip install numpy onnx sherpa-onnx==2.0.1
    PYTHONPATH=. /tmp/peek/bin/python benchmarks/peers/sherpa_features.py MODEL CLIPS ANSWERS OUT

sherpa-onnx computes fbank, LFR and CMVN itself and hands them to a network. So it is given one that
spells them: with the metadata of MODEL, and for every frame a row whose best id is the value of one
column, modulo a small period, in steps of 4e-9; 560 networks for 560 columns, since sherpa-onnx
reads a row a frame and no more. ANSWERS (what answer.py wrote for funasr-onnx on the
same CLIPS) says which period, and OUT/CLIP.npz gets the features, to the last bit of float32 for
all but the smallest. With them answer.py --features shows that session, decoder and vocabulary
agree token by token where the programs' own features differ in the last bit.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import sherpa_onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).parent))
from answer import samples_of

from asr.layouts.sherpa import read_metadata

STEP = 4e-9
LEVELS = 600  # a period of 2.4e-6, twice what two float32 computations of a feature differ by
VOCAB = 2 * LEVELS + 1  # blank, and each level twice, so that neighbouring rows never collapse
DIM = 560


def spelling_network(column: int, metadata: dict[str, str], path: Path) -> None:
    """Write a network whose rows 4.. spell one column of its input."""
    constants = {
        "column": np.array([column]),
        "per_step": np.float64(1 / STEP),
        "levels": np.float64(LEVELS),
        "flat": np.array([1, -1]),
        "zero": np.int64(0),
        "one": np.int64(1),
        "two": np.float64(2),
        "first_id": np.float64(1),
        "ids": np.arange(VOCAB, dtype=np.float32)[None, None],
        "axes": np.array([2]),
        "prompts": np.arange(1, 5, dtype=np.float32)[None, :, None],
    }
    node = helper.make_node
    nodes = [
        node("Gather", ["x", "column"], ["chosen"], axis=2),
        node("Cast", ["chosen"], ["double"], to=TensorProto.DOUBLE),
        node("Mul", ["double", "per_step"], ["steps"]),
        node("Floor", ["steps"], ["whole"]),
        node("Mod", ["whole", "levels"], ["signed"], fmod=1),
        node("Add", ["signed", "levels"], ["shifted"]),
        node("Mod", ["shifted", "levels"], ["level"], fmod=1),
        node("Reshape", ["level", "flat"], ["list"]),  # (1, frames)
        node("Shape", ["list"], ["shape"]),
        node("Gather", ["shape", "one"], ["count"]),
        node("Range", ["zero", "count", "one"], ["number"]),
        node("Cast", ["number"], ["number_double"], to=TensorProto.DOUBLE),
        node("Mod", ["number_double", "two"], ["parity"], fmod=1),
        node("Mul", ["list", "two"], ["doubled"]),
        node("Add", ["doubled", "parity"], ["mixed"]),
        node("Add", ["mixed", "first_id"], ["id_double"]),
        node("Cast", ["id_double"], ["id_flat"], to=TensorProto.FLOAT),
        node("Unsqueeze", ["id_flat", "axes"], ["id"]),
        node("Concat", ["prompts", "id"], ["wanted"], axis=1),
        node("Sub", ["wanted", "ids"], ["difference"]),
        node("Abs", ["difference"], ["distance"]),
        node("Neg", ["distance"], ["logits"]),
    ]
    value = helper.make_tensor_value_info
    whole = [value(n, TensorProto.INT32, ["N"]) for n in ("x_length", "language", "text_norm")]
    graph = helper.make_graph(
        nodes,
        "spell",
        [value("x", TensorProto.FLOAT, ["N", "T", DIM]), *whole],
        [value("logits", TensorProto.FLOAT, ["N", "R", VOCAB])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    helper.set_model_props(model, metadata | {"vocab_size": str(VOCAB)})
    onnx.save(model, path)


def main() -> None:
    """Spell all columns of all clips and write the features."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "clips", "answers", "out"):
        parser.add_argument(name, type=Path)
    options = parser.parse_args()
    metadata = read_metadata(next(iter(sorted(options.model.glob("*.onnx")))))
    paths = sorted(options.clips.glob("*.wav"))
    nearby = {p: np.load(options.answers / f"{p.stem}.npz")["features"] for p in paths}
    found = {p: f.astype(np.float64) for p, f in nearby.items()}
    period = LEVELS * STEP
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "tokens.txt").write_text("".join(f"t{i} {i}\n" for i in range(VOCAB)))
        for column in range(DIM):
            spelling_network(column, metadata, work / "spell.onnx")
            program = sherpa_onnx.OfflineRecognizer.from_sense_voice(
                model=str(work / "spell.onnx"), tokens=str(work / "tokens.txt"), language="auto"
            )
            for path in paths:
                stream = program.create_stream()
                stream.accept_waveform(16000, samples_of(path))
                program.decode_stream(stream)
                ids = np.array([int(token.strip()[1:]) for token in stream.result.tokens])
                values = found[path][:, column]
                off = (ids - 1) // 2 * STEP + STEP / 2 - np.mod(values, period)
                values += (off + period / 2) % period - period / 2
    options.out.mkdir(parents=True, exist_ok=True)
    largest = 0.0
    for path, features in found.items():
        largest = max(largest, float(np.abs(features - nearby[path]).max(initial=0)))
        np.savez(options.out / f"{path.stem}.npz", features=features.astype(np.float32))
    print(
        f"{len(paths)} clips; sherpa-onnx's features differ from the nearby ones by {largest:.1e}"
    )


if __name__ == "__main__":
    main()
