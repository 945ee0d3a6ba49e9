"""Sound in blocks is the sound, whatever it comes from."""

import io
import itertools
from pathlib import Path

import numpy as np
import pytest
import soundfile

from asr import Audio, UsageError, audio
from asr.audio import Reader, Resampler
from asr.audio.sound import BLOCK_SAMPLES


def noise(frames, channels=1):
    rng = np.random.default_rng(frames)
    return (rng.standard_normal((frames, channels)) * 0.1).astype(np.float32).squeeze()


def content(samples, rate=16000, kind="WAV"):
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype="PCM_16")
    return file.getvalue()


def open_files():
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def everything(reader, limit_s=20):
    """All blocks, the head first."""
    blocks = [reader.head(limit_s)]
    while (block := reader.next()) is not None:
        blocks.append(block)
    return blocks


RAW = audio.RawFormat.parse("s16le,16000,2")
LONG = BLOCK_SAMPLES * 5 // 2


@pytest.mark.parametrize(
    ("source", "options"),
    [
        (content(noise(LONG)), {}),
        (content(noise(LONG // 2, 2), kind="FLAC"), {}),
        (content(noise(LONG // 2, 2)), {"channel": 2}),
        (content(noise(LONG // 2, 2))[44:], {"raw": RAW}),
        (noise(LONG), {"sample_rate": 16000}),
        (Audio(noise(LONG), 16000, "made"), {}),
    ],
    ids=["wav", "flac", "channel", "raw", "array", "audio"],
)
def test_joined_blocks_are_what_read_returns(source, options):
    """Sample for sample; no block is larger than a MiB of samples."""
    whole = audio.read(source, **options)
    reader = Reader(source, **options)
    blocks = everything(reader)
    assert len(blocks) >= 2
    assert np.array_equal(np.concatenate([b.samples for b in blocks]), whole.samples)
    assert all(len(b.samples) <= BLOCK_SAMPLES for b in blocks)
    assert {(b.sample_rate_hz, b.source) for b in blocks} == {(16000, whole.source)}
    assert reader.read_s == whole.duration_s


def test_channels_that_cancel_in_a_later_block_are_heard():
    """The rule looks at what came before: a wire that turns round after a minute is heard too."""
    both = noise(BLOCK_SAMPLES, 2)
    both[:, 1] = both[:, 0]
    both[BLOCK_SAMPLES // 2 :, 1] *= -1
    told = []
    blocks = everything(Reader(both, 16000, warn=told.append))
    file = everything(Reader(content(both), warn=told.append))
    assert sum(len(b.samples) for b in blocks) == BLOCK_SAMPLES
    levels = [float(np.sqrt(np.mean(b.samples**2))) for b in file]
    assert levels == pytest.approx([0.1, 0.1], rel=0.02)
    assert [line.partition(":")[0] for line in told] == ["channels_cancel"]


def test_a_short_sound_is_the_head_and_its_file_is_closed():
    """Exhausted within the head: nothing is left to close."""
    before = open_files()
    reader = Reader(content(noise(16000)))
    assert reader.head(20).duration_s == 1
    assert open_files() == before
    assert reader.next() is None


def test_a_long_one_is_closed_when_told():
    before = open_files()
    reader = Reader(content(noise(LONG)))
    assert 20 < reader.head(20).duration_s <= BLOCK_SAMPLES / 16000
    assert open_files() > before
    reader.close()
    assert open_files() == before


def test_no_samples_are_an_empty_sound():
    for source, rate in ((content(noise(0)), None), (np.zeros(0, np.float32), 16000)):
        reader = Reader(source, rate)
        assert (len(reader.head(20).samples), reader.read_s, reader.next()) == (0, 0, None)


def test_audio_takes_no_further_options():
    with pytest.raises(UsageError, match="expected Audio without further options"):
        Reader(Audio(noise(9), 16000, "made"), channel=1)


@pytest.mark.parametrize("rate", [8000, 44100, 48000, 16000])
def test_resampling_in_blocks_is_resampling_at_once(rate):
    """To rounding, and with the same number of samples."""
    sound = Audio(noise(rate * 3 + 17), rate, "made")
    expected = audio.resample(sound, 16000).samples
    resampler = Resampler(16000)
    places = [0, 1, 700, rate, rate, 2 * rate, len(sound.samples)]
    parts = [
        resampler.feed(Audio(sound.samples[a:b], rate, "made"), b == places[-1]).samples
        for a, b in itertools.pairwise(places)
    ]
    joined = np.concatenate(parts)
    assert len(joined) == len(expected)
    assert np.abs(joined - expected).max() < 1e-5
