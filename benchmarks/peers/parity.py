"""Parity: do we say what the peers' own programs say, token by token, on the same weights?

    make parity                       the committed tiny networks and the built-in model
    .venv/bin/python benchmarks/peers/parity.py --networks DIR      full size: models/reference/

Fp32 and int8, on 200 clips of 0.05 to 30 s: our ids with those from funasr-onnx's own session and
features (dither 0); our pieces of the speech rows with sherpa-onnx's tokens; our two layouts with
each other. Three documented differences of the peers are measured and then taken out:

* features: kaldi-native-fbank computes in float32, ours in float64. The row "its features" gives
  ours the peer's features, so that only session, decoder and vocabulary are compared.
* sherpa-onnx skips the first four tokens, we skip four rows. Where a prompt row holds no tag the
  two are not the same; the row "4 tokens skipped" does as sherpa-onnx does.
* sherpa-onnx brings ONNX Runtime 1.28, whose int8 kernels are not bit by bit those of today's; "its
  runtime" is ours on that version.

Every difference is listed with clip, row, and the lead of the best score there. Exit code 12 when,
these three taken out, more than 0.5 % of the tokens differ.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
from clips import write_clips  # noqa: E402

from asr.bench.report import table  # noqa: E402

PEERS = {name: ROOT / folder / "bin/python" for name, folder in
         {"funasr-onnx": ".venv-peers", "sherpa-onnx": ".venv-sherpa-onnx"}.items()}  # fmt: skip
ORT128 = ROOT / ".venv-ort128/bin/python"
MAX_SHARE = 0.005
PROMPT_ROWS = 4


@dataclass
class Found:
    """What one comparison found; `judged` says whether it counts for the exit code."""

    name: str
    judged: bool
    tokens: int = 0
    differing: int = 0
    clips_differing: int = 0
    features_within: float = 0.0
    lines: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Differing tokens as a share of the peer's tokens."""
        return self.differing / max(self.tokens, 1)


