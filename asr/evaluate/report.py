"""Clips -> all that is told about them, and its JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from asr.evaluate import normalise
from asr.evaluate.align import Edits
from asr.evaluate.calibration import Calibration, calibrate
from asr.evaluate.hear import Clip
from asr.evaluate.intervals import Rate, error_rate, wilson
from asr.evaluate.manifest import Failure
from asr.evaluate.rejection import Curve, Effect, curve, effect, shows
from asr.rejection import Thresholds

SCHEMA_ID = "asr-evaluation/1"
#: How many confusions and how many clips of each list are told.
_LISTED = 20


@dataclass(frozen=True, slots=True)
class Score:
    """Errors of a set of clips.

    Attributes:
        name: the source; empty for all clips together.
        clips: how many.
        clips_right: share in which every word is right and none besides.
        words: counts.
        words_right: share of the expected words that were heard.
        wer: word error rate; above 1 where insertions abound; None without expected words.
        characters: counts.
        cer: character error rate.
        ece: expected calibration error of the words.
        quiet: of the clips in which nobody speaks, the share without text.
        audio_s: seconds of sound.
        wall_s: seconds of hearing it.
    """

    name: str
    clips: int
    clips_right: Rate | None
    words: Edits
    words_right: Rate | None
    wer: Rate | None
    characters: Edits
    cer: Rate | None
    ece: float | None
    quiet: Rate | None
    audio_s: float
    wall_s: float


@dataclass(frozen=True, slots=True)
class Confusion:
    """A word heard as another; None stands for nothing."""

    expected: str | None
    heard: str | None
    count: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Thresholds, where they come from, and what they do.

    Attributes:
        thresholds: of word confidence and entropy.
        chosen_on: the splits that chose them; empty when the model folder brought them.
        max_right_rejected: what the choice was allowed to cost; None when it was not made here.
        validation: what they do to the clips that chose them; None when none did.
        reported: what they do to the clips reported.
        sources: the same by source.
        wer_accepted: word error rate of the clips whose text is shown.
    """

    thresholds: Thresholds
    chosen_on: tuple[str, ...]
    max_right_rejected: float | None
    validation: Effect | None
    reported: Effect
    sources: dict[str, Effect]
    wer_accepted: Rate | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that is told.

    Attributes:
        manifest: as it was named.
        model: facts of the model.
        splits: what is reported; empty when the manifest names none.
        total: of all clips reported.
        sources: by source, in the manifest's order.
        confusions: the most frequent first.
        worst: the most word errors for their length first.
        sure_but_wrong: wrong clips, the most confident first.
        calibration: of the heard words.
        curves: of word confidence and of entropy; empty unless some texts are right and some wrong.
        verdict: None without thresholds.
        clips: all clips reported.
        failures: lines of the manifest that could not be evaluated.
    """

    manifest: str
    model: dict[str, str]
    splits: tuple[str, ...]
    total: Score
    sources: tuple[Score, ...]
    confusions: tuple[Confusion, ...]
    worst: tuple[Clip, ...]
    sure_but_wrong: tuple[Clip, ...]
    calibration: Calibration
    curves: tuple[Curve, ...]
    verdict: Verdict | None
    clips: tuple[Clip, ...]
    failures: tuple[Failure, ...]


def evaluate(
    clips: Sequence[Clip],
    *,
    manifest: str,
    model: dict[str, str],
    splits: Sequence[str] = (),
    failures: Sequence[Failure] = (),
    verdict: Verdict | None = None,
) -> Evaluation:
    """Work out everything from the clips reported."""
    wrong = [clip for clip in clips if not clip.right]
    sure = [clip for clip in wrong if clip.confidence is not None]
    curves = (curve(clips, "word_confidence"), curve(clips, "entropy"))
    return Evaluation(
        manifest=manifest,
        model=model,
        splits=tuple(splits),
        total=score("", clips),
        sources=tuple(score(name, group) for name, group in by_source(clips).items()),
        confusions=confusions(clips),
        worst=tuple(sorted(wrong, key=_badness)[:_LISTED]),
        sure_but_wrong=tuple(sorted(sure, key=_doubt)[:_LISTED]),
        calibration=calibrate([word for clip in clips for word in clip.heard]),
        curves=tuple(c for c in curves if c is not None),
        verdict=verdict,
        clips=tuple(clips),
        failures=tuple(failures),
    )


def judge(
    thresholds: Thresholds,
    clips: Sequence[Clip],
    *,
    validation: Sequence[Clip] | None = None,
    chosen_on: Sequence[str] = (),
    max_right_rejected: float | None = None,
) -> Verdict:
    """Say what thresholds do to the clips reported, and to those that chose them."""
    shown = [clip for clip in clips if shows(thresholds, clip)]
    return Verdict(
        thresholds,
        tuple(chosen_on),
        max_right_rejected,
        None if validation is None else effect(validation, thresholds),
        effect(clips, thresholds),
        {name: effect(group, thresholds) for name, group in by_source(clips).items()},
        error_rate([c.words.errors for c in shown], [c.words.expected for c in shown]),
    )


def by_source(clips: Sequence[Clip]) -> dict[str, list[Clip]]:
    """Clips by source, in the order in which the sources first appear."""
    groups: dict[str, list[Clip]] = {}
    for clip in clips:
        groups.setdefault(clip.row.source or "(no source)", []).append(clip)
    return groups


def score(name: str, clips: Sequence[Clip]) -> Score:
    """Count the errors of a set of clips."""
    words = sum((clip.words for clip in clips), Edits())
    characters = sum((clip.characters for clip in clips), Edits())
    silent = [clip for clip in clips if clip.silent]
    return Score(
        name=name,
        clips=len(clips),
        clips_right=wilson(sum(clip.right for clip in clips), len(clips)),
        words=words,
        words_right=wilson(words.hits, words.expected),
        wer=error_rate([c.words.errors for c in clips], [c.words.expected for c in clips]),
        characters=characters,
        cer=error_rate(
            [c.characters.errors for c in clips], [c.characters.expected for c in clips]
        ),
        ece=calibrate([word for clip in clips for word in clip.heard]).ece,
        quiet=wilson(sum(clip.confidence is None for clip in silent), len(silent)),
        audio_s=sum(clip.audio_s for clip in clips),
        wall_s=sum(clip.wall_s for clip in clips),
    )


def confusions(clips: Sequence[Clip]) -> tuple[Confusion, ...]:
    """What is most often heard as what; ties in alphabetical order."""
    counts = Counter(pair for clip in clips for pair in clip.pairs if pair[0] != pair[1])
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0][0] or "", item[0][1] or ""))
    return tuple(Confusion(*pair, count) for pair, count in ranked[:_LISTED])


def _badness(clip: Clip) -> tuple[float, int, int]:
    """Sorts by error rate, then by errors; a clip in which nobody speaks counts as one word."""
    errors = clip.words.errors
    return -errors / max(clip.words.expected, 1), -errors, clip.row.line


def _doubt(clip: Clip) -> tuple[float, int]:
    return -(clip.confidence or 0.0), clip.row.line


def to_json(evaluation: Evaluation) -> dict[str, Any]:
    """What ``--json`` prints; the schema is ``docs/evaluation.schema.json``.

    Returns:
        plain Python; numbers are rounded to six digits after the point. Of the clips only the
        worst are in it.
    """
    e = evaluation
    members = {
        "schema": SCHEMA_ID,
        "manifest": e.manifest,
        "model": e.model,
        "normalisation": normalise.RULE,
        "splits": e.splits,
        "total": asdict(e.total),
        "sources": [asdict(s) for s in e.sources],
        "confusions": [asdict(c) for c in e.confusions],
        "worst": [_clip(c) for c in e.worst],
        "sure_but_wrong": [_clip(c) for c in e.sure_but_wrong],
        "calibration": asdict(e.calibration),
        "curves": [asdict(c) for c in e.curves],
        "rejection": asdict(e.verdict) if e.verdict else None,
        "failures": [asdict(f) for f in e.failures],
    }
    rounded: dict[str, Any] = _rounded(members)
    return rounded


def _clip(clip: Clip) -> dict[str, object]:
    return {
        "line": clip.row.line,
        "path": clip.row.path,
        "source": clip.row.source,
        "expected": clip.row.transcript,
        "heard": clip.text,
        "errors": clip.words.errors,
        "words": clip.words.expected,
        "confidence": clip.confidence,
        "word_confidence": clip.word_confidence,
        "entropy": clip.entropy,
    }


def _rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {key: _rounded(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(member) for member in value]
    return value
