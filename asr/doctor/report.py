"""What the doctor found: sentences for people, facts for the JSON that is sent back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from asr.doctor.folder import public_name
from asr.errors import AsrError

SCHEMA_ID = "asr-doctor/1"
HEALTHY, DOUBTFUL, BROKEN = "healthy", "doubtful", "broken"


@dataclass(slots=True)
class Report:
    """What was found; ``to_json`` is what is sent back.

    Attributes:
        findings: (whether it is as it should be, one sentence), in the order of the examination.
        facts: the JSON members, filled one after another; what was not reached stays null.
    """

    findings: list[tuple[bool, str]] = field(default_factory=list)
    broken: AsrError | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """``healthy``, ``doubtful`` or ``broken``."""
        if self.broken:
            return BROKEN
        return HEALTHY if all(good for good, _ in self.findings) else DOUBTFUL

    def good(self, sentence: str) -> None:
        """Something is as it should be."""
        self.findings.append((True, sentence))

    def bad(self, sentence: str) -> None:
        """Something is not."""
        self.findings.append((False, sentence))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready, docs/doctor.schema.json."""
        findings = [{"good": good, "text": text} for good, text in self.findings]
        return {"schema": SCHEMA_ID, "verdict": self.verdict, "findings": findings, **self.facts}


def redacted(error: Exception, folder: Path) -> str:
    """An error's message without folders and without names of the user's own files."""
    message = " ".join(str(error).split())
    for name in sorted({str(folder), str(folder.absolute()), str(folder.resolve())}, key=len)[::-1]:
        message = message.replace(f"{name}/", "").replace(name, "MODEL")
    for name in sorted((p.name for p in folder.iterdir()), key=len, reverse=True):
        message = message.replace(name, public_name(name) or "OTHER")
    return message
