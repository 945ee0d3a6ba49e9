"""asr-edge says what Python says, from a bundle, with the same runtime's library; its manners."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from edge import (
    CLIP,
    PROGRAM,
    ROOT,
    WORDS,
    assert_same,
    edge,
    environment,
    heard,
    python,
    samples_of,
    write_float,
    write_wav,
)

from asr.deploy import bundle
from asr.hub import find_model
from asr.layouts import open_layout
from asr.phrases import PhraseList
from asr.recognizer import Recognizer

sys.path.append(str(ROOT))
from golden import compare, signals

CASES = signals.load_cases()
SPEECH = [ROOT / "golden/audio" / case["file"] for case in CASES["speech"]]

pytestmark = pytest.mark.usefixtures("edge_program")


def test_every_golden_clip_gives_what_python_gives(tiny_bundle, recognizer):
    """Text, ids' times, confidence, entropy, tags, rejection: every member of the transcript."""
    for ours, path in zip(heard(tiny_bundle, *SPEECH), SPEECH, strict=True):
        assert_same(ours, python(recognizer, path), path.name)


def test_every_golden_signal_gives_what_python_gives(tiny_bundle, recognizer, tmp_path):
    """Clipping, offsets, silence, noise: what is no speech is refused alike."""
    paths = [
        write_float(tmp_path / f"{signals.name_of(case)}.wav", signals.samples_of(case))
        for case in CASES["signal"]
        if len(signals.samples_of(case)) < 10 * 16000
    ]
    for ours, path in zip(heard(tiny_bundle, *paths), paths, strict=True):
        assert_same(ours, python(recognizer, path), path.name)


def test_dumps_are_those_of_the_golden_cases(tiny_bundle, tmp_path):
    """ASR_DUMP writes each stage; front end and ids agree with the independent references."""
    golden = ROOT / "golden/expected"
    reports = {p.stem: json.loads((golden / p.stem / "text.json").read_text()) for p in SPEECH}
    stable = [path for path in SPEECH if reports[path.stem].get("stable", True)]
    heard(tiny_bundle, *stable, ASR_DUMP=str(tmp_path))
    for path in stable:
        decoded = compare.load(tmp_path / path.stem / "09-decode.npz")
        tags = int(decoded["prompt_frames"])
        ids = [*decoded["argmax"][:tags], *decoded["token_ids"]]
        assert ids == reports[path.stem]["ids"], path.stem
    steps = list(compare.compare(golden, tmp_path, CASES["tolerance"]))
    assert {step for _, step, _ in steps} >= {"04-fbank.npz", "06-cmvn.npz", "09-decode.npz"}
    assert [step for step in steps if step[2]] == []


@pytest.mark.parametrize("detector", ["silero", "energy"])
def test_long_sound_is_cut_where_python_cuts_it(
    detector, tiny_bundle, copy, recognizer, conversation, monkeypatch
):
    """By Silero's network where the bundle holds it, by the energy where not."""
    folder = tiny_bundle
    if detector == "energy":
        folder = copy
        described = json.loads((copy / "bundle.json").read_text())
        described["files"] = [f for f in described["files"] if f["name"] != bundle.DETECTOR]
        (copy / "bundle.json").write_text(json.dumps(described))
        monkeypatch.setattr("asr.vad.silero.load", lambda: None)
        recognizer = Recognizer(recognizer.layout, recognizer.front_end, recognizer.engine)
        with pytest.warns(RuntimeWarning, match="cut by its energy"):
            wanted = python(recognizer, conversation)
    else:
        wanted = python(recognizer, conversation)
    (ours,) = heard(folder, conversation)
    assert len(ours["segments"]) > 3
    assert_same(ours, wanted)


def test_long_sound_without_sure_words_is_judged_as_python_does(tiny_bundle, recognizer, tmp_path):
    """Silence, nothing but unsure pieces, and some of each: reason, rejection, warnings."""
    rng = np.random.default_rng(3)
    silence = rng.normal(0, 20, 12 * 16000)
    backwards = np.concatenate([samples_of(path)[::-1] for path in SPEECH[:3]])
    unsure = np.concatenate([silence, backwards, silence])
    paths = [
        write_wav(tmp_path / "silence.wav", np.concatenate([silence, silence])),
        write_wav(tmp_path / "unsure.wav", unsure),
        write_wav(tmp_path / "both.wav", np.concatenate([unsure, samples_of(CLIP), silence])),
    ]
    found = heard(tiny_bundle, *paths)
    assert [t["reason"] for t in found] == ["silence", "low_confidence", None]
    for ours, path in zip(found, paths, strict=True):
        assert_same(ours, python(recognizer, path), path.name)


