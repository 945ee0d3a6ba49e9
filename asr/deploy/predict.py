"""How fast a network would run on a Cortex-A76 that nobody has at hand: bounds and an estimate.

Products are counted, instructions were counted under emulation, and what a board keeps of that was
published by others: docs/predict.md derives every number, ``calibration.toml`` holds them. Nothing
here was measured, and the record says so.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal

from asr.deploy.calibration import Board, Calibration
from asr.deploy.macs import Work, of_layout
from asr.errors import UsageError
from asr.layouts import Layout

SCHEMA: Final = "asr-prediction/1"
#: Longer sound is cut into pieces of at most this.
PIECE_S = 20.0


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked about.

    Attributes:
        name: of the model or shape.
        work: what its network multiplies.
        weight_bytes: of its network file.
        vocabulary: columns of its scores.
        frames: LFR frames of the sound.
        prompt_rows: in front of them.
        audio_s: seconds of sound.
    """

    name: str
    work: Work
    weight_bytes: int
    vocabulary: int
    frames: int
    prompt_rows: int
    audio_s: float


def call_of_layout(layout: Layout, name: str, audio_s: float) -> Call:
    """A call of a model that is here; raises as ``macs.of_layout``, and for sound of no length."""
    recipe = layout.front_end
    size = layout.network.stat().st_size
    frames = _frames(
        audio_s, recipe.frame_length_ms / 1000, recipe.frame_shift_ms / 1000, recipe.lfr_n
    )
    vocabulary = len(layout.vocabulary)
    work = of_layout(layout)
    return Call(name, work, size, vocabulary, frames, layout.prompt_frames, audio_s)


def call_of_shape(calibration: Calibration, name: str, audio_s: float) -> Call:
    """A call of a network of which only the shape is known.

    Raises:
        UsageError: there is no such shape, or sound of no length.
    """
    work, table = calibration.shape(name)
    frames = _frames(audio_s, 0.025, 0.010, 6)  # SenseVoice's recipe
    return Call(name, work, int(table["weight_mb"] * 1e6), table["vocabulary"], frames, 4, audio_s)


def _frames(audio_s: float, window_s: float, shift_s: float, lfr_n: int) -> int:
    """LFR frames of so much sound."""
    if not 0.1 <= audio_s <= PIECE_S:
        raise UsageError(
            f"--seconds: expected 0.1 to {PIECE_S:g}, the length of one piece, found {audio_s:g}"
        )
    return math.ceil((1 + int((audio_s - window_s) / shift_s + 1e-6)) / lfr_n)


@dataclass(frozen=True, slots=True)
class Lever:
    """One way to reach the target.

    Attributes:
        name: what has to change.
        now: its value in this prediction.
        needed: the value with which the estimate is the target; null where none is enough.
        unit: of both.
        enough: whether this alone can do it.
        text: the same as a sentence.
    """

    name: Literal["fewer MACs", "MAC share of fp32", "kernel efficiency", "cores"]
    now: float
    needed: float | None
    unit: str
    enough: bool
    text: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """A file of schema asr-prediction/1: what a call would take on a board. Nothing is measured.

    Attributes:
        schema: name and version of this form.
        kind: always `predicted`.
        model: name of the model or shape.
        precision: of most products.
        audio_s: seconds of sound in one piece.
        rows: of the network, prompt rows included.
        board: whose memory and cores.
        core: the kind of core.
        cores: how many of them.
        ghz: their clock.
        macs_int8: products of bytes in the call.
        macs_fp32: products of floats in the call.
        macs_per_row: products that each row costs, attention apart.
        macs_per_row_squared: products of attention: times the square of the rows.
        rtf_peak: lower bound: every product at the peak rate of the vector pipes, or one pass over
            the weights at the peak rate of the memory.
        rtf_mix: lower bound: all instructions of the network at their peak rates.
        rtf_network: estimate of the network alone.
        rtf_stages: estimate of front end and decoding, on one core.
        rtf: estimate of the call: their sum.
        error_share: the estimate may be wrong by this share of it.
        rtf_low: rtf less the error.
        rtf_high: rtf and the error.
        target_rtf: what was asked for.
        verdict: whether the estimate is at or below the target.
        within_error: whether the target lies within the error, so that the verdict may turn.
        efficiency: share of the instruction-mix bound that the estimate keeps on one core.
        speed_up: of so many cores over one.
        levers: what would reach the target, by how much; empty when it is met.
    """

    schema: Literal["asr-prediction/1"]
    kind: Literal["predicted"]
    model: str
    precision: Literal["int8", "fp32"]
    audio_s: float
    rows: int
    board: str
    core: str
    cores: int
    ghz: float
    macs_int8: int
    macs_fp32: int
    macs_per_row: int
    macs_per_row_squared: int
    rtf_peak: float
    rtf_mix: float
    rtf_network: float
    rtf_stages: float
    rtf: float
    error_share: float
    rtf_low: float
    rtf_high: float
    target_rtf: float
    verdict: Literal["met", "not met"]
    within_error: bool
    efficiency: float
    speed_up: float
    levers: list[Lever]


