"""asr.audio: what libsndfile can decode, or an array, becomes mono float32 at the right rate."""

import math
import os
import re
import struct

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

import asr
from asr import audio
from asr.records import Audio

RATE = 16000


def tone(hz, rate=RATE, seconds=0.5, level=0.5):
    return (level * np.sin(2 * np.pi * hz * np.arange(round(rate * seconds)) / rate)).astype(
        np.float32
    )


MASTER = (tone(440) + 0.2 * tone(1234.5)).astype(np.float32)

# What a step of each encoding can cost. A-law and mu-law: half of their coarsest step.
LOSSLESS = {
    ("WAV", "PCM_U8"): 1 / 127,
    ("WAV", "PCM_16"): 1 / 32767,
    ("WAV", "PCM_24"): 2e-7,
    ("WAV", "PCM_32"): 2e-7,
    ("WAV", "FLOAT"): 0,
    ("WAV", "DOUBLE"): 0,
    ("WAV", "ALAW"): 1 / 50,
    ("WAV", "ULAW"): 1 / 50,
    ("WAVEX", "PCM_U8"): 1 / 127,
    ("WAVEX", "PCM_16"): 1 / 32767,
    ("WAVEX", "PCM_24"): 2e-7,
    ("WAVEX", "PCM_32"): 2e-7,
    ("WAVEX", "FLOAT"): 0,
    ("RF64", "PCM_16"): 1 / 32767,
    ("W64", "PCM_16"): 1 / 32767,
    ("AIFF", "PCM_16"): 1 / 32767,
    ("AU", "PCM_16"): 1 / 32767,
    ("CAF", "PCM_16"): 1 / 32767,
    ("FLAC", "PCM_16"): 1 / 32767,
    ("FLAC", "PCM_24"): 2e-7,
}


@pytest.mark.parametrize("kind", LOSSLESS, ids="-".join)
def test_every_sample_encoding_gives_the_same_sound(tmp_path, kind):
    """8, 16, 24, 32 bits, float, A-law, mu-law: full scale is 1.0, to within a step."""
    path = tmp_path / "clip"
    soundfile.write(path, MASTER, RATE, format=kind[0], subtype=kind[1])
    read = audio.read(path, None)
    assert (RATE, MASTER.shape) == (read.sample_rate_hz, read.samples.shape)
    assert np.abs(read.samples - MASTER).max() <= LOSSLESS[kind]


@pytest.mark.parametrize("kind", [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III")])
def test_lossy_encodings_give_the_same_sound_nearly(tmp_path, kind):
    """Ogg and MP3 are decoded in this process: same length to 0.1 s, 20 dB above the error."""
    if kind[0] not in soundfile.available_formats():
        pytest.skip(f"this libsndfile ({soundfile.__libsndfile_version__}) has no {kind[0]}")
    path = tmp_path / "clip"
    soundfile.write(path, MASTER, RATE, format=kind[0], subtype=kind[1])
    read = audio.resample(audio.read(path, None), RATE).samples
    assert len(MASTER) == pytest.approx(len(read), abs=RATE / 10)
    lags = signal.correlate(read, MASTER[1000:5000], mode="valid")
    start = int(np.argmax(lags))
    error = read[start : start + 4000] - MASTER[1000:5000]
    assert np.square(error).mean() < 0.01 * np.square(MASTER).mean()


@pytest.mark.parametrize(
    "name",
    ["clip", "clip.bin", "clip.WAV", "clip.mp3", "clip.raw", "clip.RAW", "clip.txt", "a b'é测.wav"],
)
def test_the_content_decides_not_the_name(tmp_path, name):
    """A file without an extension or with a wrong one is the same sound."""
    path = tmp_path / name
    soundfile.write(path, MASTER, RATE, format="WAV", subtype="FLOAT")
    assert np.array_equal(MASTER, audio.read(path, None).samples)


def test_a_path_need_not_be_utf8(tmp_path):
    """A name that is not UTF-8 is a name like any other on Linux."""
    soundfile.write(tmp_path / "x.wav", MASTER, RATE, subtype="FLOAT")
    path = tmp_path / os.fsdecode(b"caf\xe9.wav")
    (tmp_path / "x.wav").rename(path)
    assert np.array_equal(MASTER, audio.read(path, None).samples)


@pytest.mark.parametrize("channels", [2, 3, 6])
def test_equal_channels_are_the_mono_sound(tmp_path, channels):
    """Channels are averaged, not added: a loud stereo file neither clips nor gains 6 dB."""
    loud = MASTER * np.float32(0.9 / np.abs(MASTER).max())
    soundfile.write(tmp_path / "x.wav", np.stack([loud] * channels, 1), RATE, subtype="FLOAT")
    assert np.allclose(loud, audio.read(tmp_path / "x.wav", None).samples, rtol=0, atol=1e-7)


def test_two_channels_are_averaged(tmp_path):
    """What stands on one channel only is heard at half its level: nobody is left out."""
    both = np.stack([tone(300), tone(900)], 1)
    soundfile.write(tmp_path / "x.wav", both, RATE, subtype="FLOAT")
    assert np.allclose(both.mean(axis=1), audio.read(tmp_path / "x.wav", None).samples, atol=1e-7)


def wav(*chunks):
    body = b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)
                    for name, data in chunks)  # fmt: skip
    return b"RIFF" + struct.pack("<I", 4 + len(body)) + b"WAVE" + body


