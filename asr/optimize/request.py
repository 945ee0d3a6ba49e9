"""What a process that prepares a network is asked for; whoever asks needs nothing of its code."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Request:
    """What to prepare.

    Attributes:
        model: the model folder.
        network: file name of its network.
        part: an empty folder for the result.
        sha256: of the network file.
        threads: of the runs that prove it.
        signed: the CPU multiplies u8 x s8 without saturating.
        panels: the CPU can run our own product of bytes.
        lossy: do every rewriting that fits, as ``asr optimize --verify`` does; needs ``onnx``.
        int8: also quantise the weights.
    """

    model: str
    network: str
    part: str
    sha256: str
    threads: int
    signed: bool
    panels: bool
    lossy: bool = False
    int8: bool = False
