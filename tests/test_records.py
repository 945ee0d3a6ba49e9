"""asr.records: each record checks itself once, at birth."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asr
from asr.records import Audio, Features, Logits


def test_audio_knows_its_length_in_seconds():
    """Duration is samples over rate, never a rounded number of frames."""
    assert Audio(np.zeros(24000, np.float32), 16000, "x").duration_s == 1.5


@pytest.mark.parametrize(
    "samples",
    [
        np.zeros(4, np.float64),
        np.zeros(4, np.int16),
        np.zeros((2, 4), np.float32),
        np.float32(0.0).reshape(()),
        np.zeros(8, np.float32)[::2],
    ],
    ids=["float64", "int16", "two axes", "no axis", "strided"],
)
def test_audio_states_what_it_wanted_and_what_came(samples):
    """A wrong dtype, shape or stride is refused with both sides of the mismatch in one line."""
    with pytest.raises(asr.AudioError, match=r"^x: expected contiguous float32 .* found ") as seen:
        Audio(samples, 16000, "x")
    assert str(samples.dtype) in str(seen.value)
    assert str(samples.shape) in str(seen.value)


@given(st.integers(0, 999), st.sampled_from([np.nan, np.inf, -np.inf]))
def test_audio_names_the_first_sample_that_is_no_number(position, value):
    """NaN or infinity is refused by position and value, wherever it stands."""
    samples = np.full(1000, 0.5, np.float32)
    samples[position] = value
    with pytest.raises(asr.AudioError, match=rf"x: sample {position} is {value}"):
        Audio(samples, 16000, "x")


@pytest.mark.parametrize("values", [(np.inf, -np.inf), (np.nan, np.inf), (-np.inf, np.nan)])
def test_audio_refuses_opposite_infinities_without_a_numpy_warning(values):
    """The check itself must not warn: a user would see a line about NumPy's inner sums."""
    samples = np.zeros(1000, np.float32)
    samples[[3, 700]] = values
    with pytest.raises(asr.AudioError, match=f"sample 3 is {values[0]}"):
        Audio(samples, 16000, "x")


def test_audio_accepts_huge_finite_samples_without_a_numpy_warning():
    """Finite is finite, even where the sum of the samples overflows float32."""
    samples = np.full(1000, np.finfo(np.float32).max)
    assert Audio(samples, 16000, "x").samples is samples


def test_audio_does_not_copy():
    """A record is a view of what the reader made: a copy of a long file would double memory."""
    samples = np.zeros(100, np.float32)
    assert np.shares_memory(Audio(samples, 16000, "x").samples, samples)


@pytest.mark.parametrize(
    "values",
    [np.zeros((3, 80)), np.zeros(80, np.float32), np.zeros((4, 160), np.float32)[:, ::2]],
    ids=["float64", "one axis", "strided"],
)
def test_features_refuse_what_rust_cannot_borrow(values):
    """Features are contiguous float32 of two axes, or an error with both sides."""
    with pytest.raises(asr.FrontEndError, match=r"\(num_frames, dim\), found float"):
        Features(values, 0.01)


@pytest.mark.parametrize(
    "values", [np.zeros((5, 7)), np.zeros((1, 5, 7), np.float32)], ids=["float64", "three axes"]
)
def test_logits_refuse_another_type_or_shape(values):
    """Scores are float32 of two axes, or an error with both sides."""
    with pytest.raises(asr.DecodeError, match=r"vocab_size\), found float"):
        Logits(values, 0.06, 4)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_logits_need_a_row_for_each_prompt(count):
    """Fewer rows than prompts cannot be scores of this network."""
    with pytest.raises(asr.DecodeError, match=f"at least 4 rows .* found {count}"):
        Logits(np.zeros((count, 7), np.float32), 0.06, 4)


@pytest.mark.parametrize("name", asr.__all__)
def test_every_public_name_exists(name):
    """What ``asr.__all__`` promises can be imported, and ``dir`` shows it."""
    assert getattr(asr, name).__name__ == name
    assert name in dir(asr)


def test_an_unknown_public_name_is_an_attribute_error():
    """A typing mistake is told as Python tells it, so that ``hasattr`` works."""
    with pytest.raises(AttributeError, match="no attribute 'Recogniser'"):
        _ = asr.Recogniser


@pytest.mark.parametrize("name", ["Audio", "Features", "Logits", "Decoded", "Transcript", "Word"])
def test_records_are_frozen_and_documented(name):
    """No stage may change what another made, and each field is explained where it is declared."""
    record = getattr(asr, name)
    assert record.__dataclass_params__.frozen
    assert "__dict__" not in dir(record)
    for field in dataclasses.fields(record):
        assert f"        {field.name}: " in record.__doc__
