"""A small network of SenseVoice's shape: four prompt rows, SAN-M blocks with FSMN memory, CTC.

Parameter names follow FunASR (`encoder.encoders0.0.self_attn.linear_q_k_v.weight`, ...).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the customary name
from torch import Tensor, nn

from features import ROW_WIDTH

PROMPT_ROWS = 4
LANGUAGE_PROMPTS = {"auto": 0, "zh": 3, "en": 4, "yue": 7, "ja": 11, "ko": 12, "nospeech": 13}
TEXTNORM_PROMPTS = {"withitn": 14, "woitn": 15}
_PROMPT_TABLE_ROWS = 16
_MASKED = -1e4


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of the network.

    Attributes:
        vocabulary: pieces of the output head.
        small_vocabulary: pieces of the training-only head in the middle; 0 for none.
        width: model dimension.
        heads: attention heads.
        feed_forward: inner width of the feed-forward part.
        memory: taps of the FSMN memory, odd.
        blocks: encoder blocks before `after_norm`.
        top_blocks: blocks after it (`tp_encoders`).
        drop_path: probability to skip the last block, per sample; earlier blocks less.
    """

    vocabulary: int
    small_vocabulary: int
    width: int = 160
    heads: int = 4
    feed_forward: int = 640
    memory: int = 11
    blocks: int = 6
    top_blocks: int = 2
    drop_path: float = 0.02


