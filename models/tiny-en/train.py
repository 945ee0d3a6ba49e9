"""Trains the network on the CPU, resumably; see README.md for the recipe.

A main run (`--run R`) starts anew, or continues from R/state.pt if that exists, or from the
weights of `--init`. A decay branch (`--decay-from STATE --decay-steps N`) ends after N steps.
Killed at any moment it continues from its last state when started with the same arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor

import checkpoint
from batches import Batch, BatchMaker
from checkpoint import Progress, State
from features import FRAME_SHIFT_MS, STRIDE, Normaliser
from network import PROMPT_ROWS, NetworkConfig, TinySenseVoice
from optimiser import Optimiser
from pieces import Pieces
from progress_log import ProgressLog
from rounds import TrainingSet
from schedule import Schedule
from validation import ValidationSets

MIDDLE_WEIGHT, TAG_WEIGHT = 0.3, 0.15
CLIP = 1.0
NORMALISER_FRAMES = 400_000


def parse_options() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="folder with cache and pieces")
    parser.add_argument("--run", type=Path, required=True, help="folder for state.pt and log.tsv")
    parser.add_argument("--init", type=Path, help="start from these weights, fresh optimiser")
    parser.add_argument("--decay-from", type=Path, help="full state to branch off")
    parser.add_argument("--decay-steps", type=int, default=0)
    parser.add_argument("--stop-at", type=int, default=10**9, help="end a main run at this step")
    parser.add_argument("--learning-rate", type=float, default=1.5e-3)
    parser.add_argument("--warm-up", type=int, default=300)
    parser.add_argument("--words-until", type=int, default=700)
    parser.add_argument("--short-until", type=int, default=1000)
    parser.add_argument("--mild-until", type=int, default=20000)
    parser.add_argument("--strong-from", type=int, default=40000)
    parser.add_argument("--batch-rows", type=int, default=1500, help="60 ms rows in a batch")
    parser.add_argument("--width", type=int, default=160)
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--top-blocks", type=int, default=2)
    parser.add_argument("--drop-path", type=float, default=0.02)
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--validate-every", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def new_state(options: argparse.Namespace, data: TrainingSet) -> State:
    """Random weights and measured normalisation."""
    pieces = Pieces((options.work / "bpe.model").read_bytes())
    small_pieces = Pieces((options.work / "bpe_small.model").read_bytes())
    config = NetworkConfig(
        vocabulary=len(pieces),
        small_vocabulary=len(small_pieces),
        width=options.width,
        feed_forward=4 * options.width,
        blocks=options.blocks,
        top_blocks=options.top_blocks,
        drop_path=options.drop_path,
    )
    normaliser = Normaliser.measure(data.training_frames(NORMALISER_FRAMES))
    return State(TinySenseVoice(config), pieces, small_pieces, normaliser, Progress())


def start_state(options: argparse.Namespace, data: TrainingSet) -> tuple[State, int]:
    """The state to continue from, and the step at which the learning-rate schedule began."""
    own = options.run / "state.pt"
    source = own if own.exists() else options.decay_from or options.init
    state = checkpoint.load(source) if source else new_state(options, data)
    progress = state.progress
    if options.decay_from:
        if progress.decay_began < 0:
            progress.decay_began = progress.step
        return state, progress.decay_began
    progress.decay_began = -1
    warmed_up = state.optimiser is not None
    return state, progress.step - options.warm_up if warmed_up else progress.step


def ctc_loss(logits: Tensor, lengths: Tensor, targets: list[list[int]]) -> Tensor:
    """Mean loss per piece of logits (B, 4 + T, pieces), prompt rows ignored."""
    flat = torch.tensor([piece for target in targets for piece in target], dtype=torch.long)
    sizes = torch.tensor([len(target) for target in targets])
    log_probabilities = logits[:, PROMPT_ROWS:].float().log_softmax(-1).transpose(0, 1)
    total = F.ctc_loss(log_probabilities, flat, lengths, sizes, reduction="sum", zero_infinity=True)
    return total / max(1, int(sizes.sum()))


def losses(model: TinySenseVoice, batch: Batch) -> dict[str, Tensor]:
    """The three parts of the loss, bf16 where autocast chooses it."""
    lengths = torch.from_numpy(batch.lengths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits, small_logits = model.training_logits(
            torch.from_numpy(batch.rows),
            lengths,
            torch.from_numpy(batch.languages),
            torch.from_numpy(batch.textnorms),
        )
    prompt_logits = logits[:, :PROMPT_ROWS].float().flatten(0, 1)
    return {
        "ctc": ctc_loss(logits, lengths, batch.targets),
        "small_ctc": ctc_loss(small_logits, lengths, batch.small_targets),
        "tags": F.cross_entropy(prompt_logits, torch.from_numpy(batch.tags).flatten()),
    }


class Trainer:
    """One process of training."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._data = TrainingSet(options.work / "cache")
        self._state, first_step = start_state(options, self._data)
        self._schedule = Schedule(
            options.learning_rate,
            first_step,
            options.warm_up,
            options.decay_steps,
            options.words_until,
            options.short_until,
            options.mild_until,
            options.strong_from,
        )
        self._optimiser = Optimiser(self._state.model, self._state.optimiser)
        self._validation = ValidationSets(options.work / "cache", self._state.normaliser)
        self._log = ProgressLog(options.run / "log.tsv", self._state.progress.audio_hours)
        self._maker = BatchMaker(
            self._data,
            self._state.pieces,
            self._state.small_pieces,
            self._state.normaliser,
            options.batch_rows,
        )

    def run(self) -> None:
        """Trains until the schedule or --stop-at ends it."""
        last = min(self._schedule.last_step or 10**9, self._options.stop_at)
        self._state.model.train()
        for stage, strength, batch in self._endless_batches():
            self._step(batch)
            self._report(stage, strength)
            if self._state.progress.step >= last:
                break
        self._save()

    def _endless_batches(self) -> Iterator[tuple[str, float, Batch]]:
        progress = self._state.progress
        while True:
            stage = self._schedule.stage(progress.step)
            strength = self._schedule.strength(progress.step)
            seed = (self._options.seed, progress.round_number)
            for batch in self._maker.batches_of_round(stage, strength, seed):
                yield stage, strength, batch
            progress.round_number += 1

    def _step(self, batch: Batch) -> None:
        progress = self._state.progress
        parts = losses(self._state.model, batch)
        loss = (1 - MIDDLE_WEIGHT) * parts["ctc"] + MIDDLE_WEIGHT * parts["small_ctc"]
        loss = loss + TAG_WEIGHT * parts["tags"]
        self._optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._state.model.parameters(), CLIP, foreach=True)
        self._optimiser.step(self._schedule.learning_rate(progress.step))
        progress.step += 1
        progress.audio_hours += float(batch.lengths.sum()) * STRIDE * FRAME_SHIFT_MS / 3_600_000
        self._log.add_losses({name: value.item() for name, value in parts.items()})

    def _report(self, stage: str, strength: float) -> None:
        options, progress = self._options, self._state.progress
        if progress.step % options.save_every == 0:
            self._save()
        ended = progress.step == self._schedule.last_step
        validate = progress.step % options.validate_every == 0 or ended
        if not validate and progress.step % options.log_every:
            return
        dev = self._validation.measure(self._state.model, self._state.pieces) if validate else {}
        facts = {
            "step": progress.step,
            "round": progress.round_number,
            "stage": stage,
            "strength": f"{strength:.2f}",
            "learning_rate": f"{self._schedule.learning_rate(progress.step - 1):.2e}",
        }
        self._log.write(facts, progress.audio_hours, dev)

    def _save(self) -> None:
        self._state.optimiser = self._optimiser.state_dict()
        checkpoint.save(self._state, self._options.run / "state.pt")


def main() -> None:
    """Command line."""
    options = parse_options()
    torch.set_num_threads(options.threads)
    torch.set_flush_denormal(True)
    torch.manual_seed(options.seed)
    Trainer(options).run()


if __name__ == "__main__":
    main()
