"""JUnit XML: a case per metric, for any CI that shows test results."""

import re
from xml.etree import ElementTree

from asr.gate.findings import Verdict
from asr.gate.outputs.words import sentence

#: What XML 1.0 cannot hold at all.
_FORBIDDEN = re.compile(r"[^\t\n\r -\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def text(verdict: Verdict) -> str:
    """What fails is a failure; what stays open or was signed for is skipped, with its reason."""
    suite = ElementTree.Element("testsuite", name="asr gate", tests=str(len(verdict.findings)))
    failures = skipped = 0
    for finding in verdict.findings:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_clean(f"asr gate.{finding.against}"),
            name=_clean(finding.metric),
        )
        message = _clean(sentence(finding))
        if finding.fails:
            failures += 1
            failure = ElementTree.SubElement(case, "failure", type=finding.outcome, message=message)
            failure.text = "\n".join([message, *map(str, verdict.blames)])
        elif finding.accepted or finding.outcome in ("inconclusive", "not_comparable"):
            skipped += 1
            ElementTree.SubElement(case, "skipped", message=message)
    suite.set("failures", str(failures))
    suite.set("skipped", str(skipped))
    suite.set("errors", "0")
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(
        suites, encoding="unicode"
    )


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
