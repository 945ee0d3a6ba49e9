"""asr-edge says what Python says, from a bundle, with the same runtime's library."""

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import wave
from pathlib import Path

import numpy as np
import pytest

from asr.deploy import bundle
from asr.formats import to_json
from asr.hub import find_model
from asr.layouts import open_layout
from asr.recognizer import Recognizer

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from golden import compare, signals  # noqa: E402

CASES = signals.load_cases()
EDGE = ROOT / "deploy/edge"
PROGRAM = ROOT / "target/release/asr-edge"
SPEECH = [ROOT / "golden/audio" / case["file"] for case in CASES["speech"]]
CLIP = ROOT / "golden/audio/transcribe_me.wav"
WORDS = "one two three four five six seven eight nine"
#: Confidence, entropy, times: Python and Rust add up in different orders.
CLOSE = 1e-5


@pytest.fixture(scope="session", autouse=True)
def program():
    """Built by cargo, which has nothing to do where nothing changed."""
    command = ["cargo", "build", "--quiet", "--release", "--locked", "-p", "asr-edge"]
    subprocess.run(command, cwd=ROOT, check=True)
    return PROGRAM


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """The bundle of the built-in model."""
    layout = open_layout(find_model("tiny-en"))
    return bundle.write(layout, "tiny-en", tmp_path_factory.mktemp("edge") / "bundle")


@pytest.fixture
def copy(made, tmp_path):
    """One to damage."""
    return Path(shutil.copytree(made, tmp_path / "copy"))


@pytest.fixture(scope="session")
def recognizer():
    return Recognizer.load(threads=1)


def environment(folder, **more):
    found = importlib.util.find_spec("onnxruntime").submodule_search_locations[0]
    (library,) = Path(found, "capi").glob("libonnxruntime.so.*")
    ours = ("ASR_DUMP", "ASR_BUNDLE", "ORT_DISABLE_TELEMETRY")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    return {**kept, "ORT_DYLIB_PATH": str(library), "ASR_BUNDLE": str(folder), **more}


def edge(folder, *arguments, stdin=b"", **more):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)],
        input=stdin, capture_output=True, env=environment(folder, **more), check=False,
    )  # fmt: skip


def heard(folder, *arguments, **more):
    done = edge(folder, "--json", "--threads", 1, *arguments, **more)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()]


def python(recognizer, path, **asked):
    return json.loads(to_json(recognizer.transcribe(path, **asked), str(path)))


def assert_same(ours, theirs, place=""):
    """The same members in the same order, text to the letter, numbers to 1e-5."""
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs), place
        for name in theirs:
            if name != "wall_s":
                assert_same(ours[name], theirs[name], f"{place}.{name}")
    elif isinstance(theirs, list):
        assert len(ours) == len(theirs), place
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{place}[{number}]")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, abs=CLOSE), place
    else:
        assert ours == theirs, place


def write_wav(path, samples, rate=16000, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, 2, rate, 0, "NONE", ""))
        file.writeframes(np.asarray(samples).astype("<i2").tobytes())
    return path


def write_float(path, samples, rate=16000):
    """Signals of the golden cases are float32; a WAV file can hold them as they are."""
    data = samples.astype("<f4").tobytes()
    head = struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16,
                       3, 1, rate, 4 * rate, 4, 32, b"data", len(data))  # fmt: skip
    path.write_bytes(head + data)
    return path


def samples_of(path):
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


@pytest.fixture(scope="session")
def conversation(tmp_path_factory):
    """40 s of clips with pauses of faint noise."""
    rng = np.random.default_rng(5)
    parts = []
    for path in SPEECH * 2:
        pause = rng.normal(0, 20, int(rng.uniform(0.4, 1.6) * 16000))
        parts += [samples_of(path), pause]
    samples = np.concatenate(parts)[: 40 * 16000]
    return write_wav(tmp_path_factory.mktemp("long") / "long.wav", samples)


# ------------------------------------------------------------------------------ the same as Python


