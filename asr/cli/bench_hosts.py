"""``asr bench --host python --host edge``: the same bundle, two hosts."""

from __future__ import annotations

import argparse
import contextlib

from asr.bench import hosts
from asr.bench.report import table

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from asr.bench.clips import Workload


def run(
    options: argparse.Namespace, workload: Workload, folder: Path, say: Callable[[str], object]
) -> int:
    """Make the bundle if it is none yet, measure, print, write the record."""
    import os
    import shutil
    from pathlib import Path

    from asr.deploy import bundle
    from asr.engines.ort import default_threads
    from asr.errors import MissingToolError, SystemAccessError, UsageError
    from asr.hub import DEFAULT_MODEL, find_model
    from asr.layouts import open_layout

    if set(options.host) != {hosts.PYTHON, hosts.EDGE}:
        raise UsageError("--host: expected --host python --host edge, both")
    named = options.edge or shutil.which("asr-edge") or "target/release/asr-edge"
    program = Path(named)
    if not os.access(program, os.X_OK):
        raise MissingToolError(f"{program}: expected asr-edge, found none; make edge builds it")
    model = find_model(options.model or DEFAULT_MODEL)
    layout = open_layout(model)
    source = model if layout.kind == "bundle" else bundle.write(layout, model.name, folder / "host")
    given = {"cold": options.cold, "idle_s": options.idle, "warm": options.repeat}
    if options.quick:
        given = {"cold": 2, "idle_s": 0.2, "warm": 5, "idle": 2}
    asked = hosts.Asked(
        source,
        program.resolve(),
        options.threads or default_threads(),
        **{name: value for name, value in given.items() if value is not None},
    )
    found = hosts.compare(asked, workload, say)
    if options.output:
        try:
            Path(options.output).write_text(found.to_json(), encoding="utf-8")
        except OSError as error:
            message = f"{options.output}: cannot write the record: {error.strerror}"
            raise SystemAccessError(message) from None
    with contextlib.suppress(BrokenPipeError):
        print(text_of(found))
    return 0


def text_of(found: hosts.Hosts) -> str:
    """A row per clip and state."""
    rows = [["clip, state", "python ms", "edge ms", "edge / python", "95 % interval"]]
    rows += [
        [
            f"{row.clip}, {row.state}",
            f"{row.python_ms:.2f}",
            f"{row.edge_ms:.2f}",
            f"{row.ratio.median:.3f}",
            f"{row.ratio.low:.3f} - {row.ratio.high:.3f}",
        ]
        for row in found.rows
    ]
    calls, peaks = found.native_calls, found.peak_rss_bytes
    return (
        f"one bundle, {found.library}, threads {found.threads}; only the host differs\n\n"
        f"{table(rows)}\n\n"
        f"most memory held: python {peaks[hosts.PYTHON] / 1e6:.1f} MB, "
        f"edge {peaks[hosts.EDGE] / 1e6:.1f} MB\n"
        f"crossings from host to native code in a warm call: python {calls[hosts.PYTHON]}, "
        f"edge {calls[hosts.EDGE]}\ntexts: the same"
    )
