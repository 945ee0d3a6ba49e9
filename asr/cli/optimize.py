"""``asr optimize``: the same text from a faster network."""

from __future__ import annotations

import argparse
import sys

from asr.cli import Help
from asr.errors import MissingToolError, TextChangedError, UsageError

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from asr.layouts import Layout
    from asr.optimize.rewrite import Rewritten, Wanted


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "optimize",
        help="write a model folder with a faster network, and the proof",
        description="Rewrite a model's network so that it runs faster, and prove what changed.",
        epilog=(
            "By default only what changes no decision is done: every score stays as it was, or\n"
            "moves by less than half of 0.01. With --verify, --quantize or --attention every\n"
            "rewriting that fits is done; --verify hears the clips of a manifest with both\n"
            "networks and refuses (exit code 12) when a text differs. OUT/optimize.json records\n"
            "all of it."
        ),
        formatter_class=Help,
    )
    parser.add_argument(
        "model", metavar="MODEL", help="model folder, or a name from asr models list"
    )
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT", help="folder to write; new or empty"
    )
    parser.add_argument(
        "--quantize",
        choices=("int8",),
        help="fp32 weights to bytes, one scale per column: smaller and faster, not the same scores",
    )
    parser.add_argument(
        "--attention",
        choices=("bf16",),
        help="attention with factors of eight bits, by an operator that only this package has: "
        "faster, above all on long pieces, not the same scores; needs a CPU with AVX-512 BF16",
    )
    parser.add_argument(
        "--verify",
        metavar="MANIFEST",
        help="clips whose text must not change; a manifest as for asr evaluate",
    )
    parser.add_argument(
        "--target",
        choices=("auto", "portable"),
        default="auto",
        help="auto: for this CPU; portable: only what is right on every CPU (default: auto)",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="as for asr transcribe")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Rewrite, prove, write.

    Returns:
        0.
    """
    import shutil
    from importlib.util import find_spec
    from pathlib import Path

    from asr import _rust_fe
    from asr.engines.ort import default_threads, import_runtime
    from asr.hub import find_model
    from asr.layouts import open_layout
    from asr.optimize import folder
    from asr.optimize.rewrite import Wanted, rewrite

    if find_spec("onnx") is None:
        raise MissingToolError(
            "asr optimize: expected the package onnx, found none; pip install 'asr-rtf[optimize]'"
        )
    output = Path(options.output)
    layout = open_layout(find_model(options.model))
    if layout.kind == "bundle":
        raise UsageError(
            f"{layout.folder}: expected a model folder, found a bundle; optimize the model, then "
            "bundle it"
        )
    build = _rust_fe.build_info()
    features = build["byte_features"]
    wanted = Wanted(
        signed=options.target == "auto" and "vnni" in features,
        lossless=options.verify is None and options.quantize is None and options.attention is None,
        int8=options.quantize == "int8",
        bf16=options.attention == "bf16",
    )
    if wanted.bf16 and (options.target == "portable" or not build["operators"]):
        raise UsageError(
            "--attention bf16: expected --target auto and a CPU with AVX-512 BF16, found "
            f"--target {options.target} and a CPU {'with' if build['operators'] else 'without'} "
            "it; leave --attention out"
        )
    if wanted.int8:
        layout = folder.fp32(layout)
    threads = options.threads or default_threads()
    rewritten = rewrite(layout, wanted, threads=threads)
    _tell(layout, rewritten)
    part = folder.write(layout, _name(layout, wanted), rewritten.model, output)
    try:
        texts = _same_texts(layout, part, options.verify, threads) if options.verify else None
        facts = {
            "runtime": f"ONNX Runtime {import_runtime().__version__}",
            "cpu": features,
            "target": options.target,
            "operators": _operators(rewritten),
            "texts": texts,
        }
        folder.settle(part, output, folder.record(layout, rewritten, facts))
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    print(f"wrote {output}")
    return 0


def _operators(rewritten: Rewritten) -> list[str]:
    """What the runtime must be given to run the network; this package gives it by itself."""
    kept = any(step.name == "bf16_attention" and step.kept for step in rewritten.steps)
    return ["asr.SelfAttention"] if kept else []


def _name(layout: Layout, wanted: Wanted) -> str:
    """Name of the new network: the one that its layout gives to such a network."""
    if not wanted.int8:
        return layout.network.name
    return {"funasr": "model_quant.onnx", "sherpa-onnx": "model.int8.onnx"}[layout.kind]


def _tell(layout: Layout, rewritten: Rewritten) -> None:
    print(f"{layout.network}: {layout.network.stat().st_size / 1e6:.1f} MB")
    for step in rewritten.steps:
        outcome = f"{step.places} places" if step.kept else f"left out: {step.reason}"
        print(f"  {step.name:<16} {outcome}")
    found = rewritten.comparison
    print(
        f"scores on {found.rows} rows of random features: {found.verdict}"
        + (
            ""
            if found.largest == 0
            else f", largest difference {found.largest:.2g}, {100 * found.agreement:.2f} % of "
            "rows decide alike"
        )
    )


def _same_texts(layout: Layout, part: Path, manifest: str, threads: int) -> dict[str, Any]:
    """Hear a manifest's clips with both networks.

    Raises:
        TextChangedError: a text differs.
    """
    from pathlib import Path

    from asr.evaluate.clips import Clips
    from asr.evaluate.manifest import read_manifest
    from asr.hub.store import digest
    from asr.layouts import open_layout
    from asr.recognizer import Recognizer

    path = Path(manifest)
    rows = read_manifest(path).rows
    if not rows:
        raise UsageError(f"{path}: expected clips to verify with, found none")
    pair = [
        Recognizer.from_layout(each, threads=threads, optimize=False)
        for each in (layout, open_layout(part))
    ]
    with Clips(path.parent) as clips:
        for number, row in enumerate(rows, 1):
            sound, rate = clips.find(row.path)
            before, after = (
                r.transcribe(
                    sound, sample_rate=rate, language=row.language or "auto", itn=row.itn
                ).text
                for r in pair
            )
            if before != after:
                raise TextChangedError(
                    f"{row.path}: the text changed from {before!r} to {after!r}; nothing was "
                    "written; without --verify, --quantize and --attention only lossless "
                    "rewriting is done"
                )
            if sys.stderr.isatty():
                print(f"\r{number} of {len(rows)} clips", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    print(f"texts of {len(rows)} clips: unchanged")
    return {"manifest_sha256": digest(path), "clips": len(rows), "changed": 0}
