"""Networks exported by the public tools' own code, and the facts of SenseVoice's own files.

tests/networks was made by models/reference/make.py: FunASR's SenseVoiceSmall, tiny, with seeded
random weights. The same weights went through FunASR's exporter and quantiser (both generations of
its head, both of torch's exporters) and the way of sherpa-onnx's script.

Files of SenseVoice itself may not be in this repository: ASR_SENSEVOICE_FILES names a folder.
"""

import functools
import hashlib
import json
import os
import random
import re
import shutil
from pathlib import Path
from typing import NamedTuple

import fakes
import numpy as np
import pytest

import asr
from asr import audio, ctc, layouts, text
from asr.layouts import funasr, sherpa
from asr.records import Features, Logits
from asr.text import Vocabulary

NETWORKS = Path(__file__).parent / "networks"
CLIPS = sorted((NETWORKS.parents[1] / "golden" / "audio").glob("*.wav"))
RECORD = json.loads((NETWORKS / "networks.json").read_text(encoding="utf-8"))
MADE = {record["folder"]: record for record in RECORD["networks"]}
PRECISIONS = ("fp32", "int8")
EVERY = [(name, precision) for name in MADE for precision in PRECISIONS]

#: Largest difference of a score from torch's, fp32. Seen: 1.8e-5; the scores reach +-15.
FP32_ABS = 1e-4
#: int8 quantises activations as it runs. It may decide otherwise only in rows where fp32 leads by
#: less than this (seen: 0.12, of scores in +-15; other CPUs run other kernels), and only in this
#: share of rows (seen: 1.5 %).
INT8_MARGIN = 0.4
INT8_SHARE = 0.05
#: Log-probability and entropy of the same row from logits and from log-softmax, in nats.
HEAD_ABS = 1e-4
#: sha256 of the files of the public model.
AM_MVN = "29b3c740a2c0cfc6b308126d31d7f265fa2be74f3bb095cd2f143ea970896ae5"
BPE = "aa87f86064c3730d799ddf7af3c04659151102cba548bce325cf06ba4da4e6a8"
TAG_IDS = {
    "zh": 24884, "en": 24885, "yue": 24888, "ja": 24892, "ko": 24896, "nospeech": 24992,
    "Speech": 24993, "BGM": 24995, "Laughter": 24997, "HAPPY": 25001, "SAD": 25002, "ANGRY": 25003,
    "NEUTRAL": 25004, "EMO_UNKNOWN": 25009, "withitn": 25016, "woitn": 25017, "Event_UNK": 25019,
}  # fmt: skip


class Answer(NamedTuple):
    """What a network says to a clip."""

    logits: Logits
    decoded: asr.records.Decoded
    transcript: asr.records.Transcript


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """Run our pipeline: answer(network, precision, clip, language, itn)."""

    @functools.cache
    def recognizer(name, precision):
        folder = tmp_path_factory.mktemp("networks") / name
        folder.mkdir()
        for file in (NETWORKS / name).iterdir():
            if precision == "int8" or file.name not in ("model_quant.onnx", "model.int8.onnx"):
                shutil.copyfile(file, folder / file.name)  # no link: weights must not leave it
        loaded = asr.Recognizer.load(folder, threads=1)
        assert (precision == "fp32") == (loaded.layout.network.name == "model.onnx")
        return loaded

    @functools.cache
    def run(name, precision, clip, language="auto", itn=False):
        loaded = recognizer(name, precision)
        sound = audio.resample(audio.read(clip, None), 16000)
        front_end = loaded.front_end
        features = front_end.cmvn(front_end.lfr(front_end.fbank(sound)))
        logits = scores(loaded, features, language, itn)
        decoded = ctc.greedy(logits, blank_id=loaded.layout.blank_id)
        return Answer(logits, decoded, loaded.transcribe(clip, language=language, itn=itn))

    run.recognizer = recognizer
    return run


def scores(recognizer, features, language, itn):
    layout = recognizer.layout
    binding = layout.connect(recognizer.engine.inputs, recognizer.engine.outputs)
    tensors = binding.bind(features, layout.language_id(language), layout.itn_ids[itn])
    return binding.unbind(recognizer.engine.run(tensors), features.frame_shift_s)


