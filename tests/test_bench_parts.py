"""asr.bench: workload, noise, energy, page cache, environments, pairs; with fakes where they do."""

import dataclasses
import json
import os
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
import records
from scipy.stats import wilcoxon

from asr.bench import clips, energy, facts, installs, noise, pages, process, resident, stats, versus
from asr.bench.record import Call, Git, Side
from asr.bench.summary import changes
from asr.errors import LayoutError, MissingToolError, RecordError, SystemAccessError, UsageError

ROOT = Path(__file__).parent.parent
AUDIO = ROOT / "golden/audio"


# The workload.


def test_the_shipped_workload_is_what_its_hashes_say(tmp_path):
    """Five lengths, one clip each; the built-in network's text is known."""
    workload = clips.load(clips.DEFAULT, tmp_path)
    assert [c.bucket for c in workload.clips] == ["1 s", "5 s", "15 s", "30 s", "long"]
    network = facts.model_facts("tiny-en", ROOT / "asr/builtin/tiny-en").network_sha256
    assert all(c.expected(network) for c in workload.clips), "run benchmarks/make_workload.py"
    assert workload.clips[0].expected("0" * 64) is None
    for wav in clips.DEFAULT.parent.glob("*.wav"):
        assert wav.read_bytes() == (AUDIO / wav.name).read_bytes(), "a copy of golden/audio"


def manifest(tmp_path, *rows, head="file\tsha256\tseconds\twords\ttext"):
    path = tmp_path / "clips.tsv"
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_a_clip_of_ones_own_needs_a_file_and_nothing_else(tmp_path):
    """Id, hash and seconds come from the file; a text of any network may be expected."""
    wav = AUDIO / "seven-slt.wav"
    (one,) = clips.load(manifest(tmp_path, f"{wav}\t\t\t\tseven"), tmp_path).clips
    assert (one.id, one.bucket, one.audio_s, one.words) == ("seven-slt", "1 s", 0.785, None)
    assert one.expected("anything") == "seven"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{a}\tabc", "expected the SHA-256 abc of clips.tsv, found 86e44ece"),
        ("{a}\t\t0.9", r"expected 0.9 s of audio, found 0.785 s"),
        ("{a} + x + {a}", "cannot join .* could not convert"),
        ("0.5 + {a}", "expected a WAV file first"),
        ("{a}\n{a}", "expected every id once, found 'seven-slt' again"),
        ("", "expected at least one clip, found none"),
    ],
)
def test_a_workload_that_is_not_what_it_says_is_refused(row, said, tmp_path):
    """Before anything is measured; the message names the file and what to look at."""
    path = manifest(tmp_path, row.replace("{a}", str(AUDIO / "seven-slt.wav")))
    with pytest.raises(RecordError, match=said):
        clips.load(path, tmp_path)


def test_a_workload_without_files(tmp_path):
    """No manifest, no column, no clip."""
    with pytest.raises(SystemAccessError, match=r"gone.tsv: cannot read"):
        clips.load(tmp_path / "gone.tsv", tmp_path)
    with pytest.raises(SystemAccessError, match=r"gone.wav: cannot read"):
        clips.load(manifest(tmp_path, "gone.wav"), tmp_path)
    with pytest.raises(RecordError, match="column 'file'"):
        clips.load(manifest(tmp_path, head="path"), tmp_path)


def test_joined_sound_has_the_gaps_it_says():
    """Samples of both, half a second of zeros between."""
    names = ["seven-slt.wav", "0.5", "yes-rms.wav"]
    data = clips.joined(names, AUDIO)
    samples = np.frombuffer(data[44:], np.int16)
    first = np.frombuffer((AUDIO / names[0]).read_bytes()[44:], np.int16)
    assert data == clips.joined(names, AUDIO)
    np.testing.assert_array_equal(samples[: len(first)], first)
    assert not samples[len(first) : len(first) + 8000].any()
    assert samples[len(first) + 8000 :].any()


@pytest.mark.parametrize(
    ("said", "heard", "rate"),
    [
        ("one two", "One, two.", 0.0),
        ("seven", "", 1.0),
        ("seven", "sevens", 0.2),
        ("abcd", "axcd", 0.25),
        ("abcd", "acbd", 0.5),
        ("测试", "测时", 0.5),
        ("", "x", 1.0),
    ],
)
def test_character_error_rate(said, heard, rate):
    """Edits over characters said, case and punctuation aside."""
    assert clips.error_rate(said, heard) == pytest.approx(rate)


# Statistics.


