"""What ``asr bench --against`` prints about two versions."""

from __future__ import annotations

from asr.bench import versus
from asr.bench.record import Change, Pairs
from asr.bench.report import table
from asr.cli.bench_tables import cores, marks


def pairs_text(record: Pairs) -> str:
    """Both versions, every ratio that matters, and the verdict in words."""
    options = record.options
    a, b = record.a, record.b
    where = cores(options)
    head = (
        f"a  {a.label}{marks(a.tool, a.git)}: asr {a.tool.version}, {a.model.name}\n"
        f"b  {b.label}{marks(b.tool, b.git)}: asr {b.tool.version}, {b.model.name}\n"
        f"{options.pairs} pairs of processes per clip, {options.repeat} calls each, threads "
        f"{options.threads}, {where}; noise {record.noise.class_}, probe "
        f"x{record.noise.probe_ratio:.2f}, steal {100 * record.noise.steal_share:.1f} %"
    )
    accused, gained = versus.confirmed(record), versus.faster(record.pairs)
    words = {_name(c): "faster" for c in gained} | {_name(c): "SLOWER" for c in accused}
    rows = [["metric", "a ms", "b ms", "b / a", "95 % interval", "detectable", "pairs", ""]]
    rows += [_row(c, words.get(_name(c), "")) for c in _shown(record)]
    return f"{head}\n\n{table(rows)}\n\n{_texts(record)}\n{_sentence(record, accused)}"


def _shown(record: Pairs) -> list[Change]:
    """Totals, the stages of warm calls and the phases of the load that matter."""
    totals = {(c.metric, c.bucket): c.median_a for c in record.summary if c.stage is None}
    return [
        c
        for c in record.summary
        if c.stage is None
        or (c.metric in ("warm", "load") and versus.matters(c, totals[c.metric, c.bucket]))
    ]


def _name(change: Change) -> str:
    last = change.stage or ("peak MB" if change.metric == "memory" else "total")
    return "/".join(filter(None, (change.metric, change.bucket, last)))


def _row(change: Change, word: str) -> list[str]:
    return [
        _name(change),
        f"{change.median_a / 1e6:.3f}",
        f"{change.median_b / 1e6:.3f}",
        f"{change.ratio:.3f}",
        f"{change.low:.3f} - {change.high:.3f}",
        f"{100 * change.mde:.1f} %",
        str(change.n),
        word,
    ]


def _texts(record: Pairs) -> str:
    other = [clip.id for clip in record.clips if not clip.text_same]
    return f"texts: OTHER in {', '.join(other)}" if other else "texts: the same"


def _sentence(record: Pairs, accused: list[Change]) -> str:
    if accused:
        names = ", ".join(f"{_name(c)} {100 * (c.ratio - 1):+.1f} %" for c in accused)
        return f"slower, and confirmed by a second run: {names}"
    if record.confirm is not None:
        return "some metrics looked slower, a second run did not confirm it"
    if max(p.round for p in record.pairs) + 1 < versus.FEWEST:
        return f"too few pairs to call anything slower: expected {versus.FEWEST} or more per clip"
    return "nothing is slower, within what could be detected"
