"""Two processes whose warm calls take turns: asr.bench.process, asr transcribe --in-turns."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
import records
from conftest import COMMAND

from asr.bench import facts, installs, process, versus
from asr.bench.clips import WorkClip, Workload
from asr.errors import AudioError, MissingToolError

WANTED = process.Wanted(None, 1)

#: Speaks the protocol and writes down when it works; fails in the call it is told to.
STUB = """#!{python}
import json, os, sys
name, fails, log = {name!r}, {fails}, open({log!r}, "a")
if "--help" in sys.argv:
    print("--in-turns" if {knows} else "--repeat")
    raise SystemExit
assert sys.argv[-1] == "--in-turns"
for call in range(int(sys.argv[sys.argv.index("--repeat") + 1])):
    print(f"{{name}}{{call}} begins", file=log, flush=True)
    if call == fails:
        print("no such sound", file=sys.stderr)
        raise SystemExit(3)
    print(f"{{name}}{{call}} ends", file=log, flush=True)
    os.write(1, b"\\n")
    os.read(0, 1)
call = {{"wall": 2.0, "stages": {{"infer": 1.5}}}}
print(json.dumps({{"text": name, "timings": {{"load": {{"import": 1.0}}, "samples": [call] * 4}}}}))
"""


@pytest.fixture
def stub(tmp_path):
    """Make an install that does nothing; all write into one log."""

    def make(name, fails=None, knows=True):
        path = tmp_path / name
        log = str(tmp_path / "log")
        path.write_text(
            STUB.format(python=sys.executable, name=name, fails=fails, knows=knows, log=log)
        )
        path.chmod(0o755)
        return installs.Install(name, path, path)

    return make


def test_one_works_at_a_time_and_the_order_swaps(stub, tmp_path):
    """First calls alone, then a b, b a, a b; each in one go."""
    found = process.in_turns([stub("a"), stub("b")], WANTED, Path("clip"), 4, None)
    assert [text for _, text in found] == ["a", "b"]
    assert [len(side.warm) for side, _ in found] == [3, 3]
    lines = (tmp_path / "log").read_text().splitlines()
    calls = ["a0", "b0", "a1", "b1", "b2", "a2", "a3", "b3"]
    assert lines == [f"{call} {event}" for call in calls for event in ("begins", "ends")]


@pytest.mark.parametrize("fails", [0, 1, 3])
def test_one_that_fails_ends_both(stub, fails):
    """In its first, second or last call: its error, and nobody waits for the other."""
    with pytest.raises(AudioError, match=r"b: asr transcribe: ended with 3: no such sound"):
        process.in_turns([stub("a"), stub("b", fails)], WANTED, Path("clip"), 4, None)
    running = subprocess.run(["ps", "-ef"], capture_output=True, text=True, check=True).stdout
    assert str(stub("a").command) not in running


def test_one_that_says_nothing_of_its_times_is_named(stub, tmp_path):
    """It ends at once: no waiting, the usual message."""
    mute = stub("mute")
    mute.command.write_text("#!/bin/sh\necho '{}'\n")
    with pytest.raises(MissingToolError, match=r"mute: expected the timings .* KeyError"):
        process.in_turns([mute, stub("b")], WANTED, Path("clip"), 4, None)


def test_the_command_takes_turns(short_clip):
    """It waits for its turn after every call, and weighs nothing of its own in between."""
    asr = subprocess.Popen(
        [*COMMAND, "transcribe", short_clip, "--json", "--timings", "--repeat", "3", "--in-turns"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    for _ in range(3):
        assert asr.stdout.read(1) == b"\n"
        time.sleep(0.1)
        assert asr.poll() is None
        asr.stdin.write(b"\n")
        asr.stdin.flush()
    spoken = json.loads(asr.communicate()[0])
    assert (spoken["text"], len(spoken["timings"]["samples"])) == ("seven", 3)
    assert "weight_prepare" not in spoken["timings"]["load"]
    assert spoken["timings"]["load"]["unaccounted"] < 20


def test_without_a_partner_it_goes_on(asr_process, short_clip):
    """At the end of input it is always its turn: nothing hangs."""
    done = asr_process("transcribe", short_clip, "--json", "--timings", "--in-turns")
    assert (done.code, json.loads(done.out)["text"]) == (0, "seven")


@pytest.mark.parametrize("options", [[], ["--json"], ["--timings"]])
def test_turns_are_for_timings_in_json(cli, short_clip, options):
    """The empty lines would be part of the text."""
    done = cli("transcribe", short_clip, "--in-turns", *options)
    assert (done.code, done.out) == (2, "")
    assert "--in-turns: expected --json --timings" in done.err


@pytest.mark.parametrize("both", [True, False])
def test_versions_take_turns_where_both_can(stub, monkeypatch, short_clip, both):
    """An older version is run after the other, as it always was; the record tells."""
    told = facts.Facts(records.TOOL, records.MODEL, "engine")
    monkeypatch.setattr(facts, "ask", lambda *_: told)
    one = process.timed
    monkeypatch.setattr(process, "timed", lambda install, *rest: one(quick, *rest))
    quick = installs.running()
    clip = WorkClip("seven", short_clip, "1 s", "0" * 64, 0.8, None, {})
    sides = stub("a"), stub("b", knows=both)
    asked = versus.Asked(pairs=2, repeat=4, confirm=False, threads=1)
    found = versus.compare(*sides, Workload("one", (clip,)), asked, lambda _: None)
    assert found.options.in_turns is both
    assert [p.order for p in found.pairs] == ["ab", "ba"]
    assert found.clips[0].text_same is not both  # the stubs say their names