@pytest.mark.parametrize("n", [1, 3, 7, 12, 60])
def test_the_signed_rank_test_is_scipys(n):
    """The exact one-sided p-value."""
    rng = np.random.default_rng(n)
    logs = rng.normal(0.01, 0.02, n)
    expected = wilcoxon(logs, alternative="greater", method="exact").pvalue
    assert stats.signed_rank(logs) == pytest.approx(expected)


def test_a_handful_of_pairs_proves_nothing():
    """Equal values prove nothing; n pairs cannot say less than 2 ** -n."""
    assert stats.signed_rank([0, 0]) == 1.0
    assert stats.signed_rank([0.7, 0.7, 0.7]) == 1 / 8


def test_equal_differences_share_their_rank():
    """Ranks 1.5, 1.5, 3, 4: of the 16 signs, 11 reach the sum of the last alone."""
    assert stats.signed_rank([-1, -1, -2, 3]) == 11 / 16


# Noise.


@pytest.mark.parametrize(
    ("spreads", "steal", "word"),
    [
        ([0.01, 0.02], 0.0, "quiet"),
        ([0.01, 0.05], 0.0, "ok"),
        ([0.01], 0.02, "ok"),
        ([0.01, 0.11], 0.0, "noisy"),
        ([0.01], 0.06, "noisy"),
        ([], 0.0, "quiet"),
    ],
)
def test_how_quiet_a_machine_is_has_three_words(spreads, steal, word):
    """10 % of the mean is noisy, 3 % no longer quiet; stolen time counts as well."""
    assert noise.classify(spreads, steal) == word


def test_stolen_time_is_a_share_of_what_passed(tmp_path, monkeypatch):
    """From /proc/stat, between start and end."""
    monkeypatch.setattr(noise, "probe_ns", lambda: 100)
    stat = tmp_path / "stat"
    stat.write_text("cpu 100 0 0 800 0 0 0 100 0 0\n")
    listener = noise.Listener(stat=stat)
    stat.write_text("cpu 140 0 0 840 0 0 0 120 0 0\n")
    found = listener.finish([0.2, 0.01, 0.02], repeated=True)
    assert found.steal_share == pytest.approx(0.2)
    assert (found.class_, found.repeated, found.probe_ns) == ("noisy", True, [100, 100])
    assert noise.Listener(stat=tmp_path / "gone").steal_share() == 0.0


def test_the_probe_is_work():
    """It takes measurable time, about the same twice."""
    assert all(5e6 < noise.probe_ns() < 5e9 for _ in range(2))


# Energy.


def counter(folder, uj, wrap=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "energy_uj").write_text(f"{uj}\n")
    if wrap:
        (folder / "max_energy_range_uj").write_text(f"{wrap}\n")


def test_energy_of_packages_that_begin_again_at_zero(tmp_path):
    """Sum over packages, parts of a package not counted twice, a counter that wrapped."""
    counter(tmp_path / "intel-rapl:0", 9_000_000, wrap=9_999_999)
    counter(tmp_path / "intel-rapl:1", 1_000_000, wrap=9_999_999)
    counter(tmp_path / "intel-rapl:0:0", 5)
    meter = energy.Meter(tmp_path, tmp_path / "none")
    counter(tmp_path / "intel-rapl:0", 1_000_000)
    counter(tmp_path / "intel-rapl:1", 1_500_000)
    counter(tmp_path / "intel-rapl:0:0", 99_999_999)
    assert (meter.source, meter.joules()) == ("rapl", pytest.approx(2.5))


def test_energy_of_a_board_and_of_nobody(tmp_path):
    """hwmon where there is no RAPL; None, not zero, where nobody measures."""
    board = tmp_path / "hwmon/hwmon0"
    board.mkdir(parents=True)
    (board / "energy1_input").write_text("1000000")
    meter = energy.Meter(tmp_path / "none", tmp_path / "hwmon")
    (board / "energy1_input").write_text("3000000")
    assert (meter.source, meter.joules()) == ("board", 2.0)
    (board / "energy1_input").unlink()
    assert meter.joules() is None
    nobody = energy.Meter(tmp_path / "none", tmp_path / "none")
    assert (nobody.source, nobody.joules()) == (None, None)


# The page cache and the caches.


def test_a_dropped_file_is_out_of_memory_and_reading_brings_it_back(tmp_path):
    """Where the file system says whether pages are cached."""
    path = tmp_path / "file"
    path.write_bytes(bytes(1 << 20))
    assert pages.state(path) == "warm"
    pages.drop([path, tmp_path / "gone"])
    assert pages.state(path) in ("dropped", "warm")  # a file in memory alone (tmpfs) stays
    path.read_bytes()
    assert pages.state(path) == "warm"
    assert pages.state(tmp_path / "gone") == "unknown"


