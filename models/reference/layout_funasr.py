"""The network in FunASR's layout, by FunASR's own exporter and quantiser."""

import shutil
from pathlib import Path

import torch
import yaml
from source import Source


class FunasrExporter:
    """A model as FunASR's AutoModel loads it from a folder.

    Args:
        model: the network.
        source: the files around it.
        folder: gets these files and the weights.
    """

    def __init__(self, model: torch.nn.Module, source: Source, folder: Path) -> None:
        from funasr import AutoModel

        self._source = source
        self._write_files(folder)
        torch.save(model.state_dict(), folder / "model.pt")
        self._auto = AutoModel(model=str(folder), device="cpu", disable_update=True)
        self._linear = self._auto.model.ctc.ctc_lo

    def export(self, folder: Path, *, head: str, opset: int) -> None:
        """Write model.onnx, model_quant.onnx and the files around them.

        Args:
            folder: gets them.
            head: ``logits`` or ``log_softmax``.
            opset: what FunASR is asked for.
        """
        self._write_files(folder)
        self._auto.model.ctc.ctc_lo = (
            self._linear
            if head == "logits"
            else torch.nn.Sequential(self._linear, torch.nn.LogSoftmax(dim=-1))
        )
        self._auto.export(type="onnx", quantize=True, opset_version=opset, output_dir=str(folder))

    def _write_files(self, folder: Path) -> None:
        """Write everything of the layout that is no network."""
        source = self._source
        folder.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(source.config, sort_keys=False)
        (folder / "config.yaml").write_text(text, encoding="utf-8")
        for path in (source.bpe_model, source.folder / "am.mvn"):
            shutil.copyfile(path, folder / path.name)
        shutil.copyfile(source.folder / "configuration.json", folder / "configuration.json")
        source.write_tokens_json(folder / "tokens.json")
