"""asr.recognizer: sound to transcript, whatever the sound; the same answer every time."""

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import fakes
import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

import asr
from asr import audio

GOLDEN = Path(__file__).parent.parent / "golden/audio"

RATE = 16000
SECOND = fakes.hiss(RATE)


def noise(seconds, level, seed=1):
    return (level * np.random.default_rng(seed).standard_normal(int(RATE * seconds))).astype(
        np.float32
    )


# Too little sound.


@pytest.mark.parametrize("length", [0, 1, 2, 159, 160, 239, 240, 241, 399, 400, 401, 1359, 1360,
                                    1361, 1599])  # fmt: skip
def test_less_than_a_tenth_of_a_second_is_too_short(recognizer, length):
    """Clips around the window and the hop are an empty text with a reason, never an error."""
    found = recognizer.transcribe(noise(1, 0.1)[:length], sample_rate=RATE)
    assert (
        found.text, found.reason, found.no_speech, found.segments,
    ) == ("", "too_short", True, ())  # fmt: skip
    assert found.audio_s == length / RATE
    assert found.wall_s > 0
    assert (found.language, found.confidence, found.no_speech_score) == (None, None, None)


@pytest.mark.parametrize("length", [1600, 1601, 1760, 2000, 2560, 4000])
def test_from_a_tenth_of_a_second_the_network_is_asked(recognizer, length):
    """Short clips of noise go all the way: text is a string, the reason is not their length."""
    found = recognizer.transcribe(noise(1, 0.01)[:length], sample_rate=RATE)
    assert isinstance(found.text, str)
    assert found.reason != "too_short"


@pytest.mark.parametrize("rate", [8000, 44100, 96000])
def test_too_short_is_a_matter_of_time_not_of_samples(recognizer, rate):
    """A tenth of a second is one at every rate."""
    below = np.zeros(math.ceil(rate / 10) - 1, np.float32)
    assert recognizer.transcribe(below, sample_rate=rate).reason == "too_short"
    above = np.zeros(math.ceil(rate / 10), np.float32)
    assert recognizer.transcribe(above, sample_rate=rate).reason != "too_short"


@given(st.integers(400, 4000))
def test_the_number_of_rows_follows_the_formula(recognizer, length):
    """n = 1 + (N - 400) // 160 frames (snip edges), ceil(n / 6) rows: no frame is lost or made."""
    sound = audio.read(np.zeros(length, np.float32), RATE)
    front_end = recognizer.front_end
    frames = front_end.fbank(sound)
    count = 1 + (length - 400) // 160
    assert (count, 80) == frames.values.shape
    assert (math.ceil(count / 6), 560) == front_end.cmvn(front_end.lfr(frames)).values.shape


# No speech.


def hum(seconds=2):
    return (0.1 * np.sin(2 * np.pi * 50 * np.arange(RATE * seconds) / RATE)).astype(np.float32)


@pytest.mark.parametrize(
    "samples",
    [np.zeros(2 * RATE, np.float32), np.full(2 * RATE, 0.1, np.float32), noise(2, 10 ** (-90 / 20)),
     noise(2, 0.001), hum(), np.sign(hum()), np.eye(1, 2 * RATE, 9000, dtype=np.float32)[0]],
    ids=["zeros", "DC 0.1", "noise -90 dBFS", "noise -60 dBFS", "hum", "square", "click"],
)  # fmt: skip
def test_sound_without_speech_is_a_transcript_like_any_other(recognizer, samples):
    """Silence, offset, faint noise, hum: text is a string, every field has its type, no error."""
    found = recognizer.transcribe(samples, sample_rate=RATE)
    assert isinstance(found.text, str)
    assert found.audio_s == 2
    assert found.no_speech == (found.text == "") == (found.reason == "silence")
    if found.no_speech:
        assert 0 <= found.no_speech_score <= 1
        assert (found.confidence, found.entropy) == (None, None)


@pytest.mark.parametrize("level", [0.0, 0.1])
def test_digital_silence_has_no_text(recognizer, level):
    """Nothing is heard where nothing is: no stock phrase for zeros or a constant."""
    found = recognizer.transcribe(np.full(2 * RATE, level, np.float32), sample_rate=RATE)
    assert (found.text, found.reason) == ("", "silence")


def test_appended_silence_adds_no_word(recognizer, clip):
    """Two seconds of zeros after the speech change no word of it."""
    samples = audio.read(clip, None).samples
    longer = np.concatenate([samples, np.zeros(2 * RATE, np.float32)])
    expected = recognizer.transcribe(samples, sample_rate=RATE).text
    assert expected == recognizer.transcribe(longer, sample_rate=RATE).text


# The same answer.


def answer(found):
    """All but how long it took."""
    return found.text, found.segments, found.confidence, found.entropy, found.no_speech_score