def test_every_golden_clip_gives_what_python_gives(made, recognizer):
    """Text, ids' times, confidence, entropy, tags, rejection: every member of the transcript."""
    for ours, path in zip(heard(made, *SPEECH), SPEECH, strict=True):
        assert_same(ours, python(recognizer, path), path.name)


def test_every_golden_signal_gives_what_python_gives(made, recognizer, tmp_path):
    """Clipping, offsets, silence, noise: what is no speech is refused alike."""
    paths = [
        write_float(tmp_path / f"{signals.name_of(case)}.wav", signals.samples_of(case))
        for case in CASES["signal"]
        if len(signals.samples_of(case)) < 10 * 16000
    ]
    for ours, path in zip(heard(made, *paths), paths, strict=True):
        assert_same(ours, python(recognizer, path), path.name)


def test_dumps_are_those_of_the_golden_cases(made, tmp_path):
    """ASR_DUMP writes each stage; front end and ids agree with the independent references."""
    golden = ROOT / "golden/expected"
    reports = {p.stem: json.loads((golden / p.stem / "text.json").read_text()) for p in SPEECH}
    stable = [path for path in SPEECH if reports[path.stem].get("stable", True)]
    heard(made, *stable, ASR_DUMP=str(tmp_path))
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
    detector, made, copy, recognizer, conversation, monkeypatch
):
    """By Silero's network where the bundle holds it, by the energy where not."""
    folder = made
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


