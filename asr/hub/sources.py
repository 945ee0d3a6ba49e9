"""The two model hubs: the addresses of their files, and the checksums they publish."""

import os
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from asr.errors import UsageError
from asr.hub.manifest import File, Source
from asr.hub.transfer import AttemptError, read_json

#: Hub -> the variable that names a mirror, and the address without one.
ENDPOINTS = {
    "modelscope": ("MODELSCOPE_ENDPOINT", "https://www.modelscope.cn"),
    "hf": ("HF_ENDPOINT", "https://huggingface.co"),
}
SHA256, GIT_SHA1 = "sha256", "git-sha1"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a file must be.

    Attributes:
        size: bytes.
        algorithm: ``sha256``, or ``git-sha1``: of a Git blob, with Git's header in front.
        digest: in hexadecimal.
        origin: ``manifest``, or ``source`` where the source published it.
    """

    size: int
    algorithm: str
    digest: str
    origin: str


def endpoint(hub: str) -> str:
    """The address of a hub, without a slash at its end.

    Raises:
        UsageError: its variable holds something else than an http or https address.
    """
    variable, default = ENDPOINTS[hub]
    address = (os.environ.get(variable) or default).rstrip("/")
    if "://" not in address:
        address = f"https://{address}"
    if not address.startswith(("https://", "http://")):
        raise UsageError(f"{variable}: expected an http or https address, found {address}")
    return address


def in_order(file: File, only: str | None, failed: set[str]) -> list[Source]:
    """The sources of a file, the first to ask first.

    Args:
        file: of a distribution.
        only: a hub, or None for all.
        failed: hubs that failed before; they come last.

    A hub whose variable is set comes before the others: whoever names a mirror wants it used.
    """
    chosen = [s for s in file.sources if only in (None, s.hub)]
    return sorted(chosen, key=lambda s: (s.hub in failed, not os.environ.get(ENDPOINTS[s.hub][0])))


def file_url(source: Source, path: str) -> str:
    """Where a file is."""
    base = endpoint(source.hub)
    if source.hub == "hf":
        return f"{base}/{source.repo}/resolve/{source.revision}/{quote(path)}"
    query = urlencode({"Revision": source.revision, "FilePath": path})
    return f"{base}/api/v1/models/{source.repo}/repo?{query}"


def listing_url(source: Source) -> str:
    """Where the hub lists a repository's files with their checksums."""
    base = endpoint(source.hub)
    if source.hub == "hf":
        return f"{base}/api/models/{source.repo}/tree/{source.revision}?recursive=true"
    query = urlencode({"Revision": source.revision, "Recursive": "True"})
    return f"{base}/api/v1/models/{source.repo}/repo/files?{query}"


def expected(source: Source, file: File) -> Expected:
    """What a file must be: the manifest's word, or else what the source publishes.

    Raises:
        AttemptError: the source cannot be asked, or publishes no checksum of the file.
    """
    if file.sha256:
        return Expected(file.size, SHA256, file.sha256, "manifest")
    url = listing_url(source)
    answer = read_json(url)
    try:
        found = _hugging_face(answer) if source.hub == "hf" else _modelscope(answer)
        return found[file.path]
    except (KeyError, TypeError, AttributeError):
        raise AttemptError(f"expected a checksum of {file.path}, found none at {url}") from None


def _hugging_face(listing: Any) -> dict[str, Expected]:  # noqa: ANN401 - what a server sent
    """Large files have a sha256 (Git LFS), the others only the id of their Git blob."""
    return {
        entry["path"]: Expected(entry["size"], SHA256, entry["lfs"]["oid"], "source")
        if entry.get("lfs")
        else Expected(entry["size"], GIT_SHA1, entry["oid"], "source")
        for entry in listing
        if entry["type"] == "file"
    }


def _modelscope(listing: Any) -> dict[str, Expected]:  # noqa: ANN401 - what a server sent
    return {
        entry["Path"]: Expected(entry["Size"], SHA256, entry["Sha256"], "source")
        for entry in listing["Data"]["Files"]
        if entry.get("Sha256")
    }
