"""What the numbers mean, in words; where each stage begins, ends, and lives in the source."""

import importlib
import inspect
from pathlib import Path

#: Stage -> from, to, the function that does it, the file of the Rust crate it calls.
STAGES: dict[str, tuple[str, str, str, str]] = {
    "read": ("path, pipe or bytes", "mono float32 samples", "asr.audio.reader:Reader.head", ""),
    "resample": ("samples", "samples at the recipe's rate", "asr.audio:resample", ""),
    "vad": ("samples", "pieces, cut at pauses", "asr.vad:Splitter.feed", ""),
    "fbank": ("samples", "mel energies, a row every 10 ms", "asr.frontend:FrontEnd.fbank",
              "rust_fe/src/fbank.rs"),
    "lfr": ("mel rows", "stacked rows, one every 60 ms", "asr.frontend:FrontEnd.lfr",
            "rust_fe/src/lfr.rs"),
    "cmvn": ("stacked rows", "the same memory, normalised", "asr.frontend:FrontEnd.cmvn",
             "rust_fe/src/cmvn.rs"),
    "bind": ("features", "the network's named tensors", "asr.layouts.base:Binding.bind", ""),
    "infer": ("tensors", "logits", "asr.engines.ort:OrtEngine.run", ""),
    "decode": ("logits", "tokens with their scores", "asr.ctc:greedy", "rust_fe/src/ctc.rs"),
    "text": ("tokens", "transcript", "asr.text:transcribe", ""),
}  # fmt: skip

STATES = {
    "cold": "a fresh process",
    "idle": "a resident process after a rest",
    "evicted": "a resident process whose caches were filled with something else",
    "warm": "a resident process, one call after the other",
}

METHOD = (
    "A real-time factor (RTF) is seconds spent over seconds of source audio, before anything is "
    "cut away; below 1 is faster than real time. Its value is the sum of the clips' medians over "
    "the sum of their seconds, its interval a 95 % bootstrap over the calls of each clip.",
    "Stages are wall times from a monotonic clock. Medians, median absolute deviations (MAD) and "
    "95th percentiles are taken per clip and averaged over the clips of a length; `unaccounted` is "
    "what no stage saw. No value is thrown away.",
    "Cold calls are fresh processes, before any resident one holds the files. An idle call follows "
    "a rest; an evicted one follows a sweep over four times the last-level cache. A fixed piece of "
    "work before, between and after tells how quiet the machine was.",
    "Beside every time stands the text that was heard: a run with another text than expected "
    "counts for nothing. Runs of different machines are never compared.",
)

PAIRS_METHOD = (
    "Before and after: both versions took turns in fresh processes on the same cores, in the order "
    "a b b a. A ratio is the median over the pairs, on logarithms, with a 95 % bootstrap interval; "
    "what looked slower was measured once more before it was called slower."
)


def place_of(stage: str) -> str:
    """Where the source of a stage is: file and line, relative to the checkout or site-packages."""
    module, _, name = STAGES[stage][2].partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    function = inspect.unwrap(found)  # type: ignore[arg-type]
    file = Path(inspect.getsourcefile(function) or "")
    root = Path(inspect.getsourcefile(importlib.import_module("asr")) or "").parent.parent
    return f"{file.relative_to(root)}:{inspect.getsourcelines(function)[1]}"
