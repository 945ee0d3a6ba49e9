"""asr.evaluate: what is counted, how sure the counts are, and what a threshold does."""

import io
import math
import sys
import tarfile
from html.parser import HTMLParser

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from asr.errors import AudioError, MissingToolError, SystemAccessError, UsageError
from asr.evaluate import align, files, normalise, page, plots, rejection, report, table
from asr.evaluate.calibration import calibrate
from asr.evaluate.clips import Clips
from asr.evaluate.hear import HeardWord, compare, hear
from asr.evaluate.intervals import error_rate, wilson
from asr.evaluate.libraries import require
from asr.evaluate.manifest import Row, read_manifest
from asr.records import Segment, Token, Transcript, Word

pytest.importorskip("rapidfuzz", reason="asr evaluate needs it: pip install rapidfuzz")

WORDS = st.lists(st.sampled_from("abc"), max_size=8)


def heard(*words, source="a", expected="", entropy=None, line=2):
    """The clip of a transcript with these (word, confidence) pairs."""
    parts = tuple(
        Word(text, i, i + 1, c, 1 - c, (Token(text, i, i + 1, c, 1 - c),))
        for i, (text, c) in enumerate(words)
    )
    text = " ".join(word.text for word in parts)
    confidence = None
    if parts:
        confidence = math.exp(sum(math.log(w.confidence) for w in parts) / len(parts))
        if entropy is None:
            entropy = sum(w.entropy for w in parts) / len(parts)
    segments = (Segment(text, 0, len(parts), confidence, entropy, parts),) if parts else ()
    transcript = Transcript(
        text=text, language=None, emotion=None, event=None, itn=None, segments=segments,
        confidence=confidence, entropy=entropy, no_speech=not parts, no_speech_score=None,
        rejected=False, reason=None if parts else "silence", audio_s=1.0, wall_s=0.1, warnings=(),
    )  # fmt: skip
    return compare(Row(line, f"clip-{line}.wav", expected, source), transcript)


def one(expected, said, confidence, **options):
    """A clip of one word, or of none."""
    return heard(*([(said, confidence)] if said else []), expected=expected, **options)


# Words.


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("", []),
        ("  Turn ON,\tthe light! ", ["turn", "on", "the", "light"]),
        ("It's  rock 'n' roll’s", ["it's", "rock", "n", "roll's"]),
        ("twenty-five; 3.5 %", ["twenty", "five", "3", "5"]),
        ("今天 天气，很好。", ["今", "天", "天", "气", "很", "好"]),
        ("打开 WiFi 吧", ["打", "开", "wifi", "吧"]),
        ("カタカナー", ["カ", "タ", "カ", "ナ", "ー"]),
        ("안녕 하세요", ["안녕", "하세요"]),
        ("ＦＵＬＬ　ｗｉｄｔｈ，", ["full", "width"]),
        ("Ünïcöde co\u00adop", ["ünïcöde", "coop"]),
    ],
)
def test_words_that_are_compared(text, units):
    """Lower case, no punctuation, CJK by character, apostrophes only inside words."""
    assert normalise.words(text) == units


@given(st.text())
def test_normalising_twice_changes_nothing(text):
    """What is compared is already as it is compared."""
    once = normalise.words(text)
    assert normalise.words(" ".join(once)) == once
    assert all(unit and unit == unit.strip() for unit in once)


# Alignment.


@pytest.mark.parametrize(
    ("expected", "said", "counts"),  # hits, substitutions, deletions, insertions: by hand
    [
        ("one two three", "one two three", (3, 0, 0, 0)),
        ("one two three", "one too three", (2, 1, 0, 0)),
        ("one two three", "one three", (2, 0, 1, 0)),
        ("one three", "one two three", (2, 0, 0, 1)),
        ("one two three", "", (0, 0, 3, 0)),
        ("", "one two", (0, 0, 0, 2)),
        ("a b c d e f", "a x c e f g", (4, 1, 1, 1)),
        ("", "", (0, 0, 0, 0)),
    ],
)
def test_counts_of_known_alignments(expected, said, counts):
    """Hand-counted word errors."""
    edits = align.count(align.align(expected.split(), said.split()))
    assert (edits.hits, edits.substitutions, edits.deletions, edits.insertions) == counts


