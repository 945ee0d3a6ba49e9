"""Open an image and run it: on an emulated A76, on an older core, as the root of a board."""

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from asr.deploy import boot, contents, emulate, inspect, oci
from asr.deploy.inspect import Check
from asr.deploy.tools import need, run
from asr.deploy.tree import MANIFEST
from asr.deploy.work import Work, read_json

CLIP = Path(__file__).parent.parent / "bench/workload/transcribe_me.wav"
TEXT = "one two three four five six seven eight nine"
#: Imports every module of ours: a pruned file that one of them needs is found here.
_IMPORTS = """
import importlib, pkgutil, sys
sys.path.insert(0, "/opt/asr/lib")
import asr
found = [m.name for m in pkgutil.walk_packages(asr.__path__, "asr.")]
for name in found:
    importlib.import_module(name)
print(len(found))
"""
TEXT_CHECKS = "text "  # names of the checks whose failure is another text


def verify(
    path: Path, work: Work, *, clip: Path = CLIP, text: str = TEXT, whole_board: bool = True
) -> Iterator[Check]:
    """Check an image; each row as soon as it is known.

    Args:
        path: the OCI archive.
        work: where ``fetch`` left a kernel.
        clip: what it must transcribe.
        text: what that must give, exactly.
        whole_board: boot it under ``qemu-system-aarch64`` too.

    Raises:
        MissingToolError: a program is not installed; looked for before anything is done.
        LayoutError: the archive is damaged.
        SystemAccessError: we are not root.
    """
    need("qemu-aarch64-static", "unshare", "skopeo")
    if whole_board:
        need("qemu-system-aarch64", "mksquashfs", "cpio")
    image = oci.read(path)
    yield Check("digests", True, f"{image.manifest_digest}, {len(image.layers)} layers")
    with tempfile.TemporaryDirectory(prefix="asr-verify-") as name:
        scratch = Path(name)
        yield from _other_readers(path, image, scratch)
        root = scratch / "root"
        oci.unpack(image, root)
        facts = read_json(root / MANIFEST, "build")
        yield from inspect.check(image, root, facts)
        yield from _emulated(image, root, scratch, facts["profile"], clip, text)
        if whole_board:
            yield from _booted(image, work, scratch, facts["profile"], clip, text)


def _other_readers(path: Path, image: oci.Image, scratch: Path) -> Iterator[Check]:
    """The archive as another program reads it, both ways."""
    tag = image.tag.rpartition(":")[2]
    found = run(["skopeo", "inspect", "--raw", f"oci-archive:{path}:{tag}"])
    same = f"sha256:{hashlib.sha256(found.encode()).hexdigest()}" == image.manifest_digest
    yield Check("skopeo, oci-archive", same, "the same manifest" if same else "another manifest")
    copied = scratch / "docker"
    run(["skopeo", "--insecure-policy", "--override-arch", "arm64", "--override-variant", "v8",
         "copy", "--quiet", f"docker-archive:{path}", f"dir:{copied}"])  # fmt: skip
    blobs = len(list(copied.iterdir()))
    yield Check("skopeo, docker-archive", blobs >= 2 + len(image.layers), f"{blobs} files copied")


def command_of(image: oci.Image, profile: str, clip: str) -> list[str]:
    """The entry point asked to transcribe a clip."""
    words: list[str] = list(image.config["config"]["Entrypoint"])
    return [*words, clip] if profile == "rust" else [*words, "transcribe", "--threads", "1", clip]


def _emulated(
    image: oci.Image, root: Path, scratch: Path, profile: str, clip: Path, text: str
) -> Iterator[Check]:
    config = image.config["config"]
    environment = dict(pair.split("=", 1) for pair in config["Env"])
    inside = f"/tmp/{clip.name}"  # noqa: S108 - of the image
    for cpu in emulate.CORES:

        def ended(command: Sequence[str], cpu: str = cpu) -> emulate.Ended:
            return emulate.run(
                root, command, cpu=cpu, user=config["User"], environment=environment,
                files=[clip], scratch=scratch,
            )  # fmt: skip

        health = ended(config["Healthcheck"]["Test"][1:])
        yield Check(f"health check, {cpu}", health.code == 0, _how(health.code, health.stderr))
        heard = ended(command_of(image, profile, inside))
        yield _text_check(cpu, heard.code, heard.stdout, heard.stderr, text)
    if profile == "python":
        imported = ended([config["Entrypoint"][0], "-c", _IMPORTS])
        told = f"{imported.stdout.strip()} modules" if imported.code == 0 else imported.stderr
        yield Check("imports", imported.code == 0, told.strip()[-300:])


def _booted(
    image: oci.Image, work: Work, scratch: Path, profile: str, clip: Path, text: str
) -> Iterator[Check]:
    config = image.config["config"]
    memory_mb = contents.profile(profile).memory_mb
    found = boot.boot(
        _over_one_another(image.layers), work.boot,
        command_of(image, profile, f"/tmp/{clip.name}"),  # noqa: S108 - of the image
        user=config["User"], environment=dict(pair.split("=", 1) for pair in config["Env"]),
        files=[clip], memory_mb=memory_mb, scratch=scratch,
    )  # fmt: skip
    enough = 0 < found.memory_kib <= memory_mb * 1024
    told = f"CPU part {found.part}, {found.memory_kib / 1024:.0f} MiB of {memory_mb}, powered off"
    yield Check("boot", enough and found.part == emulate.CORES["cortex-a76"][0], told)
    yield _text_check("booted board", found.code, found.text, found.stderr, text)


def _over_one_another(layers: Sequence[bytes]) -> bytes:
    """Layers as one tar file: a later entry replaces an earlier one of the same name."""
    merged = io.BytesIO()
    entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}
    for layer in layers:
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            for entry in archive:
                file = archive.extractfile(entry) if entry.isfile() else None
                entries[entry.name] = (entry, file.read() if file else b"")
    with tarfile.open(fileobj=merged, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for _, (entry, data) in sorted(entries.items()):
            archive.addfile(entry, io.BytesIO(data))
    return merged.getvalue()


def _text_check(where: str, code: int, stdout: str, stderr: str, text: str) -> Check:
    if code:
        return Check(f"run, {where}", False, _how(code, stderr))
    heard = stdout.strip()
    told = f"{heard!r}" if heard == text else f"expected {text!r}, found {heard!r}"
    return Check(f"{TEXT_CHECKS}{where}", heard == text, told)


def _how(code: int, stderr: str) -> str:
    if code in (132, -4):
        return "killed by SIGILL: an instruction that this core does not have"
    return "exit code 0" if code == 0 else f"exit code {code}: {stderr.strip()[-300:]}"


def report(path: Path, checks: Sequence[Check]) -> dict[str, Any]:
    """For JSON."""
    return {
        "schema": "asr-image-check/1",
        "image": path.name,
        "ok": all(check.ok for check in checks),
        "checks": [check.row() for check in checks],
    }
