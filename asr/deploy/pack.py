"""A tree -> what people take: container image, tar.gz, squashfs, Debian package."""

from pathlib import Path
from typing import Any

from asr.deploy import deb, oci
from asr.deploy.archive import compress, tar
from asr.deploy.tools import need, run
from asr.deploy.tree import HOME, MANIFEST, MODELS, USER_ID
from asr.deploy.work import Work, read_json

FORMATS = ("oci", "tar.gz", "squashfs", "deb")
SOURCE_URL = "https://pypi.org/project/asr-rtf"


def pack(work: Work, profile: str, form: str) -> Path:
    """Write one format of a profile's tree, with the model if ``build`` was given one.

    Args:
        work: holds the tree; gets ``out/asr-PROFILE-VERSION-arm64.FORM``.
        profile: ``rust`` or ``python``.
        form: one of ``FORMATS``.

    Returns:
        the file.
    """
    folder = work.profile(profile)
    root, model = folder / "root", folder / "model"
    facts = read_json(root / MANIFEST, f"build --profile {profile}")
    work.out.mkdir(parents=True, exist_ok=True)
    suffix = {"oci": "oci.tar", "tar.gz": "rootfs.tar.gz", "squashfs": "squashfs", "deb": "deb"}[
        form
    ]
    path = work.out / f"asr-{profile}-{facts['version']}-arm64.{suffix}"
    trees = [root, model] if model.is_dir() else [root]
    when = facts["built_at_s"]
    if form == "oci":
        layers = [oci.Layer(tar([root], when), f"asr deploy build --profile {profile}")]
        if model.is_dir():
            layers.append(oci.Layer(tar([model], when), "asr deploy build --with-model"))
        oci.write(path, f"asr-{profile}:{facts['version']}", layers, config(facts), when)
    elif form == "tar.gz":
        path.write_bytes(compress(tar(trees, when)))
    elif form == "squashfs":
        squashfs(tar(trees, when), path, when)
    else:
        deb.write(root, model if model.is_dir() else None, folder / "asr-edge.service", path, facts)
    return path


def config(facts: dict[str, Any]) -> dict[str, Any]:
    """How a container of a profile is started, and what its labels say."""
    rust = facts["profile"] == "rust"
    program = [f"/{HOME}/bin/asr-edge"] if rust else ["/usr/bin/python3.11", f"/{HOME}/bin/asr"]
    clip = f"/{HOME}/lib/asr/bench/workload/seven-slt.wav"
    return {
        "User": f"{USER_ID}:{USER_ID}",
        "Entrypoint": program,
        "Cmd": ["--version"],
        "WorkingDir": "/tmp",  # noqa: S108 - of the image, the one folder that may be written
        "Env": [
            "PATH=/opt/asr/bin:/usr/bin",
            "LANG=C.UTF-8",
            *([f"ASR_BUNDLE=/{MODELS}"] if rust else ["PYTHONDONTWRITEBYTECODE=1"]),
        ],
        "Volumes": {f"/{MODELS}": {}},
        "Healthcheck": {
            "Test": ["CMD", *program, *(["--self-test"] if rust else ["transcribe", clip])],
            "Interval": 300_000_000_000,
            "Timeout": 60_000_000_000,
        },
        "Labels": {
            "org.opencontainers.image.title": f"asr-{facts['profile']}",
            "org.opencontainers.image.description": "On-device speech to text for Cortex-A76",
            "org.opencontainers.image.version": facts["version"],
            "org.opencontainers.image.licenses": " AND ".join(
                sorted({_bracketed(row["licence"]) for row in facts["packages"]})
            ),
            "org.opencontainers.image.url": SOURCE_URL,
            "cpu.target": "cortex-a76",
            "cpu.features.required": "asimd",
            "cpu.features.used": "asimd asimddp",
        },
    }


def _bracketed(licence: str) -> str:
    return f"({licence})" if " OR " in licence or " AND " in licence else licence


def squashfs(tree: bytes, path: Path, built_at_s: int) -> None:
    """A read-only file system from a tar file, the same bytes each time.

    Raises:
        MissingToolError: mksquashfs is not installed.
    """
    need("mksquashfs")
    path.unlink(missing_ok=True)
    run(
        ["mksquashfs", "-", path, "-tar", "-quiet", "-no-progress", "-all-root", "-noappend",
         "-comp", "zstd"],
        stdin=tree, environment={"SOURCE_DATE_EPOCH": str(built_at_s)},
    )  # fmt: skip