@given(WORDS, WORDS)
def test_alignment_loses_nothing(expected, said):
    """Both sides come back in order; errors are never negative and never more than needed."""
    pairs = align.align(expected, said)
    assert [left for left, _ in pairs if left is not None] == expected
    assert [right for _, right in pairs if right is not None] == said
    edits = align.count(pairs)
    assert edits.expected == len(expected)
    assert abs(len(expected) - len(said)) <= edits.errors <= max(len(expected), len(said))


@given(WORDS, WORDS)
def test_errors_are_the_edit_distance(expected, said):
    """The sum of the kinds is the Levenshtein distance, computed here the plain way."""
    row = list(range(len(said) + 1))
    for i, left in enumerate(expected, 1):
        previous, row = row, [i]
        for j, right in enumerate(said, 1):
            row.append(min(previous[j] + 1, row[-1] + 1, previous[j - 1] + (left != right)))
    assert align.count(align.align(expected, said)).errors == row[-1]


def test_a_missing_aligner_says_how_to_install_it(monkeypatch):
    """Exit code 7 and the line that repairs it."""
    for name in ("rapidfuzz", "rapidfuzz.distance", "rapidfuzz.distance.Levenshtein"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingToolError, match=r"rapidfuzz.*pip install 'asr-rtf\[evaluate\]'"):
        align.align(["a"], ["b"])
    assert MissingToolError.exit_code == 7


def test_a_broken_library_is_not_called_missing(tmp_path, monkeypatch):
    """When a library is there but something it needs is not, that is what the user reads."""
    (tmp_path / "broken_library.py").write_text("import not_there_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="not_there_at_all") as caught:
        require("broken_library")
    assert not isinstance(caught.value, MissingToolError)


# Intervals.


@pytest.mark.parametrize(
    ("count", "out_of", "low", "high"),
    # R. G. Newcombe, 1998, Statistics in Medicine 17, table I, method 3 (score, no correction).
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611),
     (1, 29, 0.0061, 0.1718)],
)  # fmt: skip
def test_wilson_agrees_with_published_values(count, out_of, low, high):
    """Four decimals of a published table."""
    rate = wilson(count, out_of)
    assert (round(rate.low, 4), round(rate.high, 4)) == (low, high)
    assert rate.value == count / out_of


@given(st.integers(1, 10**6), st.data())
def test_wilson_holds_the_share(out_of, data):
    """0 <= low <= share <= high <= 1, and the complement is the mirror image."""
    count = data.draw(st.integers(0, out_of))
    rate, mirror = wilson(count, out_of), wilson(out_of - count, out_of)
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert rate.low == pytest.approx(1 - mirror.high, abs=1e-12)


def test_nothing_has_no_rate():
    """No trials, no share; no expected words, no error rate."""
    assert (wilson(0, 0), error_rate([], []), error_rate([3], [0])) == (None, None, None)


def test_error_rate_by_hand():
    """(1 + 0 + 3) errors in (4 + 3 + 1) words; insertions may take a rate above 1."""
    rate = error_rate([1, 0, 3], [4, 3, 1])
    assert (rate.value, rate.count, rate.out_of) == (0.5, 4, 8)
    assert error_rate([2, 3], [1, 1]).value == 2.5


def test_bootstrap_covers_about_as_often_as_it_says():
    """Over clips of 10 words and independent errors: within 95 % +- 4 of 200 experiments."""
    generator = np.random.default_rng(1)
    inside = 0
    for _ in range(200):
        errors = generator.binomial(10, 0.2, 60).tolist()
        rate = error_rate(errors, [10] * 60)
        inside += rate.low <= 0.2 <= rate.high
    assert 0.90 <= inside / 200 <= 0.99


def test_words_of_one_clip_go_wrong_together():
    """The bootstrap is wider than Wilson's where whole clips are wrong: that is why it is used."""
    errors = [10] * 10 + [0] * 40
    rate, rough = error_rate(errors, [10] * 50), wilson(100, 500)
    assert rate.high - rate.low > 2 * (rough.high - rough.low)


def test_no_error_is_no_certainty():
    """Without errors, and with one clip, the interval is Wilson's and not a point."""
    assert error_rate([0, 0], [10, 10]).high == wilson(0, 20).high
    assert error_rate([1], [4]).high == wilson(1, 4).high
    assert error_rate([8], [4]).high == 2.0


# Calibration.


