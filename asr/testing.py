"""For projects that ship a model of their own: three lines of pytest that gate it.

from asr.testing import gate_model

def test_our_model():
    gate_model("models/ours", "clips.tsv", rtf=0.25, rejects=["street-noise.wav"])
"""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asr.bench.clips import WorkClip, load
from asr.bench.facts import model_facts
from asr.bench.record import TOTAL, UNACCOUNTED, Call
from asr.errors import RecordError
from asr.gate.metrics import quiet_ns
from asr.observe import Timer
from asr.recognizer import Recognizer

#: A factor above the limit is measured again before it fails: what disturbs a call adds time only.
_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Gated:
    """What was found, for who wants to look.

    Attributes:
        rtf: real-time factor of undisturbed warm calls, from read to text, over all clips.
        stages_rtf: the same of each stage.
    """

    rtf: float
    stages_rtf: dict[str, float]


def gate_model(
    model: str | os.PathLike[str],
    workload: str | os.PathLike[str],
    *,
    rtf: float,
    rejects: Sequence[str | os.PathLike[str]] = (),
    threads: int = 1,
    repeat: int = 10,
) -> Gated:
    """Fail unless a model hears what it should, in time, and withholds what it should not hear.

    Args:
        model: folder or name.
        workload: a table of clips with the column ``text``, as ``asr bench --workload`` reads it;
            a clip heard otherwise fails.
        rtf: the real-time factor that must not be exceeded: seconds of a warm call, from read to
            text, per second of sound. Taken from the least disturbed calls, up to three times.
        rejects: sounds that must give an empty text: noise, silence, words out of the list.
        threads: of the network.
        repeat: warm calls per clip.

    Returns:
        the figures.

    Raises:
        AssertionError: with a line per clip and figure that is not as it should be.
        RecordError: the workload is none, or does not say what is expected.
        LayoutError: the model is none.
    """
    recognizer = Recognizer.load(model, threads=threads)
    network = model_facts(os.fspath(model), recognizer.layout.folder).network_sha256
    with tempfile.TemporaryDirectory(prefix="asr-gate-") as folder:
        clips = load(Path(workload), Path(folder)).clips
        if silent := [c.id for c in clips if c.expected(network) is None]:
            raise RecordError(
                f"{workload}: expected a text for every clip, found none for {', '.join(silent)}"
            )
        wrong = []
        found: dict[str, float] = {}
        for _ in range(_ATTEMPTS):
            texts, measured = _hear(recognizer, clips, repeat)
            if not found or measured[TOTAL] < found[TOTAL]:
                found = measured
            if found[TOTAL] <= rtf:
                break
        for clip in clips:
            wanted = clip.expected(network)
            wrong += [
                f"{clip.id}: expected {wanted!r}, heard {text!r}"
                for text in texts[clip.id] - {wanted}
            ]
    total = found.pop(TOTAL)
    if total > rtf:
        worst = max(found, key=lambda name: found[name])
        wrong.append(
            f"rtf: expected at most {rtf:g}, found {total:.4g}, of which {worst} {found[worst]:.4g}"
        )
    for sound in rejects:
        text = recognizer.transcribe(sound).text
        if text:
            wrong.append(f"{sound}: expected to be rejected, heard {text!r}")
    if wrong:
        raise AssertionError("\n".join([f"{os.fspath(model)} fails its gate:", *wrong]))
    return Gated(total, found)


def _hear(
    recognizer: Recognizer, clips: Sequence[WorkClip], repeat: int
) -> tuple[dict[str, set[str]], dict[str, float]]:
    """All texts heard, by clip; and the RTF of each stage and of the whole undisturbed call."""
    texts: dict[str, set[str]] = {}
    spent_ns: dict[str, float] = {}
    for clip in clips:
        calls = []
        for _ in range(1 + repeat):
            timer = Timer()
            start_ns = time.perf_counter_ns()
            text = recognizer.transcribe(clip.path, observer=timer).text
            wall_ns = time.perf_counter_ns() - start_ns
            texts.setdefault(clip.id, set()).add(text)
            calls.append(Call(wall_ns, _stages_ns(timer, wall_ns)))
        for name, ns in quiet_ns(calls[1:]).items():
            spent_ns[name] = spent_ns.get(name, 0.0) + ns
    audio_ns = 1e9 * sum(clip.audio_s for clip in clips)
    return texts, {name: ns / audio_ns for name, ns in spent_ns.items()}


def _stages_ns(timer: Timer, wall_ns: int) -> dict[str, int]:
    """By stage; a stage that ran for several pieces is summed."""
    sums: dict[str, int] = {}
    for name, ns in timer.take():
        sums[name] = sums.get(name, 0) + ns
    return {**sums, UNACCOUNTED: wall_ns - sum(sums.values())}
