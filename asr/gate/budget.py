"""benchmarks/budget.toml: what may change, and what is promised on which machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from asr.errors import RecordError
from asr.gate.files import check_keys, read_toml
from asr.gate.metrics import Worth

#: What a device class may promise: an upper bound each. RTFs may name a bucket: "rtf_warm/5 s".
PROMISES = {
    "rtf_infer": "rtf",
    "rtf_warm": "rtf",
    "rtf_first": "rtf",
    "rtf_process": "rtf",
    "peak_rss_mb": "MB",
    "wheel_mb": "MB",
    "network_mb": "MB",
}
_NUMBER = (float, int)


@dataclass(frozen=True, slots=True)
class Margins:
    """Slowdowns let pass against another version, as shares: 0.02 is 2 %.

    Attributes:
        total: of a warm call.
        stage: of a stage of a warm call.
        cold: of a fresh process up to the first text.
        load: of a phase of the load.
        memory: of the peak.
        wheel: of the wheel's bytes.
        network: of the network's bytes.
        stage_min_share: a stage is judged by itself from this share of the call on,
        stage_min_ms: or from these milliseconds on.
        find_total: the slowdown of a warm call that pairs are added for until it would be found,
        find_stage: and that of a stage.
        error_rate: chance of one false alarm in a whole verdict.
    """

    total: float = 0.02
    stage: float = 0.04
    cold: float = 0.05
    load: float = 0.10
    memory: float = 0.05
    wheel: float = 0.25
    network: float = 0.0
    stage_min_share: float = 0.02
    stage_min_ms: float = 0.5
    find_total: float = 0.05
    find_stage: float = 0.10
    error_rate: float = 0.01

    @property
    def worth(self) -> Worth:
        """When a stage is judged by itself."""
        return Worth(self.stage_min_share, self.stage_min_ms * 1e6)

    def of(self, kind: str) -> float:
        """The margin of a ``Metric.kind``."""
        margin: float = getattr(self, "total" if kind == "warm" else kind)
        return margin


@dataclass(frozen=True, slots=True)
class Accuracy:
    """What must not get worse at any speed.

    Attributes:
        texts_changed: clips that may be heard differently.
        cer: rise of a clip's character error rate let pass.
    """

    texts_changed: int = 0
    cer: float = 0.0


@dataclass(frozen=True, slots=True)
class Device:
    """Absolute promises for one class of machines and one model.

    Attributes:
        name: of the class.
        match: machine fields -> pattern, all must fit.
        model: name of the model the promises are about.
        promises: name of ``PROMISES``, with or without a bucket -> upper bound.
    """

    name: str
    match: Mapping[str, str]
    model: str
    promises: Mapping[str, float]

    def fits(self, machine: Mapping[str, Any], model: str) -> bool:
        """Whether this class's promises are about that machine and model."""
        return model == self.model and all(
            fnmatchcase(str(machine.get(key, "")), pattern) for key, pattern in self.match.items()
        )


@dataclass(frozen=True, slots=True)
class Budget:
    """The whole file; without one the defaults, and no promises."""

    margins: Margins = field(default_factory=Margins)
    accuracy: Accuracy = field(default_factory=Accuracy)
    devices: tuple[Device, ...] = ()

    def device(self, machine: Mapping[str, Any], model: str) -> Device | None:
        """The first class that fits; None when nothing is promised for this machine."""
        return next((d for d in self.devices if d.fits(machine, model)), None)


def read_budget(path: Path) -> Budget:
    """Read the file.

    Raises:
        SystemAccessError: it cannot be read.
        RecordError: an unknown key, a value of another type, or a limit that limits nothing.
    """
    table = read_toml(path)
    check_keys(table, {"relative": dict, "accuracy": dict, "device": dict}, str(path))
    return Budget(
        margins=_numbers(Margins, table.get("relative", {}), f"{path}: [relative]"),
        accuracy=_numbers(Accuracy, table.get("accuracy", {}), f"{path}: [accuracy]"),
        devices=tuple(
            _device(name, row, f"{path}: [device.{name}]")
            for name, row in table.get("device", {}).items()
        ),
    )


def _numbers(kind: Any, table: dict[str, Any], place: str) -> Any:  # noqa: ANN401 - two classes
    check_keys(table, {f.name: _NUMBER for f in fields(kind)}, place)
    for key, value in table.items():
        if value < 0 or (key == "error_rate" and not 0 < value < 1):
            raise RecordError(f"{place}: {key}: expected a share, found {value!r}")
    found = kind(**table)
    if isinstance(found, Margins) and not (
        found.total < found.find_total and found.stage < found.find_stage
    ):
        raise RecordError(f"{place}: expected margins below find_total and find_stage")
    return found


def _device(name: str, table: dict[str, Any], place: str) -> Device:
    promises = {k: v for k, v in table.items() if k not in ("match", "model")}
    for key in promises:
        base, _, bucket = key.partition("/")
        if base not in PROMISES or (bucket and PROMISES[base] != "rtf"):
            raise RecordError(
                f"{place}: expected match, model, {', '.join(PROMISES)}, found the key {key!r}"
            )
    check_keys(table, {"match": dict, "model": str, **dict.fromkeys(promises, _NUMBER)}, place)
    if not promises or "model" not in table:
        raise RecordError(f"{place}: expected a model and at least one promise")
    match = {key: str(value) for key, value in table.get("match", {}).items()}
    return Device(name, match, table["model"], promises)