def test_other_forms_of_sound_give_what_python_gives(made, recognizer, tmp_path):
    """Padded with digital silence, too short, two channels, raw on standard input."""
    clip = samples_of(CLIP)
    padded = np.concatenate([np.zeros(40000), clip, np.zeros(20000)])
    paths = [
        write_wav(tmp_path / "padded.wav", padded),
        write_wav(tmp_path / "short.wav", clip[:1500]),
        write_wav(tmp_path / "stereo.wav", np.stack([clip, clip // 2], 1).ravel(), 16000, 2),
    ]
    for ours, path in zip(heard(made, *paths), paths, strict=True):
        assert_same(ours, python(recognizer, path), path.name)
    (ours,) = heard(made, "--raw", 16000, "-", stdin=clip.astype("<i2").tobytes())
    assert_same(ours, {**python(recognizer, CLIP), "source": "stdin"})
    (ours,) = heard(made, "-", stdin=CLIP.read_bytes())
    assert ours["text"] == WORDS


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_other_rates_are_resampled_as_python_does(made, recognizer, tmp_path, rate):
    """Another filter, the same words; audio_s is that of the source."""
    import soxr

    samples = soxr.resample(samples_of(CLIP).astype(np.float32), 16000, rate, quality="HQ")
    path = write_wav(tmp_path / "clip.wav", samples.round(), rate)
    (ours,) = heard(made, path)
    theirs = python(recognizer, path)
    assert ours["text"] == theirs["text"] != ""
    assert ours["confidence"] == pytest.approx(theirs["confidence"], abs=0.02)
    assert ours["audio_s"] == theirs["audio_s"]


def test_a_language_and_itn_reach_the_network(made, recognizer):
    """The prompt's rows are those of Python."""
    (ours,) = heard(made, "--language", "zh", "--itn", CLIP)
    assert_same(ours, python(recognizer, CLIP, language="zh", itn=True))


def test_a_phrase_list_travels_in_the_bundle(recognizer, tmp_path):
    """Labels in the place of the text; what is not on the list is withheld."""
    listed = tmp_path / "phrases.txt"
    listed.write_text("seven => lucky\nstop\ncomputer => wake\n")
    layout = open_layout(find_model("tiny-en"))
    folder = bundle.write(layout, "listed", tmp_path / "bundle", phrase_file=listed)
    from asr.phrases import PhraseList

    phrases = PhraseList.read(listed, layout.vocabulary)
    paths = [ROOT / f"golden/audio/{name}.wav" for name in ("seven-slt", "stop-awb", "yes-rms")]
    found = heard(folder, *paths)
    assert [t["text"] for t in found] == ["lucky", "stop", ""]
    for ours, path in zip(found, paths, strict=True):
        assert_same(ours, python(recognizer, path, phrases=phrases), path.name)


# ---------------------------------------------------------------------------- the program's manners


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
def test_an_error_is_one_line_and_a_code(made, arguments, code, message):
    """The house's exit codes; nothing on stdout."""
    done = edge(made, *arguments)
    told = done.stderr.decode()
    assert (done.returncode, done.stdout) == (code, b""), told
    assert told.startswith("asr-edge: ")
    assert message in told
    assert told.count("\n") == 1


def test_a_missing_runtime_is_7_and_says_how_to_name_one(made):
    """Not a crash of the loader."""
    done = edge(made, CLIP, ORT_DYLIB_PATH="/nowhere/libonnxruntime.so")
    assert done.returncode == 7
    assert b"ORT_DYLIB_PATH" in done.stderr


def test_a_failure_stops_no_other_file(made):
    """The code is that of the first that failed."""
    done = edge(made, "nowhere.wav", CLIP)
    assert done.returncode == 3
    assert done.stdout.decode() == WORDS + "\n"


def test_a_reader_that_has_gone_is_141(made):
    """As head leaves it."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([PROGRAM, CLIP], stdout=write, env=environment(made), check=False)
    os.close(write)
    assert done.returncode == 141


def test_timings_add_up(made):
    """Stages and the rest are the call; the load belongs to the first file."""
    first, second = heard(made, "--timings", "--repeat", 3, CLIP, CLIP)
    assert first["timings"]["load"] is not None
    assert second["timings"]["load"] is None
    for call in first["timings"]["calls"]:
        total = call.pop("total")
        assert sum(call.values()) == pytest.approx(total, rel=1e-6)
        assert list(call) == ["read", "resample", "fbank", "lfr", "cmvn", "infer", "decode",
                              "text", "unaccounted"]  # fmt: skip
    assert len(first["timings"]["calls"]) == 3
    assert list(first["timings"]["board"]) == ["governor", "temperature_c", "throttled"]
    table = edge(made, "--timings", CLIP).stdout.decode()
    assert "session" in table
    assert "rtf" in table


def test_ten_minutes_need_no_512_mb(made, conversation, tmp_path):
    """Memory follows the longest piece, not the sound."""
    samples = np.tile(samples_of(conversation), 15)
    path = write_wav(tmp_path / "ten.wav", samples)
    (found,) = heard(made, "--timings", path)
    assert found["audio_s"] == pytest.approx(600)
    assert len(found["segments"]) > 100
    assert found["timings"]["peak_rss_bytes"] < 200e6


def test_version_needs_no_bundle():
    """It is the crate's."""
    done = edge("/nowhere", "--version")
    assert done.returncode == 0
    assert done.stdout.startswith(b"asr-edge 0.")


# ----------------------------------------------------------------------------------------- bundles


def test_self_test_finds_every_changed_byte(made, copy):
    """Sizes at every start, checksums and the clip's text in the self-test."""
    done = edge(made, "--self-test")
    assert (done.returncode, done.stdout.decode()) == (0, f'tiny-en: self-test passed: "{WORDS}"\n')
    tokens = copy / bundle.TOKENS
    whole = tokens.read_bytes()
    tokens.write_bytes(whole[:-1] + b"?")
    assert (edge(copy, CLIP).returncode, edge(copy, "--self-test").returncode) == (0, 4)
    tokens.write_bytes(whole[:-1])
    done = edge(copy, CLIP)
    assert done.returncode == 4
    assert b"tokens.bin: expected" in done.stderr
    tokens.write_bytes(whole)
    described = json.loads((copy / "bundle.json").read_text())
    described["self_test"]["spoken"] = "something else"
    (copy / "bundle.json").write_text(json.dumps(described))
    assert edge(copy, "--self-test").returncode == 12


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "asr-bundle/9"}', '{"schema": 1}'])
def test_a_description_that_is_none_is_refused(copy, text):
    """And an unknown schema, before anything else is looked at."""
    (copy / "bundle.json").write_text(text)
    done = edge(copy, CLIP)
    assert done.returncode == 4
    assert b"bundle.json" in done.stderr


def test_a_bundle_never_overwrites(made):
    """A folder with something in it is left alone."""
    from asr.errors import UsageError

    with pytest.raises(UsageError, match="new or empty folder"):
        bundle.write(open_layout(find_model("tiny-en")), "x", made)


def test_the_command_of_the_page_makes_a_bundle(made, tmp_path):
    """docs/bundle.md: the same files as asr.deploy.bundle writes."""
    from asr.cli import main

    page = (ROOT / "docs/bundle.md").read_text()
    assert "\nasr deploy bundle tiny-en -o bundle\n" in page
    assert main(["deploy", "bundle", "tiny-en", "-o", str(tmp_path / "bundle")]) == 0
    names = {path.name for path in (tmp_path / "bundle").iterdir()}
    assert names == {path.name for path in made.iterdir()}
    assert all(f"`{name}`" in page for name in names)


def test_prepare_gives_the_same_and_refuses_another_cpu(made, recognizer, tmp_path):
    """What is prepared has its weights in a file of their own, and can be prepared anew."""
    out = tmp_path / "prepared"
    for _ in range(2):
        assert edge(made, "prepare", "--out", out).returncode == 0
    assert (out / "model.data").stat().st_size > 1_000_000
    (ours,) = heard(out, CLIP)
    assert_same(ours, python(recognizer, CLIP))
    assert edge(out, "--self-test").returncode == 0
    assert edge(out, "prepare", "--out", tmp_path / "again").returncode == 4
    described = json.loads((out / "bundle.json").read_text())
    described["prepared"]["cpu"] = "another"
    (out / "bundle.json").write_text(json.dumps(described))
    done = edge(out, CLIP)
    assert done.returncode == 4
    assert b"run asr-edge prepare again" in done.stderr


def test_python_hears_the_bundle_too(made, recognizer):
    """So that only the host differs: asr transcribe --model BUNDLE."""
    ours = Recognizer.load(made, threads=1)
    assert list(ours.layout.vocabulary.pieces) == list(recognizer.layout.vocabulary.pieces)
    assert_same(python(ours, CLIP), python(recognizer, CLIP))


@pytest.mark.parametrize("damage", ["cmvn.f32", "tokens.bin", "bundle.json", "prepared"])
def test_python_refuses_a_damaged_bundle(copy, damage):
    """One line that names the folder, never a traceback."""
    from asr.errors import LayoutError

    if damage == "prepared":
        described = json.loads((copy / "bundle.json").read_text())
        described["prepared"] = {"runtime": "1", "cpu": "x"}
        (copy / "bundle.json").write_text(json.dumps(described))
    else:
        (copy / damage).write_bytes((copy / damage).read_bytes()[:-3])
    with pytest.raises(LayoutError, match="bundle"):
        open_layout(copy)


def test_every_kind_of_token_survives_the_table():
    """Text, tags, bytes, control pieces: the pieces that come out are those that went in."""
    from asr.layouts.bundle import pack_tokens, unpack_tokens
    from asr.text import Vocabulary

    pieces = ["<s>", "<|en|>", "<0xE4>", "\u2581one", "\u4e00", "\u2581", "</s>", "\udce4"]
    assert unpack_tokens(pack_tokens(Vocabulary(pieces))) == pieces


@pytest.mark.parametrize(
    "command", re.findall(r"^ {4}(asr-edge .*|echo .*)", (ROOT / "docs/edge.md").read_text(), re.M)
)
def test_the_commands_of_the_page_work(command, made, tmp_path):
    """docs/edge.md, as it stands."""
    (tmp_path / "bundle").symlink_to(made)
    if "prepared clip" in command:
        assert edge(made, "prepare", "--out", tmp_path / "prepared").returncode == 0
    (tmp_path / "clip.wav").symlink_to(CLIP)
    (tmp_path / "clip.pcm").write_bytes(samples_of(CLIP).astype("<i2").tobytes())
    path = f"{PROGRAM.parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=tmp_path, env=environment("/nowhere", PATH=path), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert WORDS.encode() in done.stdout or not command.endswith(("wav", "pcm", "--serve"))


# ------------------------------------------------------------------------------------------- serve


class Served:
    """A process that stays, spoken to through pipes or a socket."""

    def __init__(self, folder, *arguments, path=None):
        words = [PROGRAM, "--serve", "--threads", "1", *map(str, arguments)]
        if path is not None:
            words += ["--socket", str(path)]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(folder)
        )
        self.into, self.out = self.process.stdin, self.process.stdout
        if path is not None:
            self.into = self.out = connect(path)

    def ask(self, data=b"", **request):
        self.into.write(json.dumps(request).encode() + b"\n" + data)
        self.into.flush()

    def get(self):
        return json.loads(self.out.readline())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        if self.into is not self.process.stdin:
            self.into.close()
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)
        self.process.stdout.close()


