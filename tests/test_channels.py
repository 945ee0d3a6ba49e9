"""--split-channels: each channel is heard by itself; every output says who spoke, by time."""

import dataclasses
import json
import re
import subprocess
import time

import fakes
import numpy as np
import pytest
import soundfile
from conftest import COMMAND, ROOT

import asr
from asr import formats, text
from asr.text import Vocabulary

RATE = 16000
VALIDATOR = fakes.schema_validator("channels")
ONE = fakes.schema_validator()


@pytest.fixture(scope="module")
def voices():
    """Two clips of equal length: who speaks left, who speaks right."""
    left, right = (
        soundfile.read(ROOT / "golden" / "audio" / f"{name}.wav", dtype="float32")[0]
        for name in ("computer-slt", "alexa-rms")
    )
    length = max(len(left), len(right))
    return [np.pad(x, (0, length - len(x))) for x in (left, right)]


@pytest.fixture(scope="module")
def call(voices, tmp_path_factory):
    """A caller left, an agent right, both at once, and a channel on which nobody speaks."""
    path = tmp_path_factory.mktemp("calls") / "call.wav"
    soundfile.write(path, np.stack([*voices, 0 * voices[0]], axis=1), RATE)
    return path


def answer(transcript):
    return dataclasses.replace(transcript, wall_s=0, channel=None)


def test_each_channel_is_what_it_is_alone(recognizer, call):
    """Channel by channel the transcript of `channel=N`, numbered, with its own time spent."""
    start_s = time.perf_counter()
    found = recognizer.transcribe_channels(call)
    assert sum(t.wall_s for t in found) <= time.perf_counter() - start_s
    assert [t.channel for t in found] == [1, 2, 3]
    assert [t.text for t in found] == ["computer", "alexa", ""]
    assert found[2].reason == "silence"
    for transcript in found:
        alone = recognizer.transcribe(call, channel=transcript.channel)
        assert alone.channel == transcript.channel
        assert answer(alone) == answer(transcript)
        assert transcript.wall_s > 0


def test_every_source_can_be_split(recognizer, call, voices):
    """Bytes and arrays like files; mono is one channel; Audio is mono."""
    expected = [answer(t) for t in recognizer.transcribe_channels(call)]
    assert expected == [answer(t) for t in recognizer.transcribe_channels(call.read_bytes())]
    array = np.stack(voices, axis=1)
    found = recognizer.transcribe_channels(array, sample_rate=RATE)
    assert [t.text for t in found] == ["computer", "alexa"]
    (mono,) = recognizer.transcribe_channels(voices[1], sample_rate=RATE)
    assert (mono.text, mono.channel) == ("alexa", 1)


def test_a_damaged_file_is_told_on_each_channel(recognizer, call, tmp_path):
    """Each transcript stands alone, so each carries what is wrong with the file."""
    cut = tmp_path / "cut.wav"
    cut.write_bytes(call.read_bytes()[:-6000])
    found = recognizer.transcribe_channels(cut)
    assert {t.warnings for t in found} == {found[0].warnings}
    assert found[0].warnings[0].startswith("audio_damaged: ")
    with pytest.raises(asr.AudioError, match="undamaged"):
        recognizer.transcribe_channels(cut, strict=True)


# The command.

TEXTS = "Channel 1: computer\nChannel 2: alexa\n"


def test_text_is_a_line_per_stretch_of_speech(cli, call):
    """Channels with text have lines; the silent one is told on stderr."""
    done = cli("transcribe", call, "--split-channels")
    assert (done.code, sorted(done.out.splitlines(True))) == (0, TEXTS.splitlines(True))
    assert done.err == f"asr: {call} (channel 3): no text (silence)\n"
    both = cli("transcribe", call, call, "--split-channels", "-q").out
    assert both.count(f"{call}\tChannel 1: computer\n") == 2
    assert both.count(f"{call}\tChannel 2: alexa\n") == 2
    assert cli("transcribe", call, "--channel", "2").out == "alexa\n"


def test_a_pipe_is_split_too(call):
    """Standard input can be read once: it is held while its channels are heard."""
    with call.open("rb") as file:
        done = subprocess.run(
            [*COMMAND, "transcribe", "-", "--split-channels", "-q"],
            input=file.read(), capture_output=True, check=False, timeout=60,
        )  # fmt: skip
    assert sorted(done.stdout.decode().splitlines(True)) == TEXTS.splitlines(True)


def test_json_holds_a_transcript_per_channel(cli, call, tmp_path):
    """One line and one valid document per file; each transcript is valid by itself."""
    done = cli("transcribe", call, call, "--split-channels", "--json", "-q")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert len(lines) == 2
    cli("transcribe", call, "--split-channels", "-o", tmp_path / "call.json", "-q")
    for line in (*lines, json.loads((tmp_path / "call.json").read_text())):
        VALIDATOR.validate(line)
        assert [(t["channel"], t["text"]) for t in line["channels"]] == [
            (1, "computer"), (2, "alexa"), (3, ""),
        ]  # fmt: skip
        for transcript in line["channels"]:
            ONE.validate(transcript)
    assert not VALIDATOR.is_valid({**lines[0], "channels": []})
    assert not VALIDATOR.is_valid(lines[0]["channels"][0])
    assert not ONE.is_valid({**lines[0]["channels"][0], "channel": 0})


