"""asr.audio and what FFmpeg decodes: M4A, WebM, video; with PyAV, and without it."""

import io
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import signal

import asr
from asr import audio
from asr.audio.sniff import sniff

RATE = 44100
SECONDS = 3
MASTER = np.random.default_rng(5).normal(0, 0.1, RATE * SECONDS).astype(np.float32)
MASTER = signal.lfilter([0.1], [1, -0.9], MASTER).astype(np.float32)

STARTS = {
    b"\0\0\0\x20ftypM4A \0\0\0\0": "MP4 (M4A, video)",
    b"\0\0\0\x18ftypmp42": "MP4 (M4A, video)",
    b"\x1a\x45\xdf\xa3\x01": "Matroska or WebM",
    b"\xff\xf1\x50\x80": "AAC",
    b"FLV\x01\x05": "FLV",
    b"RIFF\0\0\0\0AVI LIST": "AVI",
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11\xa6\xd9": "WMA (ASF)",
    b"#!AMR\n": "AMR",
    b"\0\0\x01\xba\x44": "MPEG video",
}


@pytest.mark.parametrize("start", STARTS, ids=STARTS.get)
def test_without_pyav_the_message_says_how_to_get_it(tmp_path, monkeypatch, start):
    """What the file is, and the line that installs what it needs; exit code 3."""
    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "x.m4a").write_bytes(start + bytes(300))
    with pytest.raises(asr.AudioError) as seen:
        audio.read(tmp_path / "x.m4a")
    assert str(seen.value) == (
        f"{tmp_path / 'x.m4a'}: expected WAV, FLAC, Ogg or MP3, found {STARTS[start]} that needs "
        "PyAV; install it: pip install 'asr-rtf[av]'"
    )
    assert seen.value.exit_code == 3


@pytest.mark.parametrize(
    "content",
    [b"#EXTM3U\n#EXT-X-VERSION:3\nhttp://127.0.0.1:1/x.ts\n", b"ffconcat version 1.0\nfile x\n",
     b"\x89PNG\r\n\x1a\n", b"<?xml version='1.0'?><MPD/>", b"WEBVTT\n\n", b"GIF89a"],
)  # fmt: skip
def test_what_opens_other_files_is_never_given_to_ffmpeg(content):
    """A playlist is no sound: FFmpeg would fetch the addresses in it."""
    assert sniff(content + bytes(300)) is None
    with pytest.raises(asr.AudioError, match=r"^bytes: expected a sound file"):
        audio.read(content + bytes(300))


def test_reading_a_wav_loads_no_av(asr_process, clip):
    """PyAV is loaded for a file that needs it, and its 0.1 s is paid then."""
    program = (
        "import sys; from asr import audio; audio.read(sys.argv[1]);"
        "print([m for m in ('av', 'asr.audio.packets', 'asr.audio.wav', 'asr.audio.raw',"
        "'asr.audio.pipes', 'asr.audio.arrays') if m in sys.modules])"
    )
    assert asr_process(clip, program=program).out.split() == ["[]"]


def encoded(container, codec, *, video=False, rate=RATE, layout="stereo"):
    """A file that PyAV wrote."""
    av = pytest.importorskip("av", reason="the extra asr-rtf[av] is not installed")
    file = io.BytesIO()
    with av.open(file, "w", format=container) as out:
        stream = out.add_stream(codec, rate=rate, layout=layout)
        if video:
            picture = out.add_stream("mpeg4", rate=10)
            picture.width, picture.height, picture.pix_fmt = 64, 48, "yuv420p"
            for _ in range(10 * SECONDS):
                black = np.zeros((48, 64, 3), np.uint8)
                for packet in picture.encode(av.VideoFrame.from_ndarray(black, format="rgb24")):
                    out.mux(packet)
            for packet in picture.encode():
                out.mux(packet)
        frame = av.AudioFrame.from_ndarray(np.stack([MASTER, MASTER]), "fltp", "stereo")
        frame.sample_rate, frame.pts = RATE, 0
        context = stream.codec_context
        resampler = av.AudioResampler(context.format.name, layout, rate)
        fifo = av.AudioFifo()
        for piece in (*resampler.resample(frame), *resampler.resample(None)):
            fifo.write(piece)
        size = context.frame_size or 1024
        while piece := fifo.read(size) or fifo.read(size, partial=True):
            for packet in stream.encode(piece):
                out.mux(packet)
        for packet in stream.encode(None):
            out.mux(packet)
    return file.getvalue()


FILES = {
    "m4a": ("ipod", "aac", {}),
    "mp4 video": ("mp4", "aac", {"video": True}),
    "aac": ("adts", "aac", {}),
    "webm": ("webm", "libopus", {"rate": 48000}),
    "mkv video": ("matroska", "pcm_s16le", {"video": True}),
    "mkv flac": ("matroska", "flac", {}),
    "alac": ("ipod", "alac", {}),
    "mpegts": ("mpegts", "aac", {}),
    "flv": ("flv", "aac", {}),
    "avi": ("avi", "pcm_s16le", {}),
    "wavpack": ("wv", "wavpack", {}),
    "ac3": ("ac3", "ac3", {}),
    "mono": ("ipod", "aac", {"layout": "mono", "rate": 16000}),
    "adpcm wav": ("wav", "adpcm_ms", {}),
}


