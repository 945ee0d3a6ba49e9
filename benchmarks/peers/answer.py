"""Let one program answer all clips: run by parity.py, each program in its own environment.

    python answer.py asr-rtf|funasr-onnx|sherpa-onnx MODEL_DIR CLIPS_DIR OUT_DIR [--int8]
        [--features ANSWERS]

Writes OUT_DIR/CLIP.npz: `argmax` of every row and `margin` of its lead, and `features` (ours and
funasr-onnx); `pieces`: of the speech rows (sherpa-onnx shows no more), or of every row's best id
(ours). With --features ours works on the features that another program wrote into ANSWERS.
"""

import argparse
import shutil
import tempfile
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np

Answer = dict[str, np.ndarray]
FUNASR_TOKENIZER = "chn_jpn_yue_eng_ko_spectok.bpe.model"  # the name that funasr-onnx insists on


def samples_of(path: Path) -> np.ndarray:
    """Read 16-bit WAV: float32 (num_samples,), full scale +-1.0."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


def rows_of(scores: np.ndarray) -> Answer:
    """Best id of each row and its lead over the second."""
    top = np.partition(scores, -2, axis=-1)
    return {"argmax": scores.argmax(axis=-1), "margin": top[:, -1] - top[:, -2]}


def ours(model: Path, int8: bool, features: Path | None) -> Callable[[Path], Answer]:
    """Every stage of our pipeline; not transcribe(): clips below 0.1 s are of interest here."""
    from asr import Recognizer
    from asr.audio import read
    from asr.ctc import greedy
    from asr.records import Features

    recognizer = Recognizer.load(model, threads=1)
    wanted = "model.int8.onnx model_quant.onnx" if int8 else "model.onnx"
    if recognizer.layout.network.name not in wanted.split():
        raise SystemExit(f"{model}: expected {wanted}, found {recognizer.layout.network.name}")

    front_end, pieces = recognizer.front_end, np.array(recognizer.layout.vocabulary.pieces)

    def answer(path: Path) -> Answer:
        if features is None:
            given = front_end.cmvn(front_end.lfr(front_end.fbank(read(path, None))))
        else:
            values = np.load(features / f"{path.stem}.npz")["features"]
            given = Features(np.ascontiguousarray(values, np.float32), 0.06)
        tensors = recognizer._binding.bind(given, 0, recognizer.layout.itn_ids[False])
        logits = recognizer._infer(tensors, given.frame_shift_s)
        decoded = greedy(logits, blank_id=recognizer.layout.blank_id)
        rows = rows_of(logits.values)
        if not np.array_equal(rows["argmax"], decoded.argmax):
            raise SystemExit(f"{path}: our decoder's best ids are not NumPy's")
        return {**rows, "pieces": pieces[decoded.argmax], "features": given.values}

    return answer


def funasr_onnx(model: Path, int8: bool, _: Path | None) -> Callable[[Path], Answer]:
    """funasr-onnx's own front end (dither 0) and session."""
    from funasr_onnx import SenseVoiceSmall

    folder = Path(tempfile.mkdtemp()) / "model"
    shutil.copytree(model, folder)
    (tokenizer,) = folder.glob("*.bpe.model")
    if tokenizer.name != FUNASR_TOKENIZER:
        tokenizer.rename(folder / FUNASR_TOKENIZER)
    program = SenseVoiceSmall(str(folder), quantize=int8, intra_op_num_threads=1)
    program.frontend.opts.frame_opts.dither = 0.0

    def answer(path: Path) -> Answer:
        features, lengths = program.extract_feat([samples_of(path)])
        language, itn = np.array([0], np.int32), np.array([15], np.int32)
        scores, rows = program.infer(features, lengths, language, itn)
        return {**rows_of(scores[0, : int(rows[0])]), "features": features[0]}

    return answer


def sherpa_onnx(model: Path, int8: bool, _: Path | None) -> Callable[[Path], Answer]:
    """sherpa-onnx's recogniser; it shows its tokens only."""
    import sherpa_onnx as program

    recognizer = program.OfflineRecognizer.from_sense_voice(
        model=str(model / ("model.int8.onnx" if int8 else "model.onnx")),
        tokens=str(model / "tokens.txt"),
        num_threads=1,
        language="auto",
        use_itn=False,
    )

    def answer(path: Path) -> Answer:
        stream = recognizer.create_stream()
        stream.accept_waveform(16000, samples_of(path))
        recognizer.decode_stream(stream)
        return {"pieces": np.array(stream.result.tokens, "U")}

    return answer


PROGRAMS = {"asr-rtf": ours, "funasr-onnx": funasr_onnx, "sherpa-onnx": sherpa_onnx}


def main() -> None:
    """Answer every clip."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("model", type=Path)
    parser.add_argument("clips", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--features", type=Path)
    options = parser.parse_args()
    answer = PROGRAMS[options.program](options.model, options.int8, options.features)
    options.out.mkdir(parents=True, exist_ok=True)
    for path in sorted(options.clips.glob("*.wav")):
        np.savez(options.out / f"{path.stem}.npz", **answer(path))


if __name__ == "__main__":
    main()
