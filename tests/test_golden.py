"""Golden values: every step against independent references at pinned versions.

The expected values in golden/expected were written by golden/make.py from kaldi-native-fbank and
funasr-onnx; neither is needed here. The float64 reference is NumPy only and runs in the tests.
"""

import functools
import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from asr import _rust_fe, audio, ctc, text
from asr.records import Audio, Features

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))
from golden import compare, float64, signals  # noqa: E402

CASES = signals.load_cases()
TOLERANCE = CASES["tolerance"]
ALL = {signals.name_of(case): case for case in CASES["speech"] + CASES["signal"]}
SPEECH = [signals.name_of(case) for case in CASES["speech"]]
BACKENDS = _rust_fe.build_info()["backends"]
FLOOR = np.float32(np.log(np.float32(2.0**-23)))
DECODED_FIELDS = [
    "argmax",
    "log_prob",
    "entropy",
    "token_ids",
    "start_frame",
    "end_frame",
    "log_probs",
    "entropies",
]
RECIPE = {
    "sample_rate_hz": 16000,
    "frame_length_ms": 25.0,
    "frame_shift_ms": 10.0,
    "window": "hamming",
    "num_mel_bins": 80,
    "low_freq_hz": 20.0,
    "high_freq_hz": 8000.0,
    "preemphasis": 0.97,
    "sample_scale": 32768.0,
}


def with_step(step):
    return [name for name, case in ALL.items() if step in case.get("steps", ["fbank"])]


def expected(name, file):
    return compare.load(ROOT / "golden" / "expected" / name / file)


@functools.cache
def samples_of(name):
    return signals.samples_of(ALL[name])


@functools.cache
def exact_of(name):
    return float64.fbank(samples_of(name))


def report_of(name):
    path = ROOT / "golden" / "expected" / name / "text.json"
    return json.loads(path.read_text(encoding="utf-8"))


#: Clips that the reference itself decodes alike with either reference's features and with noise.
STABLE = [name for name in SPEECH if report_of(name)["stable"]]


@pytest.fixture(scope="module", params=BACKENDS)
def fbank(request):
    return _rust_fe.Fbank(**RECIPE, backend=request.param)


def judge(fbank, name):
    """Ours against the two references, on the rows that were stored."""
    golden = expected(name, "04-fbank.npz")
    samples = samples_of(name)
    rows = golden.get("rows", np.arange(len(golden["values"])))
    ours = fbank.compute(samples)
    assert len(ours) == golden.get("num_frames", len(golden["values"]))
    exact = exact_of(name)[rows]
    return compare.judge_fbank(ours[rows], golden["values"], exact, TOLERANCE, rows)


@pytest.mark.parametrize("name", ALL)
def test_inputs_are_the_ones_the_expected_values_were_made_from(name):
    """A drifting signal or clip is reported as such, not as an error of the front end."""
    golden = expected(name, "04-fbank.npz")
    assert str(golden["samples_sha256"]) == signals.digest(samples_of(name))


@pytest.mark.parametrize("name", SPEECH)
def test_expected_text_belongs_to_this_model(name):
    """A retrained model needs `make golden`, in a commit of its own."""
    found = signals.model_digest(ROOT / CASES["model"])
    assert report_of(name)["model_sha256"] == found, "another model: run `make golden`"


def test_no_expected_folder_without_a_case():
    """Renaming a case must not orphan its expected values."""
    assert {path.name for path in (ROOT / "golden" / "expected").iterdir()} == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_float64_reference_is_the_one_of_the_expected_values(name):
    """The second opinion used here equals the one committed, and knows kaldi-native-fbank."""
    golden = expected(name, "04-fbank.npz")
    rows = golden.get("rows", slice(None))
    exact = exact_of(name)[rows]
    committed = golden["values"] + golden["float64_minus_values"].astype(np.float64)
    assert np.abs(committed - exact).max(initial=0.0) <= TOLERANCE["float32_rounding"]


@pytest.mark.parametrize("name", ALL)
def test_fbank_keeps_the_law_of_accuracy(fbank, name):
    """Within 1e-3 of both references where they agree; elsewhere not worse than the float32 one."""
    verdict = judge(fbank, name)
    assert verdict.difference is None, f"{name}/04-fbank ({fbank.backend}): {verdict.difference}"


