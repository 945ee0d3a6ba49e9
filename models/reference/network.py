"""FunASR's SenseVoiceSmall with seeded random weights."""

from typing import Any

import numpy as np
import torch


def build(
    config: dict[str, Any], vocab_size: int, *, seed: int, head_gain: float, blank_bias: float
) -> torch.nn.Module:
    """Build the network that a config.yaml describes.

    Args:
        config: parsed config.yaml.
        vocab_size: columns of scores.
        seed: the same seed gives the same weights.
        head_gain: factor on the last matrix; random scores are nearly equal, and a factor gives
            the decisions a margin.
        blank_bias: added to the score of id 0, so that blank wins about as often as on speech.
    """
    from funasr.models.sense_voice.model import SenseVoiceSmall

    front_end = config["frontend_conf"]
    torch.manual_seed(seed)
    model = SenseVoiceSmall(
        input_size=front_end["n_mels"] * front_end["lfr_m"],
        vocab_size=vocab_size,
        encoder=config["encoder"],
        encoder_conf=config["encoder_conf"],
        **config["model_conf"],
    ).eval()
    with torch.no_grad():
        model.ctc.ctc_lo.weight.mul_(head_gain)
        model.ctc.ctc_lo.bias[0] += blank_bias
    return model


def forward(
    model: torch.nn.Module,
    features: torch.Tensor,
    lengths: torch.Tensor,
    language: torch.Tensor,
    textnorm: torch.Tensor,
) -> torch.Tensor:
    """Run the network behind its four prompt rows: language, event, emotion, ITN.

    Args:
        model: from ``build``.
        features: float32 (n, t, 560).
        lengths: int32 (n,).
        language: int32 (n,), rows of the prompt embedding.
        textnorm: int32 (n,), likewise.

    Returns:
        logits, float32 (n, 4 + t, vocab_size).
    """
    event_and_emotion = model.embed(torch.tensor([[1, 2]])).repeat(features.size(0), 1, 1)
    prompt = [model.embed(language)[:, None], event_and_emotion, model.embed(textnorm)[:, None]]
    encoded, _ = model.encoder(torch.cat([*prompt, features], dim=1), lengths + 4)
    return model.ctc.ctc_lo(encoded)


def scores(
    model: torch.nn.Module, features: np.ndarray, language: int, textnorm: int
) -> np.ndarray:
    """Logits float32 (4 + t, vocab_size) of features float32 (t, 560), computed by torch."""
    numbers = (torch.tensor([n], dtype=torch.int32) for n in (len(features), language, textnorm))
    with torch.no_grad():
        return forward(model, torch.from_numpy(features)[None], *numbers)[0].numpy()