def calls():
    """The seeded features whose scores torch computed: features, language, ITN, logits."""
    names = {row: name for name, row in funasr.LANGUAGE_IDS.items()}
    expected = np.load(NETWORKS / "expected.npz")
    generator = np.random.default_rng(0)
    for k, (rows, language, itn) in enumerate(expected["calls"].tolist()):
        features = generator.standard_normal((rows, 560)).astype(np.float32)
        wanted = expected[f"logits_{k}"]
        yield Features(features, 0.06), names[language], itn == funasr.ITN_IDS[True], wanted


def margins(values):
    """Lead of the best score of each row."""
    ordered = np.sort(values, axis=-1)
    return ordered[:, -1] - ordered[:, -2]


# The committed networks.


def test_the_files_are_those_that_the_recipe_made():
    """Hashes as recorded by the recipe, below 1.5 MB in all."""
    for folder, record in MADE.items():
        for name, file in record["files"].items():
            data = (NETWORKS / folder / name).read_bytes()
            assert file["sha256"] == hashlib.sha256(data).hexdigest(), f"{folder}/{name}"
    assert sum(p.stat().st_size for p in NETWORKS.rglob("*") if p.is_file()) < 1_500_000


def test_the_set_is_representative():
    """Both layouts, exporters and heads, and operator sets before and after 17."""
    found = {k: {record[k] for record in MADE.values()} for k in ("layout", "exporter", "head")}
    assert {"funasr", "sherpa"} == found["layout"]
    assert {"torchscript", "dynamo"} == found["exporter"]
    assert {"logits", "log_softmax"} == found["head"]
    assert {13, 14, 17, 18} == {record["opset_made"] for record in MADE.values()}


def test_no_network_names_a_machine():
    """torch's newer exporter notes the source path of every node; the recipe removes that."""
    for path in NETWORKS.rglob("*.onnx"):
        assert not re.search(rb"/(?:home|root|tmp|usr|var|work)/|site-packages", path.read_bytes())


@pytest.mark.parametrize("name", MADE)
def test_fp32_computes_what_torch_computes(answer, name):
    """Scores of each graph equal those of the PyTorch network, for 1, 7 and 33 rows."""
    recognizer = answer.recognizer(name, "fp32")
    for features, language, itn, logits in calls():
        expected = logits
        if MADE[name]["head"] == "log_softmax":
            top = logits.max(-1, keepdims=True)
            expected = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
        found = scores(recognizer, features, language, itn).values
        assert expected.shape == found.shape == (4 + len(features.values), 128)
        np.testing.assert_allclose(found, expected, rtol=0, atol=FP32_ABS)
        np.testing.assert_array_equal(expected.argmax(-1), found.argmax(-1))


@pytest.mark.parametrize("name", MADE)
def test_language_and_itn_reach_the_network(answer, name):
    """Another language or ITN row of the prompt gives other scores."""
    run = functools.partial(answer, name, "int8", CLIPS[0])
    plain = run().logits.values
    assert not np.array_equal(plain, run(language="zh").logits.values)
    assert not np.array_equal(plain, run(itn=True).logits.values)


@pytest.mark.parametrize(("name", "precision"), EVERY)
def test_the_pipeline_gives_text(answer, name, precision):
    """Every clip goes from file to transcript; most of them hold tokens."""
    found = [answer(name, precision, clip).transcript for clip in CLIPS]
    assert all(t.audio_s > 0 for t in found)
    assert sum(bool(t.text) for t in found) > len(CLIPS) / 2


@pytest.mark.parametrize("name", list(MADE)[1:])
def test_fp32_of_all_exports_gives_the_same_ids(answer, name):
    """Layout, exporter, operator set and head do not change one decision, token, time or text."""
    for clip in CLIPS:
        expected = answer(next(iter(MADE)), "fp32", clip)
        found = answer(name, "fp32", clip)
        for field in ("argmax", "token_ids", "start_frame", "end_frame"):
            np.testing.assert_array_equal(
                getattr(expected.decoded, field), getattr(found.decoded, field), clip.name
            )
        for field in ("log_prob", "entropy", "log_probs", "entropies"):
            wanted, got = getattr(expected.decoded, field), getattr(found.decoded, field)
            np.testing.assert_allclose(got, wanted, rtol=0, atol=HEAD_ABS, err_msg=clip.name)
        assert expected.transcript.text == found.transcript.text