FMT = b"fmt ", struct.pack("<HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
DATA = b"data", (MASTER * 32767).astype("<i2").tobytes()
INFO = b"LIST", b"INFOISFT\x05\0\0\0test\0\0"


@pytest.mark.parametrize(
    "chunks",
    [
        (FMT, DATA),
        ((b"JUNK", b"\0" * 28), FMT, DATA),
        (FMT, INFO, DATA),
        (FMT, DATA, INFO),
        ((FMT[0], FMT[1] + b"\0\0"), DATA),
        ((b"bext", b"\0" * 602), FMT, (b"fact", struct.pack("<I", len(MASTER))), DATA),
    ],
    ids=["plain", "JUNK first", "LIST before data", "LIST after data", "fmt of 18", "bext, fact"],
)
def test_chunks_around_the_samples_are_no_samples(tmp_path, chunks):
    """Recorder applications put chunks anywhere; the header is walked, not assumed 44 bytes."""
    (tmp_path / "x.wav").write_bytes(wav(*chunks))
    read = audio.read(tmp_path / "x.wav", None).samples
    assert np.array_equal(np.frombuffer(DATA[1], "<i2") / np.float32(32768), read)


def refused(path, error=asr.AudioError):
    """The message of a refusal: one line that begins with the path."""
    with pytest.raises(error) as seen:
        audio.read(path, None)
    message = str(seen.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message


def test_a_missing_file_is_not_found(tmp_path):
    """A missing file is called that, not a decoding problem."""
    assert "file not found" in refused(tmp_path / "nope.wav")


def test_a_folder_is_no_sound_file(tmp_path):
    """A folder is called a folder."""
    assert "found a folder" in refused(tmp_path)


def test_a_path_through_a_file_is_not_found(tmp_path):
    """A file is no folder: nothing can lie below it."""
    (tmp_path / "file").touch()
    assert "file not found" in refused(tmp_path / "file" / "x.wav")


def test_what_the_system_forbids_is_another_error(tmp_path):
    """What the system would not open is exit code 5, not bad sound (3): a link to itself."""
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    assert "Too many levels" in refused(tmp_path / "loop.wav", asr.SystemAccessError)
    assert "too long" in refused(tmp_path / ("x" * 300 + ".wav"), asr.SystemAccessError)


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("empty.wav", b"", "0 bytes"),
        ("six.wav", b"RIFF\x00\x01", "could not decode"),
        ("picture.wav", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 200, "could not decode"),
        ("notes.wav", b"these are words, no sound\n" * 50, "could not decode"),
        ("program.wav", b"\x7fELF\x02\x01\x01" + b"\0" * 4000, "could not decode"),
        ("page.wav", b"<!DOCTYPE html><html></html>\n", "could not decode"),
        ("zeros.wav", b"\0" * 4096, "could not decode"),
    ],
)
def test_what_is_no_sound_is_refused(tmp_path, name, content, found):
    """Anything but sound is one line with the path and what was found."""
    (tmp_path / name).write_bytes(content)
    assert found in refused(tmp_path / name)


@pytest.mark.parametrize("length", [43, 44])
def test_a_wav_cut_off_inside_or_after_its_header_is_refused(tmp_path, clip, length):
    """A header without samples is a failed download, not two seconds of silence."""
    (tmp_path / "cut.wav").write_bytes(clip.read_bytes()[:length])
    refused(tmp_path / "cut.wav")