def test_json_of_one_channel_says_which(cli, call):
    """`--channel` is in the transcript too, and the mean of all is null."""
    (one,) = cli("transcribe", call, "--channel", "2", "--json").out.splitlines()
    (mean,) = cli("transcribe", call, "--json").out.splitlines()
    assert (json.loads(one)["channel"], json.loads(mean)["channel"]) == (2, None)


def test_repeating_compares_channel_by_channel(cli, call, monkeypatch):
    """The second channel changes: exit 12 with both its texts."""
    texts = iter(["a", "b", "a", "c"])
    made = fakes.recognizer(fakes.rows(["▁hello"])).transcribe(fakes.hiss(RATE), sample_rate=RATE)

    def transcribe_channels(*_args, **_options):
        return tuple(dataclasses.replace(made, text=next(texts), channel=n) for n in (1, 2))

    monkeypatch.setattr(asr.Recognizer, "transcribe_channels", transcribe_channels)
    done = cli("transcribe", call, "--split-channels", "--repeat", "2")
    assert done.code == 12
    assert "'b', then 'c'" in done.err


# The formats.


def speech(channel, *said, audio_s=20.0):
    """A transcript of words at times: (start in rows of 60 ms, pieces)."""
    segments = []
    for row, pieces in said:
        spans = [(row + 2 * k, row + 2 * k + 1) for k in range(len(pieces))]
        made = text.transcribe(
            fakes.decoded([fakes.ID[p] for p in pieces], spans=spans),
            Vocabulary(fakes.PIECES), audio_s=audio_s, requested_itn=False,
        )  # fmt: skip
        segments += made.segments
    made = text.from_segments(
        tuple(segments), audio_s=audio_s, reason=None if segments else "silence"
    )
    return dataclasses.replace(made, channel=channel, wall_s=0.5)


TALK = [
    speech(1, (10, ["▁hello", "▁you"]), (200, ["▁meet"])),
    speech(2, (100, ["▁you"]), (201, ["▁v", "ad"])),
    speech(3),
]


def render(name, heard=TALK, **options):
    return formats.render(heard, name, source="call.wav", **options)


def test_turns_are_in_the_order_of_time():
    """A conversation reads as one."""
    assert render("txt") == (
        "Channel 1: hello you\nChannel 2: you\nChannel 1: meet\nChannel 2: vad\n"
    )
    assert render("txt", [speech(1), speech(2)]) == "\n"


def test_srt_has_one_count_and_one_order():
    """Numbers go up with the time; both are shown where both speak."""
    cues = render("srt").split("\n\n")
    assert [c.split("\n")[0] for c in cues] == ["1", "2", "3", "4"]
    assert [c.split("\n")[2] for c in cues] == [
        "Channel 1: hello you", "Channel 2: you", "Channel 1: meet", "Channel 2: vad",
    ]  # fmt: skip
    times = [c.split("\n")[1] for c in cues]
    assert times == sorted(times)
    assert times[2:] == ["00:00:11,970 --> 00:00:12,970", "00:00:12,030 --> 00:00:13,030"]


def test_vtt_has_voices_and_lrc_has_labels():
    """The voice is markup, never escaped; a lyric is a line."""
    assert "\n00:00:05.970 --> 00:00:06.970\n<v Channel 2>you\n" in render("vtt")
    voices = re.findall(r"<v Channel (\d)>", render("vtt"))
    assert voices == ["1", "2", "1", "2"]
    assert "[00:05.97]Channel 2: you\n" in render("lrc")


def test_tsv_has_a_column():
    """Rows by time, words too."""
    header, *rows = render("tsv").splitlines()
    assert header == "start\tend\tchannel\ttext"
    assert rows[1] == "5970\t6030\t2\tyou"
    assert [r.split("\t")[2] for r in rows] == ["1", "2", "1", "2"]
    words = render("tsv", words=True).splitlines()
    assert words[2:4] == ["690\t750\t1\tyou", "5970\t6030\t2\tyou"]


def test_one_transcript_alone_has_no_label():
    """`--channel 2` hears one voice: its files are those of a mono recording."""
    mono = dataclasses.replace(TALK[1], channel=None)
    for name in ("txt", "srt", "vtt", "tsv", "lrc"):
        assert render(name, TALK[1]) == render(name, mono)
        assert "hannel" not in render(name, TALK[1])


@pytest.mark.parametrize(("name", "lines"), [("srt", 2), ("lrc", 1)])
def test_the_label_counts_as_part_of_its_line(name, lines):
    """No line is wider than 42 columns with it, nothing of the text is lost."""
    pieces = ["▁hello"] * 30 + ["测试"] * 30 + ["▁wor"] + ["ld"] * 40
    said = speech(12, (0, pieces), audio_s=60.0)
    shown = render(name, [said])
    body = [x for x in shown.splitlines() if x and not x.isdecimal() and "-->" not in x]
    body = [x.partition("]")[2] if name == "lrc" else x for x in body]
    assert max(map(formats.cues.columns, body)) <= 42
    assert sum(x.startswith("Channel 12:") for x in body) >= len(body) / lines
    spoken = "".join(x.removeprefix("Channel 12:") for x in body).replace(" ", "")
    assert spoken == said.text.replace(" ", "")


def test_a_withheld_text_is_shown_on_no_channel():
    """As for one transcript: only JSON keeps what was withheld."""
    withheld = TALK[0].withheld()
    for name in ("txt", "srt", "vtt", "tsv", "lrc"):
        assert "hello" not in render(name, [withheld, TALK[1]])
    assert "hello" in render("json", [withheld, TALK[1]])