def test_calibration_error_by_hand():
    """Three of four at 0.9 right: 0.15 off; one at 0.2 wrong: 0.2 off; (4 * 0.15 + 0.2) / 5."""
    words = [HeardWord("x", 0.9, right) for right in (True, True, True, False)]
    found = calibrate([*words, HeardWord("x", 0.2, False)])
    assert found.ece == pytest.approx(0.16)
    assert (found.words, found.right.value, found.confidence) == (5, 0.6, pytest.approx(0.76))
    assert [b.words for b in found.bins] == [0, 0, 1, 0, 0, 0, 0, 0, 0, 4]
    assert found.bins[9].right.value == 0.75
    assert found.bins[0].right is None


def test_certainty_belongs_to_the_last_bin():
    """A confidence of exactly 1 has no bin of its own."""
    assert calibrate([HeardWord("x", 1.0, True)]).bins[-1].words == 1
    assert calibrate([HeardWord("x", 1.0, True)]).ece == 0


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=50), st.randoms())
def test_calibration_error_is_a_share_and_has_no_order(pairs, random):
    """0 <= ECE <= 1; the order of the words does not matter; bins hold every word once."""
    words = [HeardWord("x", c, right) for c, right in pairs]
    found = calibrate(words)
    random.shuffle(words)
    again = calibrate(words)
    assert sum(b.words for b in found.bins) == len(words)
    if words:
        assert 0 <= found.ece <= 1
        assert again.ece == pytest.approx(found.ece)


def test_words_carry_the_confidence_of_what_they_came_from():
    """Punctuation apart, each compared word has its word's confidence and its own verdict."""
    clip = heard(("Seven,", 0.9), ("light-house", 0.5), ("-", 0.4), expected="seven light off")
    assert clip.heard == (
        HeardWord("seven", 0.9, True), HeardWord("light", 0.5, True), HeardWord("house", 0.5, False)
    )  # fmt: skip
    assert clip.words == align.Edits(2, 1, 0, 0)


# Rejection.


def sample(entropy=None):
    """Right at 0.9, 0.8, 0.6, 0.4; wrong at 0.7, 0.3, 0.2; one silent clip with a text at 0.1."""
    right = [one("a", "a", c, entropy=entropy) for c in (0.9, 0.8, 0.6, 0.4)]
    wrong = [one("a", "b", c, entropy=entropy) for c in (0.7, 0.3, 0.2)]
    noise = one("", "b", 0.1, entropy=entropy)
    return [*right, *wrong, noise, one("", "", 0), one("a", "", 0)]


def test_curve_by_hand():
    """Each threshold's two shares, counted by hand; 2 of 16 pairs are the wrong way round."""
    curve = rejection.curve(sample(), "word_confidence")
    found = [(round(p.threshold, 9), p.right_rejected, p.wrong_accepted) for p in curve.points[:-1]]
    assert found == [
        (0.1, 0, 1), (0.2, 0, 0.75), (0.3, 0, 0.5), (0.4, 0, 0.25), (0.6, 0.25, 0.25),
        (0.7, 0.5, 0.25), (0.8, 0.5, 0), (0.9, 0.75, 0),
    ]  # fmt: skip
    assert curve.points[-1] == rejection.Point(None, 1, 0)
    assert curve.auroc == 14 / 16


def test_curve_of_entropy_is_the_mirror():
    """The entropy of these clips is 1 - confidence: same shares, thresholds from above."""
    clips = sample()
    by_confidence, by_entropy = (rejection.curve(clips, m) for m in ("word_confidence", "entropy"))
    assert by_entropy.auroc == by_confidence.auroc
    for left, right in zip(by_confidence.points[:-1], by_entropy.points[:-1], strict=True):
        assert right.threshold == pytest.approx(1 - left.threshold)
        assert (right.right_rejected, right.wrong_accepted) == (
            left.right_rejected, left.wrong_accepted
        )  # fmt: skip


@given(
    st.lists(
        st.tuples(st.booleans(), st.floats(0.01, 1), st.floats(0, 3)), min_size=1, max_size=300
    )
)
def test_curves_go_from_all_to_nothing(clips):
    """Withheld right texts only grow, shown wrong texts only shrink, whatever the clips."""
    clips = [one("a", "a" if ok else "b", c, entropy=e) for ok, c, e in clips]
    for measure in ("word_confidence", "entropy"):
        curve = rejection.curve(clips, measure)
        if curve is None:
            assert len({clip.right for clip in clips}) == 1
            continue
        assert (curve.points[0].right_rejected, curve.points[0].wrong_accepted) == (0, 1)
        rejected = [p.right_rejected for p in curve.points]
        shown = [p.wrong_accepted for p in curve.points]
        assert rejected == sorted(rejected)
        assert shown == sorted(shown, reverse=True)
        assert len(curve.points) <= 101
        assert 0 <= curve.auroc <= 1