def connect(path):
    deadline = time.monotonic() + 20
    while True:
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(20)
        try:
            client.connect(str(path))
        except OSError:
            client.close()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            with client:  # the file keeps the connection
                return client.makefile("rwb")


def test_serve_answers_and_survives_what_is_wrong(made, recognizer):
    """Each bad request has its answer, and the next good one too; the end of input ends it."""
    clip = samples_of(CLIP).astype("<i2").tobytes()
    with Served(made) as served:
        served.ask(id=1, ping=True)
        assert served.get() == {"id": 1, "ok": True}
        wrong = [
            (b"nonsense\n", 2), (b"\xff\xfe\n", 2), (b"x" * 200_000 + b"\n", 2), (b"{}\n", 2),
            (b'{"id": 2, "file": "nowhere.wav"}\n', 3),
            (b'{"id": 2, "bytes": 3}\nabc', 2),
            (b'{"id": 2, "bytes": 2, "rate_hz": 1}\nab', 2),
            (b'{"id": 2, "bytes": 2, "language": "xx"}\nab', 2),
            (b'{"id": 2, "file": "%s"}\n' % str(ROOT / "README.md").encode(), 3),
        ]  # fmt: skip
        for line, code in wrong:
            served.into.write(line)
            served.into.flush()
            answer = served.get()
            assert answer["error"]["code"] == code, (line[:40], answer)
        served.ask(clip, id="x", bytes=len(clip), rate_hz=16000)
        wanted = {"id": "x", **python(recognizer, CLIP), "source": "samples"}
        assert_same(served.get(), wanted)
        served.ask(id=3, file=str(CLIP))
        assert served.get()["text"] == WORDS
    assert served.process.returncode == 0