def test_the_same_clip_five_times_is_the_same_bit_by_bit(recognizer, clip):
    """No dither, no cache, no state: five calls, one answer, confidences included."""
    assert len({answer(recognizer.transcribe(clip)) for _ in range(5)}) == 1


def test_path_text_and_array_are_the_same(recognizer, clip):
    """However the sound is handed over, it is the same sound."""
    samples, rate = soundfile.read(clip, dtype="float32")
    expected = answer(recognizer.transcribe(clip))
    assert expected == answer(recognizer.transcribe(str(clip)))
    assert expected == answer(recognizer.transcribe(samples, sample_rate=rate))
    assert expected == answer(recognizer.transcribe(samples.astype(float), sample_rate=rate))


def test_int16_and_float_are_the_same(recognizer, clip):
    """int16 is scaled by us, once: features do not move by 2 ln 32768 = 20.79."""
    integers, rate = soundfile.read(clip, dtype="int16")
    floats = integers / 32768
    expected = answer(recognizer.transcribe(floats, sample_rate=rate))
    assert expected == answer(recognizer.transcribe(integers, sample_rate=rate))


def test_a_strided_array_is_the_same(recognizer, clip):
    """One channel of an interleaved buffer, a reversed view: values count, not memory."""
    samples, rate = soundfile.read(clip, dtype="float32")
    interleaved = np.stack([samples, -samples], axis=1)
    expected = answer(recognizer.transcribe(samples, sample_rate=rate))
    assert expected == answer(recognizer.transcribe(interleaved[:, 0], sample_rate=rate))
    backwards = samples[::-1].copy()[::-1]
    assert expected == answer(recognizer.transcribe(backwards, sample_rate=rate))


def test_calls_leave_nothing_behind(recognizer, clip, short_clip):
    """What was heard before changes nothing: A, B, A gives A, B, A."""
    first, second = answer(recognizer.transcribe(clip)), answer(recognizer.transcribe(short_clip))
    recognizer.transcribe(SECOND, sample_rate=RATE)
    assert (first, second) == (
        answer(recognizer.transcribe(clip)),
        answer(recognizer.transcribe(short_clip)),
    )


def test_eight_threads_share_a_recogniser(recognizer, clip, short_clip):
    """8 threads x 20 clips on one recogniser: each answer is that of a call alone."""
    samples = audio.read(clip, None).samples
    sources = [samples, samples[: 2 * RATE], samples[RATE:], audio.read(short_clip, None).samples]

    def call(number):
        return answer(recognizer.transcribe(sources[number % 4], sample_rate=RATE))

    serial = [call(number) for number in range(4)]
    barrier = threading.Barrier(8)

    def work(worker):
        barrier.wait(timeout=30)
        return [(n % 4, call(n)) for n in range(worker, worker + 20)]

    with ThreadPoolExecutor(8) as pool:
        for results in pool.map(work, range(8)):
            assert all(serial[n] == found for n, found in results)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_word(recognizer, clip, threads):
    """Threads are for speed alone."""
    other = asr.Recognizer.load(threads=threads)
    assert other.engine.threads == threads
    assert recognizer.transcribe(clip).text == other.transcribe(clip).text


def test_every_backend_hears_the_same_words(clip):
    """The SIMD path is for speed alone."""
    from asr import _rust_fe

    texts = {
        asr.Recognizer.load(threads=1, backend=name).transcribe(clip).text
        for name in _rust_fe.build_info()["backends"]
    }
    assert len(texts) == 1


# A given network: what the pipeline makes of its answer.


def hear(values, samples=SECOND, **options):
    return fakes.recognizer(values).transcribe(samples, sample_rate=RATE, **options)


def test_the_pipeline_collapses_runs_then_drops_blanks():
    """a a blank a b b is a a b: collapsing is of neighbours, not of all equal ids."""
    a, b = "▁hello", "▁you"
    found = hear(fakes.rows([a, a, None, a, b, b]))
    assert found.text == "hello hello you"
    assert [(w.start_s, w.end_s) for w in found.segments[0].words] == [
        (0.0, 0.09), (0.15, 0.21), (0.21, 0.33),
    ]  # fmt: skip


def test_a_word_does_not_merge_with_the_prompt_in_front():
    """A run cannot reach from the prompt rows into the speech rows."""
    prompts = ("<|en|>", "<|NEUTRAL|>", "<|Speech|>", "▁hello")
    assert hear(fakes.rows(["▁hello", None], prompts)).text == "hello"


