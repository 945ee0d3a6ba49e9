"""A model folder -> a bundle: all that ``asr-edge`` needs, and nothing it would have to parse.

The format is docs/bundle.md. Names, recipes and tags are settled here, by the layout; the program
on the board reads numbers.
"""

import json
import shutil
import tempfile
import wave
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from asr import _rust_fe, audio, phrases
from asr.engines.ort import import_runtime, read_model, save_portable
from asr.errors import SystemAccessError, UsageError
from asr.frontend import KEPT_FRAMES
from asr.hub.store import digest
from asr.layouts import Layout
from asr.layouts.bundle import (
    CMVN,
    DESCRIPTION,
    NETWORK,
    PHRASES,
    SCHEMA_ID,
    TOKENS,
    pack_tokens,
)
from asr.phrases import PhraseList
from asr.recognizer import MIN_AUDIO_S, PIECE_S, Recognizer
from asr.vad import silero

DETECTOR, TEST_CLIP = "silero_vad.onnx", "self-test.wav"

_OWN_CLIP = Path(__file__).parent.parent / "bench" / "workload" / "transcribe_me.wav"


def write(layout: Layout, name: str, output: Path, *, phrase_file: Path | None = None) -> Path:
    """Write a bundle; complete or not at all.

    Args:
        layout: the model.
        name: what to call it.
        output: the folder; must not exist, or be empty.
        phrase_file: a list to hear nothing but; None takes the model folder's own, if it has one.

    Returns:
        ``output``.

    Raises:
        UsageError: the folder holds something, the list is none, or the model is a bundle.
        LayoutError: the network cannot be loaded, or does not fit the layout.
        SystemAccessError: the folder cannot be written.
    """
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output}: expected a new or empty folder, found something in it")
    if layout.kind == "bundle":
        raise UsageError(f"{layout.folder}: expected a model folder, found a bundle")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{output.name}.", dir=output.parent))
        try:
            part.chmod(0o755)
            _fill(part, layout, name, phrase_file)
            if output.exists():
                output.rmdir()
            part.rename(output)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
    except OSError as error:
        if isinstance(error, SystemAccessError):
            raise
        raise SystemAccessError(f"{output}: cannot write the bundle: {error.strerror}") from None
    return output


def _fill(folder: Path, layout: Layout, name: str, phrase_file: Path | None) -> None:
    recognizer = Recognizer.from_layout(layout, threads=1, optimize=False)
    listed = recognizer.phrases
    if phrase_file is not None:
        listed = PhraseList.read(phrase_file, layout.vocabulary)
    network = layout.network
    save_portable(read_model(network), folder / NETWORK, name=str(network), folder=network.parent)
    recipe = asdict(layout.front_end)
    cmvn = [recipe.pop(part) for part in ("neg_mean", "inv_stddev")]
    (folder / CMVN).write_bytes(np.concatenate(cmvn).astype("<f4").tobytes())
    (folder / TOKENS).write_bytes(pack_tokens(layout.vocabulary))
    if listed is not None:
        (folder / PHRASES).write_text(json.dumps(_phrases(listed)) + "\n")
        lines = [f"{phrase.text} => {phrase.label}\n" for phrase in listed.phrases]
        (folder / phrases.FILE_NAME).write_text("".join(lines), encoding="utf-8")  # for Python
    detector = silero.find() if recipe["sample_rate_hz"] == silero.RATE_HZ else None
    if detector is not None:
        shutil.copyfile(detector, folder / DETECTOR)
    engine = recognizer.engine
    binding = layout.connect(engine.inputs, engine.outputs)
    description: dict[str, Any] = {
        "schema": SCHEMA_ID,
        "name": name,
        "made_by": f"asr {_rust_fe.build_info()['version']}",
        "runtime": import_runtime().__version__,
        "layout": layout.kind,
        "source_sha256": digest(layout.network),
        "prepared": None,
        "recipe": recipe,
        "kept_frames": KEPT_FRAMES,
        "min_audio_s": MIN_AUDIO_S,
        "piece_s": PIECE_S,
        "vocab_size": len(layout.vocabulary),
        "blank_id": layout.blank_id,
        "prompt_frames": layout.prompt_frames,
        "language_ids": dict(layout.language_ids),
        "itn_ids": {"with": layout.itn_ids[True], "without": layout.itn_ids[False]},
        "inputs": dict(binding.inputs),
        "scores": binding.scores,
        "rejection": asdict(layout.rejection) if layout.rejection else None,
        "self_test": _test(folder / TEST_CLIP, recognizer, listed),
    }
    description["files"] = [
        {"name": path.name, "sha256": digest(path), "bytes": path.stat().st_size}
        for path in sorted(folder.iterdir())
    ]
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    (folder / DESCRIPTION).write_text(text, encoding="utf-8")


def _phrases(listed: PhraseList) -> dict[str, Any]:
    return {
        "many": listed.many,
        "min_score": listed.min_score,
        "min_posterior": listed.min_posterior,
        "lowest_log_prob": phrases.LOWEST_LOG_PROB,
        "phrases": [
            {"label": phrase.label, "spellings": [s.decode("utf-8") for s in spellings]}
            for phrase, spellings in zip(listed.phrases, listed.spellings, strict=True)
        ],
    }


def _test(path: Path, recognizer: Recognizer, listed: PhraseList | None) -> dict[str, Any]:
    """Write a generated clip at the recipe's rate, and say what the model makes of it here."""
    rate = recognizer.sample_rate_hz
    samples = audio.resample(audio.read(_OWN_CLIP), rate).samples
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, 0, "NONE", ""))
        whole = (samples * 32768).round().clip(-32768, 32767)
        file.writeframes(whole.astype("<i2").tobytes())
    heard = recognizer.transcribe(path, phrases=listed)
    spoken = " ".join(segment.text for segment in heard.segments)
    return {"file": path.name, "spoken": spoken, "text": heard.text}