def test_serve_says_busy_when_the_queue_is_full(made, conversation):
    """At once, with the request's id; what had a place is answered."""
    with Served(made, "--queue", 1) as served:
        for number in range(6):
            served.ask(id=number, file=str(conversation))
        answers = [served.get() for _ in range(6)]
        busy = [a["id"] for a in answers if a.get("busy")]
        done = [a["id"] for a in answers if a.get("text")]
        assert sorted(busy + done) == list(range(6))
        assert 0 in done
        assert len(busy) >= 3
        served.ask(id=9, file=str(CLIP))
        assert served.get()["text"] == WORDS


def test_a_stream_is_answered_where_somebody_stops_speaking(made):
    """The first answer comes while the second sentence has not been sent."""
    silence = bytes(2 * 16000)
    said = silence + samples_of(CLIP).astype("<i2").tobytes() + silence
    with Served(made) as served:
        starts = []
        for _ in range(2):
            for at in range(0, len(said), 6400):
                block = said[at : at + 6400]
                served.ask(block, id="mic", stream=True, bytes=len(block), rate_hz=16000)
            answer = served.get()
            assert (answer["id"], answer["text"]) == ("mic", WORDS)
            starts.append(answer["segments"][0]["start_s"])
        assert 0.9 < starts[0] < 1.5
        assert starts[1] - starts[0] == pytest.approx(len(said) / 32000, abs=0.1)
        served.ask(id="mic", stream=True, bytes=0, last=True)
        assert served.get() == {"id": "mic", "end": True, "audio_s": 2 * len(said) / 32000}