def test_the_last_level_cache_is_the_largest(tmp_path):
    """Sizes as the kernel writes them; a guess where it does not."""
    for i, size in enumerate(("32K", "1024K", "16M")):
        (tmp_path / f"index{i}").mkdir()
        (tmp_path / f"index{i}/size").write_text(size + "\n")
    assert pages.last_level_cache_bytes(tmp_path) == 16 * 2**20
    assert pages.last_level_cache_bytes(tmp_path / "none") == 32 * 2**20


def test_only_pages_of_the_models_files_are_dropped(tmp_path):
    """Mapped from the folder: dropped and read again; otherwise said so."""
    import mmap

    assert resident.drop_mapped(tmp_path).startswith("not mapped")
    (tmp_path / "weights").write_bytes(b"x" * 8192)
    with (tmp_path / "weights").open("rb") as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        assert view[4096] == ord("x")
        maps = Path("/proc/self/maps").read_text().splitlines()
        place = next(i for i, line in enumerate(maps) if line.endswith("/weights"))
        maps.insert(place, "10000-11000 rw-p 00000000 00:00 0 ")  # memory without a file
        (tmp_path / "maps").write_text("\n".join(maps) + "\n")
        assert resident.drop_mapped(tmp_path, tmp_path / "maps") == "dropped"
        assert view[4096] == ord("x")


# Environments.


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    return installs.snapshot(tmp_path_factory.mktemp("snapshot") / "env")


