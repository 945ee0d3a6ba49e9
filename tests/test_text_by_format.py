"""benchmarks/text_by_format.py: the table of formats, in part, and that it can fail."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "text_by_format.py"


@pytest.fixture(scope="module")
def table():
    """The script as a module, never left on the path."""
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        import text_by_format
    finally:
        sys.path.remove(str(SCRIPT.parent))
    return text_by_format


def test_formats_by_rates_by_channels_change_no_text_they_should_not():
    """Lossless and lossy, three rates, four layouts, on two clips: the promise is kept."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--clips", "2", "--rates", "8000,16000,44100",
         "--formats", "wav-s16,wav-mulaw,wavex-s24,flac-s16,caf-alac,ogg-vorbis,ogg-opus,mp3"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + 8
    assert "| wav-s16 | 0/8 +0.0 | 0/8 +0.0 | 0/8 +0.0 | exact |" in rows
    assert done.stdout.endswith("\nkept\n")


def test_a_changed_text_is_told_and_is_exit_12(table, monkeypatch, capsys):
    """A lossless format that loses something breaks the promise: what, where, from what to what."""
    original = table.written

    def wrong(samples, rate, form):
        return original(samples * (0 if rate == 16000 else 1), rate, form)

    monkeypatch.setattr(table, "written", wrong)
    arguments = ["x", "--clips", "1", "--formats", "wav-s16", "--rates", "8000,16000"]
    monkeypatch.setattr(sys, "argv", arguments)
    assert table.main() == 12
    out = capsys.readouterr().out
    assert "wav-s16 16000 mono alexa-rms: 'alexa' became ''" in out
    assert "broken: wav-s16" in out


def test_the_promise(table):
    """Exact formats may change no text; others may cost 2 points of CER, from 16 kHz."""
    cell = table.Cell()
    cell.add("mono", "a", "x" * 100, "x" * 100, "x" * 97)
    assert cell.cer == 0.03
    assert table.verdict("wav-s16", {16000: cell}) == "1 texts differ"
    assert table.verdict("mp3", {16000: cell}) == "CER +3.00"
    assert table.verdict("mp3", {8000: cell}) == table.verdict("wav-s16", {8000: cell}) == ""
    better = table.Cell()
    better.add("mono", "a", "x" * 100, "x" * 97, "x" * 100)
    assert table.verdict("mp3", {16000: better}) == ""
    assert (better.cer, len(better.changed)) == (-0.03, 1)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_distance(table, a, b, expected):
    """Insertions, deletions, replacements."""
    assert table.distance(a, b) == table.distance(b, a) == expected