class Predictor:
    """Predict calls on some cores of a board.

    Args:
        calibration: what is known.
        board: whose.
        cores: how many.
        ghz: None takes the board's.

    Raises:
        UsageError: the board has not so many, or the clock is none.
    """

    def __init__(
        self, calibration: Calibration, board: Board, cores: int, ghz: float | None = None
    ) -> None:
        if not 1 <= cores <= board.cores:
            raise UsageError(
                f"--cores: expected 1 to {board.cores}, the {calibration.core} cores of "
                f"{board.name}, found {cores}"
            )
        if ghz is not None and not 0.1 <= ghz <= 5:
            raise UsageError(f"--ghz: expected 0.1 to 5, found {ghz:g}")
        self._known, self._board, self._cores = calibration, board, cores
        self._ghz = ghz or board.ghz
        self._speed_up = calibration.speed_up(cores)

    def predict(self, call: Call, target_rtf: float) -> Prediction:
        """Bounds, estimate, verdict.

        Args:
            call: what is asked about.
            target_rtf: to be met.

        Raises:
            UsageError: the target is none.
        """
        if not target_rtf > 0:
            raise UsageError(f"--target: expected an RTF above 0, found {target_rtf:g}")
        known, work = self._known, call.work
        rows = call.frames + call.prompt_rows
        int8, fp32 = work.int8.at(rows), work.fp32.at(rows)
        peak = known.peak_cycles(int8, fp32)
        mix = known.mix_cycles(work, rows)
        hz = self._ghz * 1e9
        estimate_s = known.network_cycles(work, rows) / self._speed_up / hz
        fastest_s, usual_s = self._board.weight_pass_s(call.weight_bytes)
        network = max(estimate_s, usual_s) / call.audio_s
        instructions = known.stage_instructions(call.audio_s, rows * call.vocabulary)
        stages = instructions / known.stage_ipc / hz / call.audio_s
        rtf = network + stages
        efficiency = known.efficiency(work.precision)
        met = rtf <= target_rtf
        error = known.error_share(work, rows)
        return Prediction(
            schema=SCHEMA,
            kind="predicted",
            model=call.name,
            precision=work.precision,
            audio_s=call.audio_s,
            rows=rows,
            board=self._board.name,
            core=known.core,
            cores=self._cores,
            ghz=self._ghz,
            macs_int8=int8,
            macs_fp32=fp32,
            macs_per_row=work.int8.per_row + work.fp32.per_row,
            macs_per_row_squared=work.int8.per_square + work.fp32.per_square,
            rtf_peak=max(peak / self._cores / hz, fastest_s) / call.audio_s,
            rtf_mix=max(mix / self._cores / hz, fastest_s) / call.audio_s,
            rtf_network=network,
            rtf_stages=stages,
            rtf=rtf,
            error_share=error,
            rtf_low=rtf * (1 - error),
            rtf_high=rtf * (1 + error),
            target_rtf=target_rtf,
            verdict="met" if met else "not met",
            within_error=rtf * (1 - error) <= target_rtf <= rtf * (1 + error),
            efficiency=efficiency,
            speed_up=self._speed_up,
            levers=[] if met else self._levers(call, network, target_rtf - stages, efficiency),
        )

    def _levers(self, call: Call, network: float, room: float, efficiency: float) -> list[Lever]:
        """What would bring the network from one RTF down to another, each by itself."""
        share = room / network  # of the time that is left, at most 1; below 0 nothing helps
        rows = call.frames + call.prompt_rows
        macs = call.work.int8.at(rows) + call.work.fp32.at(rows)
        return [
            _fewer(macs, call.audio_s, share),
            self._bytes(call.work, rows, share),
            _kernels(efficiency, share),
            self._more_cores(share),
        ]

    def _bytes(self, work: Work, rows: int, share: float) -> Lever:
        """All products of bytes, attention's too."""
        known = self._known
        int8, fp32 = work.int8.at(rows), work.fp32.at(rows)
        before = known.network_cycles(work, rows)
        after = known.network_cycles(work.all_int8(), rows)
        part = known.peak_cycles(0, fp32) / known.peak_cycles(int8, fp32)
        text = (
            f"fp32 MACs as int8: {100 * fp32 / (int8 + fp32):.0f} % of the MACs, "
            f"{100 * part:.0f} % of their cycles; would save {100 * (1 - after / before):.0f} %, "
            f"{100 * (1 - share):.0f} % are needed"
        )
        enough = after / before <= share
        now = 100 * fp32 / (int8 + fp32)
        return Lever("MAC share of fp32", now, 0.0 if enough else None, "% of MACs", enough, text)

    def _more_cores(self, share: float) -> Lever:
        known = self._known
        counts = range(self._cores + 1, self._board.cores + 1)
        needed = next(
            (n for n in counts if share > 0 and self._speed_up / known.speed_up(n) <= share), None
        )
        most = self._board.cores
        text = (
            f"{needed} cores instead of {self._cores}: {known.speed_up(needed):.2f} times one "
            f"core instead of {self._speed_up:.2f}"
            if needed
            else f"cores: all {most} are {known.speed_up(most):.2f} times one core, and "
            + (f"{self._speed_up / share:.2f} are needed" if share > 0 else "none help")
        )
        return Lever("cores", self._cores, needed, "cores", needed is not None, text)


def _fewer(macs: int, audio_s: float, share: float) -> Lever:
    now = macs / audio_s / 1e9
    enough = share > 0
    text = (
        f"{100 * (1 - share):.0f} % fewer MACs: {now * share:.2f} instead of {now:.2f} GMAC per "
        "second of audio"
        if enough
        else "fewer MACs: front end and decoding alone take longer than the target"
    )
    needed = now * share if enough else None
    return Lever("fewer MACs", now, needed, "GMAC per second of audio", enough, text)


def _kernels(efficiency: float, share: float) -> Lever:
    needed = efficiency / share if share > 0 else math.inf
    enough = needed <= 1
    text = (
        f"kernels that keep {100 * needed:.0f} % of the instruction-mix bound instead of "
        f"{100 * efficiency:.0f} %" + ("" if enough else ": more than there is")
        if share > 0
        else "kernels: no efficiency is enough"
    )
    return Lever(
        "kernel efficiency", 100 * efficiency, 100 * needed if enough else None,
        "% of the mix bound", enough, text,
    )  # fmt: skip
