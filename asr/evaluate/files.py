"""What ``asr evaluate --out`` writes into a folder."""

import json
from pathlib import Path

from asr.errors import SystemAccessError
from asr.evaluate import page, plots
from asr.evaluate.rejection import shows
from asr.evaluate.report import Evaluation, to_json

_COLUMNS = ("line", "path", "source", "speaker", "split", "audio_s", "expected", "heard", "errors",
            "words", "right", "confidence", "word_confidence", "entropy", "shown")  # fmt: skip


def make_folder(folder: Path) -> None:
    """Make the folder where it does not exist.

    Raises:
        SystemAccessError: the system would not let us.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SystemAccessError(f"{folder}: cannot make the folder: {error.strerror}") from None


def write(folder: Path, evaluation: Evaluation) -> list[Path]:
    """Write report.html, its pictures as PNG, clips.tsv, evaluation.json and rejection.json.

    Args:
        folder: as ``make_folder`` left it; files of an earlier evaluation are replaced.
        evaluation: what to tell. ``rejection.json`` is written when thresholds were chosen.

    Returns:
        the files, the page first.

    Raises:
        MissingToolError: Matplotlib is not installed.
        SystemAccessError: a file cannot be written.
    """
    pictures = plots.draw(evaluation)
    contents: dict[str, bytes] = {
        "report.html": page.render(evaluation, pictures).encode(),
        **{f"{name}.png": data for name, data in pictures.items()},
        "clips.tsv": _clips(evaluation).encode(),
        "evaluation.json": (
            json.dumps(to_json(evaluation), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        ).encode(),
    }
    verdict = evaluation.verdict
    if verdict and verdict.max_right_rejected is not None:
        contents["rejection.json"] = verdict.thresholds.to_json(
            chosen_on=list(verdict.chosen_on), max_right_rejected=verdict.max_right_rejected
        ).encode()
    try:
        for name, data in contents.items():
            (folder / name).write_bytes(data)
    except OSError as error:
        raise SystemAccessError(
            f"{error.filename or folder}: cannot write: {error.strerror}"
        ) from None
    return [folder / name for name in contents]


def _clips(evaluation: Evaluation) -> str:
    """One line per clip; numbers are empty where there was no text."""
    limits = evaluation.verdict.thresholds if evaluation.verdict else None
    lines = ["\t".join(_COLUMNS)]
    for clip in evaluation.clips:
        shown = clip.word_confidence is not None and (limits is None or shows(limits, clip))
        fields = (
            clip.row.line, clip.row.path, clip.row.source, clip.row.speaker, clip.row.split,
            f"{clip.audio_s:.3f}", clip.row.transcript, clip.text, clip.words.errors,
            clip.words.expected, int(clip.right), _number(clip.confidence),
            _number(clip.word_confidence), _number(clip.entropy), int(shown),
        )  # fmt: skip
        lines.append("\t".join(" ".join(str(field).split()) for field in fields))
    return "\n".join(lines) + "\n"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"
