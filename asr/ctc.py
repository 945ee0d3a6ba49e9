"""Logits -> Decoded: greedy CTC in one pass, with confidence and entropy."""

from asr import _rust_fe
from asr.records import Decoded, Logits


def greedy(logits: Logits, *, blank_id: int) -> Decoded:
    """Take the best id of each row, collapse runs, drop blanks; report how sure each row was.

    Args:
        logits: float32 (prompt_frames + num_frames, vocab_size); raw scores and
            log-probabilities give the same result.
        blank_id: the CTC blank, 0 in SenseVoice.

    Returns:
        Statistics for every row, tokens from the rows after the prompts.

    Raises:
        DecodeError: a score is NaN or infinite (row and column are named), or ``blank_id`` is
            outside the vocabulary.

    Source: FunASR ``sense_voice/model.py`` ``inference``: collapse first, then drop blanks.
    Deliberate difference: prompt rows yield no tokens, so a run cannot reach across the border.
    """
    arrays = _rust_fe.ctc_greedy(logits.values, blank_id, logits.prompt_frames)
    return Decoded(*arrays, logits.prompt_frames, logits.frame_shift_s)
