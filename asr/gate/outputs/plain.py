"""JSON, schema ``asr-gate/1``: docs/gate.schema.json."""

import json
from dataclasses import dataclass
from typing import Literal

from asr.bench.plain import to_plain
from asr.gate.findings import Finding, Verdict

SCHEMA: Literal["asr-gate/1"] = "asr-gate/1"


@dataclass(frozen=True, slots=True)
class ToldBlame:
    """Where a slower call of one length class spends its new time.

    Attributes:
        bucket: length class.
        against: what it was held against.
        change: of the whole call, as a share: 0.11 is 11 %.
        stage: the guilty one.
        parts: stage -> what it adds, as a share of the whole call before; largest first.
        text: the same for people.
    """

    bucket: str
    against: str
    change: float
    stage: str
    parts: dict[str, float]
    text: str


@dataclass(frozen=True, slots=True)
class Told:
    """What ``asr gate --json`` prints.

    Attributes:
        schema: name and version of this form.
        judged: what was judged, for people.
        exit_code: of the command.
        error_rate: chance of one false alarm among all findings together.
        counts: outcome -> findings.
        findings: worst first.
        blames: one per length class and base in which a warm metric regressed.
        unfit: why a strict reader should not believe it.
    """

    schema: Literal["asr-gate/1"]
    judged: str
    exit_code: int
    error_rate: float
    counts: dict[str, int]
    findings: list[Finding]
    blames: list[ToldBlame]
    unfit: list[str]


def text(verdict: Verdict, exit_code: int) -> str:
    """One line of JSON.

    Args:
        verdict: to write.
        exit_code: what the command returns for it.
    """
    told = Told(
        schema=SCHEMA,
        judged=verdict.judged,
        exit_code=exit_code,
        error_rate=verdict.error_rate,
        counts=dict(verdict.counts),
        findings=list(verdict.findings),
        blames=[
            ToldBlame(b.bucket, b.against, b.change, b.stage, dict(b.parts), str(b))
            for b in verdict.blames
        ],
        unfit=list(verdict.unfit),
    )
    return json.dumps(to_plain(told), ensure_ascii=False)
