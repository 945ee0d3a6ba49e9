"""``asr deploy``: what goes onto a board."""

from __future__ import annotations

import argparse

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command; its own commands only when it is the one asked for."""
    parser = commands.add_parser(
        "deploy",
        help="what goes onto a board: bundles, images, packages",
        description="Make what a board needs: docs/bundle.md, docs/edge.md, deploy/README.md.",
        formatter_class=Help,
    )
    parser.fill = _add_commands


def _add_commands(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="deploy_command", metavar="COMMAND", required=True)
    from asr.cli import deploy_predict

    for add in (
        _add_bundle, _add_fetch, _add_build, _add_pack, _add_wheel, _add_verify,
        deploy_predict.add_parser,
    ):  # fmt: skip
        add(commands)


def _add_bundle(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "bundle",
        help="a model as the one folder that asr-edge reads",
        description="Write a model as a bundle: network, recipe, tokens, thresholds, checksums.",
        epilog="The format: docs/bundle.md. asr-edge --bundle DIR --self-test tries it.",
        formatter_class=Help,
    )
    parser.add_argument("model", metavar="MODEL", help="model folder, or a name")
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="new or empty folder")
    parser.add_argument("--name", help="what the bundle calls it (default: the folder's name)")
    parser.add_argument(
        "--phrases", metavar="FILE", help="hear nothing but these (docs/phrases.md)"
    )
    parser.set_defaults(run=_bundle)


def _bundle(options: argparse.Namespace) -> int:
    from pathlib import Path

    from asr.deploy import bundle
    from asr.hub import find_model
    from asr.layouts import open_layout

    layout = open_layout(find_model(options.model))
    listed = Path(options.phrases) if options.phrases else None
    name = options.name or layout.folder.resolve().name
    folder = bundle.write(layout, name, Path(options.output), phrase_file=listed)
    total = sum(path.stat().st_size for path in folder.iterdir())
    print(f"wrote {folder}: {name}, {total / 1e6:.1f} MB")
    return 0


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--work", default="build/deploy", metavar="DIR", help="of all stages (default: %(default)s)"
    )


def _profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile", choices=("rust", "python"), default="rust", help="(default: %(default)s)"
    )


def _add_fetch(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "fetch",
        help="bring what images are cut from: Debian's arm64 files, aarch64 wheels, a kernel",
        description="Bring what images are cut from. Nothing outside --work is written.",
        formatter_class=Help,
    )
    _common(parser)
    parser.add_argument(
        "--base-tar", metavar="FILE", help="a Debian arm64 root file system, instead of mmdebstrap"
    )
    parser.set_defaults(run=_fetch)


def _fetch(options: argparse.Namespace) -> int:
    from pathlib import Path

    from asr.deploy import fetch
    from asr.deploy.work import Work

    work = Work(Path(options.work))
    fetch.base(work, Path(options.base_tar) if options.base_tar else None)
    print(f"base: {len(fetch.packages_of(work))} Debian packages")
    fetch.wheels(work)
    print(f"wheels: {', '.join(sorted(p.name for p in work.wheels.iterdir()))}")
    fetch.boot(work)
    print(f"boot: {', '.join(sorted(p.name for p in work.boot.iterdir()))}")
    return 0


def _add_build(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "build",
        help="cross-build this checkout and assemble a profile's root file system",
        description="Cross-build this checkout and assemble a profile's root file system.",
        formatter_class=Help,
    )
    _common(parser)
    _profile(parser)
    parser.add_argument("--source", default=".", metavar="DIR", help="a checkout (default: here)")
    parser.add_argument("--with-model", metavar="MODEL", help="folder or name: a second layer")
    parser.add_argument(
        "--built", metavar="PATH", help="folder with asr-edge, or the wheel, instead of building"
    )
    parser.set_defaults(run=_build)


def _build(options: argparse.Namespace) -> int:
    from pathlib import Path

    from asr.deploy.build import build
    from asr.deploy.work import Work

    built = Path(options.built) if options.built else None
    made = build(
        Work(Path(options.work)), options.profile, Path(options.source),
        model=options.with_model, built=built,
    )  # fmt: skip
    print(
        f"{options.profile}: {made['packages']} packages, {made['files']} files, "
        f"{made['bytes'] / 1e6:.1f} MB"
    )
    return 0


def _add_pack(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "pack",
        help="write the tree as container image, tar.gz, squashfs or Debian package",
        description="Write what build assembled; the same tree gives the same bytes.",
        formatter_class=Help,
    )
    _common(parser)
    _profile(parser)
    parser.add_argument(
        "--format", action="append", choices=("oci", "tar.gz", "squashfs", "deb"), metavar="FORMAT",
        help="oci (docker load reads it too), tar.gz, squashfs, deb; repeatable (default: oci)",
    )  # fmt: skip
    parser.set_defaults(run=_pack)


def _pack(options: argparse.Namespace) -> int:
    from pathlib import Path

    from asr.deploy.pack import pack
    from asr.deploy.work import Work
    from asr.hub.store import digest

    for form in options.format or ["oci"]:
        path = pack(Work(Path(options.work)), options.profile, form)
        print(f"{path}  {path.stat().st_size / 1e6:.2f} MB  sha256:{digest(path)}")
    return 0


def _add_wheel(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "wheel",
        help="this checkout's manylinux wheels for x86-64 and aarch64",
        description="Build this checkout's manylinux wheels for x86-64 and aarch64.",
        formatter_class=Help,
    )
    _common(parser)
    parser.add_argument("--source", default=".", metavar="DIR", help="a checkout (default: here)")
    parser.set_defaults(run=_wheel)


def _wheel(options: argparse.Namespace) -> int:
    import shutil
    from pathlib import Path

    from asr.deploy import cross
    from asr.deploy.work import Work

    work = Work(Path(options.work))
    work.out.mkdir(parents=True, exist_ok=True)
    for machine in ("x86_64", "aarch64"):
        path = cross.wheel(work, cross.checkout(Path(options.source)), machine)
        shutil.copyfile(path, work.out / path.name)
        print(f"{work.out / path.name}  {path.stat().st_size / 1e6:.2f} MB")
    return 0


def _add_verify(commands: Any) -> None:  # noqa: ANN401
    parser = commands.add_parser(
        "verify",
        help="open a container image and run it on emulated boards",
        description="Check a container image and run it: needs root and qemu.",
        epilog=(
            "A tool that is not installed is exit code 7 with the line that installs it; a check\n"
            "that fails is exit code 4, another text 12."
        ),
        formatter_class=Help,
    )
    parser.add_argument("image", metavar="IMAGE", help="what asr deploy pack --format oci wrote")
    _common(parser)
    parser.add_argument("--clip", metavar="FILE", help="what it must transcribe (default: ours)")
    parser.add_argument("--text", metavar="TEXT", help="what --clip must give")
    parser.add_argument(
        "--no-boot", action="store_true", help="run the entry point alone, without a whole board"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    parser.set_defaults(run=_verify)


def _verify(options: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from asr.deploy import verify
    from asr.deploy.work import Work
    from asr.errors import UsageError

    if (options.clip is None) != (options.text is None):
        raise UsageError("--clip and --text belong together")
    path = Path(options.image)
    clip = Path(options.clip) if options.clip else verify.CLIP
    checks = []
    if not options.json:
        print(path)
    for check in verify.verify(
        path, Work(Path(options.work)), clip=clip, text=options.text or verify.TEXT,
        whole_board=not options.no_boot,
    ):  # fmt: skip
        checks.append(check)
        if not options.json:
            print(f"  {'ok' if check.ok else 'NO':<3} {check.name:<24} {check.found}", flush=True)
    if options.json:
        print(json.dumps(verify.report(path, checks), indent=1))
    failed = [check for check in checks if not check.ok]
    if not failed:
        return 0
    if not options.json:
        print(f"{path}: {len(failed)} of {len(checks)} checks failed")
    return 12 if all(check.name.startswith(verify.TEXT_CHECKS) for check in failed) else 4
