"""``asr models``: which models there are, and bringing them here, checking and removing them."""

from __future__ import annotations

import argparse
import sys
import time

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

    from asr.hub.manifest import Model

#: Smaller files are told of only when they are there.
_WORTH_A_LINE_BYTES = 10_000_000

_ACTIONS = ("list", "pull", "path", "verify", "remove")
#: Which actions an option belongs to.
_OPTIONS = {"json": ("list",), "yes": ("pull",), "source": ("pull",), "layout": ("pull",)}


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command: one parser, since five would cost ``asr --help`` half a millisecond."""
    parser = commands.add_parser(
        "models",
        help="list, pull, verify, remove models by name",
        description="Bring models onto this machine by name, and look after them.",
        usage="asr models list [--json]\n"
        "       asr models pull NAME [--yes] [--source HUB] [--layout LAYOUT]\n"
        "       asr models path|verify|remove NAME",
        epilog=(
            "list    every model, with size, languages, licence, and whether it is here\n"
            "pull    download what is missing or damaged; goes on where it was interrupted\n"
            "path    print the folder of a model\n"
            "verify  compute the checksums of its files again\n"
            "remove  delete it\n"
            "\n"
            "Models live in $ASR_CACHE/models, else $XDG_CACHE_HOME/asr/models, else\n"
            "~/.cache/asr/models. HF_ENDPOINT and MODELSCOPE_ENDPOINT name mirrors."
        ),
        formatter_class=Help,
    )
    parser.add_argument("action", choices=_ACTIONS, metavar="ACTION", help=", ".join(_ACTIONS))
    parser.add_argument("name", nargs="?", metavar="NAME", help="of a model, as in asr models list")
    parser.add_argument("--json", action="store_true", help="list: one JSON object")
    parser.add_argument("--yes", action="store_true", help="pull: accept the licence")
    parser.add_argument(
        "--source", choices=("hf", "modelscope"), metavar="HUB", help="pull: hf or modelscope only"
    )
    parser.add_argument("--layout", metavar="LAYOUT", help="pull: funasr or sherpa-onnx")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Do what was asked."""
    from asr.errors import UsageError

    action, name = options.action, options.name
    if action == "list" and name:
        raise UsageError(f"asr models list takes no name, found {name}")
    if action != "list" and not name:
        raise UsageError(f"asr models {action}: expected the NAME of a model, found none")
    for option, actions in _OPTIONS.items():
        if getattr(options, option) and action not in actions:
            raise UsageError(f"--{option} belongs to asr models {actions[0]}, not to {action}")
    handlers = {"list": _list, "pull": _pull, "path": _path, "verify": _verify, "remove": _remove}
    return handlers[action](options)


# ------------------------------------------------------------------ list, path, verify, remove


def _list(options: argparse.Namespace) -> int:
    from asr.hub import known_models, models_folder

    rows = [_facts(name) for name in known_models()]
    if options.json:
        import json

        print(json.dumps({"folder": str(models_folder()), "models": rows}, ensure_ascii=False))
        return 0
    from asr.hub.manifest import human_size

    table = [("NAME", "SIZE", "LANGUAGES", "LICENCE", "STATE")]
    for row in rows:
        state = row["state"]
        if state == "incomplete":
            state += f", {human_size(row['bytes_here'])} here"
        table.append(
            (
                row["name"],
                human_size(row["bytes"]),
                " ".join(row["languages"]),
                row["licence"],
                state,
            )
        )
    widths = [max(len(cells[column]) for cells in table) for column in range(5)]
    for cells in table:
        name, size, *rest = cells
        padded = [f"{name:<{widths[0]}}", f"{size:>{widths[1]}}"]
        padded += [f"{cell:<{width}}" for cell, width in zip(rest, widths[2:], strict=True)]
        print("  ".join(padded).rstrip())
    return 0


def _facts(name: str) -> dict[str, Any]:
    """A row of the list."""
    from asr.hub import installed_model, store

    model, folder = store.model_of(name), installed_model(name)
    here = store.size_on_disk(folder or store.folder_of(name))
    return {
        "name": name,
        "bytes": model.size if model.distributions else here,
        "languages": list(model.languages),
        "licence": model.licence.name,
        "licence_url": model.licence.url or None,
        "state": store.state_of(name),
        "folder": str(folder) if folder else None,
        "bytes_here": here,
        "layouts": [distribution.layout for distribution in model.distributions],
    }


def _path(options: argparse.Namespace) -> int:
    from asr.hub import store

    print(store.here(options.name))
    return 0


