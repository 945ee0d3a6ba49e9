"""asr.audio: what libsndfile can decode, or an array, becomes mono float32 at the right rate."""

import io
import math
import os
import re
import struct
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from scipy import signal

import asr
from asr import audio
from asr.audio.window import Window
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
    told = []
    try:
        read = audio.read(tmp_path / "cut", None, warn=told.append)
    except asr.AudioError as error:
        assert str(error).startswith(f"{tmp_path / 'cut'}: ")  # noqa: PT017 - either is right
    else:
        assert len(read.samples)
        if (kind[0], part) == ("MP3", 0.95):
            return  # an encoder's padding at the end is as long as what is lost
        assert [t.partition(":")[0] for t in told] == ["audio_damaged"]
        with pytest.raises(asr.AudioError, match="expected an undamaged file, found that it"):
            audio.read(tmp_path / "cut", None, strict=True)


def test_a_flac_cut_in_half_is_heard_as_far_as_it_goes(tmp_path):
    """A decoder that loses its way gives what it had, with its reason; strict refuses."""
    soundfile.write(tmp_path / "x.flac", np.tile(MASTER, 4), RATE)
    whole = audio.read(tmp_path / "x.flac").samples
    data = (tmp_path / "x.flac").read_bytes()
    (tmp_path / "cut.flac").write_bytes(data[: len(data) // 2])
    told = []
    found = audio.read(tmp_path / "cut.flac", warn=told.append).samples
    assert 0.3 * len(whole) < len(found) < 0.6 * len(whole)
    assert np.array_equal(whole[: len(found)], found)
    assert re.fullmatch(r"audio_damaged: .*; \d\.\d\d s could be decoded", told[0])
    with pytest.raises(asr.AudioError, match="copy it again, or allow damage"):
        audio.read(tmp_path / "cut.flac", strict=True)


@pytest.mark.parametrize("part", [0.3, 0.6])
@pytest.mark.parametrize("channels", [1, 2])
def test_a_damaged_flac_frame_costs_that_frame(channels, part):
    """What follows is heard, at its place: libsndfile gives up at the first damage."""
    noise = np.random.default_rng(3).normal(0, 0.1, (20 * RATE, channels)).astype(np.float32)
    file = io.BytesIO()
    soundfile.write(file, noise, RATE, format="FLAC")
    data = bytearray(file.getvalue())
    whole = audio.read(bytes(data)).samples
    for place in (int(len(data) * part), int(len(data) * 0.8)):
        data[place : place + 40] = bytes(range(40))
    told = []
    found = audio.read(bytes(data), warn=told.append).samples
    assert whole.shape == found.shape
    wrong = np.flatnonzero(whole != found)
    assert 0 < len(wrong) <= 4 * 4608
    assert not found[wrong].any()
    assert [line.partition(":")[0] for line in told] == ["audio_damaged"]


def test_a_flac_cut_before_its_first_frame_ends_is_refused(tmp_path):
    """Nothing that can be decoded is no sound."""
    soundfile.write(tmp_path / "x.flac", MASTER, RATE)
    (tmp_path / "cut.flac").write_bytes((tmp_path / "x.flac").read_bytes()[:1500])
    assert "could not decode" in refused(tmp_path / "cut.flac")


@pytest.mark.parametrize("total", [0, 100, 2**36 - 1])
def test_a_flac_is_read_to_its_end_whatever_its_header_promises(tmp_path, total):
    """0 is what an encoder writes into a pipe; a wrong number is worth a warning, no sample."""
    soundfile.write(tmp_path / "x.flac", MASTER, RATE)
    expected = audio.read(tmp_path / "x.flac").samples
    data = bytearray((tmp_path / "x.flac").read_bytes())
    data[21] = data[21] & 0xF0 | total >> 32
    data[22:26] = (total & 0xFFFFFFFF).to_bytes(4, "big")
    told = []
    assert np.array_equal(expected, audio.read(bytes(data), warn=told.append).samples)
    assert len(told) == bool(total)


def mp3_frames(data):
    """Place and length of each frame, by asr's own reader of frame headers."""
    from asr.audio import mp3

    place, found = 0, []
    while length := mp3._frame_bytes(data[place : place + 4]):
        found.append((place, length))
        place += length
    return found


@pytest.fixture(scope="module")
def variable_mp3():
    """Ten seconds of a variable bit rate, quiet first, and its number of samples."""
    noise = np.random.default_rng(1).normal(size=2 * RATE).astype(np.float32)
    samples = np.concatenate([noise * np.float32(g) for g in (1e-4, 0.3, 1e-4, 0.1, 0.3)])
    file = io.BytesIO()
    with soundfile.SoundFile(
        file, "w", RATE, 1, format="MP3", bitrate_mode="VARIABLE", compression_level=0.5
    ) as out:
        out.write(samples)
    return file.getvalue(), len(samples)


def test_a_variable_mp3_without_a_tag_is_read_to_its_end(variable_mp3):
    """libsndfile guesses the length from the first frames and would drop most of this one."""
    data, length = variable_mp3
    frames = mp3_frames(data)
    assert len({n for _, n in frames}) > 3
    bare = data[frames[1][0] :]
    assert len(soundfile.read(io.BytesIO(bare))[0]) < 0.9 * length
    for start in (b"", b"ID3\4\0\0\0\0\1\0" + bytes(128)):
        told = []
        found = audio.read(start + bare, warn=told.append)
        assert (length, []) == (pytest.approx(len(found.samples), abs=1800), told)


@pytest.mark.parametrize("claim", [1, 100, 2**31 - 1])
def test_an_mp3_tag_that_lies_loses_nothing(variable_mp3, claim, capfd):
    """Too few frames in a Xing tag cut nothing off; too many allocate nothing."""
    data, length = bytearray(variable_mp3[0]), variable_mp3[1]
    tag = data.find(b"Xing")
    data[tag + 8 : tag + 12] = claim.to_bytes(4, "big")
    told = []
    found = audio.read(bytes(data), warn=told.append)
    assert length == pytest.approx(len(found.samples), abs=1800)
    assert [t.partition(":")[0] for t in told] == ["audio_damaged"]


def test_a_window_is_the_file(tmp_path):
    """Bytes by place, forwards and backwards, across the steps in which it reads."""
    content = bytes(range(255)) * 3000 + b"\xff" + bytes(10)
    (tmp_path / "x").write_bytes(content)
    with (tmp_path / "x").open("rb") as file:
        window = Window(file.fileno())
        for place in (
            0,
            5,
            (1 << 18) - 2,
            1 << 18,
            700_000,
            3,
            len(content) - 4,
            len(content),
            1e6,
        ):
            assert content[int(place) : int(place) + 16] == window.at(int(place), 16)
        assert (window.find(b"\xff", 7), window.find(b"\xff", 765_001)) == (765_000, -1)


def test_an_mp3_with_a_picture_is_the_same_sound(variable_mp3):
    """Cover art stands in front of the frames, and costs nothing but its bytes."""
    data, _ = variable_mp3
    size = 300_000
    digits = bytes(size >> shift & 0x7F for shift in (21, 14, 7, 0))
    tagged = b"ID3\4\0\0" + digits + bytes(size) + data
    assert np.array_equal(audio.read(data).samples, audio.read(tagged).samples)


@pytest.mark.parametrize("subtype", ["VORBIS", "OPUS"])
def test_an_ogg_with_a_lost_page_says_so(tmp_path, subtype):
    """Damage in the middle costs a page, and a warning with the seconds that are left."""
    noise = np.random.default_rng(0).normal(0, 0.1, 10 * RATE).astype(np.float32)
    soundfile.write(tmp_path / "x", noise, RATE, format="OGG", subtype=subtype)
    data = bytearray((tmp_path / "x").read_bytes())
    data[len(data) // 2] ^= 0xFF
    told = []
    found = audio.read(bytes(data), warn=told.append)
    assert 0.5 < found.duration_s / 10 < 1
    assert told == [f"audio_damaged: it promises 10.00 s and holds {found.duration_s:.2f} s"]


@pytest.mark.parametrize("kind", ["AIFF", "AU", "W64"])
def test_other_formats_that_were_cut_say_so(tmp_path, kind):
    """A header that promises more is damage in every format whose header libsndfile checks."""
    soundfile.write(tmp_path / "x", MASTER, RATE, format=kind, subtype="PCM_16")
    data = (tmp_path / "x").read_bytes()
    told = []
    assert audio.read(data, warn=told.append).samples.shape == MASTER.shape
    assert told == []
    assert len(audio.read(data[: len(data) // 2], warn=told.append).samples) > 3000
    assert told[0].startswith("audio_damaged: its header promises more than the 0.2")


def test_a_header_that_lies_about_the_length_costs_no_memory(tmp_path):
    """The length in a header is a claim: 2**36 samples promised must not be allocated."""
    soundfile.write(tmp_path / "x.flac", MASTER, RATE)
    data = bytearray((tmp_path / "x.flac").read_bytes())
    data[21] |= 0x0F  # the low 36 bits of STREAMINFO bytes 13 to 17: total samples
    data[22:26] = b"\xff" * 4
    (tmp_path / "lie.flac").write_bytes(data)
    program = (
        "import resource, sys, warnings; from asr import audio; warnings.simplefilter('ignore');"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "audio.read(sys.argv[1]); first = peak(); audio.read(sys.argv[2]); print(peak() - first)"
    )
    command = [sys.executable, "-c", program, tmp_path / "x.flac", tmp_path / "lie.flac"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 16_000


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


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64, np.float16, bool, "c8", object])
def test_an_array_of_another_type_is_refused(dtype):
    """There is no guessing of a scale."""
    with pytest.raises(asr.AudioError, match=f"uint8 at full scale, found {np.dtype(dtype).name}"):
        audio.read(np.zeros(100, dtype), RATE)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        ("i4", [0, 2**30, -(2**31), 2**31 - 1], [0, 0.5, -1, 1]),
        ("u1", [128, 192, 0, 255], [0, 0.5, -1, 127 / 128]),
        ("i2", [0, 2**14, -(2**15), 2**15 - 1], [0, 0.5, -1, 32767 / 32768]),
    ],
)
def test_an_integer_array_has_all_its_bits(dtype, values, expected, order):
    """int32 is divided by 2**31, uint8 has its zero at 128, in either byte order."""
    found = audio.read(np.array(values, order + dtype), RATE).samples
    assert np.array_equal(np.array(expected, np.float32), found)


def test_an_int32_array_of_16_bit_values_gets_a_warning():
    """It would be heard 96 dB too quiet; silence is only silence."""
    told = []
    audio.read(np.array([0, 12345, -3], np.int32), RATE, warn=told.append)
    assert told == ["scale_suspect: the int32 array peaks at 12345 of 2147483648; for 16-bit "
                    "values pass int16"]  # fmt: skip
    audio.read(np.zeros(100, np.int32), RATE, strict=True)


@pytest.mark.parametrize("shape", [(100, 1), (100, 2), (9, 8), (3, 2), (0, 2)])
def test_an_array_may_have_channels_on_its_last_axis(shape):
    """(num_samples, channels), at most 8 and fewer than samples, are averaged."""
    samples = np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32)
    found = audio.read(samples, RATE)
    assert np.allclose(samples.mean(axis=1), found.samples, atol=1e-6)
    for number in range(shape[1]):
        one = audio.read(samples, RATE, channel=number + 1)
        assert np.array_equal(samples[:, number], one.samples)


@pytest.mark.parametrize(
    ("shape", "hint"),
    [
        ((2, 100), "transpose it"),
        ((1, 100), "transpose it"),
        ((8, 8), "not guessed"),
        ((1, 1), "not guessed"),
        ((1, 2), "transpose it"),
        ((100, 9), "not guessed"),
        ((100, 0), "not guessed"),
        ((2, 100, 1), "pick one channel"),
        ((), "pick one channel"),
    ],
)
def test_an_array_whose_axes_cannot_be_told_apart_is_refused(shape, hint):
    """Which axis holds the channels is not guessed; a wrong guess halves every time."""
    with pytest.raises(asr.AudioError, match=re.escape(f"samples, found {shape}; ") + f".*{hint}"):
        audio.read(np.zeros(shape, np.float32), RATE)


@given(st.integers(0, 12), st.integers(0, 12))
def test_a_shape_and_its_transpose_are_never_both_accepted(length, channels):
    """The axis rule cannot be met by accident: at most one of the two readings is heard."""
    accepted = 0
    for shape in {(length, channels), (channels, length)}:
        try:
            audio.read(np.zeros(shape, np.float32), RATE)
        except asr.AudioError:
            continue
        accepted += 1
    assert accepted <= 1


@pytest.mark.parametrize("rate", [16000.5, "16000", [16000], 0.0, math.nan, math.inf, 10**30])
def test_a_rate_that_is_no_whole_number_is_refused(rate):
    """Not rounded, not parsed."""
    with pytest.raises(asr.AudioError, match=r"array: expected a .*rate.*, found"):
        audio.read(MASTER, rate)


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


@pytest.mark.parametrize("value", [17, -12345.0, 1e30])
@pytest.mark.parametrize("channels", [1, 2])
def test_an_absurd_amplitude_is_named_by_its_first_position(tmp_path, value, channels):
    """Integers kept as floats are no sound: where, how large, what to do. 12 dB over is sound."""
    samples = np.stack([MASTER * np.float32(8)] * channels, axis=1)
    soundfile.write(tmp_path / "ok.wav", samples, RATE, subtype="FLOAT")
    assert audio.read(tmp_path / "ok.wav").samples.max() > 4
    samples[[123, 300], -1] = value
    soundfile.write(tmp_path / "x.wav", samples, RATE, subtype="FLOAT")
    where = "sample 123 of channel 2" if channels == 2 else "sample 123"
    message = refused(tmp_path / "x.wav")
    assert f"{where} is {np.float32(value):g}; expected floats with full scale" in message
    assert "by 32768 for 16 bits" in message
    with pytest.raises(asr.AudioError, match=f"array: {where} is "):
        audio.read(samples if channels == 2 else samples[:, 0], RATE)


def test_a_position_counts_from_the_start_of_the_file(tmp_path):
    """Also behind the first block."""
    samples = np.zeros((1_200_000, 2), np.float32)
    samples[1_100_000, 0] = np.inf
    soundfile.write(tmp_path / "x.wav", samples, RATE, subtype="FLOAT")
    assert "sample 1100000 of channel 1 is inf" in refused(tmp_path / "x.wav")


# Channels.


def stereo(tmp_path, left, right, name="x.wav"):
    soundfile.write(tmp_path / name, np.stack([left, right], 1), RATE, subtype="FLOAT")
    return tmp_path / name


@pytest.mark.parametrize("difference", [0, 0.02, 0.1])
def test_opposite_phase_is_heard(tmp_path, difference):
    """A balanced line wired to two channels: the mean would be silence; the louder one is taken."""
    left, right = MASTER, MASTER * np.float32(difference - 1)
    told = []
    found = audio.read(stereo(tmp_path, left, right), warn=told.append).samples
    assert np.array_equal(left, found)
    assert [t.partition(":")[0] for t in told] == ["channels_cancel"]
    assert "channel 1 was taken" in told[0]
    swapped = audio.read(stereo(tmp_path, right, left), warn=told.append).samples
    assert np.array_equal(left, swapped if difference else -swapped)


@pytest.mark.parametrize("right", ["silence", "other", "quieter opposite", "late"])
def test_a_mean_that_holds_both_is_kept(tmp_path, right):
    """Nothing is replaced, and nobody warned, when the mean is not 20 dB down."""
    other = {
        "silence": np.zeros_like(MASTER),
        "other": tone(950),
        "quieter opposite": -MASTER * np.float32(0.7),
        "late": np.roll(MASTER, 5),
    }[right]
    told = []
    found = audio.read(stereo(tmp_path, MASTER, other), warn=told.append).samples
    assert np.allclose((MASTER + other) / 2, found, atol=1e-6)
    assert told == []


def test_silence_and_noise_of_a_bit_are_no_opposite_phase():
    """A decision needs something to decide on."""
    quiet = np.array([[1, -1]] * 1000, np.int16)
    for samples in (np.zeros((1000, 2), np.int16), quiet):
        assert not audio.read(samples, RATE).samples.any()


@given(st.integers(1, 8), st.floats(0.01, 1), st.integers(0, 2**32 - 1))
def test_equal_channels_have_the_level_of_one(channels, level, seed):
    """For any number of channels: the mean of equals is the sound itself."""
    one = np.random.default_rng(seed).uniform(-level, level, 50).astype(np.float32)
    found = audio.read(np.stack([one] * channels, 1), RATE).samples
    assert np.allclose(one, found, rtol=0, atol=1e-6)


def test_one_channel_is_picked(tmp_path):
    """`channel` counts from 1; what it does not name is not heard."""
    path = stereo(tmp_path, tone(300), tone(900))
    assert np.array_equal(tone(300), audio.read(path, channel=1).samples)
    assert np.array_equal(tone(900), audio.read(path, channel=2).samples)
    with pytest.raises(asr.AudioError, match=r"x\.wav: expected channel 3, found 2 channels"):
        audio.read(path, channel=3)
    with pytest.raises(asr.UsageError, match="expected 1 or more, counted from 1; found 0"):
        audio.read(path, channel=0)
    with pytest.raises(asr.AudioError, match=r"array: expected channel 2, found 1 channel$"):
        audio.read(MASTER, RATE, channel=2)


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG", "MP3"])
def test_every_channel_can_be_read_by_itself(tmp_path, kind):
    """read_channels gives what channel=1, channel=2 give, whose names say which they are."""
    samples = np.stack([tone(300), tone(900)], 1)
    soundfile.write(tmp_path / "x", samples, RATE, format=kind)
    found = list(audio.read_channels(tmp_path / "x"))
    expected = [audio.read(tmp_path / "x", channel=n) for n in (1, 2)]
    assert [e.samples.tolist() for e in expected] == [f.samples.tolist() for f in found]
    assert [f.source for f in found] == [f"{tmp_path / 'x'} (channel {n})" for n in (1, 2)]
    assert [f.samples.tolist() for f in audio.read_channels(samples, RATE)] == samples.T.tolist()


def test_channels_are_counted_without_decoding(tmp_path):
    """What --split-channels has to know first."""
    soundfile.write(tmp_path / "x.wav", np.zeros((100, 3)), RATE)
    found = [audio.count_channels(s) for s in (tmp_path / "x.wav", MASTER, np.zeros((99, 2), "i2"))]
    assert found == [3, 1, 2]
    assert audio.count_channels(bytes(8), raw=audio.RawFormat("u8", 8000, 4)) == 4
    assert audio.count_channels(Audio(MASTER, RATE, "x")) == 1


def test_audio_is_a_source_too():
    """What was read before passes; options that would change it are refused."""
    sound = Audio(MASTER, RATE, "x")
    assert audio.read(sound) is sound
    with pytest.raises(asr.UsageError, match="x: expected Audio without further options"):
        audio.read(sound, RATE)


def test_damage_is_said_once_for_all_channels(tmp_path):
    """Two channels of a cut file are one cut file."""
    samples = np.tile(np.stack([MASTER, MASTER], 1), (4, 1))
    soundfile.write(tmp_path / "x.flac", samples, RATE)
    data = (tmp_path / "x.flac").read_bytes()
    told = []
    found = list(audio.read_channels(data[: len(data) // 2], warn=told.append))
    assert (len(found), len(told)) == (2, 1)
    assert np.array_equal(found[0].samples, found[1].samples)


def test_opposite_phase_in_one_minute_of_an_hour_is_heard():
    """The decision is made block by block: what is good elsewhere stays as it is."""
    block = 1 << 19  # samples of each of two channels
    left = np.tile(MASTER, block * 2 // len(MASTER) + 1)[: block * 2]
    right = left.copy()
    right[block:] *= -1
    file = io.BytesIO()
    soundfile.write(file, np.stack([left, right], 1), RATE, format="WAV", subtype="FLOAT")
    told = []
    found = audio.read(file.getvalue(), warn=told.append).samples
    assert np.allclose(left, found, atol=1e-6)
    assert len(told) == 1


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


@pytest.mark.parametrize("rate", [1, 7, 999, 3999, 384_001, 2**31 - 1, 2**40])
def test_a_rate_that_nobody_uses_is_refused(rate):
    """A damaged header can claim any rate; soxr is asked for 4 to 384 kHz only."""
    with pytest.raises(asr.AudioError, match=f"array: expected a rate of 4000 .* found {rate} Hz"):
        audio.read(MASTER, rate)
    with pytest.raises(asr.AudioError, match=f"x: expected a rate of 4000 .* found {rate} Hz"):
        audio.resample(Audio(MASTER, rate, "x"), RATE)


@pytest.mark.parametrize("rate", [4000, 6000, 7350, 8000, 16001, 44056, 88200, 192_000, 384_000])
def test_resampling_from_4_to_384_khz(rate):
    """At any rate: a tone below both limits keeps its level and place, one above 8 kHz is gone."""
    kept = audio.resample(Audio(tone(1000, rate), rate, "x"), RATE).samples
    assert np.abs(middle(kept - tone(1000)[: len(kept)])).max() < 1e-3
    if rate > 2 * 9000:
        for hz in (9000, 0.49 * rate):
            gone = audio.resample(Audio(tone(hz, rate), rate, "x"), RATE).samples
            assert np.abs(middle(gone)).max() < 0.5e-4


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


def test_the_page_about_sound_is_true(monkeypatch, clip):
    """The Python of docs/audio.md runs; its table of warnings names those there are."""
    root = clip.parents[2]
    page = (root / "docs/audio.md").read_text()
    monkeypatch.chdir(root)
    for code in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
        exec(compile(code, "docs/audio.md", "exec"), {})
    sources = "".join(p.read_text() for p in (root / "asr/audio").glob("*.py"))
    kinds = set(re.findall(r"tell\(\s*\"(\w+)\"", sources))
    assert set(re.findall(r"^\| `(\w+): \.\.\.`", page, flags=re.M)) == kinds
    assert set(audio.raw.WIDTHS) == set(
        re.search(r"Encodings: (.*)", page)[1].replace("`, also `", " ").strip("`.").split()
    )
