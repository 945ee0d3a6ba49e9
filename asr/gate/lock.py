"""The text lock: what the judged version hears, with nobody to compare it with."""

from collections.abc import Sequence

from asr.bench import facts, process
from asr.bench.clips import Workload
from asr.bench.installs import Install
from asr.hub import DEFAULT_MODEL


def heard_as_expected(
    install: Install, workload: Workload, model: str | None, pin: Sequence[int] | None
) -> dict[str, bool]:
    """Clip -> whether a fresh process hears what the workload expects of this network.

    Clips of which nothing is expected are left out.

    Raises:
        MissingToolError: a process fails.
    """
    network = facts.ask(install, model or DEFAULT_MODEL).model.network_sha256
    wanted = process.Wanted(model, threads=len(pin) if pin else 1)
    found = {}
    for clip in workload.clips:
        expected = clip.expected(network)
        if expected is not None:
            _, text = process.timed(install, wanted, clip.path, 1, pin)
            found[clip.id] = text == expected
    return found