def test_references_agree_on_speech(fbank, capsys):
    """Cells where float32 itself loses the answer are rare in speech; the share is printed."""
    verdicts = {name: judge(fbank, name) for name in ALL}
    speech = [verdicts[name] for name in SPEECH]
    others = [verdict for name, verdict in verdicts.items() if name not in SPEECH]
    lines = []
    for label, group in (("speech", speech), ("signals", others)):
        cells, apart = sum(v.cells for v in group), sum(v.apart for v in group)
        largest = max(v.largest for v in group)
        lines.append(
            f"golden fbank, {fbank.backend}, {label}: largest error {largest:.1e}; "
            f"references apart in {apart} of {cells} cells ({apart / cells:.4%})"
        )
    with capsys.disabled():
        print("\n" + "\n".join(lines))
    share = sum(v.apart for v in speech) / sum(v.cells for v in speech)
    assert share < TOLERANCE["disagreeing_share_speech"]


@pytest.mark.parametrize("name", SPEECH)
def test_errors_have_no_direction(fbank, name):
    """A scale of 32767, say, is within the law, but shifts every cell the same way."""
    errors = fbank.compute(samples_of(name)) - exact_of(name)
    assert abs(np.median(errors)) < TOLERANCE["fbank_bias"]


@pytest.mark.parametrize("name", ["silence", "dc-exact", "dc-rounded", "dc-negative"])
def test_silence_and_constants_give_the_floor_exactly(fbank, name):
    """Nothing left after the offset is removed means ln(2^-23), to the last bit."""
    values = fbank.compute(samples_of(name))
    assert values.shape == (98, 80)
    assert np.all(values == FLOOR)


@pytest.mark.parametrize("name", ALL)
def test_fbank_is_finite_and_never_below_the_floor(fbank, name):
    """No input gives NaN, infinity or a value under the floor."""
    values = fbank.compute(samples_of(name))
    assert np.isfinite(values).all()
    assert np.all(values >= FLOOR)