class SanmAttention(nn.Module):
    """Self-attention plus a depth-wise convolution over the values (FSMN memory)."""

    def __init__(self, width_in: int, config: NetworkConfig) -> None:
        super().__init__()
        self.heads, self.memory, self.width = config.heads, config.memory, config.width
        self.linear_q_k_v = nn.Linear(width_in, 3 * config.width)
        self.linear_out = nn.Linear(config.width, config.width)
        self.fsmn_block = nn.Conv1d(
            config.width, config.width, config.memory, groups=config.width, bias=False
        )

    def _remember(self, values: Tensor) -> Tensor:
        """Depth-wise convolution over time of (B, T, width)."""
        before = (self.memory - 1) // 2
        after = self.memory - 1 - before
        if torch.onnx.is_in_onnx_export():
            return self.fsmn_block(F.pad(values.transpose(1, 2), (before, after))).transpose(1, 2)
        # The same as a channels-last 2-d convolution: twice as fast on a CPU.
        padded = F.pad(values, (0, 0, before, after)).transpose(1, 2).unsqueeze(2)
        weight = self.fsmn_block.weight.unsqueeze(2)
        return F.conv2d(padded, weight, groups=self.width).squeeze(2).transpose(1, 2)

    def _split_heads(self, values: Tensor) -> Tensor:
        batch, rows, _ = values.shape
        return values.reshape(batch, rows, self.heads, self.width // self.heads).transpose(1, 2)

    def forward(self, hidden: Tensor, keep: Tensor, bias: Tensor) -> Tensor:
        """(B, T, width) from (B, T, width_in); `keep` (B, T, 1) is 1 on real rows."""
        query, key, value = self.linear_q_k_v(hidden).split(self.width, -1)
        kept = value * keep
        memory = (self._remember(kept) + kept) * keep
        scale = (self.width // self.heads) ** -0.5
        scores = torch.matmul(
            self._split_heads(query) * scale, self._split_heads(key).transpose(2, 3)
        )
        weights = torch.softmax(scores + bias, -1).to(value.dtype)
        mixed = torch.matmul(weights, self._split_heads(value)).transpose(1, 2)
        return self.linear_out(mixed.reshape(*value.shape)) + memory


class FeedForward(nn.Module):
    """Two linear maps with a ReLU between them."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.w_1 = nn.Linear(config.width, config.feed_forward)
        self.w_2 = nn.Linear(config.feed_forward, config.width)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, T, width) to the same shape."""
        return self.w_2(F.relu(self.w_1(hidden)))


class SanmBlock(nn.Module):
    """Pre-norm attention and feed-forward; the first block changes the width, without residual."""

    def __init__(self, width_in: int, config: NetworkConfig, drop_path: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width_in)
        self.norm2 = nn.LayerNorm(config.width)
        self.self_attn = SanmAttention(width_in, config)
        self.feed_forward = FeedForward(config)
        self.residual = width_in == config.width
        self.drop_path = drop_path

    def _maybe_drop(self, branch: Tensor) -> Tensor:
        if not self.training or self.drop_path == 0:
            return branch
        kept = torch.rand(branch.shape[0], 1, 1) >= self.drop_path
        return branch * kept.to(branch.dtype) / (1 - self.drop_path)

    def forward(self, hidden: Tensor, keep: Tensor, bias: Tensor) -> Tensor:
        """(B, T, width) from (B, T, width_in)."""
        attended = self.self_attn(self.norm1(hidden), keep, bias)
        hidden = hidden + self._maybe_drop(attended) if self.residual else attended
        return hidden + self._maybe_drop(self.feed_forward(self.norm2(hidden)))


def sinusoid_positions(rows: int, width: int) -> Tensor:
    """float32 (rows, width), positions counted from 1, sines before cosines."""
    half = width // 2
    slope = math.log(10000.0) / (half - 1)
    inverse = torch.exp(torch.arange(half, dtype=torch.float32) * -slope)
    angle = torch.arange(1, rows + 1, dtype=torch.float32)[:, None] * inverse[None]
    return torch.cat([angle.sin(), angle.cos()], 1)


class SanmEncoder(nn.Module):
    """The blocks, with an extra output after the middle normalisation."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.width = config.width
        total = config.blocks + config.top_blocks
        drops = [config.drop_path * index / (total - 1) for index in range(total)]
        self.encoders0 = nn.ModuleList([SanmBlock(ROW_WIDTH, config, drops[0])])
        self.encoders = nn.ModuleList(
            SanmBlock(config.width, config, drop) for drop in drops[1 : config.blocks]
        )
        self.after_norm = nn.LayerNorm(config.width)
        self.tp_encoders = nn.ModuleList(
            SanmBlock(config.width, config, drop) for drop in drops[config.blocks :]
        )
        self.tp_norm = nn.LayerNorm(config.width)

    def forward(self, rows: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Final and middle states, both (B, T, width), of (B, T, 560) with `lengths` real rows."""
        count = rows.shape[1]
        hidden = rows * self.width**0.5 + sinusoid_positions(count, ROW_WIDTH).unsqueeze(0)
        real = (torch.arange(count).unsqueeze(0) < lengths.unsqueeze(1)).float()
        keep = real.unsqueeze(2)
        bias = ((1 - real) * _MASKED)[:, None, None, :]
        if torch.is_autocast_enabled("cpu"):
            keep, bias = keep.bfloat16(), bias.bfloat16()
        for block in [*self.encoders0, *self.encoders]:
            hidden = block(hidden, keep, bias)
        middle = self.after_norm(hidden)
        hidden = middle
        for block in self.tp_encoders:
            hidden = block(hidden, keep, bias)
        return self.tp_norm(hidden), middle


class CtcHead(nn.Module):
    """A linear map from states to pieces."""

    def __init__(self, width: int, pieces: int) -> None:
        super().__init__()
        self.ctc_lo = nn.Linear(width, pieces)

    def forward(self, states: Tensor) -> Tensor:
        """Logits (B, T, pieces)."""
        return self.ctc_lo(states)


class TinySenseVoice(nn.Module):
    """Prompts, encoder, and the CTC head; `small_ctc` serves training only."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(_PROMPT_TABLE_ROWS, ROW_WIDTH)
        self.encoder = SanmEncoder(config)
        self.ctc = CtcHead(config.width, config.vocabulary)
        self.small_ctc = CtcHead(config.width, config.small_vocabulary)

    def _states(
        self, speech: Tensor, lengths: Tensor, language: Tensor, textnorm: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch = speech.shape[0]
        event_emotion = torch.tensor([1, 2]).unsqueeze(0).expand(batch, 2)
        prompts = [
            self.embed(language.long()).unsqueeze(1),
            self.embed(event_emotion),
            self.embed(textnorm.long()).unsqueeze(1),
        ]
        rows = torch.cat([*prompts, speech], 1)
        out_lengths = lengths.long() + PROMPT_ROWS
        states, middle = self.encoder(rows, out_lengths)
        return states, middle, out_lengths

    def forward(
        self, speech: Tensor, lengths: Tensor, language: Tensor, textnorm: Tensor
    ) -> tuple[Tensor, Tensor]:
        """What the exported model computes.

        Args:
            speech: float32 (B, T, 560), normalised rows.
            lengths: integer (B,), real rows.
            language: integer (B,), a value of `LANGUAGE_PROMPTS`.
            textnorm: integer (B,), a value of `TEXTNORM_PROMPTS`.

        Returns:
            Logits (B, T + 4, pieces) and int32 lengths (B,), real rows + 4.
        """
        states, _, out_lengths = self._states(speech, lengths, language, textnorm)
        return self.ctc(states), out_lengths.to(torch.int32)

    def training_logits(
        self, speech: Tensor, lengths: Tensor, language: Tensor, textnorm: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Logits of the output head and of the middle head of small pieces."""
        states, middle, _ = self._states(speech, lengths, language, textnorm)
        return self.ctc(states), self.small_ctc(middle)
