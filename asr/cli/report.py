"""``asr report``: a record of ``asr bench`` as something to read and to hand on."""

from __future__ import annotations

import argparse

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from asr.bench.record import Bench, Pairs
    from asr.report.blocks import Section


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "report",
        help="a record of asr bench as one HTML file, Markdown, or a brief for a reviewer",
        description="Turn a record of asr bench into something to read and to hand on.",
        epilog=(
            "examples:\n"
            "  asr report record.json -o report.html    one file, no network, phone and dark mode\n"
            "  asr report record.json --markdown        the same as text\n"
            "  asr report record.json --brief           one page for a reviewer, human or model"
        ),
        formatter_class=Help,
    )
    parser.fill = _add_options
    parser.set_defaults(run=run)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", metavar="RECORD", help="a file of asr bench -o")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="Markdown instead of HTML")
    forms.add_argument("--brief", action="store_true", help="one page with one question")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of stdout; .md: Markdown")
    parser.add_argument("--history", metavar="DIR", help="a store of asr history: runs over time")
    parser.add_argument("--branch", metavar="NAME", help="a branch of asr history instead")
    parser.add_argument(
        "--pairs", metavar="FILE", help="before and after: a file of asr bench --against REV -o"
    )
    parser.add_argument(
        "--folded", metavar="FILE", help="of asr profile --folded: the brief's hottest functions"
    )
    parser.add_argument(
        "--repo", metavar="DIR", default=".",
        help="the clone for patches, the order of commits, the release profile (default: here)",
    )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Read, put together, write."""
    from pathlib import Path

    from asr.bench import record
    from asr.cli.outputs import write

    text = _text(options, record.read_bench(options.record), Path(options.repo))
    if options.output:
        write(Path(options.output), text)
        print(f"{options.output}: {len(text.encode()) / 1000:.0f} kB")
    else:
        print(text, end="")
    return 0


def _text(options: argparse.Namespace, bench: Bench, repo: Path) -> str:
    from pathlib import Path

    from asr.bench import record
    from asr.errors import UsageError

    if options.brief:
        from asr.report.brief import brief

        for name in ("history", "branch", "pairs"):
            if getattr(options, name):
                raise UsageError(f"--{name}: not used with --brief")
        return brief(bench, _read(options.folded), repo)
    if options.folded:
        raise UsageError("--folded: needs --brief")
    from asr.report import content, forms

    pairs = record.read_pairs(options.pairs) if options.pairs else None
    made = content.report(bench, _past(options, bench, repo), pairs, _patches(pairs, repo))
    is_markdown = options.markdown or Path(options.output or "").suffix == ".md"
    return forms.markdown(made) if is_markdown else forms.html(made)


def _read(name: str | None) -> str | None:
    from pathlib import Path

    from asr.errors import SystemAccessError

    if name is None:
        return None
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise SystemAccessError(f"{name}: cannot read the file: {error.strerror}") from None


def _past(options: argparse.Namespace, bench: Bench, repo: Path) -> list[Section]:
    if not (options.history or options.branch):
        return []
    from asr.history.index import Index
    from asr.history.store import commit_order, open_store
    from asr.report import past

    store = open_store(options.history, options.branch, repo)
    return past.sections(Index(store, commit_order(repo)), bench)


def _patches(pairs: Pairs | None, repo: Path) -> list[str]:
    """One line per commit between before and after; none where git does not know both."""
    if pairs is None or pairs.a.git is None or pairs.b.git is None:
        return []
    from asr.errors import UsageError
    from asr.history.store import git

    try:
        told = git(repo, "log", "--format=%h %s", f"{pairs.a.git.sha}..{pairs.b.git.sha}", "--")
    except UsageError:
        return []
    return told.splitlines()
