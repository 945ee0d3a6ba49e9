"""``asr deploy``: what goes onto a board."""

from __future__ import annotations

import argparse

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command; its own commands only when it is the one asked for."""
    parser = commands.add_parser(
        "deploy",
        help="what goes onto a board: bundles for asr-edge",
        description="Make what a board needs: docs/bundle.md, docs/edge.md.",
        formatter_class=Help,
    )
    parser.fill = _add_commands


def _add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="deploy_command", metavar="COMMAND", required=True)
    for add in (_add_bundle,):
        add(commands)


def _add_bundle(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "bundle",
        help="a model as the one folder that asr-edge reads",
        description="Write a model as a bundle: network, recipe, tokens, thresholds, checksums.",
        epilog="The format: docs/bundle.md. asr-edge --bundle DIR --self-test tries it.",
        formatter_class=Help,
    )
    parser.add_argument("model", metavar="MODEL", help="model folder, or a name")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="new or empty folder")
    parser.add_argument("--name", help="what the bundle calls it (default: the folder's name)")
    parser.add_argument(
        "--phrases", metavar="FILE", help="hear nothing but these (docs/phrases.md)"
    )
    parser.set_defaults(run=_bundle)


def _bundle(options: argparse.Namespace) -> int:
    from pathlib import Path

    from asr.deploy import bundle
    from asr.hub import find_model
    from asr.layouts import open_layout

    layout = open_layout(find_model(options.model))
    listed = Path(options.phrases) if options.phrases else None
    name = options.name or layout.folder.resolve().name
    folder = bundle.write(layout, name, Path(options.output), phrase_file=listed)
    total = sum(path.stat().st_size for path in folder.iterdir())
    print(f"wrote {folder}: {name}, {total / 1e6:.1f} MB")
    return 0