def test_a_chunk_that_claims_gigabytes_costs_none():
    """FFmpeg reads a `bext` chunk of 2 GiB in one call; Python must not make room for its claim.

    Found by fuzz/: bytes, not samples, so the limit on sound says nothing about it.
    """
    pytest.importorskip("av", reason="the extra asr-rtf[av] is not installed")
    # A format that only FFmpeg might know, so that it is asked.
    fmt = b"fmt \x10\0\0\0" + struct.pack("<HHIIHH", 1, 0, 16000, 16000, 0, 16)
    data = b"RIFF\0\1\0\0WAVEbext" + struct.pack("<I", 0x7FFFFFFF) + bytes(700) + fmt
    tracemalloc.start()
    try:
        with pytest.raises(asr.AudioError, match="bytes: expected sound"):
            audio.read(data)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def level_of_difference(found, rate):
    """How far below the master the difference is, and the lag in seconds, at the best lag."""
    at_rate = signal.resample_poly(MASTER, rate, RATE) if rate != RATE else MASTER
    part = at_rate[rate // 2 : rate * 2]
    lags = signal.correlate(found, part, mode="valid")
    start = int(np.argmax(lags))
    error = found[start : start + len(part)] - part
    return np.square(error).mean() / np.square(part).mean(), (start - rate // 2) / rate


@pytest.mark.parametrize("name", FILES)
def test_containers_give_the_same_sound(tmp_path, name):
    """Length to 0.07 s, place to 30 ms, 7 dB or more above the coding error; any name."""
    container, codec, options = FILES[name]
    content = encoded(container, codec, **options)
    (tmp_path / "x.wav").write_bytes(content)
    told = []
    found = audio.read(tmp_path / "x.wav", warn=told.append)
    assert (options.get("rate", RATE), []) == (found.sample_rate_hz, told)
    assert found.duration_s == pytest.approx(SECONDS, abs=0.07)
    difference, lag = level_of_difference(found.samples, found.sample_rate_hz)
    assert difference < 0.2
    assert abs(lag) < 0.03
    assert np.array_equal(found.samples, audio.read(content).samples)
    channels = list(audio.read_channels(content))
    assert len(channels) == (1 if options.get("layout") == "mono" else 2)
    assert all(len(c.samples) == len(found.samples) for c in channels)


@pytest.mark.parametrize("name", ["aac", "webm", "mkv flac", "mpegts", "flv", "wavpack"])
def test_a_cut_file_is_heard_as_far_as_it_goes(name):
    """Two thirds of the bytes are about two thirds of the sound, with a warning."""
    container, codec, options = FILES[name]
    content = encoded(container, codec, **options)
    told = []
    found = audio.read(content[: len(content) * 2 // 3], warn=told.append)
    assert found.duration_s == pytest.approx(SECONDS * 2 / 3, abs=0.4)
    if name != "mpegts":  # a stream may end anywhere
        assert [line.partition(":")[0] for line in told] == ["audio_damaged"]


def test_a_damaged_packet_costs_a_packet():
    """What follows a packet that cannot be decoded is heard; strict refuses."""
    content = bytearray(encoded("ipod", "aac"))
    middle = len(content) // 3
    content[middle : middle + 60] = bytes(range(1, 61))
    told = []
    found = audio.read(bytes(content), warn=told.append)
    assert found.duration_s > 0.95 * SECONDS
    assert told[0].startswith("audio_damaged: ")
    with pytest.raises(asr.AudioError, match="expected an undamaged file"):
        audio.read(bytes(content), strict=True)


def test_an_m4a_cut_before_its_index_is_refused_in_one_line():
    """The index of an MP4 stands at its end: without it nothing can be found."""
    content = encoded("ipod", "aac")
    with pytest.raises(asr.AudioError, match=r"^bytes: expected sound, could not decode") as seen:
        audio.read(content[: len(content) // 2])
    assert len(str(seen.value).splitlines()) == 1


def test_a_video_without_sound_is_refused():
    """Pictures only."""
    av = pytest.importorskip("av", reason="the extra asr-rtf[av] is not installed")
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8), format="rgb24")
        for packet in (*stream.encode(frame), *stream.encode()):
            out.mux(packet)
    with pytest.raises(asr.AudioError, match=r"expected sound, found MP4 \(M4A, video\) without"):
        audio.read(file.getvalue())


def test_a_container_costs_the_memory_of_its_sound(tmp_path):
    """A length of days in the header of an M4A: the peak is that of the honest file."""
    content = bytearray(encoded("ipod", "aac", layout="mono", rate=16000))
    (tmp_path / "honest").write_bytes(content)
    for mark, place in ((b"mvhd", 20), (b"mdhd", 20), (b"tkhd", 24)):
        start = content.find(mark) + place
        content[start : start + 4] = (0x7FFFFFF0).to_bytes(4, "big")
    (tmp_path / "lie").write_bytes(content)
    program = (
        "import resource, sys, warnings; from asr import audio; warnings.simplefilter('ignore');"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
        "audio.read(sys.argv[1]); first = peak(); audio.read(sys.argv[2]); print(peak() - first)"
    )
    command = [sys.executable, "-c", program, tmp_path / "honest", tmp_path / "lie"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 20_000
