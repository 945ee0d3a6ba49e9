"""The pinned independent implementations: kaldi-native-fbank and funasr-onnx.

Runs only in the environment of `golden/requirements.txt`, so the packages are imported where they
are used. Nothing here may import `asr`: an expected value never comes from our own code.
"""

import contextlib
import io
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from golden import float64

Float32 = NDArray[np.float32]

PINNED = {"kaldi-native-fbank": "1.23.0", "funasr-onnx": "0.4.3"}
# funasr-onnx knows its tokenizer only under the file name of the original model.
FUNASR_TOKENIZER = "chn_jpn_yue_eng_ko_spectok.bpe.model"


def versions() -> dict[str, str]:
    """Return the versions that decide the expected values; refuse any but the pinned ones."""
    for name, wanted in PINNED.items():
        if version(name) != wanted:
            raise SystemExit(f"{name}: wanted {wanted}, found {version(name)}")
    named = [*PINNED, "onnxruntime", "sentencepiece", "numpy"]
    return {name: version(name) for name in named}


def knf_fbank(samples: Float32) -> Float32:
    """Run kaldi-native-fbank: float32 (num_frames, 80) log-mel of samples of full scale +-1.0."""
    import kaldi_native_fbank as knf

    options = knf.FbankOptions()
    options.frame_opts.samp_freq = 16000
    options.frame_opts.frame_length_ms = 25.0
    options.frame_opts.frame_shift_ms = 10.0
    options.frame_opts.window_type = "hamming"
    options.frame_opts.dither = 0.0
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = 80
    options.mel_opts.low_freq = 20.0
    options.mel_opts.high_freq = 8000.0
    computer = knf.OnlineFbank(options)
    computer.accept_waveform(16000, (samples * np.float32(32768)).tolist())
    computer.input_finished()
    rows = [computer.get_frame(i) for i in range(computer.num_frames_ready)]
    return np.array(rows, np.float32).reshape(len(rows), 80)


class FunAsr:
    """funasr-onnx on a model directory of ours, with every array on its way kept."""

    def __init__(self, model_dir: Path) -> None:
        """Copy the directory, name the tokenizer as funasr-onnx expects it, load on one thread.

        Dither is forced to 0, whatever config.yaml says: the default of funasr-onnx is 1.0, which
        makes every run different.
        """
        from funasr_onnx import SenseVoiceSmall

        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name) / "model"
        shutil.copytree(model_dir, folder)
        (tokenizer,) = folder.glob("*.bpe.model")
        tokenizer.rename(folder / FUNASR_TOKENIZER)
        self._model = SenseVoiceSmall(str(folder), quantize=True, intra_op_num_threads=1)
        self.front_end = self._model.frontend
        self.front_end.opts.frame_opts.dither = 0.0

    def features(self, samples: Float32) -> tuple[Float32, Float32 | None, Float32 | None]:
        """Run its front end: fbank float32 (T, 80), lfr and cmvn float32 (ceil(T/6), 560).

        None for lfr and cmvn of a clip without a frame: funasr-onnx raises there.
        """
        fbank, _ = self.front_end.fbank(samples)
        if not len(fbank):
            return fbank, None, None
        lfr = self.front_end.apply_lfr(fbank, self.front_end.lfr_m, self.front_end.lfr_n)
        # funasr-onnx computes CMVN in float64 and rounds when it stacks the batch.
        return fbank, lfr, self.front_end.apply_cmvn(lfr).astype(np.float32)

    def ids_of(self, features: np.ndarray) -> np.ndarray:
        """Decode normalised features float32 (rows, 560): token ids, tag rows left out."""
        lengths = np.array([len(features)], np.int32)
        logits, _ = self._model.infer(
            features[np.newaxis].astype(np.float32),
            lengths,
            np.array([self._model.lid_dict["auto"]], np.int32),
            np.array([self._model.textnorm_dict["woitn"]], np.int32),
        )
        return float64.greedy(logits[0])["token_ids"]

    def is_stable(self, samples: Float32, trials: int, noise: float) -> bool:
        """Say whether the ids survive another exact front end, and a little noise on features."""
        _, _, features = self.features(samples)
        wanted = self.ids_of(features)
        exact = float64.cmvn(float64.lfr(float64.fbank(samples)), *self.front_end.cmvn)
        words = np.random.PCG64(0).random_raw(trials * features.size).astype(np.float64)
        shifts = noise * (words * 2.0**-63 - 1.0).reshape(trials, *features.shape)
        others = [exact, *(features + shift for shift in shifts)]
        return all(np.array_equal(self.ids_of(other), wanted) for other in others)

    def transcribe(self, samples: Float32) -> tuple[Float32, list[int], str]:
        """Call the model as a user would: language auto, no ITN.

        Returns:
            logits float32 (4 + rows, vocab), token ids with the tag rows, text with the tags.
        """
        kept: dict[str, Any] = {}
        infer, tokenizer = self._model.infer, self._model.tokenizer

        def keep_logits(*inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            logits, lengths = infer(*inputs)
            kept["logits"] = logits[0, : int(lengths[0])]
            return logits, lengths

        class KeepIds:
            def decode(self, ids: list[int]) -> str:
                kept["ids"] = list(ids)
                return tokenizer.decode(ids)

        self._model.infer, self._model.tokenizer = keep_logits, KeepIds()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                (text,) = self._model(samples, language="auto", textnorm="woitn")
        finally:
            self._model.infer, self._model.tokenizer = infer, tokenizer
        return kept["logits"], kept["ids"], text