def test_a_socket_serves_several_and_gives_up_who_stops_in_the_middle(made, tmp_path):
    """One client is slow; the others never notice, and its own is told."""
    path = tmp_path / "asr.sock"
    with Served(made, "--timeout", 1, path=path) as served:
        with connect(path) as slow:
            slow.write(b'{"id": "slow", "bytes": 100}\nabc')
            slow.flush()
            served.ask(id=1, file=str(CLIP))
            assert served.get()["text"] == WORDS
            answer = json.loads(slow.readline())
            assert answer["id"] == "slow"
            assert "nothing came in time" in answer["error"]["message"]
            assert slow.readline() == b""
        served.ask(id=2, ping=True)  # silence between requests is no offence
        assert served.get() == {"id": 2, "ok": True}
        second = edge(made, "--serve", "--socket", path)
        assert second.returncode == 5
        assert b"found one that is answered" in second.stderr
    with Served(made, path=path) as served:  # the socket of a process that has ended is in no way
        served.ask(id=3, ping=True)
        assert served.get() == {"id": 3, "ok": True}


def test_serve_does_not_grow(made):
    """After warm-up 300 more requests of several lengths leave memory where it was."""
    clips = [samples_of(path).astype("<i2").tobytes() for path in SPEECH[:6]]

    def round_of(served, count):
        for number in range(count):
            data = clips[number % len(clips)]
            served.ask(data, id=number, bytes=len(data), rate_hz=16000)
            assert served.get()["id"] == number

    with Served(made) as served:

        def anonymous():
            lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
            (found,) = [line for line in lines if line.startswith("RssAnon")]
            return 1024 * int(found.split()[1])

        round_of(served, 60)
        before = anonymous()
        round_of(served, 300)
        assert anonymous() - before < 500_000


# --------------------------------------------------------------- bench: only the host differs


@pytest.fixture
def workload(tmp_path):
    shutil.copy(CLIP, tmp_path / "clip.wav")
    (tmp_path / "clips.tsv").write_text("file\nclip.wav\n")
    return tmp_path / "clips.tsv"


def test_bench_compares_the_hosts(made, workload, tmp_path, cli):
    """Cold, idle, warm, memory, crossings; the record has what the table shows."""
    words = ["bench", "--host", "python", "--host", "edge", "--model", str(made), "--quick",
             "--threads", "1", "--workload", str(workload), "--edge", str(PROGRAM)]  # fmt: skip
    done = cli(*words, "-o", str(tmp_path / "hosts.json"))
    assert done.code == 0, done
    found = json.loads((tmp_path / "hosts.json").read_text())
    assert found["schema"] == "asr-hosts/1"
    assert [row["state"] for row in found["rows"]] == ["cold", "idle", "warm"]
    assert found["texts"] == {"clip": WORDS}
    cold = found["rows"][0]
    assert cold["edge_ms"] < cold["python_ms"], "no interpreter to start"
    assert found["peak_rss_bytes"]["edge"] < found["peak_rss_bytes"]["python"]
    assert found["native_calls"]["edge"] == 0 < found["native_calls"]["python"]
    for word in ("clip, cold", "clip, warm", "most memory held", "texts: the same"):
        assert word in done.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--host", "edge"], 2, "--host python --host edge, both"),
        (["--edge", "x"], 2, "--edge: needs --host"),
        (["--host", "python", "--host", "edge", "--itn"], 2, "--itn: not used with --host"),
        (["--host", "python", "--host", "edge", "--edge", "/nowhere"], 7, "make edge builds it"),
    ],
)
def test_bench_refuses_what_makes_no_sense(words, code, message, workload, cli):
    """Before anything is measured."""
    done = cli("bench", "--workload", str(workload), *words)
    assert (done.code, done.out) == (code, "")
    assert message in done.err


