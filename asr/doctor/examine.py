"""The examination itself: files, recipe, tokens, clips, peers -> what was found."""

import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from asr import _rust_fe
from asr.doctor import folder as parts
from asr.doctor import optimised, peers
from asr.doctor.clips import Clip
from asr.doctor.hearing import Heard, clip_facts, hear, timing_facts
from asr.doctor.report import Report, redacted
from asr.errors import AsrError
from asr.hub import find_model
from asr.layouts import Layout
from asr.recognizer import Recognizer

#: Share of a peer's tokens that may differ before it counts. Features in float32 instead of
#: float64, and int8 kernels of another ONNX Runtime, explain a few per cent on quantised networks
#: and next to nothing on others (benchmarks/peers/README.md).
MAX_DIFFERING = 0.05


def examine(
    model: str,
    clips: Sequence[Clip],
    *,
    machine: dict[str, Any],
    with_texts: bool,
    with_peers: bool,
    threads: int | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Report:
    """Examine a model.

    Args:
        model: a folder, or a name.
        clips: what to let it hear.
        machine: of the report.
        with_texts: whether the report may hold what was heard.
        with_peers: whether to ask other programs, too.
        threads: of the network.
        progress: told what begins.

    Returns:
        A report, also of a model that cannot be used; it names no path.

    Raises:
        LayoutError: there is no such model.
        SystemAccessError: a file cannot be read.
    """
    report = Report()
    build = _rust_fe.build_info()
    report.facts = {
        "asr": {
            "version": build["version"],
            "profile": build["profile"],
            "target": build["target"],
        },
        "machine": {**machine, "system": platform.system()},
        **dict.fromkeys(("layout", "files", "other_files", "recipe", "tokens", "engine", "clips")),
        "optimised": None,
        "timings": None,
        "peers": None,
        "error": None,
    }
    path = find_model(model)
    progress("checksums")
    _files(report, path)
    progress("loading")
    start_s = time.perf_counter()
    try:
        recognizer = Recognizer.load(path, threads=threads, progress=progress)
    except AsrError as error:
        report.broken = error
        report.facts["error"] = redacted(error, path)
        return report
    load_ms = (time.perf_counter() - start_s) * 1e3
    _parts(report, recognizer)
    heard = _hear(report, recognizer, clips, with_texts, progress)
    if heard is not None:
        report.facts["timings"] = timing_facts(load_ms, heard, clips)
        _optimised(report, recognizer, clips, heard, progress)
        if with_peers:
            _peers(report, recognizer, clips, heard, progress)
    return report


def _files(report: Report, path: Path) -> None:
    found, others = parts.files(path)
    report.facts["files"] = [asdict(file) for file in found]
    report.facts["other_files"] = others
    for file in found:
        if file.damaged:
            report.bad(f"{file.name}: name and size of a published file, but another content")
    same = [file for file in found if file.published_as]
    if same:
        names = ", ".join(sorted({name for file in same for name in file.published_as}))
        report.good(f"files: {len(same)} of {len(found)} are those published as {names}")
    else:
        report.good(f"files: {len(found)}, none that asr models list knows")


def _parts(report: Report, recognizer: Recognizer) -> None:
    layout, engine = recognizer.layout, recognizer.engine
    report.facts["layout"] = layout.kind
    report.facts["recipe"] = parts.recipe(layout)
    tokens = report.facts["tokens"] = parts.tokens(layout)
    report.facts["engine"] = {
        "runtime": engine.description,
        "threads": engine.threads,
        "backend": recognizer.front_end.backend,
        "network": layout.network.name,
        "network_bytes": layout.network.stat().st_size,
        "inputs": {t.name: [t.dtype, *map(str, t.shape)] for t in engine.inputs},
        "outputs": {t.name: [t.dtype, *map(str, t.shape)] for t in engine.outputs},
    }
    for name, odd, right in (
        ("recipe", parts.odd_recipe(layout), "SenseVoice's"),
        ("tokens", parts.odd_tokens(tokens, layout), f"{tokens['pieces']}, {tokens['tags']} tags"),
    ):
        for sentence in odd:
            report.bad(f"{name}: {sentence}")
        if not odd:
            report.good(f"{name}: {right}")


def _hear(
    report: Report,
    recognizer: Recognizer,
    clips: Sequence[Clip],
    with_texts: bool,
    progress: Callable[[str], None],
) -> list[Heard] | None:
    found: list[Heard] = []
    for clip in clips:
        progress(clip.name)
        try:
            found.append(hear(recognizer, clip))
        except AsrError as error:
            report.broken = error
            report.facts["error"] = redacted(error, recognizer.layout.folder)
            return None
    report.facts["clips"] = [
        clip_facts(clip, heard, with_texts) for clip, heard in zip(clips, found, strict=True)
    ]
    withheld = sum(heard.transcript.rejected for heard in found)
    spoken = sum(any(heard.texts) for heard in found)
    tell = report.good if spoken else report.bad
    tell(f"clips: words in {spoken} of {len(found)}, {withheld} withheld as not sure enough")
    if changed := sum(len(heard.texts) > 1 for heard in found):
        report.bad(f"clips: the text of {changed} changed from one call to the next")
    return found


def _optimised(
    report: Report,
    recognizer: Recognizer,
    clips: Sequence[Clip],
    heard: Sequence[Heard],
    progress: Callable[[str], None],
) -> None:
    found = optimised.compare(recognizer, recognizer.layout.folder, clips, heard, progress)
    if found is None:
        return
    report.facts["optimised"] = found.facts()
    changed = len(found.texts_changed)
    tell = report.bad if changed else report.good
    tell(
        f"optimised ({', '.join((*found.passes, 'prepacked'))}): the text of {changed} clips "
        f"changed, best ids in {found.ids_changed}; {found.speed:.2f} times as fast"
    )


def _peers(
    report: Report,
    recognizer: Recognizer,
    clips: Sequence[Clip],
    heard: Sequence[Heard],
    progress: Callable[[str], None],
) -> None:
    layout = recognizer.layout
    rows = report.facts["peers"] = []
    for name in peers.PEERS:
        progress(name)
        answer = peers.ask(name, layout, [h.samples for h in heard], recognizer.engine.threads)
        row: dict[str, Any] = {"name": name, "version": answer.version, "problem": answer.problem}
        row |= dict.fromkeys(("tokens", "differing", "clips_equal", "load_ms", "rtf"))
        rows.append(row)
        if answer.problem:
            # Not installed, or of another layout: nothing is wrong with the model.
            tell = report.bad if answer.problem.startswith(("failed", "no answer")) else report.good
            tell(f"{name}: not compared, {answer.problem}")
            continue
        _compare(report, row, answer, layout, heard)
        row["rtf"] = sum(answer.calls_ms) / 1e3 / sum(clip.sound.duration_s for clip in clips)
        row["load_ms"] = answer.load_ms


def _compare(
    report: Report,
    row: dict[str, Any],
    answer: peers.PeerAnswer,
    layout: Layout,
    heard: Sequence[Heard],
) -> None:
    pieces = layout.vocabulary.pieces
    ours = [peers.spelled(pieces, h.argmax, layout.blank_id, answer.name) for h in heard]
    gaps = [_distance(a, b) for a, b in zip(ours, answer.pieces, strict=True)]
    tokens = sum(map(len, answer.pieces))
    row |= {"tokens": tokens, "differing": sum(gaps), "clips_equal": gaps.count(0)}
    tell = report.good if sum(gaps) <= MAX_DIFFERING * max(tokens, 1) else report.bad
    tell(
        f"{answer.name} {answer.version}: {sum(gaps)} of {tokens} tokens differ, "
        f"{gaps.count(0)} of {len(gaps)} clips are equal"
    )


def _distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Levenshtein distance; RapidFuzz is not everywhere where a doctor is called."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]