def test_logits_and_log_softmax_are_what_they_say(answer):
    """The head with log-softmax gives rows whose probabilities sum to one, the other does not."""
    sums = {
        record["head"]: np.exp(answer(name, "fp32", CLIPS[0]).logits.values).sum(-1)
        for name, record in MADE.items()
    }
    np.testing.assert_allclose(sums["log_softmax"], 1, atol=1e-5)
    assert (sums["logits"] > 2).all()


@pytest.mark.parametrize("name", MADE)
def test_int8_differs_only_where_fp32_hesitates(answer, name):
    """A row that int8 decides otherwise has a small lead in fp32, and such rows are few."""
    leads, different = [], []
    for clip in CLIPS:
        expected = answer(name, "fp32", clip)
        found = answer(name, "int8", clip)
        leads.append(margins(expected.logits.values))
        different.append(expected.decoded.argmax != found.decoded.argmax)
    leads, different = np.concatenate(leads), np.concatenate(different)
    print(f"{name}: {different.sum()} of {len(different)} rows, leads {leads[different]}")
    assert (leads[different] < INT8_MARGIN).all()
    assert different.mean() <= INT8_SHARE


@pytest.mark.parametrize("name", MADE)
def test_int8_of_both_layouts_agrees_but_where_fp32_hesitates(answer, name):
    """sherpa-onnx's int8 has one scale per matrix, FunASR's one per column."""
    rows = same = 0
    for clip in CLIPS:
        reference = answer("sherpa-torchscript-13-logits", "int8", clip)
        found = answer(name, "int8", clip)
        equal = reference.decoded.argmax == found.decoded.argmax
        lead = margins(answer(name, "fp32", clip).logits.values)
        assert (lead[~equal] < INT8_MARGIN).all()
        rows, same = rows + len(equal), same + equal.sum()
    assert same >= (1 - INT8_SHARE) * rows


def test_the_token_list_is_that_of_the_sentencepiece_model():
    """tokens.json, tokens.txt and the model beside them hold the same pieces."""
    folder = NETWORKS / "funasr-torchscript-14-logits"
    model = sentencepiece_model(folder / "tiny.bpe.model")
    pieces = [model.id_to_piece(i) for i in range(model.vocab_size())]
    assert pieces == layouts.open_layout(folder).vocabulary.pieces
    path = NETWORKS / "sherpa-torchscript-13-logits" / "tokens.txt"
    assert pieces == sherpa.read_tokens(path, expected=len(pieces))


# Tokenizer and CMVN, tiny and real.


@pytest.fixture(scope="session")
def sensevoice():
    """SenseVoice's own files, outside this repository; without them these tests are skipped."""
    folder = os.environ.get("ASR_SENSEVOICE_FILES")
    if not folder:
        pytest.skip(
            "NOT PROVED HERE: SenseVoice's own tokenizer and CMVN. Set ASR_SENSEVOICE_FILES to a "
            "folder with its am.mvn, config.yaml and chn_jpn_yue_eng_ko_spectok.bpe.model"
        )
    folder = Path(folder)
    for name, expected in (("am.mvn", AM_MVN), (bpe_of(folder).name, BPE)):
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        assert expected == found, f"{folder / name} is not the public SenseVoice's"
    return folder


def bpe_of(folder):
    (path,) = folder.glob("*.bpe.model")
    return path


def sentencepiece_model(path):
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(path))


