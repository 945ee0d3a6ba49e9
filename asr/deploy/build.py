"""Cross-build this project and put an image's tree together."""

import shutil
from pathlib import Path
from typing import Any

from asr.deploy import contents, cross, parts, tree
from asr.deploy.work import Work, built_at_s, fresh, read_json

UNIT = "deploy/systemd/asr-edge.service"


def build(
    work: Work, name: str, source: Path, *, model: str | None = None, built: Path | None = None
) -> dict[str, Any]:
    """Build a profile.

    Args:
        work: holds what ``fetch`` brought; gets ``NAME/``.
        name: of the profile.
        source: a checkout.
        model: folder or name that becomes the second layer.
        built: programs or wheel built before, instead of building them.

    Returns:
        ``files`` and ``bytes`` of the tree, and ``packages``.
    """
    profile = contents.profile(name)
    source = cross.checkout(source)
    fresh(work.profile(name))
    if name == "rust":
        found = built or cross.edge(work, source)
        headers = [source / "deploy/edge/include/asr_edge.h"]
        ours = parts.of_crates(source, "asr-edge")
    else:
        found = built or cross.wheel(work, source, "aarch64")
        headers = []
        ours = parts.of_crates(source, "rust_fe", "rust_fe/python")
    root = tree.assemble(work, profile, found, ours, built_at_s(source), headers)
    if model is not None:
        tree.add_model(work, profile, model)
    shutil.copyfile(source / UNIT, work.profile(name) / Path(UNIT).name)
    packages = read_json(root / tree.MANIFEST, "build")["packages"]
    return tree.summary(root) | {"packages": len(packages)}