@pytest.mark.parametrize(
    ("cost", "confidence", "shown"),
    # Nothing withheld: just above 0.3, the wrong one at 0.7 stays. Half of the right ones for it.
    [(0, 0.35, 1), (0.25, 0.35, 1), (0.5, 0.75, 0)],
)
def test_thresholds_cost_no_more_than_they_may(cost, confidence, shown):
    """The fewest wrong texts for the price, then the fewest right ones withheld."""
    clips = sample(entropy=1.0)
    chosen = rejection.choose(clips, cost)
    assert chosen.word_confidence == pytest.approx(confidence)
    assert chosen.entropy is None
    assert rejection.effect(clips, chosen).wrong_accepted.count == shown


def test_entropy_rejects_what_confidence_cannot():
    """Equal confidences, different entropies: the second threshold does the work."""
    clips = [one("a", "a", 0.5, entropy=0.1), one("a", "b", 0.5, entropy=0.9)]
    chosen = rejection.choose(clips, 0)
    assert (chosen.word_confidence, chosen.entropy) == (0, 0.5)


def test_the_laxest_of_equal_thresholds():
    """Entropy 0.3 and 0.7 withhold the same: the greater one is chosen, and none if none helps."""
    clips = [
        one("a", "a", 0.9, entropy=0.1), one("a", "b", 0.1, entropy=0.05),
        one("a", "b", 0.2, entropy=0.5), one("a", "b", 0.3, entropy=0.06),
        one("a", "b", 0.95, entropy=0.9),
    ]  # fmt: skip
    assert rejection.choose(clips, 0) == rejection.Thresholds(0.6, 0.7)
    assert rejection.choose(clips[:4], 0) == rejection.Thresholds(0.6, None)


@pytest.mark.parametrize(
    ("confidence", "entropy", "shown"),
    [(0.5, 1.0, True), (0.49, 1.0, False), (0.5, 1.01, False), (None, None, False)],
)
def test_both_thresholds_must_be_met(confidence, entropy, shown):
    """The bounds themselves are good enough; without tokens there is nothing to show."""
    assert rejection.Thresholds(0.5, 1.0).accept(confidence, entropy) is shown
    assert rejection.Thresholds(0, None).accept(confidence, entropy) is (entropy is not None)


@given(
    st.lists(st.tuples(st.booleans(), st.floats(0.01, 1), st.floats(0, 3)), max_size=60),
    st.floats(0, 1),
)
def test_a_choice_keeps_its_promise(clips, cost):
    """On the clips that chose it, a pair withholds no more right texts than allowed."""
    clips = [one("a", "a" if ok else "b", c, entropy=e) for ok, c, e in clips]
    chosen = rejection.choose(clips, cost)
    if chosen is None:
        assert len({clip.right for clip in clips}) < 2
        return
    effect = rejection.effect(clips, chosen)
    assert effect.right_rejected.value <= cost
    assert effect.wrong_accepted.value <= 1


def test_the_least_sure_word_decides():
    """A mean of 0.6 hides a word at 0.4; so the text is withheld, and one of two 0.6 is shown."""
    hidden = heard(("a", 0.9), ("b", 0.4), expected="a c", entropy=1)
    even = heard(("a", 0.6), ("b", 0.6), expected="a b", entropy=1)
    assert hidden.confidence == pytest.approx(even.confidence)
    shown = [rejection.shows(rejection.Thresholds(0.5, None), clip) for clip in (hidden, even)]
    assert shown == [False, True]
    assert rejection.choose([hidden, even], 0) == rejection.Thresholds(0.5, None)


def test_effect_by_hand():
    """At 0.5: 1 of 4 right withheld, 1 of 4 wrong shown, 3 of 4 shown are right, silence stays."""
    effect = rejection.effect(sample(), rejection.Thresholds(0.5, None))
    rates = (
        effect.right_rejected, effect.wrong_accepted, effect.accepted_right, effect.silent_quiet,
    )  # fmt: skip
    counts = [(rate.count, rate.out_of) for rate in rates]
    assert counts == [(1, 4), (1, 4), (3, 4), (2, 2)]
    everything = rejection.effect(sample(), rejection.Thresholds(0, None))
    assert everything.silent_quiet.count == 1


