"""What an image is made of: name, version, checksum and licence of each part, as SPDX."""

import json
import re
import zipfile
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.parser import Parser
from pathlib import Path
from typing import Any

from asr.deploy import contents, cross
from asr.deploy.tools import run
from asr.errors import LayoutError
from asr.hub.store import digest

_LICENCE_FILE = re.compile(r"(?i)(^|/)(licen[cs]e|copying|notice|copyright|thirdparty)[^/]*$")


@dataclass(frozen=True, slots=True)
class Part:
    """One package.

    Attributes:
        kind: ``deb``, ``wheel``, ``crate`` or ``project``.
        name: what its registry calls it.
        version: of it.
        licence: an SPDX expression.
        sha256: of the package file; None where it is built here or unknown.
        texts: file name -> licence text.
    """

    kind: str
    name: str
    version: str
    licence: str
    sha256: str | None = None
    texts: dict[str, bytes] = field(default_factory=dict, repr=False)

    def row(self) -> dict[str, Any]:
        """For the manifest."""
        return {
            "kind": self.kind, "name": self.name, "version": self.version,
            "licence": self.licence, "sha256": self.sha256,
        }  # fmt: skip

    def keep_licences(self, folder: Path) -> None:
        """Write the texts into a folder of the part's own."""
        for name, text in self.texts.items():
            path = folder / f"{self.kind}-{self.name}" / name.replace("/", "-")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)


def of_deb(base: Path, package: dict[str, Any]) -> Part:
    """A Debian package of the base."""
    name = package["name"]
    copyright_file = base / f"usr/share/doc/{name}/copyright"
    if not copyright_file.is_file():
        raise LayoutError(f"{name}: expected its licence in {copyright_file}, found none")
    texts = {"copyright": copyright_file.read_bytes()}
    return Part("deb", name, package["version"], _known(name), package["sha256"], texts)


def of_wheel(wheel: Path) -> Part:
    """A wheel; its metadata's expression, else ours."""
    with zipfile.ZipFile(wheel) as archive:
        files = archive.namelist()
        (metadata,) = [n for n in files if re.fullmatch(r"[^/]+\.dist-info/METADATA", n)]
        fields = Parser().parsestr(archive.read(metadata).decode())
        texts = {n: archive.read(n) for n in files if _LICENCE_FILE.search(n)}
    licence = fields["License-Expression"] or _known(fields["Name"])
    return Part("wheel", fields["Name"], fields["Version"], licence, digest(wheel), texts)


def of_crates(source: Path, package: str, features: str = "") -> list[Part]:
    """A crate of ours and every crate that goes into it for aarch64.

    Args:
        source: a checkout.
        package: of the workspace.
        features: as for cargo.
    """
    command = ["cargo", "metadata", "--format-version", "1", "--locked",
               "--filter-platform", cross.TARGET]  # fmt: skip
    if features:
        command += ["--features", features]
    found = json.loads(run(command, folder=source))
    packages = {row["id"]: row for row in found["packages"]}
    nodes = {row["id"]: row for row in found["resolve"]["nodes"]}
    (first,) = [row["id"] for row in packages.values() if row["name"] == package]
    reached, waiting = {first: None}, [first]
    while waiting:
        for edge in nodes[waiting.pop()]["deps"]:
            if _is_linked(edge, packages) and edge["pkg"] not in reached:
                reached[edge["pkg"]] = None
                waiting.append(edge["pkg"])
    rows = sorted((packages[i] for i in reached), key=lambda row: (row["name"], row["version"]))
    return [_crate(source, row) for row in rows]


def _is_linked(edge: dict[str, Any], packages: dict[str, Any]) -> bool:
    """Whether a dependency ends up in the program: no build script's, no test's, no macro."""
    kinds = {kind for target in packages[edge["pkg"]]["targets"] for kind in target["kind"]}
    return "proc-macro" not in kinds and any(kind["kind"] is None for kind in edge["dep_kinds"])


def _crate(source: Path, row: dict[str, Any]) -> Part:
    folder = Path(row["manifest_path"]).parent
    own = row["source"] is None
    texts = {
        path.name: path.read_bytes()
        for path in sorted((source if own else folder).iterdir())
        if path.is_file() and _LICENCE_FILE.search(path.name)
    }
    licence = (row["license"] or "NOASSERTION").replace("/", " OR ")
    return Part("project" if own else "crate", row["name"], row["version"], licence, None, texts)


def _known(name: str) -> str:
    table = {key.lower(): value for key, value in contents.licences().items()}
    try:
        return table[name.lower()]
    except KeyError:
        raise LayoutError(
            f"{name}: expected its licence in asr/deploy/contents.toml, found none; read its "
            "copyright file and add the SPDX name"
        ) from None


def spdx(found: list[Part], name: str, built_at_s: int) -> dict[str, Any]:
    """The parts as an SPDX 2.3 document."""
    created = datetime.fromtimestamp(built_at_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    packages = []
    for part in found:
        ident = re.sub(r"[^A-Za-z0-9.-]", "-", f"SPDXRef-{part.kind}-{part.name}-{part.version}")
        row: dict[str, Any] = {
            "SPDXID": ident,
            "name": part.name,
            "versionInfo": part.version,
            "downloadLocation": "NOASSERTION",
            "filesAnalyzed": False,
            "licenseConcluded": part.licence,
            "licenseDeclared": part.licence,
            "copyrightText": "NOASSERTION",
        }
        if part.sha256:
            row["checksums"] = [{"algorithm": "SHA256", "checksumValue": part.sha256}]
        packages.append(row)
    return {
        "spdxVersion": "SPDX-2.3",
        "SPDXID": "SPDXRef-DOCUMENT",
        "dataLicense": "CC0-1.0",
        "name": name,
        "documentNamespace": f"urn:spdx:{name}-{built_at_s}",
        "creationInfo": {"created": created, "creators": ["Tool: asr deploy build"]},
        "packages": packages,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": row["SPDXID"],
            }
            for row in packages
        ],
    }