@pytest.mark.parametrize("part", [0.2, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("kind", [("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", None)])
def test_a_cut_lossy_file_is_refused_or_has_samples(tmp_path, kind, part):
    """A damaged file may lose its end, but never turns into nothing without a word."""
    if kind[0] not in soundfile.available_formats():
        pytest.skip(f"this libsndfile has no {kind[0]}")
    soundfile.write(tmp_path / "x", np.tile(MASTER, 4), RATE, format=kind[0], subtype=kind[1])
    data = (tmp_path / "x").read_bytes()
    (tmp_path / "cut").write_bytes(data[: int(len(data) * part)])
    try:
        read = audio.read(tmp_path / "cut", None)
    except asr.AudioError as error:
        assert str(error).startswith(f"{tmp_path / 'cut'}: ")  # noqa: PT017 - either is right
    else:
        assert len(read.samples)


def test_a_flac_cut_in_half_is_refused(tmp_path):
    """A decoder that loses its way is bad sound with the decoder's reason."""
    soundfile.write(tmp_path / "x.flac", MASTER, RATE)
    data = (tmp_path / "x.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) // 2])
    assert "could not decode" in refused(tmp_path / "cut.flac")


def test_a_header_that_lies_about_the_length_costs_no_memory(tmp_path):
    """The length in a header is a claim: 2**36 samples promised must not be allocated."""
    soundfile.write(tmp_path / "x.flac", MASTER, RATE)
    data = bytearray((tmp_path / "x.flac").read_bytes())
    data[21] |= 0x0F  # the low 36 bits of STREAMINFO bytes 13 to 17: total samples
    data[22:26] = b"\xff" * 4
    (tmp_path / "lie.flac").write_bytes(data)
    try:
        read = audio.read(tmp_path / "lie.flac", None).samples
    except asr.AudioError as error:
        assert "lie.flac" in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert np.allclose(MASTER, read, atol=1e-4)


def test_a_long_file_is_read_to_its_end(tmp_path):
    """Two minutes and a bit, of two channels: every sample arrives, the last one too."""
    samples = np.arange(2_100_001, dtype=np.int32).astype(np.int16)
    soundfile.write(tmp_path / "long.wav", np.stack([samples, samples], 1), RATE)
    read = audio.read(tmp_path / "long.wav", None).samples
    assert np.array_equal(samples / np.float32(32768), read)


@given(st.binary(max_size=200), st.sampled_from([b"", b"RIFF", wav(FMT)[:36], b"fLaC", b"OggS"]))
def test_arbitrary_bytes_never_end_in_another_error(tmp_path_factory, content, start):
    """Whatever the bytes are: Audio, or an AudioError."""
    path = tmp_path_factory.getbasetemp() / "fuzz.wav"
    path.write_bytes(start + content)
    try:
        assert audio.read(path, None).samples.ndim == 1
    except asr.AudioError as error:
        assert str(path) in str(error)  # noqa: PT017 - either outcome is right


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        (MASTER, MASTER),
        (MASTER.astype(np.float64), MASTER),
        (np.array([0, 16384, -32768, 32767], np.int16), [0, 0.5, -1, 32767 / 32768]),
        (np.repeat(MASTER, 2)[::2], MASTER),
        (np.zeros(0, np.float32), []),
    ],
    ids=["float32", "float64", "int16", "strided", "empty"],
)
def test_an_array_is_taken_at_full_scale(samples, expected):
    """Floats are in +-1.0 as they are; int16 is divided by 32768, exactly."""
    read = audio.read(samples, RATE)
    assert np.array_equal(np.asarray(expected, np.float32), read.samples)
    assert (np.float32, RATE, "array") == (read.samples.dtype, read.sample_rate_hz, read.source)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.float16, bool, "c8"])
def test_an_array_of_another_type_is_refused(dtype):
    """There is no guessing of a scale: int32 could be 16, 24 or 32 bits."""
    with pytest.raises(asr.AudioError, match=f"or int16, found {np.dtype(dtype).name}"):
        audio.read(np.zeros(100, dtype), RATE)


@pytest.mark.parametrize("shape", [(100, 2), (2, 100), (1, 100), (100, 1), ()])
def test_an_array_with_channels_is_refused(shape):
    """Which axis holds the channels is not guessed; a wrong guess halves every time."""
    with pytest.raises(asr.AudioError, match=re.escape(f"(num_samples,), found {shape}")):
        audio.read(np.zeros(shape, np.float32), RATE)


@pytest.mark.parametrize(("rate", "found"), [(None, "none"), (0, "0"), (-1, "-1")])
def test_an_array_needs_a_rate(rate, found):
    """An array has no rate of its own, and 16 kHz is not assumed."""
    with pytest.raises(asr.AudioError, match=f"sample_rate.*found {found}"):
        audio.read(MASTER, rate)