# The whole.


def test_scores_by_hand():
    """Two sources, counted by hand: words, characters, clips."""
    clips = [
        heard(("turn", 0.9), ("off", 0.8), expected="Turn on.", source="x"),  # 1 S; n -> ff: 2
        heard(("stop", 0.9), expected="stop", source="x"),
        heard(("go", 0.9), ("go", 0.5), expected="go", source="y"),  # 1 I; 2 characters
    ]
    evaluation = report.evaluate(clips, manifest="m.tsv", model={"name": "tiny"})
    x, y = evaluation.sources
    assert (x.name, x.clips, x.clips_right.count, x.wer.value) == ("x", 2, 1, 1 / 3)
    assert (x.characters.errors, x.characters.expected) == (2, 10)
    assert (y.wer.value, y.words_right.value, y.cer.value) == (1, 1, 1)
    total = evaluation.total
    assert (total.words, total.wer.value) == (align.Edits(3, 1, 0, 1), 0.5)
    assert evaluation.confusions == (
        report.Confusion(None, "go", 1), report.Confusion("on", "off", 1)
    )  # fmt: skip
    assert [clip.row.transcript for clip in evaluation.worst] == ["go", "Turn on."]
    assert [clip.row.transcript for clip in evaluation.sure_but_wrong] == ["Turn on.", "go"]


@given(st.permutations(range(6)))
def test_order_of_the_clips_does_not_matter(order):
    """Every count is the same for the same clips in another order."""
    clips = [
        heard(*words, expected=expected, source="ab"[i % 2], line=i + 2)
        for i, (words, expected) in enumerate(
            [([("a", 0.9)], "a"), ([("b", 0.4)], "a"), ([], ""), ([("c", 0.3)], ""),
             ([("a", 0.5), ("b", 0.9)], "a b"), ([("a", 0.6)], "a b")]
        )
    ]  # fmt: skip
    first = report.evaluate(clips, manifest="m", model={"name": "n"})
    other = report.evaluate([clips[i] for i in order], manifest="m", model={"name": "n"})
    assert other.total.words == first.total.words
    assert other.total.clips_right == first.total.clips_right
    assert other.total.ece == pytest.approx(first.total.ece)
    assert (other.confusions, other.curves) == (first.confusions, first.curves)
    assert [c.row.line for c in other.worst] == [c.row.line for c in first.worst]
    assert {s.name: s.words for s in other.sources} == {s.name: s.words for s in first.sources}


def test_a_clip_in_which_nobody_speaks():
    """Silence heard as silence is right; its words are nobody's, so there is no WER."""
    quiet, noisy = one("", "", 0), one("", "a", 0.5)
    score = report.score("noise", [quiet, noisy])
    assert (quiet.right, noisy.right, score.wer, score.words.insertions) == (True, False, None, 1)
    assert (score.quiet.count, score.quiet.out_of) == (1, 2)


def test_no_clips_at_all():
    """Everything is told of nothing, without a division by zero."""
    evaluation = report.evaluate([], manifest="m.tsv", model={"name": "n"})
    assert report.to_json(evaluation)["total"]["wer"] is None
    assert "0 clips" in table.lines(evaluation)[0]
    assert page.render(evaluation, {})


class Deaf:
    """A recogniser that notes what it is asked and hears nothing."""

    def __init__(self):
        self.asked = []

    def transcribe(self, sound, *, sample_rate, language, itn):
        if sound.name == "locked.wav":
            raise PermissionError(13, "Permission denied", str(sound))
        self.asked.append((sound.name, sample_rate, language, itn))
        return Transcript(
            text="", language=None, emotion=None, event=None, itn=None, segments=(),
            confidence=None, entropy=None, no_speech=True, no_speech_score=1.0, rejected=False,
            reason="silence", audio_s=1.0, wall_s=0.1, warnings=(),
        )  # fmt: skip


