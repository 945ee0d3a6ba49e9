"""deploy/: its page shows commands that exist, its recipes name what is packed."""

import hashlib
import re
import shlex
from pathlib import Path

import pytest
import tomllib

from asr.cli import build_parser
from asr.deploy import fetch
from asr.deploy.pack import FORMATS
from asr.deploy.tree import HOME, MODELS

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
PAGE = (DEPLOY / "README.md").read_text()
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
BLOCKS = re.findall(r"^```(sh|text)\n(.*?)^```", PAGE, re.M | re.S)
LINES = [line for _, block in BLOCKS for line in block.splitlines()]


def lines(program):
    """Each shown command of a program, as words, pipes taken apart."""
    parts = [part for line in LINES for part in line.split("|")]
    return [shlex.split(p) for p in parts if p.split()[0] == program]


@pytest.mark.parametrize("words", lines("asr"), ids=" ".join)
def test_the_commands_are_commands(words):
    """Options and choices as they are; what they do is made sure by make verify-image."""
    assert build_parser().parse_args(words[1:]).command == words[1]


def test_the_page_shows_every_stage():
    """fetch, build, pack, wheel and verify; every format."""
    shown = {words[2] for words in lines("asr") if words[1] == "deploy"}
    assert shown == {"fetch", "build", "pack", "wheel", "verify"}
    (pack,) = [words for words in lines("asr") if words[2:3] == ["pack"]]
    assert {w for w in pack if w in FORMATS} == set(FORMATS)


def test_make_targets_exist():
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.M))
    assert {words[1] for words in lines("make")} == {"image", "verify-image"}
    assert targets >= {"image", "verify-image"}


def test_the_options_of_asr_edge_exist():
    """Each option shown here or in the unit is one that the program reads."""
    unit = (DEPLOY / "systemd/asr-edge.service").read_text()
    shown = set(re.findall(r"asr-edge\b[^\n|]*", PAGE + unit))
    options = {option for line in shown for option in re.findall(r"(?<=\s)--[a-z-]+", line)}
    known = (DEPLOY / "edge/src/args.rs").read_text()
    assert {option for option in options if f"  {option} " not in known
            and f"] {option} " not in known} - {"--rm"} == set()  # fmt: skip
    assert {"--bundle", "--serve", "--socket", "--queue"} <= options


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert len(links) > 4
    assert [link for link in links if not (DEPLOY / link).exists()] == []


def test_the_recipes_take_what_is_packed():
    """Version, name of the archive, folders, and the licence file that Yocto checks."""
    recipe = DEPLOY / f"yocto/recipes-multimedia/asr-edge/asr-edge_{VERSION}.bb"
    yocto = recipe.read_text()
    buildroot = (DEPLOY / "buildroot/package/asr-edge/asr-edge.mk").read_text()
    assert f"ASR_EDGE_VERSION = {VERSION}\n" in buildroot
    assert "asr-rust-${PV}-arm64.rootfs.tar.gz" in yocto
    licence = hashlib.md5((ROOT / "LICENSE").read_bytes()).hexdigest()
    assert f"md5={licence}" in yocto
    for text in (yocto, buildroot):
        assert f"{HOME}/share/licences/project-asr-edge/LICENSE" in text
        assert f"/{HOME}" in text
        assert f"/{MODELS}" in text
    assert f"asr-rust-{VERSION}-arm64" in PAGE


def test_buildroot_finds_the_package():
    """The names that its three files must agree on."""
    folder = DEPLOY / "buildroot"
    name = re.search(r"name: (\w+)", (folder / "external.desc").read_text())[1]
    for path in ("Config.in", "external.mk"):
        assert f"BR2_EXTERNAL_{name}_PATH" in (folder / path).read_text()
    options = set(re.findall(r"BR2_PACKAGE_ASR_EDGE\w*", "".join(
        p.read_text() for p in (folder / "package/asr-edge").iterdir())))  # fmt: skip
    declared = re.findall(
        r"^config (\w+)", (folder / "package/asr-edge/Config.in").read_text(), re.M
    )
    assert options == set(declared)


def test_the_dockerfile_starts_what_the_image_starts():
    """Entry point, health check, user and folders of the Dockerfile and of our own image."""
    from asr.deploy.pack import config

    facts = {"profile": "rust", "version": VERSION, "packages": []}
    ours, text = config(facts), (DEPLOY / "Dockerfile").read_text()
    as_json = {key: str(ours[key]).replace("'", '"') for key in ("Entrypoint", "Cmd")}
    assert f"ENTRYPOINT {as_json['Entrypoint']}\n" in text
    assert f"CMD {as_json['Cmd']}\n" in text
    assert f"USER {ours['User']}\n" in text
    assert f"HEALTHCHECK --interval=5m --timeout=60s CMD {ours['Healthcheck']['Test'][1:]!s}\n" \
        .replace("'", '"') in text  # fmt: skip
    assert f"ASR_BUNDLE=/{MODELS}" in text


def test_the_locked_wheels_are_those_of_the_tests():
    """What runs on the board is what this checkout is tested with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    tested = dict(
        re.findall(
            r"^(\w+)==(\S+)", "\n".join(project["dependency-groups"]["dev"]).replace("-", "_"), re.M
        )
    )
    tested = {name.lower(): version for name, version in tested.items()}
    locked = dict(
        re.findall(r"^(\w+)==(\S+) --hash=sha256:[0-9a-f]{64}$", fetch.LOCK.read_text(), re.M)
    )
    wanted = {
        re.match(r"[\w-]+", d)[0].lower().replace("-", "_")
        for d in project["project"]["dependencies"]
        if ";" not in d
    }
    assert wanted <= locked.keys()
    assert {n: v for n, v in locked.items() if n in tested} == {
        n: v for n, v in tested.items() if n in locked
    }
