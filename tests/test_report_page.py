"""The report in a browser: not blank, nothing too wide on phone and screen, dark at night."""

import html
import json
import re
import shutil
import subprocess

import matplotlib.image
import pytest
import records

from asr.history import keep, store
from asr.history.index import Index
from asr.report import content, forms, past

pytestmark = pytest.mark.system

DARK = "--blink-settings=preferredColorScheme=0"
#: Reads a page in a frame of a phone's width: a browser's own window cannot be that narrow.
FRAME = """<!DOCTYPE html><body style="margin:0"><iframe id="f" srcdoc="{page}"
 style="border:0;width:{width}px;height:2000px"></iframe><script>
f.onload = () => {{
  const page = f.contentDocument, root = page.documentElement;
  const wide = [...page.querySelectorAll("body *")].filter(e => !e.closest(".scroll *, svg *") &&
    e.getBoundingClientRect().right > root.clientWidth + 0.5).map(e => e.tagName);
  const words = [...page.querySelectorAll("svg text")].map(e => e.getBoundingClientRect().height);
  document.title = JSON.stringify({{scroll: root.scrollWidth, client: root.clientWidth, wide,
    text: page.body.innerText.length, smallest: Math.min(...words),
    paper: getComputedStyle(page.body).backgroundColor, ink: getComputedStyle(page.body).color}});
}};</script>"""


def browser(*arguments):
    """Run the headless browser; CI installs it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    assert program, "chromium: not found; run: apt-get install chromium"
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--no-first-run", "--virtual-time-budget=3000", *arguments]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report with everything in it."""
    kept = store.Folder(tmp_path_factory.mktemp("page") / "history")
    runs = [records.bench(n, n=n, sd=0.01, rounds=8, factors={"fbank": 3.0} if n > 5 else None)
            for n in range(10)]  # fmt: skip
    keep.add_runs(kept, runs)
    made = content.report(runs[-1], past.sections(Index(kept), runs[-1]), records.pairs(),
                          ["0123456 A patch with a long subject, as they come"] * 3)  # fmt: skip
    return forms.html(made)


def look(page, tmp_path, width, *arguments):
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(page=html.escape(page, quote=True), width=width))
    told = browser("--dump-dom", "--window-size=1400,2000", *arguments, frame.as_uri())
    found = re.search(r"<title>(.*?)</title>", told)
    assert found, told[-300:]
    return json.loads(html.unescape(found[1]))


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(page, tmp_path, width):
    """Tables scroll by themselves; nothing else reaches beyond; words of charts can be read."""
    seen = look(page, tmp_path, width)
    assert seen["client"] == width
    assert (seen["scroll"], seen["wide"]) == (width, [])
    assert seen["text"] > 4000
    assert seen["smallest"] > 9
    assert brightness(seen["paper"]) > 250 > 80 > brightness(seen["ink"])


def test_the_check_of_the_width_can_fail(page, tmp_path):
    """A table outside of its scrolling box is seen."""
    seen = look(page.replace(".scroll { overflow-x: auto; }", ""), tmp_path, 360)
    assert seen["scroll"] > 360


def test_it_is_dark_at_night(page, tmp_path):
    """Dark paper, bright ink."""
    seen = look(page, tmp_path, 360, DARK)
    assert brightness(seen["paper"]) < 40 < 180 < brightness(seen["ink"])


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_it_is_not_blank(page, tmp_path, mode):
    """A picture of it has ink in most of its rows, and the colours of the charts."""
    file, picture = tmp_path / "report.html", tmp_path / "picture.png"
    file.write_text(page)
    browser(f"--screenshot={picture}", "--window-size=1280,2400", *([DARK] * (mode == "dark")),
            file.as_uri())  # fmt: skip
    pixels = matplotlib.image.imread(picture)[..., :3]
    inked = abs(pixels - pixels[2, 2]).max(axis=2) > 0.2
    assert 0.01 < inked.mean() < 0.4
    assert inked.any(axis=1).mean() > 0.4
    coloured = (pixels.max(axis=2) - pixels.min(axis=2)) > 0.3
    assert coloured.sum() > 2000