def test_other_forms_of_sound_give_what_python_gives(tiny_bundle, recognizer, tmp_path):
    """Padded with digital silence, too short, two channels, raw on standard input."""
    clip = samples_of(CLIP)
    padded = np.concatenate([np.zeros(40000), clip, np.zeros(20000)])
    paths = [
        write_wav(tmp_path / "padded.wav", padded),
        write_wav(tmp_path / "short.wav", clip[:1500]),
        write_wav(tmp_path / "stereo.wav", np.stack([clip, clip // 2], 1).ravel(), 16000, 2),
    ]
    for ours, path in zip(heard(tiny_bundle, *paths), paths, strict=True):
        assert_same(ours, python(recognizer, path), path.name)
    (ours,) = heard(tiny_bundle, "--raw", 16000, "-", stdin=clip.astype("<i2").tobytes())
    assert_same(ours, {**python(recognizer, CLIP), "source": "stdin"})
    for size in (b"\0\0\0\0", b"\xff\xff\xff\xff"):  # what a recorder writes into a pipe
        content = CLIP.read_bytes()
        at = content.index(b"data") + 4
        (ours,) = heard(tiny_bundle, "-", stdin=content[:at] + size + content[at + 4 :])
        assert ours["text"] == WORDS


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_other_rates_are_resampled_as_python_does(tiny_bundle, recognizer, tmp_path, rate):
    """Another filter, the same words; audio_s is that of the source."""
    import soxr

    samples = soxr.resample(samples_of(CLIP).astype(np.float32), 16000, rate, quality="HQ")
    path = write_wav(tmp_path / "clip.wav", samples.round(), rate)
    (ours,) = heard(tiny_bundle, path)
    theirs = python(recognizer, path)
    assert ours["text"] == theirs["text"] != ""
    assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=0.02)
    assert ours["audio_s"] == theirs["audio_s"]


def test_a_language_and_itn_reach_the_network(tiny_bundle, recognizer):
    """The prompt's rows are those of Python."""
    (ours,) = heard(tiny_bundle, "--language", "zh", "--itn", CLIP)
    assert_same(ours, python(recognizer, CLIP, language="zh", itn=True))


def test_a_phrase_list_travels_in_the_bundle(recognizer, tmp_path):
    """Labels in the place of the text; what is not on the list is withheld."""
    listed = tmp_path / "phrases.txt"
    listed.write_text("seven => lucky\nstop\ncomputer => wake\n")
    layout = open_layout(find_model("tiny-en"))
    folder = bundle.write(layout, "listed", tmp_path / "bundle", phrase_file=listed)
    phrases = PhraseList.read(listed, layout.vocabulary)
    paths = [ROOT / f"golden/audio/{name}.wav" for name in ("seven-slt", "stop-awb", "yes-rms")]
    found = heard(folder, *paths)
    assert [t["text"] for t in found] == ["lucky", "stop", ""]
    for ours, path in zip(found, paths, strict=True):
        assert_same(ours, python(recognizer, path, phrases=phrases), path.name)
    assert Recognizer.load(folder, threads=1).transcribe(paths[0]).text == "lucky"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "expected a FILE"),
        (["--nonsense", "x.wav"], 2, "--nonsense: no such option"),
        (["--repeat", "0", "x.wav"], 2, "--repeat: expected a whole number of 1"),
        (["--language", "xx", str(CLIP)], 2, "unknown language"),
        (["nowhere.wav"], 3, "nowhere.wav: file not found"),
        ([str(ROOT / "README.md")], 3, "expected a WAV file"),
        ([str(ROOT)], 3, "found a folder"),
        (["--bundle", "/nowhere", str(CLIP)], 4, "expected a bundle"),
        (["prepare"], 2, "expected --out DIR"),
        (["prepare", "--out", str(ROOT)], 2, "expected an empty folder"),
        (["--serve", "x.wav"], 2, "expected no FILE"),
    ],
)
def test_an_error_is_one_line_and_a_code(tiny_bundle, arguments, code, message):
    """The house's exit codes; nothing on stdout."""
    done = edge(tiny_bundle, *arguments)
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (code, b""), told
    assert told.startswith("asr-edge: ")
    assert message in told
    assert told.count("\n") == 1


def test_a_missing_runtime_is_7_and_says_how_to_name_one(tiny_bundle):
    """Not a crash of the loader."""
    done = edge(tiny_bundle, CLIP, ORT_DYLIB_PATH="/nowhere/libonnxruntime.so")
    assert done.returncode == 7
    assert b"ORT_DYLIB_PATH" in done.stderr


def test_a_failure_stops_no_other_file(tiny_bundle):
    """The code is that of the first that failed."""
    done = edge(tiny_bundle, "nowhere.wav", CLIP)
    assert done.returncode == 3
    assert done.stdout.decode() == WORDS + "\n"


def test_a_reader_that_has_gone_is_141(tiny_bundle):
    """As head leaves it."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([PROGRAM, CLIP], stdout=write, env=environment(tiny_bundle), check=False)
    os.close(write)
    assert done.returncode == 141


def test_timings_add_up(tiny_bundle):
    """Stages and the rest are the call; the load belongs to the first file."""
    first, second = heard(tiny_bundle, "--timings", "--repeat", 3, CLIP, CLIP)
    assert first["timings"]["load"] is not None
    assert second["timings"]["load"] is None
    for call in first["timings"]["calls"]:
        total = call.pop("total")
        assert sum(call.values()) == pytest.approx(total, rel=1e-6)
        assert list(call) == ["read", "resample", "fbank", "lfr", "cmvn", "infer", "decode",
                              "text", "unaccounted"]  # fmt: skip
    assert len(first["timings"]["calls"]) == 3
    assert list(first["timings"]["board"]) == ["governor", "temperature_c", "throttled"]
    table = edge(tiny_bundle, "--timings", CLIP).stdout.decode()
    assert "session" in table
    assert "rtf" in table


def test_ten_minutes_need_no_512_mb(tiny_bundle, conversation, tmp_path):
    """Memory follows the longest piece, not the sound."""
    samples = np.tile(samples_of(conversation), 15)
    path = write_wav(tmp_path / "ten.wav", samples)
    (found,) = heard(tiny_bundle, "--timings", path)
    assert found["audio_s"] == pytest.approx(600)
    assert len(found["segments"]) > 100
    assert found["timings"]["peak_rss_bytes"] < 200e6


def test_version_needs_no_bundle():
    """It is the crate's."""
    done = edge("/nowhere", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"asr-edge 0.")
