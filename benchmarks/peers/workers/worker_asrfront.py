"""asrfront as a contender: a front end and no more."""

from collections.abc import Callable
from pathlib import Path

from sounds import samples_of

IMPORTS = ("asrfront",)


def front_end(model: str, path: str) -> Callable[[], None]:
    """Samples in memory -> features, by its public function; it keeps the parsed am.mvn."""
    from asrfront import sensevoice

    cmvn, samples = str(Path(model) / "am.mvn"), samples_of(path)

    def run() -> None:
        sensevoice.fbank(samples, cmvn=cmvn)

    return run
