"""The page of a result: benchmarks/results/peers.md."""

from collections.abc import Sequence

import tables
from judge import Judged
from results import Result

HEAD = """# How fast, against whom

Written by `make peers`; the numbers are in [peers.json](peers.json), how they are taken is in
[benchmarks/peers](../peers/README.md). The network is SenseVoiceSmall's at full size (234 M
parameters) with random weights: what it says means nothing, what it computes is as much.
"""

_TITLES = {
    "warm": "Warm call, {seconds:g} s, {threads} thread{s}: reading the file to text",
    "fresh": "Fresh process, {seconds:g} s, {threads} thread{s}",
    "programs": "Whole programs, {seconds:g} s, {threads} thread{s}: as a shell starts them",
    "long": "{seconds:g} s, {threads} thread{s}, in pieces of at most 20 s, all of it heard",
    "front_end": "Front end, {seconds:g} s",
    "decode": "Decoder, scores of {seconds:g} s",
}


def page(result: Result, judged: Sequence[Judged], clock: str) -> str:
    """The whole page."""
    parts = [
        HEAD,
        _where(result),
        "![peer ÷ ours](peers.svg)",
        "## Targets",
        tables.targets(judged),
    ]
    parts.append(f"Ratios are peer ÷ ours unless said otherwise, {clock} time, medians of rounds "
                 "in which all took turns.")  # fmt: skip
    for key, row in result.rows.items():
        kind = row["kind"]
        if kind not in _TITLES:
            continue
        threads = row["threads"]
        title = _TITLES[kind].format(**row | {"s": "s" if threads > 1 else ""})
        show = {"warm": tables.warm, "long": tables.warm, "fresh": tables.fresh,
                "programs": tables.programs}  # fmt: skip
        noise = row["noise"]
        parts += [
            f"## {title}",
            show.get(kind, tables.small)(result, key),
            f"{_rounds(row)} rounds; machine {noise['class']}, load {noise['load_1min']:.1f}, "
            f"CPU time taken away {100 * noise['steal_share']:.1f} %.",
        ]
        if kind == "programs":
            parts.append(_PROGRAMS)
        if kind == "decode":
            parts.append("Ours also gives log-probability and entropy of every row; the peer, ids.")
        if key in ("warm-5.6s-1t", "warm-30s-1t"):
            parts += ["Where the lead comes from:", tables.gains(result, key, clock)]
    if "agreement" in result.rows:
        parts += ["## Agreement with fp32", tables.agreement(result), _AGREEMENT]
    if "limit" in result.rows:
        parts += ["## The physical limit", tables.limits(result), _LIMIT]
    return "\n\n".join(part.strip() for part in parts) + "\n"


_AGREEMENT = """Share of rows whose best id is that of the fp32 network in the same program;
sherpa-onnx shows tokens only, so tokens. The weights are random and lead by
little: this ranks files, it does not predict an error rate."""

_PROGRAMS = """asr-edge has our int8 network as it prepared it for this CPU, asr as its first load
did; sherpa-onnx-offline has its own int8 file."""

_LIMIT = """A C loop of byte dot products, of fp32 multiply-adds, and of reads, measured in the
same run (`limit.c`). "Of the limit" is the least time of the network over the CPU time of the
whole call."""


def _rounds(row: dict) -> int:  # type: ignore[type-arg]
    return max(
        (len(v) for measures in row["samples"].values() for v in measures.values()), default=0
    )


def _where(result: Result) -> str:
    facts = result.facts
    machine = facts["machine"]
    versions = {
        f"{package} {version}"
        if program.startswith(package)
        else f"{package} {version} ({program})"
        for program, packages in facts["versions"].items()
        for package, version in packages.items()
        if package != "numpy"
    }
    return (
        f"Measured {facts['utc']} at commit {facts['commit'][:12]} on {machine['cpu']}, "
        f"{machine['cores']} cores, kernel {machine['kernel']}, Python {machine['python']}: "
        + ", ".join(sorted(versions))
        + "."
    )
