"""asr-edge --serve: answers, busy, streams, time-outs, memory."""

import json
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from edge import (
    CLIP,
    PROGRAM,
    ROOT,
    WORDS,
    assert_same,
    edge,
    environment,
    python,
    samples_of,
)

pytestmark = pytest.mark.usefixtures("edge_program")


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


def test_serve_answers_and_survives_what_is_wrong(tiny_bundle, recognizer):
    """Each bad request has its answer, and the next good one too; the end of input ends it."""
    clip = samples_of(CLIP).astype("<i2").tobytes()
    with Served(tiny_bundle) as served:
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


def test_serve_says_busy_when_the_queue_is_full(tiny_bundle, conversation):
    """At once, with the request's id; what had a place is answered."""
    with Served(tiny_bundle, "--queue", 1) as served:
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


def test_a_stream_is_answered_where_somebody_stops_speaking(tiny_bundle):
    """The first answer comes while the second sentence has not been sent."""
    silence = bytes(2 * 16000)
    said = silence + samples_of(CLIP).astype("<i2").tobytes() + silence
    with Served(tiny_bundle) as served:
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


def test_a_socket_serves_several_and_gives_up_who_stops_in_the_middle(tiny_bundle, tmp_path):
    """One client is slow; the others never notice, and its own is told."""
    path = tmp_path / "asr.sock"
    with Served(tiny_bundle, "--timeout", 1, path=path) as served:
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
        second = edge(tiny_bundle, "--serve", "--socket", path)
        assert second.returncode == 5
        assert b"found one that is answered" in second.stderr
    with Served(tiny_bundle, path=path) as served:
        served.ask(id=3, ping=True)
        assert served.get() == {"id": 3, "ok": True}


def test_serve_does_not_grow(tiny_bundle):
    """After warm-up 300 more requests of several lengths leave memory where it was."""
    clips = [
        samples_of(path).astype("<i2").tobytes()
        for path in sorted((ROOT / "golden/audio").glob("*.wav"))[:6]
    ]

    def round_of(served, count):
        for number in range(count):
            data = clips[number % len(clips)]
            served.ask(data, id=number, bytes=len(data), rate_hz=16000)
            assert served.get()["id"] == number

    with Served(tiny_bundle) as served:

        def anonymous():
            lines = Path(f"/proc/{served.process.pid}/status").read_text().splitlines()
            (found,) = [line for line in lines if line.startswith("RssAnon")]
            return 1024 * int(found.split()[1])

        round_of(served, 60)
        before = anonymous()
        round_of(served, 300)
        assert anonymous() - before < 500_000
