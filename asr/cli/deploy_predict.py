"""``asr deploy predict``: how fast a model would be on a board that is not here."""

from __future__ import annotations

import argparse

from asr.cli import Help

TYPE_CHECKING = False  # as in transcribe.py
if TYPE_CHECKING:
    from typing import Any

    from asr.deploy.predict import Prediction


def add_parser(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    """Describe the command."""
    parser = commands.add_parser(
        "predict",
        help="how fast a model would be on a Cortex-A76 board that is not here",
        description=(
            "Predict the real-time factor of one call on a Cortex-A76 board: two lower bounds and "
            "an estimate with its error. Nothing is measured: docs/predict.md."
        ),
        epilog="On the board itself, asr bench measures.",
        formatter_class=Help,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("model", nargs="?", metavar="MODEL", help="model folder, or a name")
    what.add_argument(
        "--shape",
        metavar="NAME",
        help="a network of known shape: sensevoice-small (the default), sensevoice-small-fp32",
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, metavar="S", help="of sound, at most 20 (default 10)"
    )
    parser.add_argument("--board", choices=("rpi5", "rk3588"), default="rpi5")
    parser.add_argument(
        "--cores", type=int, default=2, metavar="N", help="Cortex-A76 cores (default 2)"
    )
    parser.add_argument("--ghz", type=float, metavar="F", help="their clock (default: the board's)")
    parser.add_argument(
        "--target", type=float, default=0.05, metavar="RTF", help="to be met (default 0.05)"
    )
    parser.add_argument("--json", action="store_true", help="docs/prediction.schema.json")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Count, predict, print; 0 whatever the verdict."""
    from asr.deploy import calibration, predict

    known = calibration.load()
    predictor = predict.Predictor(known, known.boards[options.board], options.cores, options.ghz)
    if options.model:
        from asr.hub import find_model
        from asr.layouts import open_layout

        layout = open_layout(find_model(options.model))
        call = predict.call_of_layout(layout, options.model, options.seconds)
    else:
        shape = options.shape or "sensevoice-small"
        call = predict.call_of_shape(known, shape, options.seconds)
    found = predictor.predict(call, options.target)
    if options.json:
        import json
        from dataclasses import asdict

        print(json.dumps(asdict(found)))
        return 0
    for line in _told(found):
        print(f"predicted  {line}")
    return 0


def _told(found: Prediction) -> list[str]:
    """A prediction as lines, for one to be printed behind the word."""
    macs = found.macs_int8 + found.macs_fp32
    within = "; the error reaches over the target" if found.within_error else ""
    speed_up = f", {found.cores} cores do {found.speed_up:.2f} times as much"
    return [
        f"{found.model}, {found.precision}, {found.audio_s:g} s of sound, {found.board}: "
        f"{found.cores} x {found.core} at {found.ghz:g} GHz",
        f"{found.rows} rows: {macs / 1e9:.3g} GMAC, {100 * found.macs_fp32 / macs:.0f} % of them "
        f"fp32 ({found.macs_per_row / 1e6:.4g} M per row, attention "
        f"{found.macs_per_row_squared / 1e6:.3g} M x rows^2)",
        f"RTF {found.rtf_peak:.4f}  lower bound: the MACs alone at the peak rate",
        f"RTF {found.rtf_mix:.4f}  lower bound: all instructions of the network at the peak rate",
        f"RTF {found.rtf_network:.4f}  estimate of the network: one core keeps "
        f"{100 * found.efficiency:.0f} % of that bound{speed_up if found.cores > 1 else ''}",
        f"RTF {found.rtf_stages:.4f}  estimate of front end and decoding, on one core",
        f"RTF {found.rtf:.4f}  estimate of the call, {100 * found.error_share:.0f} % either way: "
        f"{found.rtf_low:.4f} to {found.rtf_high:.4f}",
        f"RTF {found.target_rtf:.4f}  target: {found.verdict}{within}",
        *(
            f"{'would do' if lever.enough else 'not enough'}: {lever.text}"
            for lever in found.levers
        ),
    ]
