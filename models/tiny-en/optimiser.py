"""Two optimisers as one: Muon for the encoder's matrices, AdamW for everything else.

Muon makes the steps of all directions of a matrix equally long. Scaled to the size of AdamW's
steps it takes the same learning rate.
"""

from __future__ import annotations

import torch
from torch import nn

WEIGHT_DECAY, BETAS = 0.02, (0.9, 0.98)


class Optimiser:
    """Both, with one learning rate and one state.

    Args:
        model: the network to train.
        stored: what `state_dict` gave, or None to start afresh.
    """

    def __init__(self, model: nn.Module, stored: dict | None) -> None:
        named = list(model.named_parameters())
        inner = [p for name, p in named if p.ndim == 2 and name.startswith("encoder")]
        outer = [(n, p) for n, p in named if not (p.ndim == 2 and n.startswith("encoder"))]
        decayed = [p for name, p in outer if p.ndim > 1 and not name.startswith("embed")]
        rest = [p for name, p in outer if p.ndim <= 1 or name.startswith("embed")]
        groups = [
            {"params": decayed, "weight_decay": WEIGHT_DECAY},
            {"params": rest, "weight_decay": 0.0},
        ]
        self._parts = {
            "muon": torch.optim.Muon(
                inner, lr=0.0, weight_decay=WEIGHT_DECAY, adjust_lr_fn="match_rms_adamw"
            ),
            "adamw": torch.optim.AdamW(groups, lr=0.0, betas=BETAS, fused=True),
        }
        if stored:
            for name, part in self._parts.items():
                part.load_state_dict(stored[name])

    def zero_grad(self) -> None:
        """Forgets the gradients."""
        for part in self._parts.values():
            part.zero_grad(set_to_none=True)

    def step(self, learning_rate: float) -> None:
        """One update of all weights."""
        for part in self._parts.values():
            for group in part.param_groups:
                group["lr"] = learning_rate
            part.step()

    def state_dict(self) -> dict[str, dict]:
        """What a restart needs."""
        return {name: part.state_dict() for name, part in self._parts.items()}
