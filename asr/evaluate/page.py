"""An evaluation as one HTML page that needs no other file and no network."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from itertools import groupby

from asr.evaluate import normalise
from asr.evaluate.align import Pair
from asr.evaluate.hear import Clip
from asr.evaluate.intervals import Rate
from asr.evaluate.report import Evaluation, Score, Verdict
from asr.page import document, table, tiles

_STYLE = """
del { color: #a4262c; background: #fde8e8; text-decoration: line-through; border-radius: 3px;
  padding: 0 .2em; }
ins { color: #14653a; background: #def5e6; text-decoration: none; border-radius: 3px;
  padding: 0 .2em; }
figure img { max-width: 100%; height: auto; }
figure.errors { max-width: 46rem; margin-top: 1.4rem; }
ul.chips { display: flex; flex-wrap: wrap; gap: .5rem; padding: 0; list-style: none; }
ul.chips li { border: 1px solid var(--line); border-radius: 6px; padding: .15rem .55rem; }
.pair { display: flex; flex-wrap: wrap; gap: 2rem; } .pair figure { flex: 1 1 24rem; }
"""


def render(evaluation: Evaluation, pictures: Mapping[str, bytes]) -> str:
    """Write the page.

    Args:
        evaluation: what to tell.
        pictures: PNG by name, as ``plots.draw`` gives them.
    """
    e = evaluation
    title = f"{e.model.get('name', 'model')} on {e.manifest.replace(chr(92), '/').split('/')[-1]}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p class='lead'>{escape(_facts(e))}</p>",
        _tiles(e),
        "<h2>Errors by source</h2>",
        "<p>Small figures are 95 % intervals: Wilson's for shares, the bootstrap over clips for "
        "error rates. Words are compared after this normalisation: "
        f"{escape(normalise.RULE)}.</p>",
        _scores(e),
        _figure(pictures, "errors", "Word errors by kind and source."),
        "<h2>Is the confidence true?</h2>",
        "<p>Of words heard with a confidence of 0.8, eight in ten should be right: then the points "
        "lie on the dashed line. Points above it are words better than their confidence.</p>",
        "<div class='pair'>",
        _figure(pictures, "reliability", "Share of right words by confidence; below, how many."),
        _figure(pictures, "rejection", "What each threshold costs and buys; lower left is best."),
        "</div>",
        _verdict(e.verdict),
        "<h2>Most frequent confusions</h2>",
        _confusions(e),
        "<h2>Worst clips</h2>",
        "<p>The most word errors for their length. <del>Struck out</del>: expected and not heard; "
        "<ins>marked</ins>: heard and not expected.</p>",
        _clips(e.worst),
        "<h2>Sure but wrong</h2>",
        "<p>Wrong clips with the highest confidence: what a threshold cannot catch.</p>",
        _clips(e.sure_but_wrong),
        _failures(e),
    ]
    return document(title, parts, _STYLE)


def _facts(e: Evaluation) -> str:
    splits = f"split {', '.join(e.splits)}; " if e.splits else ""
    model = "; ".join(f"{key} {value}" for key, value in e.model.items() if key != "name")
    return f"{splits}{e.total.clips:,} clips, {_length(e.total.audio_s)} of sound. Model: {model}."


def _length(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _tiles(e: Evaluation) -> str:
    t = e.total
    found = [("clips right", _percent(t.clips_right)), ("word error rate", _percent(t.wer)),
             ("character error rate", _percent(t.cer)), ("words right", _percent(t.words_right)),
             ("calibration error (ECE)", "–" if t.ece is None else f"{t.ece:.3f}")]  # fmt: skip
    if t.quiet:
        found.append(("silent clips without text", _percent(t.quiet)))
    return tiles(found)


def _scores(e: Evaluation) -> str:
    head = ("source", "clips", "clips right", "words", "words right", "WER", "sub", "del", "ins",
            "CER", "ECE")  # fmt: skip
    return table(head, map(_score, (*e.sources, e.total)), text=(0,), total=True)


def _score(s: Score) -> tuple[str, ...]:
    return (
        escape(s.name or "all"),
        f"{s.clips:,}",
        _interval(s.clips_right),
        f"{s.words.expected:,}",
        _interval(s.words_right),
        _interval(s.wer),
        f"{s.words.substitutions:,}",
        f"{s.words.deletions:,}",
        f"{s.words.insertions:,}",
        _interval(s.cer),
        "–" if s.ece is None else f"{s.ece:.3f}",
    )


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ""
    limits = verdict.thresholds
    ceiling = "" if limits.entropy is None else f" and entropy at most {limits.entropy:.4g} nats"
    if verdict.max_right_rejected is None:
        origin = "The model folder's own thresholds."
    else:
        origin = (
            f"Chosen on split {escape(', '.join(verdict.chosen_on))}: the fewest wrong texts "
            f"shown among those that withhold at most {100 * verdict.max_right_rejected:.3g} % of "
            "the right ones there."
        )
    rows = [("reported", verdict.reported), *verdict.sources.items()]
    if verdict.validation:
        rows.append((", ".join(verdict.chosen_on), verdict.validation))
    rows_table = table(
        ("clips", "right texts withheld", "wrong texts shown", "right, of those shown",
         "silent clips quiet"),
        (
            (escape(name), _interval(f.right_rejected), _interval(f.wrong_accepted),
             _interval(f.accepted_right), _interval(f.silent_quiet))
            for name, f in rows
        ),
        text=(0,),
    )  # fmt: skip
    shown = verdict.wer_accepted
    return (
        "<h2>Thresholds</h2>"
        "<p>A text is shown when the confidence of its least sure word is at least "
        f"{limits.word_confidence:.4g}{ceiling}. "
        f"{origin} Word error rate of the texts shown: {_interval(shown)}.</p>{rows_table}"
    )


def _clips(clips: Sequence[Clip]) -> str:
    rows = (
        (
            escape(c.row.source), _marked(c.pairs), _number(c.confidence), _number(c.entropy),
            f"<span title='line {c.row.line}'>{escape(c.row.path)}</span>",
        )
        for c in clips
    )  # fmt: skip
    return table(("source", "expected and heard", "confidence", "entropy", "path"), rows,
                  text=(0, 1, 4), path=4)  # fmt: skip


def _marked(pairs: Sequence[Pair]) -> str:
    """The words in order; of each wrong stretch first what was expected, then what was heard."""
    parts = []
    for hit, stretch in groupby(pairs, lambda pair: pair[0] == pair[1]):
        sides = zip(*stretch, strict=True)
        expected, heard = (escape(" ".join(w for w in side if w is not None)) for side in sides)
        if hit:
            parts.append(heard)
            continue
        if expected:
            parts.append(f"<del>{expected}</del>")
        if heard:
            parts.append(f"<ins>{heard}</ins>")
    return " ".join(parts)


def _confusions(e: Evaluation) -> str:
    chips = "".join(
        f"<li>{_word(c.expected)} → {_word(c.heard)} <small>× {c.count}</small></li>"
        for c in e.confusions
    )
    return f"<ul class='chips'>{chips}</ul>" if chips else "<p>None.</p>"


def _failures(e: Evaluation) -> str:
    if not e.failures:
        return ""
    rows_table = table(
        ("line", "path", "why"),
        ((str(f.line), escape(f.path), escape(f.reason)) for f in e.failures),
        text=(1, 2), path=1,
    )  # fmt: skip
    return f"<h2>Lines that could not be evaluated: {len(e.failures)}</h2>{rows_table}"


def _figure(pictures: Mapping[str, bytes], name: str, caption: str) -> str:
    if name not in pictures:
        return ""
    data = base64.b64encode(pictures[name]).decode()
    return (
        f"<figure class='{name}'><img alt='{escape(caption)}' src='data:image/png;base64,{data}'>"
        f"<figcaption>{escape(caption)}</figcaption></figure>"
    )


def _percent(rate: Rate | None) -> str:
    return "–" if rate is None else f"{100 * rate.value:.1f} %"


def _interval(rate: Rate | None) -> str:
    if rate is None:
        return "–"
    return f"{_percent(rate)} <small>{100 * rate.low:.1f}–{100 * rate.high:.1f}</small>"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _word(word: str | None) -> str:
    return "<small>nothing</small>" if word is None else escape(word)
