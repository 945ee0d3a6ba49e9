"""Layouts say what a model directory means and never run anything."""

from pathlib import Path

from asr.errors import LayoutError
from asr.layouts import funasr
from asr.layouts.base import Binding, Layout

__all__ = ["Binding", "Layout", "open_layout"]


def open_layout(folder: Path) -> Layout:
    """Find out which convention a directory follows, and read it.

    Args:
        folder: a model directory.

    Raises:
        LayoutError: not a directory, or of no known convention.
    """
    if not folder.is_dir():
        found = "a file" if folder.exists() else "nothing"
        raise LayoutError(f"{folder}: expected a model directory, found {found}")
    if funasr.matches(folder):
        return funasr.open_layout(folder)
    from asr.layouts import bundle, sherpa  # start-up time: most folders are of the first kind

    if bundle.matches(folder):
        return bundle.open_layout(folder)
    if sherpa.matches(folder):
        return sherpa.open_layout(folder)
    names = ", ".join(sorted(p.name for p in folder.iterdir())[:8]) or "nothing"
    raise LayoutError(
        f"{folder}: expected a FunASR model directory (config.yaml, am.mvn, model_quant.onnx, "
        "tokens.json or *.bpe.model) or a sherpa-onnx one (model.int8.onnx, tokens.txt), "
        f"found {names}"
    )