def test_the_prompt_is_what_was_asked_for():
    """Language and ITN reach the network as rows of its embedding, as int32."""
    recognizer = fakes.recognizer(fakes.rows(["▁hello"]))
    for language, row in (("auto", 0), ("en", 4)):
        for itn, norm in ((False, 15), (True, 14)):
            recognizer.transcribe(SECOND, sample_rate=RATE, language=language, itn=itn)
            call = recognizer.engine.calls[-1]
            assert (row, norm) == (call["language"][0], call["textnorm"][0])
            assert call["speech"].shape[1] == call["speech_lengths"][0]


@given(st.integers(12_000, 60_000), st.sampled_from([8000, 11025, 22050, 44100, 48000]))
def test_no_time_lies_beyond_the_source_at_any_rate(length, rate):
    """Resampling rounds the length; times are of the source, and none is later than its end."""
    recognizer = fakes.recognizer(fakes.rows(["▁hello", None] * 60))
    found = recognizer.transcribe(fakes.hiss(length), sample_rate=rate)
    assert found.audio_s == length / rate
    assert max(w.end_s for s in found.segments for w in s.words) <= found.audio_s


def test_itn_that_is_not_honoured_is_a_warning():
    """What row 3 answers is compared with what was asked for, through the whole pipeline."""
    values = fakes.rows(["▁hello"])
    assert hear(values, itn=False).warnings == ()
    assert hear(values, itn=True).warnings == ("itn_not_honoured",)


def test_the_no_speech_score_is_the_mean_blank_probability():
    """Mean probability of blank over the speech rows, by the scores themselves."""
    values = fakes.rows([None, None, None])
    values[4:, 0] = 12, 3, 1
    blank = np.exp(values[4:, 0]) / np.exp(values[4:]).sum(axis=1)
    assert hear(values).no_speech_score == pytest.approx(blank.mean(), rel=1e-5)


@pytest.mark.parametrize(
    ("pieces", "prompts"),
    [
        (["▁hello", None], ("<|nospeech|>", "<|NEUTRAL|>", "<|BGM|>", "<|woitn|>")),
        (["<|BGM|>", None, "<|BGM|>"], fakes.PROMPTS),
        (["▁", None], fakes.PROMPTS),
    ],
    ids=["nospeech", "tags alone", "a marker alone"],
)
def test_the_no_speech_score_is_of_blank_also_where_another_id_was_best(pieces, prompts):
    """Rows that the network gave to a tag or a dropped word are no blank, so the score is low."""
    values = fakes.rows(pieces, prompts)
    probability = np.exp(values[4:]) / np.exp(values[4:]).sum(axis=1, keepdims=True)
    found = hear(values)
    assert found.no_speech
    assert found.no_speech_score == pytest.approx(probability[:, 0].mean(), abs=1e-3)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_is_named(value):
    """Row and column: NaN must not silently become blank."""
    values = fakes.rows(["▁hello", None])
    values[5, 7] = value
    with pytest.raises(asr.DecodeError, match=r"row 5, column 7"):
        hear(values)


def test_scores_of_another_shape_are_refused():
    """Fewer rows than prompts, or another type, are no answer of this network."""
    with pytest.raises(asr.DecodeError, match="at least 4 rows"):
        hear(fakes.rows([])[:3])
    with pytest.raises(asr.DecodeError, match="float64"):
        hear(fakes.rows(["▁hello"]).astype(float))


def test_only_prompt_rows_is_silence():
    """No speech rows at all: an empty text, no division by zero."""
    found = hear(fakes.rows([]))
    assert (found.text, found.reason) == ("", "silence")
    assert found.language == "en"


def test_an_engine_failure_reaches_the_caller():
    """The engine's error is the caller's error, unchanged."""
    error = asr.EngineError("the network failed to run: x")
    with pytest.raises(asr.EngineError) as seen:
        hear(error)
    assert seen.value is error


def test_a_network_in_sherpas_spelling_is_heard_alike():
    """Tensor names are found in either spelling, through the whole pipeline."""
    values = fakes.rows(["▁hello", None, "▁you"])
    sherpa = fakes.recognizer(values, sherpa=True)
    expected = answer(hear(values))
    assert expected == answer(sherpa.transcribe(SECOND, sample_rate=RATE))
    assert set(sherpa.engine.calls[0]) == {"x", "x_length", "language", "text_norm"}


def test_the_features_lent_to_the_network_are_its_own(clip):
    """Changing the caller's array during the call changes nothing that the network sees."""
    samples = audio.read(clip, None).samples.copy()
    recognizer = fakes.recognizer(fakes.rows(["▁hello"]))
    engine = recognizer.engine
    original = engine.run

    def run(inputs):
        before = inputs["speech"].copy()
        samples[:] = 1.0
        assert np.array_equal(before, inputs["speech"])
        return original(inputs)

    engine.run = run
    assert recognizer.transcribe(samples, sample_rate=RATE).text == "hello"