@dataclass(frozen=True)
class Bench:
    """Where everything lies."""

    clips: Path
    work: Path

    def answers(
        self,
        program: str,
        model: Path,
        *,
        int8: bool,
        features: Path | None = None,
        python: Path | None = None,
    ) -> Path:
        """Run a program on all clips in its own environment; return its folder of answers."""
        kind = "int8" if int8 else "fp32"
        given = "-given" if features else ""
        out = self.work / f"{program}-{model.parent.name}-{model.name}-{kind}{given}"
        if python is None:
            python = Path(sys.executable) if program == "asr-rtf" else PEERS[program]
        if program == "asr-rtf":
            model = self._alone(model, int8=int8)
        script = str(Path(__file__).with_name("answer.py"))
        command = [str(python), script, program, str(model), str(self.clips), str(out)]
        command += ["--int8"] * int8 + (["--features", str(features)] if features else [])
        environment = os.environ | {"PYTHONPATH": str(ROOT), "ORT_DISABLE_TELEMETRY": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{program} failed on {model}:\n{done.stderr[-2000:]}")
        return out

    def _alone(self, model: Path, *, int8: bool) -> Path:
        """A folder with one of a model's networks, so that ours loads that one."""
        folder = self.work / f"alone-{'int8' if int8 else 'fp32'}" / model.name
        if folder.exists():
            return folder
        folder.mkdir(parents=True)
        fp32, quantised = ("model.onnx", "model.onnx.data"), ("model_quant.onnx", "model.int8.onnx")
        for file in model.iterdir():
            if file.is_file() and file.name not in (fp32 if int8 else quantised):
                try:
                    os.link(file, folder / file.name)  # a full-size network is a gigabyte
                except OSError:
                    shutil.copyfile(file, folder / file.name)
        return folder


def tokens_of(argmax: np.ndarray) -> list[int]:
    """Rows where a token begins: collapse runs, drop blanks."""
    return [int(row) for row in np.flatnonzero(np.diff(argmax, prepend=-1)) if argmax[row] != 0]


def distance(a: list[object], b: list[object]) -> int:
    """Levenshtein distance."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return int(row[-1])


def compare_rows(name: str, ours: Path, theirs: Path, *, judged: bool) -> Found:
    """Compare two folders of answers that show the best id of every row."""
    found = Found(name, judged)
    for path in sorted(ours.glob("*.npz")):
        a, b = np.load(path), np.load(theirs / path.name)
        gap = np.abs(a["features"] - b["features"]).max(initial=0)
        found.features_within = max(found.features_within, float(gap))
        left, right = a["argmax"], b["argmax"]
        ids = [right[r] for r in tokens_of(right)]
        found.tokens += len(ids)
        wrong = distance([left[r] for r in tokens_of(left)], ids)
        found.differing += wrong
        found.clips_differing += wrong > 0
        if left.shape != right.shape:
            found.lines.append(f"{path.stem}: {len(left)} rows, theirs {len(right)}")
            continue
        for row in np.flatnonzero(left != right):
            found.lines.append(
                f"{path.stem}: row {row}: ours {left[row]}, theirs {right[row]}, "
                f"our lead {a['margin'][row]:.4f}, theirs {b['margin'][row]:.4f}"
            )
    return found


def compare_pieces(name: str, ours: Path, theirs: Path, *, as_sherpa: bool) -> Found:
    """Compare our pieces with sherpa-onnx's tokens; it writes the word marker as a space.

    With `as_sherpa` the first four tokens are skipped, as it does, instead of the first four rows.
    """
    found = Found(name, judged=as_sherpa)
    for path in sorted(ours.glob("*.npz")):
        a, b = np.load(path), np.load(theirs / path.name)
        if as_sherpa:
            rows = tokens_of(a["argmax"])[PROMPT_ROWS:]
        else:
            rows = [PROMPT_ROWS + r for r in tokens_of(a["argmax"][PROMPT_ROWS:])]
        left = [str(a["pieces"][r]).replace("\u2581", " ") for r in rows]
        right = [p.replace("\u2581", " ") for p in b["pieces"].tolist()]
        found.tokens += len(right)
        wrong = distance(left, right)
        found.differing += wrong
        found.clips_differing += wrong > 0
        if not wrong:
            continue
        pairs = zip(left, right, strict=False)
        first = next((i for i, (x, y) in enumerate(pairs) if x != y), min(len(left), len(right)))
        row = rows[min(first, len(rows) - 1)] if rows else PROMPT_ROWS
        margins = a["margin"][max(0, row - 1) : row + 2]
        tags = len(tokens_of(a["argmax"][:PROMPT_ROWS]))
        found.lines.append(
            f"{path.stem}: row {row}: ours {left[first : first + 3]}, theirs "
            f"{right[first : first + 3]}, our lead there {margins.min(initial=9):.4f}; "
            f"{tags} of {PROMPT_ROWS} prompt rows begin a token"
        )
    return found


def check(networks: list[Path], bench: Bench) -> list[Found]:
    """All comparisons on some model folders."""
    funasr = [p for p in networks if (p / "am.mvn").exists()]
    sherpa = [p for p in networks if (p / "tokens.txt").exists()]
    found = []
    for int8 in (False, True):
        kind = "int8" if int8 else "fp32"
        file = "model_quant.onnx" if int8 else "model.onnx"
        mine: list[Path] = []
        given: Path | None = None
        for model in (p for p in funasr if (p / file).exists()):
            name = f"{model.name} {kind}: funasr-onnx"
            theirs = bench.answers("funasr-onnx", model, int8=int8)
            own = bench.answers("asr-rtf", model, int8=int8)
            found.append(compare_rows(f"{name}, own features", own, theirs, judged=not int8))
            same = bench.answers("asr-rtf", model, int8=int8, features=theirs)
            found.append(compare_rows(f"{name}, its features", same, theirs, judged=True))
            mine.append(own)
            given = theirs
        for model in sherpa:
            name = f"{model.name} {kind}: sherpa-onnx"
            theirs = bench.answers("sherpa-onnx", model, int8=int8)
            own = bench.answers("asr-rtf", model, int8=int8)
            found.append(compare_pieces(f"{name}, as it is", own, theirs, as_sherpa=False))
            same = bench.answers("asr-rtf", model, int8=int8, features=given, python=ORT128)
            label = f"{name}, its features and runtime, 4 tokens skipped"
            found.append(compare_pieces(label, same, theirs, as_sherpa=True))
            if mine and not int8:  # the int8 files of the layouts are other quantisations
                found.append(compare_rows("fp32: our two layouts", own, mine[0], judged=True))
    return found


def main() -> int:
    """Compare, print, return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=Path, default=ROOT / "tests/networks")
    parser.add_argument("--clips", type=int, default=200, metavar="N")
    parser.add_argument(
        "--list", type=int, default=10, metavar="N", help="shown of each comparison"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="every difference")
    options = parser.parse_args()
    networks = sorted(p for p in options.networks.iterdir() if p.is_dir())
    with tempfile.TemporaryDirectory(dir=options.networks.parent, prefix=".parity-") as temporary:
        clips = Path(temporary) / "clips"
        clips.mkdir()
        write_clips(ROOT / "golden/audio", clips, options.clips)
        bench = Bench(clips, Path(temporary))
        found = check(networks, bench)
        if options.networks == ROOT / "tests/networks":
            found += check([ROOT / "asr/builtin/tiny-en"], bench)
    rows = [["comparison", "tokens", "differ", "share", "clips", "features within", ""]]
    for one in found:
        verdict = "" if not one.judged else "TOO MANY" if one.share > MAX_SHARE else "ok"
        rows.append(
            [one.name, f"{one.tokens}", f"{one.differing}", f"{100 * one.share:.3f} %",
             f"{one.clips_differing}", f"{one.features_within:.1e}", verdict]
        )  # fmt: skip
    print(table(rows))
    for one in found:
        shown = one.lines[: options.list]
        for line in shown:
            print(f"  {one.name}: {line}")
        if len(one.lines) > len(shown):
            print(f"  {one.name}: and {len(one.lines) - len(shown)} more")
    if options.json:
        options.json.write_text(json.dumps([one.__dict__ for one in found], indent=1) + "\n")
    return 12 if any(one.judged and one.share > MAX_SHARE for one in found) else 0


if __name__ == "__main__":
    sys.exit(main())
