"""``asr inspect``: what a model is made of and how it would run here."""

from __future__ import annotations

import argparse

from asr.cli import Help
from asr.cli.options import add_network_options, network_options

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "inspect",
        help="show a model's layout, recipe, tensors and tokens",
        description="Show what a model is made of and how it would run on this machine.",
        formatter_class=Help,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="model folder, or a name from asr models list"
    )
    parser.add_argument("--threads", type=int, metavar="N", help="as for asr transcribe")
    add_network_options(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Load the model and print its facts."""
    from asr.recognizer import Recognizer

    facts = _facts(Recognizer.load(options.model, **network_options(options)))
    if options.json:
        import json

        print(json.dumps(facts, ensure_ascii=False))
        return 0
    for section, rows in facts.items():
        print(section)
        for name, value in rows.items():
            print(f"  {name:<18} {value}")
    return 0


def _facts(recognizer: Any) -> dict[str, dict[str, Any]]:  # noqa: ANN401 - imported lazily
    from asr import _rust_fe

    layout, engine = recognizer.layout, recognizer.engine
    placement = engine.placement
    recipe, vocabulary = layout.front_end, layout.vocabulary
    build = _rust_fe.build_info()
    tags = [t for i in range(len(vocabulary)) if (t := vocabulary.tag(i))]
    return {
        "model": {
            "layout": layout.kind,
            "folder": str(layout.folder),
            "network": f"{layout.network.name}, {layout.network.stat().st_size / 1e6:.1f} MB",
        },
        "recipe": {
            "sample rate": f"{recipe.sample_rate_hz} Hz, samples x {recipe.sample_scale:g}",
            "frames": f"{recipe.frame_length_ms:g} ms every {recipe.frame_shift_ms:g} ms, "
            f"{recipe.window}, pre-emphasis {recipe.preemphasis:g}, dither 0",
            "mel bins": f"{recipe.num_mel_bins}, {recipe.low_freq_hz:g} to "
            f"{recipe.high_freq_hz:g} Hz",
            "LFR": f"{recipe.lfr_m}/{recipe.lfr_n}, a row every "
            f"{recipe.frame_shift_ms * recipe.lfr_n:g} ms",
            "CMVN": f"{len(recipe.neg_mean)} shifts "
            f"{recipe.neg_mean.min():.2f} to {recipe.neg_mean.max():.2f}, scales "
            f"{recipe.inv_stddev.min():.4f} to {recipe.inv_stddev.max():.4f}",
        },
        "tensors": {
            t.name: f"{way}, {t.dtype}, {list(t.shape)}"
            for way, tensors in (("in", engine.inputs), ("out", engine.outputs))
            for t in tensors
        },
        "tokens": {
            "pieces": len(vocabulary),
            "blank": layout.blank_id,
            "prompt rows": layout.prompt_frames,
            "languages": ", ".join(layout.language_ids),
            "tags": ", ".join(tags[:16]) + (f" and {len(tags) - 16} more" if tags[16:] else ""),
        },
        "engine": {
            "runtime": engine.description,
            "prepared": str(engine.preparation),
            "nodes": ", ".join(f"{count} on {where}" for where, count in placement.items())
            or "not told by this version of ONNX Runtime",
            "threads": engine.threads,
            "SIMD path": recognizer.front_end.backend,
            "CPU": _cpu(),
            "build": f"{build['version']}, {build['profile']}, {build['target']}",
            "compiler": build["compiler"],
        },
    }


def _cpu() -> str:
    """How bytes are multiplied here, and the cores that count."""
    from asr import _rust_fe
    from asr.engines import cores

    byte_features = _rust_fe.build_info()["byte_features"]
    kinds = list(cores.parts().values())
    told = ", ".join(byte_features) or "no dot product of bytes"
    if not kinds:
        return f"{told}; {len(cores.counted())} cores"
    return f"{told}; {kinds.count(cores.A76)} of {len(kinds)} cores are Cortex-A76"
