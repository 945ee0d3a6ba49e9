"""The house rules of docs/architecture.md, enforced."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "asr"

# Lowest first. A module may import what stands on a lower floor, and its own package.
FLOORS = [
    {"asr._rust_fe"},
    {"asr.errors"},
    {"asr.records"},
    {"asr.audio", "asr.frontend", "asr.ctc", "asr.text", "asr.formats", "asr.engines",
     "asr.observe", "asr.rejection", "asr.phrases", "asr.languages", "asr.punctuation",
     "asr.page"},
    {"asr.layouts", "asr.hub", "asr.vad"},
    {"asr.optimize"},
    {"asr.networks", "asr.wanted"},
    {"asr.recognizer"},
    {"asr.evaluate", "asr.profile"},
    {"asr.bench", "asr.deploy", "asr.doctor"},
    {"asr.gate", "asr.history"},
    {"asr.report"},
    {"asr.cli", "asr.testing"},
]  # fmt: skip
RUST_FLOORS = [
    {"error"},
    {"config", "simd", "counter"},
    {"cpu", "frame", "mel", "lfr", "cmvn", "ctc", "cut", "energy", "ort"},
    {"fbank", "phrases"},
    {"py"},
]
# Packages whose import costs start-up time: only inside the function that needs them.
HEAVY = {"onnx", "soxr", "rich", "matplotlib", "librosa", "scipy", "yaml", "sentencepiece",
         "onnxruntime", "soundfile", "rapidfuzz", "av"}  # fmt: skip


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(p for p in parts if p != "__init__")


def floor_of(name: str) -> tuple[int, str] | None:
    """Floor number and the room on that floor, longest name first."""
    for number, rooms in enumerate(FLOORS):
        for room in rooms:
            if name == room or name.startswith(room + "."):
                return number, room
    return None


def imports_of(tree: ast.AST) -> set[str]:
    """Modules of this package that a file imports anywhere, functions included."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            if node.module == "asr":
                found |= {f"asr.{alias.name}" for alias in node.names}
    return {name for name in found if name == "asr" or name.startswith("asr.")} - {"asr"}


MODULES = sorted(PACKAGE.rglob("*.py"))


def test_every_module_has_a_floor():
    """A new module must be given its place in the house."""
    homeless = [module_name(p) for p in MODULES if floor_of(module_name(p)) is None]
    assert homeless == ["asr"]


@pytest.mark.parametrize("path", [p for p in MODULES if p.parent != PACKAGE or
                                  p.stem != "__init__"], ids=module_name)  # fmt: skip
def test_imports_only_go_down(path):
    """No module imports from its own floor (outside its room) or from a higher one."""
    number, room = floor_of(module_name(path))
    for name in imports_of(ast.parse(path.read_text())):
        other_number, other_room = floor_of(name)
        assert other_number < number or other_room == room, f"{module_name(path)} imports {name}"


def test_the_import_rule_can_fail():
    """The walk sees an import hidden in a function."""
    tree = ast.parse("def f():\n    from asr.cli import main\n")
    assert imports_of(tree) == {"asr.cli"}


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_heavy_imports_are_lazy(path):
    """Importing a module of ours loads NumPy at most; the rest waits for the call that needs it."""
    for node in ast.parse(path.read_text()).body:
        names = (
            [a.name for a in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
        assert not HEAVY & {n.partition(".")[0] for n in names}, names


def test_importing_the_package_loads_nothing():
    """`import asr` defines names and imports no dependency."""
    code = "import sys, asr; print([m for m in ('numpy', 'onnxruntime') if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_only_the_command_line_prints():
    """Print calls and exits live in asr/cli."""
    for path in MODULES:
        if path.is_relative_to(PACKAGE / "cli"):
            continue
        calls = {
            node.func.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        assert not calls & {"print", "exit", "input"}, path


RUST = sorted((ROOT / "rust_fe/src").rglob("*.rs"))


def rust_room(path: Path) -> str:
    return path.relative_to(ROOT / "rust_fe/src").with_suffix("").parts[0]


@pytest.mark.parametrize("path", [p for p in RUST if p.stem != "lib"],
                         ids=lambda p: str(p.relative_to(ROOT)))  # fmt: skip
def test_rust_imports_only_go_down(path):
    """The same rule for the crate: error; config, simd; frame ... ctc; fbank; py."""
    floors = {room: number for number, rooms in enumerate(RUST_FLOORS) for room in rooms}
    room = rust_room(path)
    for other in re.findall(r"\bcrate::(\w+)", path.read_text()):
        assert other == room or floors[other] < floors[room], f"{path.name} uses crate::{other}"


def test_only_simd_and_ort_hold_unsafe():
    """The fences: instructions in rust_fe/src/simd, the runtime's C interface in ort."""
    outside = [
        str(p.relative_to(ROOT))
        for p in RUST
        if rust_room(p) not in ("simd", "ort") and re.search(r"\bunsafe\b(?!_)", _code(p))
    ]
    assert outside == []


def test_every_unsafe_block_has_a_reason():
    """A SAFETY line stands near each unsafe block."""
    for path in RUST:
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if re.search(r"\bunsafe\s*\{", line.split("//")[0]):
                above = lines[max(0, number - 5) : number + 1]
                assert any("SAFETY" in text for text in above), f"{path.name}:{number + 1}"


def test_only_py_knows_python():
    """PyO3 and rust-numpy are named in rust_fe/src/py alone."""
    outside = [
        p.name for p in RUST if rust_room(p) != "py" and re.search(r"\b(pyo3|numpy)::", _code(p))
    ]
    assert outside == []


def _code(path: Path) -> str:
    """A Rust file without its comments."""
    return re.sub(r"//.*", "", path.read_text())


def test_no_paths_of_a_machine():
    """No tracked text file names a home directory or a build machine's folder."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    pattern = re.compile(r"(?:^|[^\w.])/(?:home|root|work)/\w")
    for name in filter(None, files):
        path = ROOT / name
        if path.suffix in {".py", ".rs", ".md", ".toml", ".sh", ".yml", ""} and path.is_file():
            text = path.read_text(errors="ignore")
            assert not pattern.search(text) or path == Path(__file__), name
