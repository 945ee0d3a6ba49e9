"""Rows 1 to 23: audio containers and signals that broke other programs. Numbers: README.md."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
import test_audio_av
import test_audio_wav
import test_cli
import test_recognizer
from conftest import COMMAND
from test_audio_wav import chunk, encode, fmt, riff

import asr
from asr import audio

RATE = 16000
too_short = test_recognizer.test_less_than_a_tenth_of_a_second_is_too_short
LENGTHS = [0, 1, 2, 159, 160, 239, 240, 241, 399, 400, 401, 1359, 1360, 1361]


@pytest.fixture(scope="module")
def samples(clip):
    return soundfile.read(clip, dtype="float32")[0]


@pytest.fixture(scope="module")
def said(recognizer, clip):
    return recognizer.transcribe(clip).text


def piped(content, *arguments):
    """`asr transcribe -` with this on standard input; it must end within seconds."""
    return subprocess.run(
        [*COMMAND, "transcribe", "-", "-q", *arguments],
        input=content, capture_output=True, check=False, timeout=20,
    )  # fmt: skip


@pytest.mark.parametrize("length", LENGTHS)
def test_case_001_shorter_than_a_window(recognizer, cli, tmp_path, length):
    """An empty text with a reason, exit 0; rows as the formula says."""
    too_short(recognizer, length)
    soundfile.write(tmp_path / "x.wav", np.full(length, 0.1), RATE)
    done = cli("transcribe", tmp_path / "x.wav")
    assert (done.code, done.out) == (0, "\n")
    assert "no text (too_short)" in done.err
    frames = recognizer.front_end.fbank(audio.read(np.zeros(length, np.float32), RATE))
    count = max(0, 1 + (length - 400) // 160)
    assert frames.values.shape == (count, 80)
    assert len(recognizer.front_end.lfr(frames).values) == -(-count // 6)


@pytest.mark.parametrize("size", [0, 6, 43, 44])
def test_case_002_a_file_of_a_few_bytes(cli, clip, tmp_path, size):
    """No readable sound: exit 3, one line with the path, nothing on stdout."""
    path = tmp_path / "x.wav"
    path.write_bytes(clip.read_bytes()[:size])
    done = cli("transcribe", path)
    test_cli.failed(done, 3, str(path))
    assert done.out == ""


def test_case_003_zero_samples_into_the_engine(recognizer):
    """Nothing in, nothing out, no signal."""
    found = recognizer.transcribe(np.zeros(0, np.float32), sample_rate=RATE)
    assert (found.text, found.reason) == ("", "too_short")


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
def test_case_005_a_pipe_of_unknown_length(samples, said, size):
    """RIFF and data sizes of a pipe: read to the end, the text of the seekable file."""
    data = chunk(b"data", encode(samples, "s16"), size=size)
    done = piped(riff(chunk(b"fmt ", fmt()), data, size=size))
    assert (done.returncode, done.stdout.decode()) == (0, said + "\n")


def test_case_006_bytes_that_text_mode_would_eat(recognizer, samples, said):
    """0x1A and CR LF inside the samples end nothing: every byte arrives."""
    data = encode(samples, "s16") + b"\x1a\x0d\x0a\x1a" * 16000
    done = piped(riff(chunk(b"fmt ", fmt()), chunk(b"data", data)), "--json")
    text = done.stdout.decode()
    assert f'"audio_s": {len(data) / 2 / RATE}' in text
    assert f'"text": "{said}' in text


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n" + bytes(99), b"\x7fELF" + bytes(999), b"hello\n", b"", None],
    ids=["PNG", "ELF", "text", "empty", "folder"],
)  # fmt: skip
def test_case_008_what_is_no_wav(cli, tmp_path, content):
    """Exit 3 in one line; a folder without sound is none either."""
    path = tmp_path / "x.wav"
    path.mkdir() if content is None else path.write_bytes(content)
    test_cli.failed(cli("transcribe", path), 3, str(path))


CHUNKS = {
    "JUNK first": (test_audio_wav.JUNK, 16, b""),
    "LIST before and after": (test_audio_wav.LIST, 16, test_audio_wav.LIST),
    "fmt of 18": (b"", 18, b""),
    "fact and bext": (chunk(b"fact", b"\0\1\0\0") + chunk(b"bext", bytes(602)), 16, b""),
    "odd bext": (test_audio_wav.ODD, 16, test_audio_wav.JUNK),
}


@pytest.mark.parametrize("name", CHUNKS)
def test_case_009_chunks_of_other_programs(samples, clip, name):
    """Samples identical to those of the plain file, wherever the chunks stand."""
    before, size, after = CHUNKS[name]
    content = riff(
        before, chunk(b"fmt ", fmt(size=size)), chunk(b"data", encode(samples, "s16")), after
    )
    assert np.array_equal(audio.read(content).samples, audio.read(clip).samples)


@pytest.mark.parametrize("extensible", [False, True])
@pytest.mark.parametrize("kind", test_audio_wav.KINDS)
def test_case_010_every_sample_format(kind, extensible):
    """Plain and EXTENSIBLE, within a step of the float master."""
    test_audio_wav.test_every_encoding(kind, 1, extensible)


@pytest.fixture(scope="module")
def call(tmp_path_factory, recognizer):
    """One voice left, another right, one after the other; and their texts."""
    golden = Path(__file__).parents[2] / "golden" / "audio"
    left, right = (
        soundfile.read(golden / f"{name}.wav", dtype="float32")[0]
        for name in ("computer-slt", "jarvis-awb")
    )
    both = np.zeros((len(left) + len(right), 2), np.float32)
    both[: len(left), 0], both[len(left) :, 1] = left, right
    path = tmp_path_factory.mktemp("call") / "call.wav"
    soundfile.write(path, both, RATE)
    return path


def test_case_012_separate_channels(call, cli):
    """The mean carries both, --channel one, --split-channels each by itself."""
    assert cli("transcribe", call).out == "computer jarvis\n"
    assert cli("transcribe", call, "--channel", "2").out == "jarvis\n"
    assert cli("transcribe", call, "--split-channels").out == (
        "Channel 1: computer\nChannel 2: jarvis\n"
    )


def test_case_013_downmix_keeps_the_level(recognizer, samples):
    """L = R at 0.9 of full scale: the mean, no clipping, features of the mono sound."""
    mono = samples * np.float32(0.9 / np.abs(samples).max())
    found = audio.read(np.stack([mono, mono], axis=1), RATE)
    features = recognizer.front_end.fbank
    difference = features(found).values - features(audio.read(mono, RATE)).values
    assert np.abs(difference).max() <= 1e-4


def test_case_014_shapes_of_stereo_arrays(recognizer, samples):
    """(n, 2) has its length, its transpose is refused, interleaved samples are twice as long."""
    two = np.stack([samples, samples], axis=1)
    found = recognizer.transcribe(two, sample_rate=RATE)
    assert found.audio_s == len(samples) / RATE
    assert found.segments[-1].end_s <= found.audio_s
    with pytest.raises(asr.AudioError, match="transpose it"):
        recognizer.transcribe(two.T, sample_rate=RATE)
    assert audio.read(two.ravel(), RATE).duration_s == 2 * found.audio_s


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 24000, 32000, 44100, 48000, 96000])
def test_case_015_other_rates(recognizer, samples, said, tmp_path, rate):
    """One clip at each rate, in stereo: the same text; at 8 kHz one word of nine may differ."""
    import soxr

    other = soxr.resample(samples, RATE, rate)
    soundfile.write(tmp_path / "x.wav", np.stack([other, other], axis=1), rate)
    found = recognizer.transcribe(tmp_path / "x.wav")
    assert found.audio_s == pytest.approx(len(samples) / RATE, abs=1e-3)
    wrong = sum(a != b for a, b in zip(found.text.split(), said.split(), strict=False))
    assert wrong <= (rate == 8000)
    assert len(found.text.split()) == len(said.split())


@pytest.mark.parametrize("rate", [8000, RATE])
def test_case_017_018_long_sound_at_8_khz_begins_with_its_first_word(cli, samples, tmp_path, rate):
    """Resampled before it is cut: exit 0, and speech from sample 0 is heard from the start."""
    import soxr

    voiced = samples[np.flatnonzero(np.abs(samples) > 0.02)[0] :]
    long = np.concatenate([voiced, *[np.pad(samples, (4000, 4000))] * 11])
    soundfile.write(tmp_path / "x.wav", soxr.resample(long, RATE, rate), rate)
    done = cli("transcribe", tmp_path / "x.wav", "--format", "tsv", "--words")
    first = done.out.splitlines()[1].split("\t")
    assert (done.code, first[2]) == (0, "one")
    assert int(first[0]) <= 100


def test_case_019_m4a_without_ffmpeg(monkeypatch, tmp_path):
    """No program is asked for: decoded in-process, or the line says what to install; exit 3."""
    test_audio_av.test_without_pyav_the_message_says_how_to_get_it(
        tmp_path, monkeypatch, b"\0\0\0\x20ftypM4A \0\0\0\0"
    )


def test_case_020_a_container_that_lies_about_its_length(tmp_path):
    """Memory follows the sound: an MP3 tag and an M4A with a video promise more than there is."""
    test_audio_av.test_a_container_costs_the_memory_of_its_sound(tmp_path)
    test_audio_wav.test_a_header_costs_no_memory(tmp_path)


@pytest.mark.parametrize("name", ["x", "x.bin", "x.WAV", "x.mp3"])
def test_case_022_the_content_decides(recognizer, clip, said, tmp_path, name):
    """Without an extension, or with another's: the same text."""
    (tmp_path / name).write_bytes(clip.read_bytes())
    assert recognizer.transcribe(tmp_path / name).text == said


