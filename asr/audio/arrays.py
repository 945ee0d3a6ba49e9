"""Arrays -> Sound: which types, which axis."""

import math
import numbers
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from asr.audio.sound import Notes, Sound
from asr.errors import AudioError
from asr.records import Float32

#: More channels than this in an array are samples on the wrong axis.
MAX_CHANNELS = 8
#: What an integer is divided by, after what is subtracted; all bits of the type are used.
_SCALES = {"int16": (0, 2.0**15), "int32": (0, 2.0**31), "uint8": (128, 2.0**7)}


def sound(samples: npt.NDArray[np.generic], sample_rate: int | None) -> Sound:
    """Open an array.

    Args:
        samples: (num_samples,) or (num_samples, channels).
        sample_rate: samples per second.

    Raises:
        AudioError: no rate, another type, a shape whose axes cannot be told apart.
    """
    if sample_rate is None:
        raise AudioError("array: expected sample_rate=..., found none; an array has no rate")
    if not isinstance(sample_rate, numbers.Real) or not 0 < sample_rate < math.inf:
        raise AudioError(f"array: expected a positive sample_rate, found {sample_rate}")
    if sample_rate != int(sample_rate):
        raise AudioError(f"array: expected a whole sample_rate, found {sample_rate}")
    _check_shape(samples.shape)
    kind = samples.dtype.newbyteorder("=").name
    if kind not in (*_SCALES, "float32", "float64"):
        raise AudioError(
            "array: expected float32 or float64 in ±1.0, or int16, int32, uint8 at full scale, "
            f"found {kind}"
        )

    def blocks(notes: Notes) -> Iterator[Float32]:
        if kind in _SCALES:
            zero, scale = _SCALES[kind]
            values = samples.astype(np.float32)
            if zero:
                values -= np.float32(zero)
            values *= np.float32(1 / scale)
            _warn_unscaled(samples, kind, notes)
        else:
            with np.errstate(over="ignore"):  # what is infinite as float32 is named later
                values = np.ascontiguousarray(samples, dtype=np.float32)
        yield values

    channels = 1 if samples.ndim == 1 else samples.shape[1]
    return Sound("array", int(sample_rate), channels, kind.startswith("float"), blocks)


def _check_shape(shape: tuple[int, ...]) -> None:
    """One axis, or (num_samples, channels) that cannot be taken for its transpose."""
    if len(shape) == 1:
        return
    if len(shape) == 2:
        length, channels = shape
        if 1 <= channels <= MAX_CHANNELS and (channels < length or not length):
            return
    hint = "pick one channel first"
    if len(shape) == 2:
        turned = 1 <= shape[0] <= MAX_CHANNELS and shape[0] < shape[1]
        hint = "transpose it (.T)" if turned else "which axis holds the channels is not guessed"
    raise AudioError(
        f"array: expected shape (num_samples,) or (num_samples, channels) with at most "
        f"{MAX_CHANNELS} channels and fewer channels than samples, found {shape}; {hint}"
    )


def _warn_unscaled(samples: npt.NDArray[np.generic], kind: str, notes: Notes) -> None:
    """An int32 array that only uses 16 bits is heard 96 dB too quiet: say so."""
    if kind == "int32" and samples.size:
        peak = max(abs(int(samples.min())), abs(int(samples.max())))
        if 0 < peak <= 2**15:
            notes.tell(
                "scale_suspect",
                f"the int32 array peaks at {peak} of 2147483648; for 16-bit values pass int16",
            )
