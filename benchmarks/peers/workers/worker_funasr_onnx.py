"""funasr-onnx as a contender; its features' dither off, so that every call hears the same."""

import json
from collections.abc import Callable
from pathlib import Path

from sounds import RATE_HZ, samples_of, scores

IMPORTS = ("funasr_onnx",)


def load(model: str, threads: str) -> "SenseVoiceSmall":  # noqa: F821 - imported when loaded
    """Its SenseVoice recogniser."""
    from funasr_onnx import SenseVoiceSmall

    quantised = (Path(model) / "model_quant.onnx").is_file()
    program = SenseVoiceSmall(model, quantize=quantised, intra_op_num_threads=int(threads))
    program.frontend.opts.frame_opts.dither = 0.0
    return program


def warm(model: str, threads: str) -> Callable[[str], str]:
    """Read a file, return its text; it reads files by itself."""
    program = load(model, threads)
    return lambda path: program(path, language="auto", textnorm="woitn")[0]


def long(model: str, threads: str) -> Callable[[str], str]:
    """A long file cut every 20 s."""
    program = load(model, threads)

    def run(path: str) -> str:
        samples, step = samples_of(path), 20 * RATE_HZ
        pieces = (samples[i : i + step] for i in range(0, len(samples), step))
        return "".join(program(piece, language="auto", textnorm="woitn")[0] for piece in pieces)

    return run


def front_end(model: str, path: str) -> Callable[[], None]:
    """Samples in memory -> features: fbank by kaldi-native-fbank, LFR and CMVN by NumPy."""
    from funasr_onnx.utils.frontend import WavFrontend

    stages = WavFrontend(str(Path(model) / "am.mvn"), lfr_m=7, lfr_n=6, dither=0.0)
    samples = samples_of(path)

    def run() -> None:
        features, _ = stages.fbank(samples)
        stages.lfr_cmvn(features)

    return run


def decode(model: str, rows: str) -> Callable[[], None]:
    """Scores -> ids -> text, as its recogniser does it; no confidence, no entropy."""
    import numpy as np
    from funasr_onnx.utils.sentencepiece_tokenizer import SentencepiecesTokenizer

    tokenizer = SentencepiecesTokenizer(
        bpemodel=str(Path(model) / "chn_jpn_yue_eng_ko_spectok.bpe.model")
    )
    values = scores(int(rows), 25055)

    def run() -> None:
        ids = np.argmax(values, axis=-1)
        ids = ids[np.concatenate(([True], np.diff(ids) != 0))]
        tokenizer.decode(ids[ids != 0].tolist())

    return run


def answers(model: str, threads: str) -> Callable[[str], str]:
    """The best id of every row of a file, as JSON."""
    program = load(model, threads)

    def run(path: str) -> str:
        import numpy as np

        features, lengths = program.extract_feat([samples_of(path)])
        language, itn = np.array([0], np.int32), np.array([15], np.int32)
        values, rows = program.infer(features, lengths, language, itn)
        return json.dumps(values[0, : int(rows[0])].argmax(axis=-1).tolist())

    return run