def test_case_023_a_missing_file(cli, tmp_path):
    """Not found, by name, exit 3."""
    test_cli.failed(
        cli("transcribe", tmp_path / "nope.wav"), 3, f"{tmp_path}/nope.wav: file not found"
    )


def test_case_101_nothing_is_written_beside_the_input(clip, tmp_path):
    """A read-only folder, an odd name, a sibling .wav: heard, and nothing there has changed."""
    (tmp_path / "talk.bin").write_bytes(clip.read_bytes())
    (tmp_path / "talk.wav").write_bytes(b"mine")
    tmp_path.chmod(0o555)
    try:
        done = subprocess.run(
            [*COMMAND, "transcribe", tmp_path / "talk.bin"], capture_output=True, check=False
        )
        assert done.returncode == 0
        assert sorted(p.name for p in tmp_path.iterdir()) == ["talk.bin", "talk.wav"]
        assert (tmp_path / "talk.wav").read_bytes() == b"mine"
    finally:
        tmp_path.chmod(0o755)


def test_case_102_an_unreadable_file_is_never_replaced_by_another_sound(cli, tmp_path):
    """It fails; nothing synthetic is transcribed in its place."""
    (tmp_path / "x.wav").write_bytes(b"no sound")
    done = cli("transcribe", tmp_path / "x.wav")
    assert (done.code, done.out) == (3, "")
