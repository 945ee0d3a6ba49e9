"""Long Audio -> pieces that the network can hear in one call, with their offsets."""

import numpy as np

from asr.records import Audio, Float32

#: Attention grows with the square of the length: beyond this a call gets slow and large.
MAX_PIECE_S = 30.0
#: How far before the limit a cut may fall.
SEARCH_S = 10.0
#: A cut falls into the middle of the quietest stretch of this length.
PAUSE_S = 0.2


def split(audio: Audio, max_piece_s: float) -> list[tuple[float, Audio]]:
    """Cut long sound at its quietest places.

    Args:
        audio: of any length.
        max_piece_s: no piece is longer.

    Returns:
        (offset in seconds, piece) in order. Pieces share the audio's memory; joined they are the
        audio, sample for sample.
    """
    rate = audio.sample_rate_hz
    limit, search = int(max_piece_s * rate), int(min(SEARCH_S, max_piece_s / 2) * rate)
    pause = max(1, min(int(PAUSE_S * rate), search))
    samples, start = audio.samples, 0
    pieces = []
    while len(samples) - start > limit:
        end = _quietest(samples[start + limit - search : start + limit], pause)
        end += start + limit - search
        pieces.append((start / rate, Audio(samples[start:end], rate, audio.source)))
        start = end
    pieces.append((start / rate, Audio(samples[start:], rate, audio.source)))
    return pieces


def _quietest(samples: Float32, pause: int) -> int:
    """Middle of the stretch of ``pause`` samples with the least energy, on a half-stretch grid."""
    hop = max(1, pause // 2)
    blocks = samples[: len(samples) // hop * hop].reshape(-1, hop)
    energy = np.einsum("ij,ij->i", blocks, blocks, dtype=np.float64)
    both = energy[:-1] + energy[1:] if len(energy) > 1 else energy
    return min((int(np.argmin(both)) + 1) * hop, len(samples))