def through_funasr(folder, tmp_path):
    """The pieces as our FunASR layout reads them from a tokens.json like FunASR's."""
    model = sentencepiece_model(bpe_of(folder))
    pieces = [model.id_to_piece(i) for i in range(model.vocab_size())]
    for name in ("am.mvn", "config.yaml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    theirs = folder / "tokens.json"
    content = theirs.read_text("utf-8") if theirs.is_file() else json.dumps(pieces)
    (tmp_path / "tokens.json").write_text(content, "utf-8")
    (tmp_path / "model.onnx").touch()
    return layouts.open_layout(tmp_path).vocabulary


def through_sherpa(folder, tmp_path):
    """The pieces as our sherpa-onnx layout reads them from a tokens.txt like sherpa-onnx's."""
    model = sentencepiece_model(bpe_of(folder))
    size = model.vocab_size()
    path = tmp_path / "tokens.txt"
    path.write_text("".join(f"{model.id_to_piece(i)} {i}\n" for i in range(size)), "utf-8")
    return Vocabulary(sherpa.read_tokens(path, expected=size))


def assert_decodes_alike(folder, vocabulary, *, sequences):
    """Random ids through sentencepiece, tags taken out, and through ours.

    Id 0 is left out: it is blank to CTC and never reaches the text. Blanks at either end are
    taken off; ours never has any.
    """
    model = sentencepiece_model(bpe_of(folder))
    assert model.vocab_size() == len(vocabulary)
    generator = random.Random(0)
    for _ in range(sequences):
        ids = [generator.randrange(1, len(vocabulary)) for _ in range(generator.randrange(30))]
        expected = re.sub(r"<\|[^|<>]+\|>", "", model.decode(ids)).strip()
        found = text.transcribe(
            fakes.decoded(ids), vocabulary, audio_s=1000.0, requested_itn=False
        ).text
        assert expected == found, ids


@pytest.mark.parametrize("read", [through_funasr, through_sherpa])
def test_ids_decode_as_with_sentencepiece(tmp_path, read):
    """2,000 random id sequences of the tiny vocabulary, through both token lists."""
    folder = NETWORKS / "funasr-torchscript-14-logits"
    assert_decodes_alike(folder, read(folder, tmp_path), sequences=2000)


@pytest.mark.parametrize("read", [through_funasr, through_sherpa])
def test_sensevoice_ids_decode_as_with_sentencepiece(sensevoice, tmp_path, read):
    """10,000 random id sequences of SenseVoice's vocabulary, through both token lists."""
    vocabulary = read(sensevoice, tmp_path)
    assert len(vocabulary) == 25055
    assert_decodes_alike(sensevoice, vocabulary, sequences=10_000)


@pytest.mark.parametrize("read", [through_funasr, through_sherpa])
def test_sensevoice_tags_have_their_ids(sensevoice, tmp_path, read):
    """Each tag stands at the id that the network gives for it, and only there."""
    vocabulary = read(sensevoice, tmp_path)
    assert {name: name for name in TAG_IDS} == {n: vocabulary.tag(i) for n, i in TAG_IDS.items()}
    tags = [vocabulary.tag(i) for i in range(len(vocabulary))]
    assert {name: tags.index(name) for name in TAG_IDS} == TAG_IDS
    assert len(set(vocabulary.pieces)) == len(vocabulary)


def test_sensevoice_cmvn_is_80_values_seven_times(sensevoice):
    """560 shifts and 560 scales, each an 80-value vector repeated for the seven stacked frames."""
    neg_mean, inv_stddev = funasr.read_cmvn(sensevoice / "am.mvn", expected=560)
    for values, low, high in ((neg_mean, -15.06, -8.30), (inv_stddev, 0.1435, 0.1559)):
        assert values.shape == (560,)
        np.testing.assert_array_equal(np.tile(values[:80], 7), values)
        assert low < values.min() < values.max() < high
        assert len(np.unique(values)) > 70


def test_sensevoice_config_is_understood(sensevoice, tmp_path):
    """Recipe and languages from the shipped configuration."""
    through_funasr(sensevoice, tmp_path)
    layout = layouts.open_layout(tmp_path)
    recipe = layout.front_end
    assert (recipe.num_mel_bins, recipe.lfr_m, recipe.lfr_n) == (80, 7, 6)
    assert (recipe.sample_rate_hz, recipe.window) == (16000, "hamming")
    assert layout.language_ids == funasr.LANGUAGE_IDS
