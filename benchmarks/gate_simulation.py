"""Choose and check the gate's statistics on recorded pairs of the same code (A/A).

    python benchmarks/gate_simulation.py RECORD.json [--pairs 20] [--draws 1000]

Three tables: how much each quantile of a process's warm calls spreads from process to process; how
often planted slowdowns are caught, and the right stage named, in re-drawn pairs; how often pairs
of the same code raise an alarm, with the upper 95 % bound of that rate. A re-draw picks pairs with
replacement and swaps a and b by a coin: of the same code, who is a and who is b is a name.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from asr.bench.record import TOTAL, Pair, read_pairs
from asr.bench.report import table
from asr.gate import metrics as gate_metrics
from asr.gate.budget import Margins
from asr.gate.metrics import Metric, metrics_of
from asr.gate.weigh import Measured, accused, weigh

QUANTILES = (0.0, 0.05, 0.10, 0.20, 0.30, 0.50)
MARGINS = Margins()
SEED = 6


def redraw(found: Sequence[Metric], pairs: int, generator: np.random.Generator) -> list[Metric]:
    """As many new pairs of every metric; metrics of one bucket keep their pairs together."""
    drawn = []
    picks: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for metric in found:
        a, b = np.asarray(metric.a), np.asarray(metric.b)
        if len(a) not in picks:
            picks[len(a)] = generator.integers(0, len(a), pairs), generator.random(pairs) < 0.5
        pick, swap = picks[len(a)]
        a, b = a[pick], b[pick]
        drawn.append(replace(metric, a=tuple(np.where(swap, b, a)), b=tuple(np.where(swap, a, b))))
    return drawn


def slowed(found: Sequence[Metric], bucket: str, stage: str, share: float, of: str) -> list[Metric]:
    """Metrics with a stage of b slowed by a share ``of`` itself or of the total."""
    by_name = {m.name: m for m in found}
    prefix = f"warm/{bucket}/"
    base = median(by_name[prefix + of].a)
    names = (prefix + stage, prefix + TOTAL)
    return [
        replace(m, b=tuple(x + share * base for x in m.b)) if m.name in names else m for m in found
    ]


def rows(found: Sequence[Metric], again: Sequence[Metric]) -> list[Measured]:
    """First and confirming pairs of every metric, with its margin."""
    return [Measured("a", m, c, MARGINS.of(m.kind)) for m, c in zip(found, again, strict=True)]


def guilty(found: Sequence[Metric], bucket: str) -> str:
    """The stage that adds most to the total."""
    stages = [m for m in found if m.kind == "stage" and m.name.startswith(f"warm/{bucket}/")]
    return max(
        stages, key=lambda m: median(b - a for a, b in zip(m.a, m.b, strict=True))
    ).name.rpartition("/")[2]


def upper_bound(alarms: int, draws: int, level: float = 0.95) -> float:
    """Clopper and Pearson's upper bound of a rate, by bisection."""
    low, high = alarms / draws, 1.0
    for _ in range(60):
        rate = (low + high) / 2
        at_most = sum(
            math.exp(
                math.lgamma(draws + 1) - math.lgamma(k + 1) - math.lgamma(draws - k + 1)
                + k * math.log(rate) + (draws - k) * math.log1p(-rate)
            )
            for k in range(alarms + 1)
        )  # fmt: skip
        low, high = (rate, high) if at_most > 1 - level else (low, rate)
    return high


def false_alarms(found: Sequence[Metric], pairs: int, draws: int) -> tuple[int, int]:
    """Alarms of the first pairs, and those that a confirming re-draw lets stand."""
    generator = np.random.default_rng(SEED)
    first = confirmed = 0
    for _ in range(draws):
        drawn = rows(redraw(found, pairs, generator), redraw(found, pairs, generator))
        if accused(drawn, MARGINS.error_rate):
            first += 1
            findings = weigh(drawn, MARGINS.error_rate)
            confirmed += any(f.outcome == "regressed" for f in findings)
    return first, confirmed


def caught(
    found: Sequence[Metric], bucket: str, stage: str, share: float, of: str, pairs: int, draws: int
) -> tuple[int, int]:
    """Re-draws in which a planted slowdown was confirmed; and those that name its stage."""
    generator = np.random.default_rng(SEED)
    hits = named = 0
    for _ in range(draws):
        first, again = (
            slowed(redraw(found, pairs, generator), bucket, stage, share, of) for _ in range(2)
        )
        regressed = [
            f for f in weigh(rows(first, again), MARGINS.error_rate) if f.outcome == "regressed"
        ]
        if regressed:
            hits += 1
            named += guilty(first, bucket) == stage
    return hits, named


def spreads(pairs: Sequence[Pair]) -> str:
    """Spread of log(b / a) from pair to pair, in %, by quantile of a process's calls."""
    lines = [["metric", *(f"{100 * q:.0f} %" for q in QUANTILES)]]
    columns = []
    chosen = gate_metrics.QUIET
    for quantile in QUANTILES:
        gate_metrics.QUIET = quantile
        columns.append(
            {m.name: _spread(m.logs) for m in metrics_of(pairs, MARGINS.worth) if "warm" in m.name}
        )
    gate_metrics.QUIET = chosen
    names = [n for n in columns[0] if all(n in c for c in columns)]
    return table(lines + [[n, *(f"{100 * c[n]:.1f}" for c in columns)] for n in names])


def _spread(logs: Sequence[float]) -> float:
    """What a pair contributes to the signed-rank test's error."""
    from asr.gate.statistics import estimate

    return estimate(logs).error * math.sqrt(len(logs))


def main() -> None:
    """Print the three tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("record")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    record = read_pairs(options.record)
    found = metrics_of(record.pairs, MARGINS.worth)
    print(f"spread per pair in %, by quantile of the warm calls ({len(record.pairs)} pairs)")
    print(spreads(record.pairs))
    some = min(100, options.draws)
    plants = [["planted", "bucket", f"caught of {some}", "stage named"]]
    for bucket in dict.fromkeys(p.bucket for p in record.pairs):
        stages = [m.name.rpartition("/")[2] for m in found if m.name.startswith(f"warm/{bucket}/")]
        cases = [(s, 0.05, TOTAL) for s in stages if s != TOTAL]
        cases += [(s, 0.10, s) for s in stages if s not in (TOTAL,)]
        for stage, share, of in cases:
            hits, named = caught(found, bucket, stage, share, of, options.pairs, some)
            what = "the call" if of == TOTAL else "itself"
            plants.append(
                [f"{stage} +{100 * share:.0f} % of {what}", bucket, str(hits), str(named)]
            )
    print(f"\n{options.pairs} pairs and as many to confirm")
    print(table(plants))
    first, alarms = false_alarms(found, options.pairs, options.draws)
    bound = 100 * upper_bound(alarms, options.draws)
    print(
        f"\nsame code: {first} of {options.draws} re-draws accuse, {alarms} are confirmed: "
        f"at most {bound:.2f} % (upper 95 % bound)"
    )


if __name__ == "__main__":
    main()