@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf"), (1e300, "inf")]
)
def test_an_array_value_that_is_no_sample_is_named(value, name):
    """NaN and infinity, also what is infinite as float32, are refused by position."""
    samples = MASTER.astype(np.float64)
    samples[[77, 300]] = value, -value
    with pytest.raises(asr.AudioError, match=rf"array: sample 77 is {name};"):
        audio.read(samples, RATE)


def test_a_file_with_a_nan_is_refused_by_position(tmp_path):
    """A float file can hold NaN; the message names file and sample."""
    samples = MASTER.copy()
    samples[123] = np.nan
    soundfile.write(tmp_path / "nan.wav", samples, RATE, subtype="FLOAT")
    assert "sample 123 is nan" in refused(tmp_path / "nan.wav")


def test_the_callers_array_is_not_changed():
    """Reading borrows: the caller's samples are as they were."""
    samples = MASTER.copy()
    audio.resample(audio.read(samples, 8000), RATE)
    assert np.array_equal(MASTER, samples)


# Resampling.

RATES = [8000, 11025, 22050, 24000, 32000, 44100, 48000, 96000]


def middle(samples):
    """Without the edges, where filters of different lengths differ."""
    return samples[len(samples) // 8 : -len(samples) // 8]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hz", [100, 1000, 3000])
def test_a_tone_survives_resampling_as_scipy_does_it(rate, hz):
    """Length, phase and level are those of scipy.signal.resample_poly and of the tone itself."""
    ours = audio.resample(Audio(tone(hz, rate), rate, "x"), RATE)
    divisor = math.gcd(rate, RATE)
    scipys = signal.resample_poly(tone(hz, rate).astype(float), RATE // divisor, rate // divisor)
    assert len(scipys) == pytest.approx(len(ours.samples), abs=1)
    length = min(len(scipys), len(ours.samples))
    assert np.abs(middle(ours.samples[:length] - scipys[:length])).max() < 0.005
    assert np.abs(middle(ours.samples - tone(hz)[: len(ours.samples)])).max() < 1e-3


@pytest.mark.parametrize(
    ("rate", "hz"), [(r, h) for r in RATES for h in (9000, 12000, 15500, 20000) if h < r / 2]
)
def test_what_lies_above_the_new_nyquist_does_not_come_back(rate, hz):
    """No alias: a tone above 8 kHz is gone (-80 dB), not folded into speech."""
    ours = audio.resample(Audio(tone(hz, rate), rate, "x"), RATE)
    assert np.abs(middle(ours.samples)).max() < 0.5e-4


def test_the_right_rate_is_left_alone():
    """16 kHz passes through as the same record, without a copy or a filter."""
    sound = Audio(MASTER, RATE, "x")
    assert audio.resample(sound, RATE) is sound


@given(st.integers(0, 3000), st.sampled_from(RATES))
def test_resampling_keeps_the_duration(length, rate):
    """Duration changes by at most a sample, source and silence not at all."""
    sound = audio.resample(Audio(np.zeros(length, np.float32), rate, "x"), RATE)
    assert length * RATE / rate == pytest.approx(len(sound.samples), abs=1)
    assert sound.source == "x"
    assert not sound.samples.any()


@pytest.mark.parametrize("rate", [1, 7, 999, 2**31 - 1, 2**40])
def test_an_absurd_rate_is_audio_or_an_error_of_ours(recognizer, rate):
    """A damaged header can claim any rate; no runtime's own exception escapes for it."""
    samples = np.zeros(max(3, min(rate // 2, 10_000)), np.float32)
    try:
        assert recognizer.transcribe(samples, sample_rate=rate).audio_s >= 0
    except asr.AudioError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - either outcome is right


def test_a_clip_at_other_rates_gives_the_same_text(recognizer, clip):
    """Speech resampled to a higher rate and back is heard alike: never a silently wrong rate."""
    expected = recognizer.transcribe(clip).text
    sound = audio.read(clip, None)
    for rate in (22050, 32000, 44100, 48000, 96000):
        other = audio.resample(sound, rate)
        found = recognizer.transcribe(other.samples, sample_rate=rate)
        assert (rate, expected) == (rate, found.text)
        assert sound.duration_s == pytest.approx(found.audio_s, abs=2 / rate)


def test_reading_does_not_load_what_it_does_not_use(asr_process, clip):
    """soxr is loaded only where a rate has to change: start-up time is a feature."""
    program = (
        "import sys; from asr import audio; sound = audio.read(sys.argv[1], None); "
        "audio.resample(sound, 16000); print('soxr' in sys.modules); "
        "audio.resample(sound, 8000); print('soxr' in sys.modules)"
    )
    assert asr_process(clip, program=program).out.split() == ["False", "True"]
