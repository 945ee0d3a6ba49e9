"""A container image as one file that OCI tools and ``docker load`` both read.

Source: OCI image layout 1.0 and image config 1.0; ``manifest.json`` is Docker's own index, which
points at the same blobs.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from asr.deploy.archive import compress
from asr.errors import LayoutError

PLATFORM = {"architecture": "arm64", "os": "linux", "variant": "v8"}
_INDEX = "application/vnd.oci.image.index.v1+json"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer.

    Attributes:
        tar: uncompressed.
        made_by: for the image's history.
    """

    tar: bytes
    made_by: str


@dataclass(frozen=True, slots=True)
class Image:
    """What an archive holds, checked.

    Attributes:
        tag: the image's name.
        manifest_digest: ``sha256:...`` of the manifest.
        config: the image's configuration.
        layers: uncompressed tar files, the lowest first.
        layer_bytes: compressed sizes.
    """

    tag: str
    manifest_digest: str
    config: dict[str, Any]
    layers: tuple[bytes, ...]
    layer_bytes: tuple[int, ...]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def write(
    path: Path, tag: str, layers: Sequence[Layer], config: Mapping[str, Any], built_at_s: int
) -> str:
    """Write an image.

    Args:
        path: the archive.
        tag: ``NAME:TAG``.
        layers: the lowest first.
        config: the ``config`` object: user, entry point, labels, health check.
        built_at_s: seconds since 1970, of everything in it.

    Returns:
        the manifest's digest.
    """
    created = datetime.fromtimestamp(built_at_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    blobs: dict[str, bytes] = {}

    def add(data: bytes, kind: str) -> dict[str, Any]:
        blobs[_sha256(data)] = data
        return {"mediaType": kind, "digest": f"sha256:{_sha256(data)}", "size": len(data)}

    described = [add(compress(layer.tar), _LAYER) for layer in layers]
    configuration = add(
        _json({
            **PLATFORM,
            "created": created,
            "config": dict(config),
            "rootfs": {
                "type": "layers",
                "diff_ids": [f"sha256:{_sha256(layer.tar)}" for layer in layers],
            },
            "history": [{"created": created, "created_by": layer.made_by} for layer in layers],
        }),
        _CONFIG,
    )  # fmt: skip
    manifest = add(
        _json({
            "schemaVersion": 2, "mediaType": _MANIFEST, "config": configuration,
            "layers": described, "annotations": dict(config["Labels"]),
        }),
        _MANIFEST,
    )  # fmt: skip
    named = manifest | {
        "platform": PLATFORM,
        "annotations": {"org.opencontainers.image.ref.name": tag.rpartition(":")[2]},
    }
    docker = [{
        "Config": _blob(configuration["digest"]), "RepoTags": [tag],
        "Layers": [_blob(row["digest"]) for row in described],
    }]  # fmt: skip
    files = {_blob(f"sha256:{name}"): data for name, data in blobs.items()}
    files["oci-layout"] = _json({"imageLayoutVersion": "1.0.0"})
    files["index.json"] = _json({"schemaVersion": 2, "mediaType": _INDEX, "manifests": [named]})
    files["manifest.json"] = _json(docker)
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as archive:
        for folder in ("blobs", "blobs/sha256"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, built_at_s
            archive.addfile(entry)
        for name, data in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), 0o644, built_at_s
            archive.addfile(entry, io.BytesIO(data))
    return str(manifest["digest"])


def _blob(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def read(path: Path) -> Image:
    """Open an archive and check every digest and size in it.

    Raises:
        LayoutError: it is no such archive, a part is missing, or its bytes are not what was named.
    """
    import gzip
    import zlib

    try:
        with tarfile.open(path) as archive:
            files = {m.name: _content(archive, m) for m in archive if m.isfile()}
        index = json.loads(files["index.json"])
        (manifest_row,) = index["manifests"]
        manifest = json.loads(_checked(path, files, manifest_row))
        config = json.loads(_checked(path, files, manifest["config"]))
        packed = [_checked(path, files, row) for row in manifest["layers"]]
        layers = tuple(gzip.decompress(data) for data in packed)
        diff_ids = [f"sha256:{_sha256(data)}" for data in layers]
        expected = config["rootfs"]["diff_ids"]
        (docker,) = json.loads(files["manifest.json"])
        tag = docker["RepoTags"][0]
    except FileNotFoundError:
        raise LayoutError(f"{path}: expected an image, found no file; asr deploy pack") from None
    except (KeyError, ValueError, TypeError, tarfile.TarError, EOFError, zlib.error) as error:
        raise LayoutError(f"{path}: expected an OCI archive, found it damaged: {error!r}") from None
    if diff_ids != expected:
        raise LayoutError(f"{path}: expected layers {expected}, found {diff_ids}")
    wanted = [_blob(manifest["config"]["digest"]), [_blob(r["digest"]) for r in manifest["layers"]]]
    if wanted != [docker["Config"], docker["Layers"]]:
        raise LayoutError(f"{path}: manifest.json names other blobs than index.json")
    sizes = tuple(len(data) for data in packed)
    return Image(tag, manifest_row["digest"], config, layers, sizes)


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    return file.read() if file else b""


def _checked(path: Path, files: Mapping[str, bytes], row: Mapping[str, Any]) -> bytes:
    data = files[_blob(row["digest"])]
    found = f"sha256:{_sha256(data)}"
    if (found, len(data)) != (row["digest"], row["size"]):
        raise LayoutError(
            f"{path}: expected a blob {row['digest']} of {row['size']} bytes, found {found} of "
            f"{len(data)}"
        )
    return data


def unpack(image: Image, root: Path) -> None:
    """Write the tree of an image, a layer over the other."""
    for layer in image.layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            archive.extractall(root, filter="tar")
