"""Long sound is cut at quiet places; the pieces are the sound."""

from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from asr import Audio, Recognizer
from asr.observe import Timer
from asr.segment import MAX_PIECE_S, split

RATE = 16000
CLIP = Path(__file__).parent.parent / "golden/audio/transcribe_me.wav"


def audio(samples):
    return Audio(np.asarray(samples, np.float32), RATE, "test")


@given(st.integers(0, 5 * RATE), st.floats(0.05, 2.0))
def test_joined_pieces_are_the_audio(num_samples, max_piece_s):
    """Nothing is lost, doubled or longer than asked, and offsets say where a piece begins."""
    whole = audio(np.random.default_rng(num_samples).standard_normal(num_samples) * 0.1)
    pieces = split(whole, max_piece_s)
    assert np.array_equal(whole.samples, np.concatenate([p.samples for _, p in pieces]))
    assert max(len(p.samples) for _, p in pieces) <= max(1, int(max_piece_s * RATE))
    position = 0
    for offset_s, piece in pieces:
        assert position == round(offset_s * RATE)
        position += len(piece.samples)


def test_a_cut_falls_into_the_pause():
    """The only pause within reach of the limit is where the cut goes."""
    rng = np.random.default_rng(0)
    samples = rng.standard_normal(50 * RATE) * 0.1
    samples[24 * RATE : 24 * RATE + RATE // 2] *= 0.001
    (_, first), _ = split(audio(samples), MAX_PIECE_S)
    assert 24.0 < first.duration_s < 24.5


def test_pieces_share_memory():
    """Cutting copies no samples."""
    whole = audio(np.zeros(70 * RATE))
    assert all(np.shares_memory(p.samples, whole.samples) for _, p in split(whole, MAX_PIECE_S))


def test_long_sound_is_heard_piece_by_piece():
    """A source of 70 s gives the words of its pieces, in order, with times of the whole source."""
    clip, _ = soundfile.read(CLIP, dtype="float32")
    rng = np.random.default_rng(1)
    parts = [np.pad(clip, (0, int(rng.integers(2000, 16000)))) for _ in range(20)]
    samples = np.concatenate(parts)
    recognizer = Recognizer.load(threads=1)
    timer = Timer()
    whole = recognizer.transcribe(samples, sample_rate=RATE, observer=timer)
    expected = []
    pieces = split(audio(samples), MAX_PIECE_S)
    for offset_s, piece in pieces:
        alone = recognizer.transcribe(piece.samples, sample_rate=RATE)
        expected += [(w.text, w.start_s + offset_s) for s in alone.segments for w in s.words]
    found = [(w.text, w.start_s) for s in whole.segments for w in s.words]
    assert [text for text, _ in expected] == [text for text, _ in found]
    assert [start for _, start in expected] == pytest.approx([start for _, start in found])
    assert len(found) >= 60
    assert " ".join(text for text, _ in found) == whole.text
    assert whole.audio_s == len(samples) / RATE
    assert [name for name, _ in timer.steps_ns].count("infer") == len(pieces) >= 3
