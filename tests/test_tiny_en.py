"""The recipe of the built-in model: who may train, and what the card calls met."""

import importlib
import sys
from pathlib import Path

import pytest

RECIPE = Path(__file__).parents[1] / "models" / "tiny-en"


@pytest.fixture(scope="module")
def recipe():
    """Import a module of the recipe, which is a folder of programs and no package."""
    before = set(sys.modules)
    sys.path.insert(0, str(RECIPE))
    yield importlib.import_module
    sys.path.remove(str(RECIPE))
    for name in set(sys.modules) - before:
        if (RECIPE / f"{name}.py").exists():
            del sys.modules[name]


@pytest.fixture(scope="module")
def jobs(recipe):
    plans, splits = recipe("plans"), recipe("corpus").Splits()
    sets = (
        plans.FirstPlan(splits),
        plans.SecondPlan(splits, ["a mouse ran"]),
        plans.ThirdPlan(splits),
    )
    return [job for plan in sets for job in plan.jobs()]


def test_held_out_voices_never_train(recipe, jobs):
    splits = recipe("corpus").Splits()
    assert splits.voices("test") == ["flite/rms", "festival/ked_diphone"]
    for job in jobs:
        assert splits.of_voice(job.voice) == job.split


@pytest.mark.parametrize(
    ("mixture", "split"),
    [
        ("kokoro/jf_alpha:30+jm_kumo:70", "train"),
        ("flite/slt:50+rms:50", "unused"),
        ("kokoro/jf_alpha:30+nobody:70", "unused"),
    ],
)
def test_a_mixture_trains_only_if_all_its_voices_do(recipe, mixture, split):
    assert recipe("corpus").Splits().of_voice(mixture) == split


def test_training_voices_say_no_held_out_sentence(recipe, jobs):
    of_sentence = recipe("phrases").split_of_sentence
    said = [job.text for job in jobs if job.split == "train" and job.source == "tts"]
    assert {of_sentence(text) for text in said} == {"train"}


def test_the_committed_voices_are_those_that_make_splits_writes(recipe):
    wanted, splits = recipe("make_splits").VOICES, recipe("corpus").Splits()
    assert {split: splits.voices(split) for split in wanted} == wanted


def test_the_phrases_of_the_test_are_many_and_mostly_unseen(recipe, jobs):
    of_sentence = recipe("phrases").split_of_sentence
    spoken = [job.text for job in jobs if job.voice == "flite/rms"]
    assert len(spoken) >= 200
    assert len({word for text in spoken for word in text.split()}) >= 120
    assert sum(of_sentence(text) == "test" for text in spoken) >= 0.7 * len(spoken)


@pytest.mark.parametrize(
    ("what", "percent", "empty", "met"),
    [
        ("clips", 50, 0.0, True),
        ("clips", 51, 0.0, False),
        ("words", 75, 0.0, True),
        ("words", 76, 0.0, False),
        ("empty", 98, 98.0, True),
        ("empty", 98, 97.9, False),
    ],
)
def test_a_target_is_met_or_not(recipe, what, percent, empty, met):
    result = recipe("scoring").score([("one two", "one"), ("go up", "go up")])
    target = recipe("goals").Target(what, percent)
    assert (target.reached(result, empty) >= percent) is met


def test_the_card_says_what_was_withheld_and_what_int8_loses(recipe):
    evaluate = recipe("evaluate")
    heard = evaluate.Heard
    digits = [heard("a", "one", "one", "one")] * 98 + [heard("b", "two", "on", "")] * 2
    noise = [heard("n", "", "up", "")] * 99 + [heard("n", "", "up", "up")]
    int8 = {"wake words, held-out clips": digits, "noise, held-out recordings": noise}
    fp32 = {**int8, "wake words, held-out clips": [heard("a", "one", "one", "one")] * 100}
    text = "\n".join(evaluate.table(int8, fp32))
    assert "| 98.0 (93.0-99.4) | 2.0 | clips >= 98 | yes | -2.0 |" in text
    assert "empty: 99.0 (94.6-99.8) | 99.0 | empty >= 98 | yes |" in text
    assert "2 of 2 targets met." in text
    assert "Most that int8 loses against fp32: 2.0 points (limit 0.5): not met." in text