def test_bench_refuses_hosts_that_hear_different_texts(made, workload, tmp_path, cli):
    """A program that answers with another text is not faster."""
    liar = tmp_path / "liar"
    liar.write_text(
        '#!/bin/sh\nwhile read -r line; do echo \'{"wall_s": 0.1, "text": "no"}\'; done\n'
    )
    liar.chmod(0o755)
    done = cli("bench", "--host", "python", "--host", "edge", "--model", str(made), "--quick",
               "--threads", "1", "--workload", str(workload), "--edge", str(liar))  # fmt: skip
    assert done.code == 12
    assert "Python heard" in done.err


# --------------------------------------------------------------------------------------- C library


def test_the_c_library_has_at_most_eight_functions():
    """What the header declares is what the library exports."""
    header = (EDGE / "include/asr_edge.h").read_text()
    declared = {
        w for w in header.replace("(", " ").replace("*", " ").split() if w.startswith("asr_edge_")
    }
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", ROOT / "target/release/libasr_edge.so"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    exported = {line.split()[-1] for line in listing.stdout.splitlines()}
    exported = {name for name in exported if name.startswith("asr_edge_")}
    assert len(exported) == 8
    assert exported <= declared


@pytest.mark.parametrize("compiler", ["cc -std=c99", "c++ -x c++"])
def test_the_example_in_c_compiles_and_runs(made, tmp_path, compiler):
    """With every warning an error, in both languages."""
    program = tmp_path / "transcribe"
    subprocess.run(
        [*compiler.split(), "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L",
         EDGE / "examples/transcribe.c", "-I", EDGE / "include", "-x", "none",
         "-L", ROOT / "target/release", "-lasr_edge", "-o", program],
        check=True,
    )  # fmt: skip
    path = str(ROOT / "target/release")

    def run(*arguments, program=program, **more):
        words = [program, *map(str, arguments)]
        env = environment(made, LD_LIBRARY_PATH=path, **more)
        return subprocess.run(words, capture_output=True, text=True, env=env, check=False)

    done = run(made, CLIP)
    assert done.returncode == 0, done.stderr
    text, silence = done.stdout.splitlines()
    assert text == WORDS
    assert json.loads(silence)["reason"] == "silence"
    done = run("/nowhere", CLIP)
    assert (done.returncode, done.stdout) == (4, "")
    assert "expected a bundle" in done.stderr
    assert run(made, "nowhere.wav").returncode == 3
    quiet = tmp_path / "quiet"  # a program that says nothing about telemetry
    source = (EDGE / "examples/transcribe.c").read_text().replace("setenv(", "(void)(")
    (tmp_path / "quiet.c").write_text(source)
    build = [compiler.split()[0], "-w", tmp_path / "quiet.c", "-I", EDGE / "include"]
    link = ["-L", ROOT / "target/release", "-lasr_edge", "-o", quiet]
    subprocess.run([*build, *link], check=True)
    done = run(made, CLIP, program=quiet)
    assert done.returncode == 2
    assert "ORT_DISABLE_TELEMETRY: expected 1" in done.stderr


def test_the_header_compiles_for_the_board():
    """Where a compiler for aarch64 is installed, it takes header and example too."""
    compilers = [c for c in ("cc", "aarch64-linux-gnu-gcc") if shutil.which(c)]
    assert compilers
    for compiler in compilers:
        flags = ["-std=c99", "-Wall", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-fsyntax-only"]
        files = ["-I", EDGE / "include", EDGE / "examples/transcribe.c"]
        subprocess.run([compiler, *flags, *files], check=True)