def test_hearing_row_by_row(tmp_path):
    """A row's own language and ITN come first; what the system refuses stops no other row."""
    chinese = Row(2, "a.wav", "a", language="zh", itn=True)
    rows = [chinese, Row(3, "locked.wav", "b"), Row(4, "c.wav", "")]
    deaf, ticks = Deaf(), []
    with Clips(tmp_path) as clips:
        found, failures = hear(deaf, rows, clips, language="en", progress=lambda: ticks.append(1))
    assert deaf.asked == [("a.wav", None, "zh", True), ("c.wav", None, "en", False)]
    assert [clip.right for clip in found] == [False, True]
    assert [(f.line, f.exit_code) for f in failures] == [(3, 5)]
    assert len(ticks) == 3


def test_thresholds_that_were_not_chosen_here(tmp_path):
    """A model folder's own are judged, and are not written as if they were new."""
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    clips = sample()
    verdict = report.judge(rejection.Thresholds(0.65, None), clips)
    evaluation = report.evaluate(clips, manifest="m", model={"name": "n"}, verdict=verdict)
    names = {path.name for path in files.write(tmp_path, evaluation)}
    assert "rejection.png" in names
    assert "rejection.json" not in names
    shown = [line.split("\t")[-1] for line in (tmp_path / "clips.tsv").read_text().splitlines()]
    assert shown == ["shown", "1", "1", "0", "0", "1", "0", "0", "0", "0", "0"]
    text = " ".join(parse((tmp_path / "report.html").read_text()).text)
    assert "The model folder's own thresholds." in text
    assert "shown when every word's confidence >= 0.65" in "\n".join(table.lines(evaluation))


def test_pictures_of_odd_sources():
    """Names that look like formulas or lack glyphs, and more sources than a page holds."""
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    clips = [
        one("a", "b", 0.5, source=name) for name in (r"$\frac{$", "语料库", *map(str, range(999)))
    ]
    pictures = plots.draw(report.evaluate(clips, manifest="m", model={"name": "n"}))
    assert set(pictures) == {"errors", "reliability"}
    assert plots.draw(report.evaluate([], manifest="m", model={"name": "n"})) == {}


def test_a_file_that_cannot_be_written(tmp_path):
    """The system's refusal names the file."""
    pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install matplotlib")
    (tmp_path / "clips.tsv").mkdir()
    evaluation = report.evaluate(sample(), manifest="m", model={"name": "n"})
    with pytest.raises(SystemAccessError, match=r"clips\.tsv: cannot write: Is a directory"):
        files.write(tmp_path, evaluation)


class Checker(HTMLParser):
    """Every tag that is opened is closed, in order."""

    VOID = {"meta", "img", "br"}  # noqa: RUF012

    def __init__(self):
        super().__init__()
        self.open, self.text, self.seen = [], [], set()

    def handle_starttag(self, tag, attrs):
        self.seen |= {(tag, name, value) for name, value in attrs}
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "title"):
            self.text.append(data)


def parse(html):
    checker = Checker()
    checker.feed(html)
    checker.close()
    assert checker.open == []
    return checker


def test_the_page_is_well_formed_and_escapes_what_it_shows():
    """Texts and paths are data, also when they look like markup."""
    clips = [
        heard(("a", 0.9), expected="a <script> & b", source="<b>"), one("a", "a", 0.9),
    ]  # fmt: skip
    evaluation = report.evaluate(clips, manifest="<m>.tsv", model={"name": "n&m"})
    found = parse(page.render(evaluation, {"errors": b"png"}))
    text = " ".join(found.text)
    assert "n&m on <m>.tsv" in text
    assert "script b" in text  # the words that were deleted
    assert ("img", "src", "data:image/png;base64,cG5n") in found.seen
    assert not {value for _, name, value in found.seen if name in ("src", "href")} - {
        "data:image/png;base64,cG5n"
    }


# The manifest.


def manifest(tmp_path, text):
    path = tmp_path / "m.tsv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_manifest_with_all_columns(tmp_path):
    """Columns in any order, others ignored, Windows line ends and quotes are no trouble."""
    found = read_manifest(
        manifest(
            tmp_path,
            "\ufefftranscript\tsplit\tpath\tsource\tspeaker\ttext_normalization\tlanguage\tx\r\n"
            '"hi\ttest\ta.wav\tnews\tann\twithitn\ten\t1\r\n\r\n\t\tb.wav\t\t\t\t\t\r\n',
        )
    )
    assert found.rows == (
        Row(2, "a.wav", '"hi', "news", "ann", "test", "en", True), Row(4, "b.wav", "")
    )  # fmt: skip
    assert found.failures == ()
    assert found.splits() == ["test"]