def test_a_snapshot_is_a_copy_that_runs_with_the_same_libraries(
    snapshot, short_clip, tmp_path, monkeypatch
):
    """Its package is its own, the libraries are the running environment's; PYTHONPATH is not."""
    (tmp_path / "asr").mkdir()
    (tmp_path / "asr/__init__.py").write_text("raise SystemExit('another package')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = "import asr, numpy; print(asr.__file__); print(numpy.__file__)"
    told = subprocess.run(
        [snapshot.python, "-c", code],
        env=os.environ | dict(snapshot.environment),
        capture_output=True,
        text=True,
        cwd="/",
        check=True,
    ).stdout.split()
    assert Path(told[0]).parent == snapshot.package
    assert told[1] == np.__file__
    side, text = process.timed(snapshot, process.Wanted(None, 1), short_clip, 3, None)
    assert (text, len(side.warm)) == ("seven", 2)
    assert side.peak_rss_bytes > 20e6
    assert sum(side.first.stages_ns.values()) == side.first.wall_ns
    assert "write" not in side.first.stages_ns
    assert sum(side.load_ns.values()) + side.first.wall_ns < side.process_ns


def test_what_cannot_be_run_says_which_version_and_why(snapshot, tmp_path, short_clip):
    """Its last line, its label; and a command that is not there; and no timings."""
    with pytest.raises(LayoutError, match=r"here: asr transcribe: ended with 4: .*nope"):
        process.timed(snapshot, process.Wanted("nope", 1), short_clip, 1, None)
    gone = dataclasses.replace(snapshot, command=tmp_path / "asr", label="old")
    with pytest.raises(MissingToolError, match=r"old: .* cannot be started"):
        process.run(gone, ["inspect"])
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/sh\necho '{}'\n")
    mute.chmod(0o755)
    with pytest.raises(MissingToolError, match=r"old: expected the timings .* KeyError"):
        process.timed(dataclasses.replace(gone, command=mute), process.Wanted(None, 1),
                      short_clip, 1, None)  # fmt: skip


SPOKEN = """{"text": "seven", "timings": {"load": {"import": 20.0, "weight_prepare": 0.5,
"unaccounted": 0.25, "total": 20.75}, "samples": [
{"wall": 3.0, "stages": {"read": 1.0, "infer": 1.5, "write": 9.0}},
{"wall": 2.0, "stages": {"read": 0.5, "infer": 1.25}}]}}"""


def test_times_of_a_process_are_what_it_said(tmp_path, short_clip):
    """Milliseconds become nanoseconds; sums are no phase, and what follows the call no stage."""
    script = tmp_path / "asr"
    script.write_text(f"#!/bin/sh\nprintf '%s' '{SPOKEN}'\n")
    script.chmod(0o755)
    install = installs.Install("x", script, script)
    side, text = process.timed(install, process.Wanted(None, 1), short_clip, 2, None)
    assert text == "seven"
    assert side.load_ns == {"import": 20_000_000, "weight_prepare": 500_000, "unaccounted": 250_000}
    assert side.first == Call(
        3_000_000, {"read": 1_000_000, "infer": 1_500_000, "unaccounted": 500_000}
    )
    assert side.warm == [
        Call(2_000_000, {"read": 500_000, "infer": 1_250_000, "unaccounted": 250_000})
    ]


def wheel(path, version="9.9"):
    """A wheel whose asr prints its version."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("asr/__init__.py", f"def main():\n    print({version!r})\n")
        info = f"asr_rtf-{version}.dist-info"
        archive.writestr(f"{info}/entry_points.txt", "[console_scripts]\nasr=asr:main\n")
    return path


@pytest.fixture
def clone(tmp_path):
    """A git history of two commits."""
    folder = tmp_path / "clone"
    folder.mkdir()
    git = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    for name in ("one", "two"):
        (folder / "file").write_text(name)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", name], check=True)
    return folder


def test_a_commit_is_built_once(clone, tmp_path, monkeypatch):
    """From a checkout of exactly that commit; the second time from the cache."""
    built = []

    def build(tree, out, *_):
        built.append((tree / "file").read_text())
        return wheel(out / "asr_rtf.whl")

    monkeypatch.setattr(installs, "_wheel", build)
    head = installs.git_state(clone)
    for _ in range(2):
        found = installs.from_revision("HEAD^", clone, print, cache=tmp_path / "cache")
    assert built == ["one"]
    assert found.git == Git(head.parent, False, None)
    assert found.label == f"HEAD^ {head.parent[:9]}"
    assert process.run(found, ["x"]).out == b"9.9\n"
    assert found.wheel_bytes > 100
    assert not list(tmp_path.glob("cache/*/source"))
    (found.package / "used").touch()
    again = installs.from_revision("HEAD^", clone, print, cache=tmp_path / "cache")
    assert (again, (again.package / "used").exists()) == (found, True), "somebody may be using it"
    with pytest.raises(UsageError, match=r"nope: expected a commit of .*, git knows none"):
        installs.from_revision("nope", clone, print, cache=tmp_path / "cache")


def test_a_build_that_failed_is_tried_again(clone, tmp_path, monkeypatch):
    """What the compiler said last is the message; nothing half-made is taken for done."""
    monkeypatch.setattr(installs.sys, "executable", "/bin/false")
    for _ in range(2):
        with pytest.raises(MissingToolError, match=r"HEAD .*: could not be built"):
            installs.from_revision("HEAD", clone, print, cache=tmp_path / "cache")


def test_git_state(clone, tmp_path):
    """Commit and parent; dirty with a changed tracked file; None elsewhere."""
    assert installs.git_state(clone).dirty is False
    (clone / "new").write_text("untracked files are nobody's business")
    assert installs.git_state(clone).dirty is False
    (clone / "file").write_text("changed")
    assert installs.git_state(clone).dirty is True
    assert installs.git_state(tmp_path) is None


def test_what_against_may_name(tmp_path, monkeypatch):
    """A wheel, a checkout; anything else is refused with what was expected."""
    found = installs.find(str(wheel(tmp_path / "a.whl")), tmp_path / "work", print)
    assert (found.label, process.run(found, ["x"]).out) == ("a.whl", b"9.9\n")
    (tmp_path / "b.whl").write_text("no wheel")
    with pytest.raises(RecordError, match=r"b.whl: expected a wheel of asr-rtf"):
        installs.find(str(tmp_path / "b.whl"), tmp_path / "work", print)
    with pytest.raises(UsageError, match="expected a checkout of asr-rtf, a wheel or a commit"):
        installs.find(str(tmp_path), tmp_path / "work", print)
    monkeypatch.setattr(installs, "git_state", lambda _: None)
    with pytest.raises(UsageError, match="a commit needs a git clone"):
        installs.find("HEAD", tmp_path / "work", print)


# Pairs.


class Faked:
    """Processes whose times are made up: b's are longer by a factor that may change its mind."""

    def __init__(self, factors=(1.0,), sd=0.01, text_b="same"):
        self.rng, self.sd, self.text_b = np.random.default_rng(0), sd, text_b
        self.factors, self.calls = list(factors), []

    def __call__(self, install, clip):
        self.calls.append((install.label, clip.id))
        slow = self.factors[0] if install.label == "b" else 1.0
        if len(self.factors) > 1 and self.calls.count(("b", clip.id)) > 12:
            slow = self.factors[1]

        def call():
            ns = int(5e6 * slow * np.exp(self.rng.normal(0, self.sd)))
            return Call(ns + 1000, {"infer": ns, "unaccounted": 1000})

        side = Side(10**8, 10**8, 10**8, {"import": 5 * 10**7}, call(), [call() for _ in range(5)])
        return side, self.text_b if install.label == "b" else "same"


def compare(monkeypatch, tmp_path, start, **asked):
    told = facts.Facts(records.TOOL, records.MODEL, "engine")
    monkeypatch.setattr(facts, "ask", lambda *_: told)
    path = manifest(tmp_path, str(AUDIO / "seven-slt.wav"), f"{AUDIO}/digits-awb.wav + 1 + "
                    f"{AUDIO}/transcribe_me.wav")  # fmt: skip
    work = clips.load(path, tmp_path)
    sides = [installs.Install(x, Path(x), Path(x)) for x in "ab"]
    said = []
    found = versus.compare(*sides, work, versus.Asked(**asked), said.append, start=start)
    assert found.summary == changes(found.pairs)
    return found, said


def test_pairs_take_turns_and_follow_the_noise(monkeypatch, tmp_path):
    """ABBA; as many pairs as the pilot's noise needs, more for a smaller effect."""
    found, _ = compare(monkeypatch, tmp_path, Faked(sd=0.05), mde=0.03)
    few, _ = compare(monkeypatch, tmp_path, Faked(sd=0.05), mde=0.20)
    orders = [p.order for p in found.pairs if p.clip == "seven-slt"]
    assert orders[:4] == ["ab", "ba", "ab", "ba"]
    assert orders.count("ab") == orders.count("ba") == found.options.pairs / 2
    assert few.options.pairs == versus.PILOT < found.options.pairs
    total = next(c for c in found.summary if c.metric == "warm" and c.stage is None)
    assert total.mde < 0.045
    assert all(clip.text_same for clip in found.clips)


def test_a_slowdown_is_measured_again_before_it_is_said(monkeypatch, tmp_path):
    """Twice slower: accused, with the stage; slower once: not."""
    real, _ = compare(monkeypatch, tmp_path, Faked((1.2,)), pairs=10)
    assert {(c.metric, c.stage) for c in versus.confirmed(real)} >= {("warm", "infer")}
    luck, said = compare(monkeypatch, tmp_path, Faked((1.2, 1.0)), pairs=10)
    assert versus.slower(luck.pairs)
    assert len(luck.confirm) == 20
    assert versus.confirmed(luck) == []
    assert any("measured once more" in line for line in said)


def test_equals_are_not_accused(monkeypatch, tmp_path):
    """No re-run, no accusation; asked not to confirm, none either."""
    found, _ = compare(monkeypatch, tmp_path, Faked(), pairs=8)
    assert found.confirm is None or versus.confirmed(found) == []
    off, _ = compare(monkeypatch, tmp_path, Faked((1.2,)), pairs=8, confirm=False)
    assert off.confirm is None


def test_time_is_up(monkeypatch, tmp_path):
    """No pair begins after the limit, and the record says how many there were."""
    found, said = compare(monkeypatch, tmp_path, Faked(), pairs=50, max_s=0.0)
    assert found.options.pairs == 1
    assert "time is up after 1 pairs per clip" in said


def test_another_text_is_seen(monkeypatch, tmp_path):
    """Both hashes, and that they differ."""
    found, _ = compare(monkeypatch, tmp_path, Faked(text_b="other"), pairs=4)
    assert not any(clip.text_same for clip in found.clips)
    assert found.clips[0].text_sha256_a != found.clips[0].text_sha256_b


def test_stages_that_nobody_would_miss_are_not_accused():
    """1 % of a call and less than half a millisecond: slower by half, and never mind."""
    factors = {"resample": 1.5, "infer": 1.0}
    found = versus.slower(records.pair_list(count=16, factors=factors, sd=0.005))
    assert "resample" not in {c.stage for c in found}
    found = versus.slower(records.pair_list(count=16, factors={"fbank": 1.5}, sd=0.005))
    assert "fbank" in {c.stage for c in found}


def test_facts_come_from_the_command_itself(snapshot):
    """Version, profile, backend and engine of the other, not ours; the model by what it holds."""
    found = facts.ask(snapshot, "tiny-en")
    told = json.loads(process.run(snapshot, ["inspect", "tiny-en", "--json"]).out)
    assert f"{found.tool.version}, {found.tool.profile}," in told["engine"]["build"]
    assert found.engine == told["engine"]["runtime"]
    assert found.tool.rust == told["engine"]["compiler"]
    assert found.model.network_bytes > 1_000_000
    other = dataclasses.replace(snapshot, environment={"PATH": "", "ASR_CACHE": "/nowhere"})
    with pytest.raises(LayoutError, match="ended with 4"):
        facts.ask(other, "sensevoice-small-int8")
