"""Cuts single spoken words out of training sentences with a trained model, as the cache `cuts`.

Recordings of single digits and commands are few, sentences with these words are many. CTC says in
which row a word's pieces are likeliest; the cut is placed at the quietest frame between it and its
neighbours, and kept if the model gives that word a fair chance in the cut: to keep only what it
hears already would leave out the speakers it has yet to learn.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the customary name

import checkpoint
from cache import FeatureCache, write_cache
from checkpoint import State
from corpus import COMMANDS, DIGITS, Clip
from features import STRIDE, model_input
from network import LANGUAGE_PROMPTS, PROMPT_ROWS, TEXTNORM_PROMPTS
from pieces import BLANK

WORDS = frozenset(DIGITS) | frozenset(COMMANDS)
SOURCES = ("grid_s1", "speechocean762", "kathleen")
MAX_PER_WORD_AND_SOURCE = 400
MIN_FRAMES, MAX_FRAMES = 16, 70
LEAST_PROBABILITY = 0.01
"""Of the word, given its cut. A cut at the wrong place has far less."""
EDGE_FRAMES = 12
"""How far before the first and behind the last word of a clip a cut may reach."""


def align(log_probabilities: np.ndarray, pieces: list[int]) -> list[tuple[int, int]]:
    """The likeliest first and last row of every piece.

    Args:
        log_probabilities: float32 (rows, vocabulary).
        pieces: what is said; at most as many as rows allow.

    Returns:
        One (first, last) pair per piece; empty if no alignment exists.
    """
    states = [BLANK]
    for piece in pieces:
        states += [piece, BLANK]
    count = len(states)
    skips = [k >= 2 and states[k] not in (BLANK, states[k - 2]) for k in range(count)]
    rows = len(log_probabilities)
    best = np.full(count, -np.inf)
    best[:2] = log_probabilities[0, states[:2]]
    came_from = np.zeros((rows, count), np.int64)
    for row in range(1, rows):
        choices = np.full((3, count), -np.inf)
        choices[0] = best
        choices[1, 1:] = best[:-1]
        choices[2, 2:] = np.where(skips[2:], best[:-2], -np.inf)
        back = choices.argmax(0)
        came_from[row] = np.arange(count) - back
        best = choices[back, np.arange(count)] + log_probabilities[row, states]
    state = count - 1 if best[-1] >= best[-2] else count - 2
    if not np.isfinite(best[state]):
        return []
    spans: dict[int, tuple[int, int]] = {}
    for row in range(rows - 1, -1, -1):
        if state % 2:
            spans[state // 2] = (row, spans.get(state // 2, (row, row))[1])
        state = came_from[row, state]
    return [spans[index] for index in range(len(pieces))]


@torch.no_grad()
def log_probabilities(state: State, rows: np.ndarray) -> np.ndarray:
    """float32 (rows, vocabulary) of one clip's model input (rows, 560)."""
    logits, _ = state.model(
        torch.from_numpy(rows)[None],
        torch.tensor([len(rows)]),
        torch.tensor([LANGUAGE_PROMPTS["en"]]),
        torch.tensor([TEXTNORM_PROMPTS["woitn"]]),
    )
    return logits[0, PROMPT_ROWS:].log_softmax(-1).numpy()


def probability(state: State, frames: np.ndarray, word: str) -> float:
    """What CTC gives the word, given the cut alone."""
    rows = log_probabilities(state, model_input(frames, state.normaliser))
    pieces = state.pieces.encode(word)
    loss = F.ctc_loss(
        torch.from_numpy(rows)[:, None],
        torch.tensor([pieces]),
        torch.tensor([len(rows)]),
        torch.tensor([len(pieces)]),
        reduction="sum",
    )
    return float(torch.exp(-loss))


def word_cuts(state: State, frames: np.ndarray, text: str) -> list[tuple[str, np.ndarray]]:
    """(word, float32 (frames, 80)) for the wanted words of one clip."""
    words = text.split()
    pieces = [state.pieces.encode(word) for word in words]
    flat = [piece for word in pieces for piece in word]
    if flat != state.pieces.encode(text):
        return []
    spans = align(log_probabilities(state, model_input(frames, state.normaliser)), flat)
    if not spans:
        return []
    starts, ends, place = [], [], 0
    for word in pieces:
        starts.append(spans[place][0] * STRIDE)
        place += len(word)
        ends.append(spans[place - 1][1] * STRIDE)
    loudness = frames.mean(1)
    borders = [max(0, starts[0] - EDGE_FRAMES)]
    for end, start in zip(ends[:-1], starts[1:], strict=True):
        middle = slice(min(end + 2, start), max(start, end + 3))
        borders.append(middle.start + int(np.argmin(loudness[middle])))
    borders.append(min(len(frames), ends[-1] + EDGE_FRAMES + STRIDE))
    return [
        (word, frames[borders[index] : borders[index + 1]])
        for index, word in enumerate(words)
        if word in WORDS and MIN_FRAMES <= borders[index + 1] - borders[index] <= MAX_FRAMES
    ]


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder with cache/")
    parser.add_argument("--state", type=Path, required=True, help="a trained state")
    options = parser.parse_args()
    torch.set_num_threads(1)
    state = checkpoint.load(options.state)
    state.model.eval()
    speech = FeatureCache(options.work / "cache" / "speech")
    found: list[tuple[Clip, np.ndarray]] = []
    for index, clip in enumerate(speech.clips):
        wanted = WORDS.intersection(clip.text.split())
        if clip.split != "train" or clip.source not in SOURCES or not wanted:
            continue
        for word, frames in word_cuts(state, speech[index], clip.text):
            name = f"{clip.path}#{len(found)}"
            found.append((Clip(name, clip.speaker, word, "cuts", "train"), frames))
    kept, counts = [], Counter()
    for clip, frames in found:
        key = (clip.text, clip.path.split("/", 1)[0])
        likely = probability(state, frames, clip.text) >= LEAST_PROBABILITY
        if likely and counts[key] < MAX_PER_WORD_AND_SOURCE:
            counts[key] += 1
            kept.append((clip, frames))
    write_cache(
        options.work / "cache" / "cuts",
        [clip for clip, _ in kept],
        [frames.astype(np.float16) for _, frames in kept],
    )
    print(f"{len(kept)} of {len(found)} cuts kept:", dict(Counter(c.text for c, _ in kept)))


if __name__ == "__main__":
    main()