# Arguments.


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_below_one_are_refused(threads):
    """Zero threads is a mistake, not a request for the default."""
    with pytest.raises(asr.UsageError, match=f"threads: expected 1 or more, found {threads}"):
        asr.Recognizer.load(threads=threads)


def test_more_threads_than_a_machine_can_count_are_refused():
    """A number that the runtime cannot hold is a usage error, not a fault of ours."""
    with pytest.raises(asr.UsageError, match="threads"):
        asr.Recognizer.load(threads=10**12)


def test_an_unknown_backend_is_refused():
    """A SIMD path that does not exist here is named, with those that do."""
    with pytest.raises(asr.FrontEndError, match="mmx"):
        asr.Recognizer.load(backend="mmx")


def test_an_unknown_language_is_refused_before_the_file_is_read(recognizer, tmp_path):
    """A wrong argument is told at once, even if the file is missing too."""
    with pytest.raises(asr.UsageError, match="did you mean 'en'"):
        recognizer.transcribe(tmp_path / "nope.wav", language="eng")


@pytest.mark.parametrize("source", [[0.0] * RATE, 3, None])
def test_a_source_of_another_type_is_an_error_of_ours(recognizer, source):
    """Neither path nor array: the message says what may be given."""
    with pytest.raises((asr.AsrError, TypeError), match=r"(?i)path|array|str"):
        recognizer.transcribe(source)


def test_a_rate_beside_a_file_is_refused(recognizer, clip):
    """A file states its own rate; another one beside it must not be ignored silently."""
    with pytest.raises(asr.UsageError, match="expected no sample_rate with a file, found 8000"):
        recognizer.transcribe(clip, sample_rate=8000)


@pytest.mark.parametrize("value", [0.0, 0.1, -1.0])
def test_a_constant_is_silence_and_the_network_is_not_asked(value):
    """Without energy in any mel bin there is nothing to hear, whatever a network would say."""
    recognizer = fakes.recognizer(fakes.rows(["▁hello"]))
    found = recognizer.transcribe(np.full(2 * RATE, value, np.float32), sample_rate=RATE)
    assert (found.text, found.reason, found.no_speech_score) == ("", "silence", 1.0)
    assert recognizer.engine.calls == []


def test_a_failed_call_leaves_the_recogniser_usable(recognizer, clip, tmp_path):
    """An error in one call is over with that call."""
    expected = answer(recognizer.transcribe(clip))
    for bad in (tmp_path, tmp_path / "nope.wav"):
        with pytest.raises(asr.AudioError):
            recognizer.transcribe(bad)
    assert expected == answer(recognizer.transcribe(clip))


@pytest.mark.parametrize("name", ["yes-rms", "up-slt", "seven-slt", "left-right-rms", "digits-awb"])
@pytest.mark.parametrize("silence_s", [0.5, 1.0, 4.0])
def test_digital_silence_around_speech_changes_nothing(recognizer, name, silence_s):
    """Files are padded with zeros; the words stay, and so do their places in the sound."""
    samples, rate = soundfile.read(f"{GOLDEN}/{name}.wav", dtype="float32")
    zeros = np.zeros(int(silence_s * rate), np.float32)
    alone = recognizer.transcribe(samples, sample_rate=rate)
    padded = recognizer.transcribe(np.concatenate([zeros, samples, zeros]), sample_rate=rate)
    assert padded.text == alone.text != ""
    assert padded.audio_s == pytest.approx(alone.audio_s + 2 * silence_s)
    first, last = alone.segments[0], padded.segments[0]
    # The network may put a word as early as the first frame that it is shown.
    assert silence_s - 0.37 < last.start_s < silence_s + first.start_s + 0.13
    assert last.start_s < last.end_s < silence_s + alone.audio_s


def test_the_silence_left_out_is_a_multiple_of_the_rows(recognizer):
    """Thirty frames stay at either end; rows lie where they lie without the silence."""
    front_end = recognizer.front_end
    noise = (np.random.default_rng(1).standard_normal(16000) / 50).astype(np.float32)
    for frames_in_front in (0, 10, 40, 100, 101):
        zeros = np.zeros(160 * frames_in_front, np.float32)
        sound = np.concatenate([zeros, noise, np.zeros(32000, np.float32)])
        features = front_end.fbank(asr.Audio(sound, 16000, "test"))
        kept, skipped = front_end.sounding(features)
        assert skipped % front_end.config.lfr_n == 0
        assert max(0, frames_in_front - 40) <= skipped <= max(0, frames_in_front - 30)
        assert np.array_equal(kept.values, features.values[skipped : skipped + len(kept.values)])
        assert 98 + 28 <= len(kept.values) - min(frames_in_front, 30) <= 98 + 40
    silent, _ = front_end.sounding(
        front_end.fbank(asr.Audio(np.zeros(16000, np.float32), 16000, "t"))
    )
    assert len(silent.values) == 0
