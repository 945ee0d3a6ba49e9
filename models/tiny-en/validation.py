"""The validation sets of the training log: unseen speakers, sentences, voices and noises.

Every choice during training rests on these; the test split is not read here.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from cache import FeatureCache
from features import Normaliser, model_input
from network import LANGUAGE_PROMPTS, PROMPT_ROWS, TEXTNORM_PROMPTS, TinySenseVoice
from pieces import Pieces
from scoring import score

SETS = (
    "speech_commands",
    "fsdd",
    "speechocean762",
    "kathleen",
    "wake_words",
    "tts",
    "tts_other",
    "noise",
)
CLIPS_PER_SET = 160
_BATCH_ROWS = 3000


class ValidationSets:
    """Features and texts of at most `CLIPS_PER_SET` validation clips per source."""

    def __init__(self, work: Path, normaliser: Normaliser) -> None:
        found: dict[str, list[tuple[np.ndarray, str]]] = {name: [] for name in SETS}
        for stem in ("speech", "tts", "tts2", "noise"):
            cache = FeatureCache(work / stem)
            by_source: dict[str, list[int]] = {}
            for index, clip in enumerate(cache.clips):
                if clip.split == "dev":
                    by_source.setdefault(clip.source, []).append(index)
            for name, indices in by_source.items():
                chosen = np.random.default_rng(0).permutation(indices)[:CLIPS_PER_SET]
                found[name] += [
                    (model_input(cache[index], normaliser), cache.clips[index].text)
                    for index in chosen
                ]
        self._sets = found

    def measure(self, model: TinySenseVoice, pieces: Pieces) -> dict[str, float]:
        """Word error in percent per set; of noise, clips that gave any text, in percent."""
        model.eval()
        result = {}
        for name, items in self._sets.items():
            heard = transcribe(model, pieces, [rows for rows, _ in items])
            if name == "noise":
                result[name] = 100 * sum(bool(text) for text in heard) / max(1, len(heard))
            else:
                pairs = [(said, text) for (_, said), text in zip(items, heard, strict=True)]
                result[name] = score(pairs).word_error_percent
        model.train()
        return result


@torch.no_grad()
def transcribe(model: TinySenseVoice, pieces: Pieces, inputs: list[np.ndarray]) -> list[str]:
    """Greedy text of every float32 (rows, 560), in the same order."""
    texts = [""] * len(inputs)
    order = sorted(range(len(inputs)), key=lambda index: len(inputs[index]))
    while order:
        longest = len(inputs[order[min(63, len(order) - 1)]])
        group, order = (
            order[: max(1, min(64, _BATCH_ROWS // longest))],
            order[max(1, min(64, _BATCH_ROWS // longest)) :],
        )
        lengths = torch.tensor([len(inputs[index]) for index in group])
        rows = torch.zeros(len(group), int(lengths.max()), inputs[group[0]].shape[1])
        for place, index in enumerate(group):
            rows[place, : lengths[place]] = torch.from_numpy(inputs[index])
        language = torch.full((len(group),), LANGUAGE_PROMPTS["auto"])
        textnorm = torch.full((len(group),), TEXTNORM_PROMPTS["woitn"])
        logits, out_lengths = model(rows, lengths, language, textnorm)
        best = logits.argmax(-1).numpy()
        for place, index in enumerate(group):
            texts[index] = pieces.text_of_frames(best[place, PROMPT_ROWS : out_lengths[place]])
    return texts
