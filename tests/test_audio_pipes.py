"""asr.audio without a seekable file: standard input, pipes, bytes, samples without a header."""

import functools
import io
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

import asr
from asr import audio
from asr.audio import RawFormat
from asr.audio import sniff as sniffing

RATE = 16000
MASTER = (0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE // 2) / RATE)).astype(np.float32)


@functools.cache
def encoded(kind, subtype=None):
    """A file's content."""
    if kind not in soundfile.available_formats():
        pytest.skip(f"this libsndfile has no {kind}")
    file = io.BytesIO()
    soundfile.write(file, MASTER, RATE, format=kind, subtype=subtype)
    return file.getvalue()


CONTAINERS = [("WAV", "FLOAT"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"),
              ("MP3", None), ("AIFF", "PCM_16"), ("AU", "PCM_16"), ("CAF", "PCM_16"),
              ("W64", "PCM_16"), ("RF64", "PCM_16")]  # fmt: skip

PROGRAM = """
import hashlib, resource, sys
from asr import audio
sound = audio.read(sys.argv[1])
digest = hashlib.sha256(sound.samples.tobytes()).hexdigest()
print(sound.source, sound.sample_rate_hz, digest)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def piped(content, name="-", **options):
    """What reading standard input prints."""
    command = [sys.executable, "-W", "error", "-c", PROGRAM, name]
    return subprocess.run(command, input=content, capture_output=True, check=False, **options)


@pytest.mark.parametrize("kind", CONTAINERS, ids=lambda k: "-".join(filter(None, k)))
def test_bytes_are_a_files_content(tmp_path, kind):
    """Any container in memory, or through a FIFO, gives what the file gives."""
    content = encoded(*kind)
    (tmp_path / "x").write_bytes(content)
    expected = audio.read(tmp_path / "x").samples
    for held in (content, bytearray(content), memoryview(content)):
        assert np.array_equal(expected, audio.read(held).samples)
    assert audio.read(content).source == "bytes"
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(content,))
    writer.start()
    assert np.array_equal(expected, audio.read(tmp_path / "fifo").samples)
    writer.join()


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input(name):
    """A pipe, binary: 0x1A and 0x0D0A in it are samples like others."""
    nasty = np.tile(np.frombuffer(b"\x1a\r\n\x1a\x0d\x0a\x1a\x04", "<i2"), 50_000)
    file = io.BytesIO()
    soundfile.write(file, nasty, RATE, format="WAV", subtype="PCM_16")
    result = piped(file.getvalue(), name)
    assert result.stderr == b""
    import hashlib

    digest = hashlib.sha256((nasty / np.float32(32768)).tobytes()).hexdigest()
    source = "stdin" if name == "-" else name
    assert f"{source} {RATE} {digest}" == result.stdout.decode().splitlines()[0]


def test_standard_input_that_is_a_file(tmp_path):
    """`asr ... - < file` reads the file as it is."""
    (tmp_path / "x.wav").write_bytes(encoded("WAV", "FLOAT"))
    with (tmp_path / "x.wav").open("rb") as file:
        result = subprocess.run(
            [sys.executable, "-c", PROGRAM, "-"], stdin=file, capture_output=True, check=True
        )
    assert result.stdout.startswith(b"stdin 16000 ")


def test_what_is_no_sound_is_refused_at_its_first_bytes():
    """An endless pipe of zeros or random bytes is not waited for, and fills no memory."""
    for device in ("/dev/zero", "/dev/urandom"):
        with pytest.raises(asr.AudioError, match=f"^{device}: expected a sound file"):
            audio.read(device)
    with pytest.raises(asr.AudioError, match=r"^/dev/null: .* found 0 bytes"):
        audio.read("/dev/null")


@pytest.mark.parametrize("content", [b"", b"RIFF", b"no sound at all" * 20, b"\x89PNG\r\n" * 40])
def test_standard_input_without_sound_is_refused(content):
    """One line of ours with the name of the source."""
    result = piped(content)
    last = result.stderr.decode().splitlines()[-1]
    assert last.startswith("asr.errors.AudioError: stdin: expected a sound file")


def test_standard_input_that_is_closed():
    """No descriptor 0: the system's word, not a crash."""
    result = subprocess.run(
        [sys.executable, "-c", f"import os; os.close(0)\n{PROGRAM}", "-"],
        capture_output=True,
        check=False,
    )
    assert b"SystemAccessError: stdin: cannot read it: Bad file descriptor" in result.stderr


def test_a_pipe_costs_the_memory_of_what_arrived():
    """A header that promises 4 GB through a pipe: the peak is that of the honest one."""
    content = bytearray(encoded("WAV", "PCM_16"))
    honest = int(piped(bytes(content)).stdout.split()[-1])
    content[4:8] = content[40:44] = b"\xff\xff\xff\xff"
    result = piped(bytes(content))
    assert result.stderr == b""
    assert int(result.stdout.split()[-1]) < honest + 20_000


@given(st.binary(max_size=300), st.sampled_from([m[1] for m in sniffing._MARKS] + [b"ID3", b""]))
def test_any_bytes_are_audio_or_an_error_of_ours(content, start):
    """With the first bytes of every container that is recognised, and without."""
    try:
        audio.read(start + content, warn=lambda line: None)
    except asr.AudioError as error:
        assert str(error).startswith("bytes: ")  # noqa: PT017 - either outcome is right
        assert len(str(error).splitlines()) == 1  # noqa: PT017


@pytest.mark.parametrize(
    "kind", [("FLAC", None), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("MP3", None)]
)
@given(data=st.data())
def test_damage_anywhere_is_audio_or_an_error_of_ours(kind, data):
    """Bytes changed at random places of a real file: samples within reason, or one line."""
    content = bytearray(encoded(*kind))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        junk = data.draw(st.binary(min_size=1, max_size=8))
        content[place : place + len(junk)] = junk
    del content[data.draw(st.integers(1, len(content))) :]
    try:
        found = audio.read(bytes(content), warn=lambda line: None)
    except asr.AudioError as error:
        assert str(error).startswith("bytes: ")  # noqa: PT017 - either outcome is right
    else:
        assert len(found.samples) < 400 * len(MASTER)


# Samples without a header.

RAW = {
    "s16le": ("<i2", 2**15), "s16be": (">i2", 2**15), "s32le": ("<i4", 2**31),
    "s32be": (">i4", 2**31), "f32le": ("<f4", 1), "f64le": ("<f8", 1), "f32be": (">f4", 1),
    "f64be": (">f8", 1),
}  # fmt: skip


@pytest.mark.parametrize("encoding", RAW)
def test_raw_samples(encoding):
    """Each encoding, one channel and two."""
    dtype, scale = RAW[encoding]
    content = (MASTER.astype(float) * scale).astype(dtype).tobytes()
    for words, expected in (("16000,1", MASTER), ("16000", MASTER)):
        found = audio.read(content, raw=RawFormat.parse(f"{encoding},{words}"))
        assert np.abs(found.samples - expected).max() <= 1 / 32768
    halves = audio.read(content, raw=RawFormat(encoding, 8000, 2)).samples
    assert np.allclose(MASTER.reshape(-1, 2).mean(axis=1), halves, atol=1 / 16384)


def test_raw_bytes_and_24_bits():
    """8-bit has its zero at 128; 24-bit samples keep their sign."""
    read = lambda b, e: audio.read(b, raw=RawFormat(e, RATE)).samples.tolist()  # noqa: E731
    assert read(bytes([0, 128, 192, 255]), "u8") == [-1, 0, 0.5, 127 / 128]
    assert read(bytes([0, 64, 128, 255]), "s8") == [0, 0.5, -1, -1 / 128]
    assert read(b"\0\0\x40\xff\xff\xff\0\0\x80", "s24le") == [0.5, -(2.0**-23), -1]
    assert read(b"\x40\0\0\xff\xff\xff\x80\0\0", "s24be") == [0.5, -(2.0**-23), -1]
    assert read(b"", "s16le") == []


@pytest.mark.parametrize("encoding", ["alaw", "mulaw"])
def test_raw_companded(tmp_path, encoding):
    """A-law and mu-law of a telephone, as libsndfile decodes them."""
    codes = np.arange(256, dtype=np.uint8).tobytes()
    subtype = encoding.replace("mulaw", "ulaw").upper()
    expected, _ = soundfile.read(
        io.BytesIO(codes), samplerate=8000, channels=1, format="RAW", subtype=subtype,
        dtype="float32",
    )  # fmt: skip
    (tmp_path / "x").write_bytes(codes)
    found = audio.read(tmp_path / "x", raw=RawFormat.parse(f"{encoding},8000,1"))
    assert (8000, expected.tolist()) == (found.sample_rate_hz, found.samples.tolist())


def test_raw_samples_that_end_too_soon():
    """The last half sample is dropped with a warning; nothing but half a sample is an error."""
    told = []
    found = audio.read(b"\0\1\2", raw=RawFormat("s16le", RATE), warn=told.append)
    assert (len(found.samples), told) == (1, ["audio_damaged: the last sample has 1 of 2 bytes"])
    with pytest.raises(asr.AudioError, match="found 1 bytes in all"):
        audio.read(b"\0", raw=RawFormat("s16le", RATE))
    with pytest.raises(asr.AudioError, match="expected an undamaged file"):
        audio.read(b"\0\1\2", raw=RawFormat("s16le", RATE), strict=True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("s16le", "found 's16le'"),
        ("", "found ''"),
        ("s16le,16000,1,1", "such as s16le,16000,1"),
        ("s16le,16000,-1", "such as"),
        ("s16le,16k,1", "such as"),
        ("s16le,1e3,1", "such as"),
        ("s17le,16000,1", "found 's17le'"),
        ("s16le,16000,0", "1 to 1024 channels, found 0"),
        ("s16le,16000,1025", "found 1025"),
        ("s16le,3999,1", "4000 to 384000 Hz, found 3999"),
        ("s16le,99999999999999999999,1", "Hz, found"),
    ],
)
def test_a_raw_format_that_is_none_says_why(words, found):
    """Another form or value is a usage error that shows it."""
    with pytest.raises(asr.UsageError, match=found):
        RawFormat.parse(words)


def test_a_raw_format_is_a_record():
    """Equal when its fields are, and not to be changed."""
    assert RawFormat.parse(" S16LE , 16000 ") == RawFormat("s16le", 16000, 1)
    with pytest.raises(AttributeError):
        RawFormat("u8", 8000).channels = 2


def test_options_that_do_not_fit_are_usage_errors():
    """A raw format for an array, a rate for a file, an object that is no source."""
    with pytest.raises(asr.UsageError, match="array: expected no raw format"):
        audio.read(MASTER, RATE, raw=RawFormat("u8", 8000))
    with pytest.raises(asr.UsageError, match="bytes: expected no sample_rate"):
        audio.read(b"RIFF", RATE)
    with pytest.raises(asr.UsageError, match="expected a path"):
        audio.read(os.fsencode("x") and BytesPath())


class BytesPath:
    """A path of bytes."""

    def __fspath__(self):
        return b"x"