@pytest.mark.parametrize(
    "count", [0, 1, 159, 160, 161, 399, 400, 401, 559, 560, 561, 16000, 480000]
)
def test_frame_count_follows_the_formula(fbank, count):
    """None below one window, else 1 + (samples - 400) // 160; stacks are a sixth, rounded up."""
    wanted = 0 if count < 400 else 1 + (count - 400) // 160
    values = fbank.compute(np.zeros(count, np.float32))
    assert values.dtype == np.float32
    assert values.shape == (wanted, 80)
    assert fbank.num_frames(count) == wanted
    assert _rust_fe.lfr(values, 7, 6).shape == (-(-wanted // 6), 560)


def test_features_are_the_same_every_time(fbank):
    """There is no dither: five runs give the same bits."""
    samples = samples_of("transcribe_me")
    first = fbank.compute(samples)
    for _ in range(4):
        assert np.array_equal(fbank.compute(samples), first)


@pytest.mark.parametrize("name", with_step("lfr"))
def test_lfr_equals_funasr_bit_for_bit(name):
    """Stacking only copies: the reference's fbank gives the reference's stacks exactly."""
    fbank_values = expected(name, "04-fbank.npz")["values"]
    stacked = _rust_fe.lfr(fbank_values, 7, 6)
    difference = compare.first_difference(
        "values", expected(name, "05-lfr.npz")["values"], stacked, 0.0
    )
    assert difference is None, f"{name}/05-lfr: {difference}"


@pytest.mark.parametrize("count", range(1, 26))
def test_lfr_edges_equal_the_reference_for_every_length(count):
    """First frame three times on the left, last as often as needed on the right."""
    features = np.arange(count * 2, dtype=np.float32).reshape(count, 2)
    assert np.array_equal(_rust_fe.lfr(features, 7, 6), float64.lfr(features))


@pytest.mark.parametrize("name", sorted(set(with_step("lfr")) & set(with_step("cmvn"))))
def test_cmvn_equals_funasr_within_float32_rounding(recognizer, name):
    """The reference's stacks give the reference's normalised features."""
    stacked = Features(expected(name, "05-lfr.npz")["values"], 0.06)
    ours = recognizer.front_end.cmvn(stacked).values
    wanted = expected(name, "06-cmvn.npz")["values"]
    difference = compare.first_difference("values", wanted, ours, TOLERANCE["cmvn_abs"])
    assert difference is None, f"{name}/06-cmvn: {difference}"


@pytest.mark.parametrize("name", sorted(set(with_step("cmvn")) & set(SPEECH)))
def test_whole_front_end_equals_funasr(recognizer, name):
    """The recipe of the layout, all three steps in a row, on speech."""
    front_end = recognizer.front_end
    sound = Audio(samples_of(name), 16000, name)
    ours = front_end.cmvn(front_end.lfr(front_end.fbank(sound))).values
    wanted = expected(name, "06-cmvn.npz")["values"]
    difference = compare.first_difference("values", wanted, ours, TOLERANCE["chain_abs"])
    assert difference is None, f"{name}/06-cmvn: {difference}"


def assert_decoded(logits, prompt_frames, wanted, where):
    ours = _rust_fe.ctc_greedy(logits, 0, prompt_frames)
    for field, got in zip(DECODED_FIELDS, ours, strict=True):
        allowed = TOLERANCE["same_scores_abs"] if got.dtype == np.float32 else 0
        difference = compare.first_difference(field, wanted[field], got, allowed)
        assert difference is None, f"{where}: {difference}"
        assert got.dtype == wanted[field].dtype


@pytest.mark.parametrize("name", with_step("infer"))
def test_decoding_equals_plain_numpy(name):
    """funasr-onnx's scores give the tokens, frames and statistics of the float64 reference."""
    logits = expected(name, "08-infer.npz")
    wanted = expected(name, "09-decode.npz")
    assert_decoded(logits["values"], int(logits["prompt_frames"]), wanted, f"{name}/09-decode")


@pytest.mark.parametrize("seed", range(8))
def test_decoding_of_long_runs_equals_plain_numpy(seed):
    """Few pieces that stay for several rows, across the border of the prompts too."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, (60, 9)).astype(np.float32)
    logits[np.arange(60), np.repeat(rng.integers(0, 4, 20), 3)] += 6
    assert_decoded(logits, 4, float64.greedy(logits, 4), f"seed {seed}")


@pytest.mark.parametrize("name", SPEECH)
def test_expected_ids_are_those_of_funasr_onnx(name):
    """The tokens derived from funasr-onnx's scores are the ids it decoded itself, tags in front."""
    decoded = expected(name, "09-decode.npz")
    tags = int(decoded["prompt_frames"])
    assert [*decoded["argmax"][:tags], *decoded["token_ids"]] == report_of(name)["ids"]


@pytest.mark.parametrize("name", SPEECH)
def test_equal_features_give_the_words_of_funasr_onnx(recognizer, name):
    """From funasr-onnx's own features on: engine, decoding and text, every id and every letter."""
    features = Features(expected(name, "06-cmvn.npz")["values"], 0.06)
    layout, engine = recognizer.layout, recognizer.engine
    binding = layout.connect(engine.inputs, engine.outputs)
    tensors = binding.bind(features, layout.language_id("auto"), layout.itn_ids[False])
    logits = binding.unbind(engine.run(tensors), features.frame_shift_s)
    decoded = ctc.greedy(logits, blank_id=layout.blank_id)
    transcript = text.transcribe(decoded, layout.vocabulary, audio_s=1.0, requested_itn=False)
    report = report_of(name)
    assert [*decoded.argmax[: logits.prompt_frames], *decoded.token_ids] == report["ids"]
    assert transcript.text == report["text"]


@pytest.mark.parametrize("name", STABLE)
def test_text_and_ids_equal_funasr_onnx(recognizer, monkeypatch, tmp_path, name):
    """From the file to the text: the built-in model says exactly what funasr-onnx makes of it."""
    monkeypatch.setenv("ASR_DUMP", str(tmp_path))
    transcript = recognizer.transcribe(ROOT / "golden" / "audio" / ALL[name]["file"])
    report = report_of(name)
    # What was heard; whether it is sure enough to be shown is ours to decide.
    assert " ".join(segment.text for segment in transcript.segments) == report["text"]
    decoded = compare.load(tmp_path / name / "09-decode.npz")
    tags = int(decoded["prompt_frames"])
    assert [*decoded["argmax"][:tags], *decoded["token_ids"]] == report["ids"]
    steps = list(compare.compare(ROOT / "golden" / "expected", tmp_path, TOLERANCE))
    assert {step for _, step, _ in steps} >= {"04-fbank.npz", "06-cmvn.npz", "09-decode.npz"}
    for clip, step, difference in steps:
        assert difference is None, f"{clip}/{step}: {difference}"


def test_most_clips_are_stable_and_so_is_the_shipped_one():
    """Clips whose words hang on a rounding step prove little; the cases must not drift there."""
    assert "transcribe_me" in STABLE
    assert len(STABLE) >= 0.8 * len(SPEECH)


def test_compare_names_the_first_difference(tmp_path):
    """Step, frame, column, expected, got and the largest error, in the order of the pipeline."""
    golden = ROOT / "golden" / "expected" / "transcribe_me"
    for path in golden.glob("*.npz"):
        arrays = compare.load(path)
        if path.name == "05-lfr.npz":
            arrays["values"][7, 300] += 0.5
            arrays["values"][9, 2] -= 4.0
        if path.name == "06-cmvn.npz":
            arrays["values"][0, 0] += 1.0
        np.savez(tmp_path / path.name, **arrays)
    (different,) = [d for _, _, d in compare.compare(golden, tmp_path, TOLERANCE) if d]
    assert (different.array, different.frame, different.column) == ("values", 7, 300)
    assert different.got == pytest.approx(different.expected + 0.5)
    assert different.largest == pytest.approx(4.0)


def test_compare_answers_with_its_exit_code(tmp_path, capsys):
    """0 equal, 12 different, 14 nothing to compare with; NaN is never equal."""
    golden = ROOT / "golden" / "expected" / "seven-slt"
    for path in golden.glob("*.npz"):
        np.savez(tmp_path / path.name, **compare.load(path))
    assert compare.main([str(tmp_path), "--expected", str(golden), "--exact"]) == 0
    arrays = compare.load(golden / "06-cmvn.npz")
    arrays["values"][3, 4] = np.nan
    np.savez(tmp_path / "06-cmvn.npz", **arrays)
    assert compare.main([str(tmp_path), "--expected", str(golden)]) == 12
    assert "06-cmvn.npz: values, frame 3, column 4: expected" in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert compare.main([str(tmp_path / "empty")]) == 14


def test_law_lets_nobody_be_worse_than_kaldi_native_fbank():
    """Where the references disagree the limit is the distance of kaldi-native-fbank to float64."""
    exact = np.full((1, 80), -15.0)
    knf = exact.astype(np.float32)
    knf[0, 5] += 2.0
    for ours_at_5, good in ((-15.0, True), (-13.0, True), (-17.0, True), (-12.9, False)):
        ours = exact.astype(np.float32)
        ours[0, 5] = ours_at_5
        verdict = compare.judge_fbank(ours, knf, exact, TOLERANCE)
        assert (verdict.difference is None) == good
        assert verdict.apart == 1


def test_spectrogram_has_the_shape_librosa_sees():
    """A coarse check by a third party that knows nothing of Kaldi: same picture, frame by frame."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import librosa

        samples = samples_of("transcribe_me").astype(np.float64)
        emphasised = np.append(samples[:1], samples[1:] - 0.97 * samples[:-1]) * 32768
        energies = librosa.feature.melspectrogram(
            y=np.pad(emphasised, 56),  # its 400-sample window sits in the middle of 512
            sr=16000,
            n_fft=512,
            win_length=400,
            hop_length=160,
            window="hamming",
            center=False,
            n_mels=80,
            fmin=20,
            fmax=8000,
            htk=True,
            norm=None,
        )
    ours = _rust_fe.Fbank(**RECIPE).compute(samples.astype(np.float32))
    theirs = np.log(np.maximum(energies.T, 2.0**-23))
    assert ours.shape == theirs.shape
    per_frame = [np.corrcoef(a, b)[0, 1] for a, b in zip(ours, theirs, strict=True)]
    assert np.median(per_frame) > 0.99
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.99
    assert abs(np.median(ours - theirs)) < 0.05


@pytest.mark.parametrize("rate", [8000, 22050, 44100, 48000])
def test_resampling_agrees_with_scipy(rate):
    """A chirp inside both bands comes out as SciPy's polyphase filter makes it."""
    from scipy.signal import chirp, resample_poly

    time = np.arange(2 * rate) / rate
    original = 0.5 * chirp(time, 100, 2.0, 0.3 * min(rate, 16000))
    found = audio.resample(Audio(original.astype(np.float32), rate, "chirp"), 16000)
    wanted = resample_poly(original, 16000, rate, window=("kaiser", 14.0))
    assert found.sample_rate_hz == 16000
    assert abs(len(found.samples) - len(wanted)) <= 1
    middle = slice(800, 31000)  # the filters ring differently at the ends
    error = np.abs(found.samples[middle] - wanted[middle])
    assert error.max() < 1e-4


def test_resampling_down_removes_what_cannot_be_heard_at_16_khz():
    """A tone above the new Nyquist disappears instead of folding back as another tone."""
    tone = 0.5 * np.sin(2 * np.pi * 11000 * np.arange(48000) / 48000)
    found = audio.resample(Audio(tone.astype(np.float32), 48000, "tone"), 16000)
    assert np.abs(found.samples[800:-800]).max() < 1e-4
