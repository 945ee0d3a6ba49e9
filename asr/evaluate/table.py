"""An evaluation as aligned lines for a terminal."""

from collections.abc import Sequence

from asr.evaluate.intervals import Rate
from asr.evaluate.report import Evaluation, Score, Verdict

_CONFUSIONS = 8
_WORST = 5


def lines(evaluation: Evaluation) -> list[str]:
    """The table by source, and the few lines below it. Rates are in per cent."""
    e = evaluation
    splits = f", split {' '.join(e.splits)}" if e.splits else ""
    told = [
        f"{e.model['name']} on {e.manifest}{splits}: {e.total.clips} clips, "
        f"{e.total.audio_s:.0f} s of sound, heard in {e.total.wall_s:.0f} s",
        "",
        *_scores(e),
        "",
        "  rates in %, with 95 % intervals; sub, del, ins are words",
    ]
    if e.confusions:
        found = ", ".join(
            f"{c.expected or '(nothing)'} > {c.heard or '(nothing)'} {c.count}"
            for c in e.confusions[:_CONFUSIONS]
        )
        told.append(f"  confusions: {found}")
    c = e.calibration
    if c.right and c.ece is not None and c.confidence is not None:
        told.append(
            f"  confidence: mean {c.confidence:.3f}, {c.right.value:.3f} of {c.words} heard words "
            f"right, ECE {c.ece:.3f}"
        )
    if e.curves:
        found = ", ".join(
            f"{curve.measure.replace('_', ' ')} {curve.auroc:.3f}" for curve in e.curves
        )
        told.append(f"  telling right from wrong texts (AUROC): {found}")
    if e.verdict:
        told += _verdict(e.verdict, e.splits)
    if e.worst:
        told += ["", "  worst clips: expected > heard"]
        told += [
            f"    {w.row.path}: {_said(w.row.transcript)} > {_said(w.text)}"
            for w in e.worst[:_WORST]
        ]
    return told


def _scores(e: Evaluation) -> list[str]:
    head = (
        "source", "clips", "clips right", "", "words", "words right", "", "WER", "",
        "sub", "del", "ins", "CER", "ECE",
    )  # fmt: skip
    rows = [_score(s) for s in e.sources]
    if len(rows) != 1:
        rows.append(_score(e.total))
    return _aligned([head, *rows])


def _score(s: Score) -> tuple[str, ...]:
    w = s.words
    counts = (str(w.substitutions), str(w.deletions), str(w.insertions))
    return (
        s.name or "all", str(s.clips), *_rate(s.clips_right), str(w.expected),
        *_rate(s.words_right), *_rate(s.wer), *counts, _rate(s.cer)[0],
        "-" if s.ece is None else f"{s.ece:.3f}",
    )  # fmt: skip


def _verdict(verdict: Verdict, splits: Sequence[str]) -> list[str]:
    limits = verdict.thresholds
    ceiling = "" if limits.entropy is None else f", entropy <= {limits.entropy:.4g}"
    rows = [(" ".join(splits) or "all", verdict.reported)]
    if verdict.validation:
        rows.insert(0, (" ".join(verdict.chosen_on), verdict.validation))
    if len(verdict.sources) > 1:
        rows += [(f"  {name}", found) for name, found in verdict.sources.items()]
    head = ("", "right withheld", "", "wrong shown", "", "right of shown", "", "silent quiet", "")
    cells = [
        (name, *_rate(f.right_rejected), *_rate(f.wrong_accepted), *_rate(f.accepted_right),
         *_rate(f.silent_quiet))
        for name, f in rows
    ]  # fmt: skip
    title = f"shown when every word's confidence >= {limits.word_confidence:.4g}{ceiling}"
    return ["", f"  {title}", *(f"  {line}" for line in _aligned([head, *cells]))]


def _rate(rate: Rate | None) -> tuple[str, str]:
    if rate is None:
        return "-", ""
    return f"{100 * rate.value:.1f}", f"[{100 * rate.low:.1f} {100 * rate.high:.1f}]"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns as wide as their widest cell; the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _said(text: str) -> str:
    """At most a line's worth of a text."""
    text = text or "(nothing)"
    return text if len(text) <= 60 else text[:57] + "..."