def _verify(options: argparse.Namespace) -> int:
    from asr.errors import SourceError
    from asr.hub import builtin_models, store

    problems = []
    for file, problem in store.verify(options.name):
        print(f"{file}: {problem or 'right'}")
        if problem:
            problems.append(file)
    if problems:
        repair = (
            "pip install --force-reinstall asr-rtf"
            if options.name in builtin_models()
            else f"asr models pull {options.name}"
        )
        raise SourceError(
            f"{options.name}: expected every file as it was published, found others "
            f"({', '.join(problems)}); {repair} brings them back"
        )
    return 0


def _remove(options: argparse.Namespace) -> int:
    from asr.hub import store
    from asr.hub.manifest import human_size

    freed = store.remove(
        options.name, lambda: _tell(f"{options.name}: waiting for another process")
    )
    if freed:
        _tell(f"removed {options.name}: {human_size(freed)}")
    else:
        _tell(f"{options.name} is not on this machine: nothing to remove")
    return 0


# ------------------------------------------------------------------ pull


def _pull(options: argparse.Namespace) -> int:
    from asr.hub.pull import pull

    watcher = _Progress()
    try:
        folder = pull(
            options.name,
            accept=lambda model: _accept(model, yes=options.yes),
            hub=options.source,
            layout=options.layout,
            watcher=watcher,
        )
    except KeyboardInterrupt:
        watcher.say(f"interrupted; asr models pull {options.name} goes on where it stopped")
        raise
    finally:
        watcher.end_line()
    print(folder)
    return 0


def _accept(model: Model, *, yes: bool) -> None:
    """Show the licence, and go on only if it is agreed to."""
    from asr.errors import UsageError

    print(model.licence.text, file=sys.stderr)
    if yes:
        _tell("accepted by --yes")
        return
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"{model.name}: its licence must be accepted, and there is no terminal to ask at; "
            f"asr models pull {model.name} --yes accepts it"
        )
    print("Accept? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UsageError(f"{model.name}: licence not accepted, nothing was downloaded")


def _tell(line: str) -> None:
    print(f"asr: {line}", file=sys.stderr)


class _Progress:
    """A pull on stderr: a bar on a terminal; elsewhere a line at every quarter of a file."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._file = ""
        self._start = (0.0, 0)  # seconds, bytes
        self._shown: float = 0  # seconds on a terminal, quarters elsewhere
        self._open = False

    def say(self, line: str) -> None:
        """A line of its own."""
        self.end_line()
        _tell(line)

    def end_line(self) -> None:
        """Leave the bar."""
        if self._open:
            print(file=sys.stderr)
            self._open = False

    def progress(self, file: str, have: int, size: int) -> None:
        """Show ``have`` of ``size`` bytes."""
        now_s = time.monotonic()
        if file != self._file:
            self.end_line()
            self._file, self._start, self._shown = file, (now_s, have), -1
        if self._terminal:
            if now_s - self._shown >= 0.1 or have == size:
                self._shown = now_s
                self._bar(have, size, now_s)
                if have == size:
                    self.end_line()
        elif have < size < _WORTH_A_LINE_BYTES:
            return
        elif (quarter := 4 * have // max(size, 1)) > self._shown:
            self._shown = quarter
            _tell(f"{file}: {_amount(have, size)}, {_percent(have, size)}")

    def _bar(self, have: int, size: int, now_s: float) -> None:
        import os

        start_s, start_bytes = self._start
        speed = (have - start_bytes) / max(now_s - start_s, 1e-3)
        left = f", {(size - have) / speed:.0f} s left" if speed > 0 and have < size else ""
        facts = f" {_percent(have, size)}  {_amount(have, size)}  {speed / 1e6:.1f} MB/s{left}"
        try:
            columns = os.get_terminal_size(sys.stderr.fileno()).columns or 80
        except (OSError, ValueError):
            columns = 80
        room = min(30, columns - len(self._file) - len(facts) - 5)
        bar = ""
        if room >= 5:
            full = room * have // max(size, 1)
            bar = f" [{'#' * full}{'.' * (room - full)}]"
        line = f"{self._file}{bar}{facts}"[: columns - 1]
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        self._open = True


def _percent(have: int, size: int) -> str:
    return f"{100 * have // max(size, 1):3d} %"


def _amount(have: int, size: int) -> str:
    from asr.hub.manifest import human_size

    return f"{human_size(have)} of {human_size(size)}"
