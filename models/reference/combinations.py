"""Which graphs there are: layout, exporter, operator set, kind of head."""

from dataclasses import dataclass

EXPORTERS = ("torchscript", "dynamo")
HEADS = ("logits", "log_softmax")
OPSETS = range(13, 19)


@dataclass(frozen=True)
class Combination:
    """One way to export.

    Attributes:
        layout: ``funasr`` or ``sherpa``.
        exporter: ``torchscript``, whose graphs look like the files published in 2024, or
            ``dynamo``, which a recent torch takes unless told otherwise.
        opset: the operator set asked for.
        head: ``logits``, or ``log_softmax`` as earlier versions of FunASR's exporter had it.
    """

    layout: str
    exporter: str
    opset: int
    head: str = "logits"

    @property
    def name(self) -> str:
        """The folder's name."""
        return f"{self.layout}-{self.exporter}-{self.opset}-{self.head}"

    @property
    def networks(self) -> tuple[str, str]:
        """The fp32 and the int8 file."""
        int8 = "model_quant.onnx" if self.layout == "funasr" else "model.int8.onnx"
        return "model.onnx", int8


#: Everything that can be asked for. sherpa-onnx's script knows only logits.
ALL = tuple(
    Combination(layout, exporter, opset, head)
    for layout, heads in (("funasr", HEADS), ("sherpa", HEADS[:1]))
    for head in heads
    for exporter in EXPORTERS
    for opset in OPSETS
)

#: What users hold: FunASR's and sherpa-onnx's defaults when SenseVoice was published.
PUBLISHED = (Combination("funasr", "torchscript", 14), Combination("sherpa", "torchscript", 13))

#: The smallest set with every exporter, both heads, and operator sets with and without
#: LayerNormalization (from 17 on); committed.
REPRESENTATIVE = (
    *PUBLISHED,
    Combination("funasr", "torchscript", 17, "log_softmax"),
    Combination("funasr", "dynamo", 18),
)