def test_bad_lines_are_listed_and_stop_nothing(tmp_path):
    """Too few fields, no path, an unknown value: each by line and reason, with exit code 2."""
    found = read_manifest(
        manifest(
            tmp_path,
            "path\ttranscript\ttext_normalization\na.wav\tone\n\tone\t\nb.wav\ttwo\tyes\n"
            "c.wav\tthree\twoitn\nd\0.wav\tfour\t\n",
        )
    )
    assert [row.path for row in found.rows] == ["c.wav"]
    assert [(f.line, f.exit_code) for f in found.failures] == [(2, 2), (3, 2), (4, 2), (6, 2)]
    reasons = ("3 tab-sep", "a path", "'yes'", "a path")
    for failure, reason in zip(found.failures, reasons, strict=True):
        assert reason in failure.reason


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "line 1"), ("path\tsaid\n", "transcript"), ("a b\n", "path and transcript"),
     (b"path\ttranscript\n\xff\xfe", "UTF-8")],
)  # fmt: skip
def test_what_is_no_manifest(tmp_path, text, message):
    """A file without the needed columns, or not text, is refused before anything is heard."""
    with pytest.raises(UsageError, match=message):
        read_manifest(manifest(tmp_path, text))


def test_a_manifest_that_cannot_be_read(tmp_path):
    """Missing is usage; a folder is what the system refuses."""
    with pytest.raises(UsageError, match="not found"):
        read_manifest(tmp_path / "none.tsv")
    with pytest.raises(SystemAccessError):
        read_manifest(tmp_path)


# Archives.


@pytest.fixture
def corpus(tmp_path):
    """corpus.tar with one tone in two channels, text that is no sound, and a folder."""
    stream = io.BytesIO()
    tone = np.sin(np.arange(1600) / 5) / 2
    soundfile.write(stream, np.stack([tone, 0 * tone], 1), 8000, format="WAV", subtype="FLOAT")
    with tarfile.open(tmp_path / "corpus.tar", "w") as archive:
        for name, data in (("./corpus/a.wav", stream.getvalue()), ("corpus/b.txt", b"no sound")):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        folder = tarfile.TarInfo("corpus/folder")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        link = tarfile.TarInfo("corpus/link.wav")
        link.type, link.linkname = tarfile.SYMTYPE, "nowhere.wav"
        archive.addfile(link)
    return tmp_path


@pytest.mark.parametrize("path", ["corpus.tar:corpus/a.wav", "corpus/a.wav"])
def test_sound_in_an_archive(corpus, path):
    """Named by its archive, or found there because the file is not unpacked; channels averaged."""
    with Clips(corpus) as clips:
        samples, rate = clips.find(path)
    assert (samples.shape, samples.dtype, rate) == ((1600,), np.float32, 8000)
    assert samples == pytest.approx(np.sin(np.arange(1600) / 5) / 4, abs=1e-6)


def test_a_file_beats_the_archive(corpus):
    """An unpacked file is taken as it is."""
    (corpus / "corpus").mkdir()
    (corpus / "corpus" / "a.wav").touch()
    with Clips(corpus) as clips:
        assert clips.find("corpus/a.wav") == (corpus / "corpus/a.wav", None)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("corpus.tar:corpus/none.wav", "expected a file corpus/none.wav in it"),
        ("corpus.tar:corpus/folder", "expected a file"),
        ("corpus.tar:corpus/b.txt", "b.txt: expected a sound file, could not decode 8 bytes"),
        ("corpus.tar:corpus/link.wav", "damaged"),
        ("none.tar:a.wav", "file not found"),
        ("text.tar:a.wav", "expected an uncompressed tar archive"),
    ],
)
def test_what_an_archive_cannot_give(corpus, path, message):
    """Each failure is bad audio and names the archive."""
    (corpus / "text.tar").write_text("this is no archive")
    with Clips(corpus) as clips, pytest.raises(AudioError, match=message):
        clips.find(path)


def test_a_cut_archive(corpus):
    """An archive that ends too early is bad audio, not our bug."""
    whole = (corpus / "corpus.tar").read_bytes()
    (corpus / "corpus.tar").write_bytes(whole[:3000])
    with Clips(corpus) as clips, pytest.raises(AudioError, match=r"corpus\.tar"):
        clips.find("corpus.tar:corpus/a.wav")
