"""What can be pulled by name: files, bytes, checksums, addresses, licences.

Python and not TOML: it is checked by the type checker, packed like any module, and read without a
parser, which Python 3.10 does not have.

A distribution is one set of bytes; its sources are places that hold the same bytes. Different
distributions of a model are different exports, which may give different text, so another one is
taken only when it is asked for.
"""

from dataclasses import dataclass

LAYOUT_FUNASR, LAYOUT_SHERPA = "funasr", "sherpa-onnx"


@dataclass(frozen=True, slots=True)
class Source:
    """A repository on a model hub.

    Attributes:
        hub: ``modelscope`` or ``hf`` (Hugging Face).
        repo: owner and name.
        revision: branch, tag or commit.
    """

    hub: str
    repo: str
    revision: str

    def __str__(self) -> str:
        return f"{self.hub} {self.repo}@{self.revision[:12]}"


@dataclass(frozen=True, slots=True)
class File:
    """A file of a distribution.

    Attributes:
        path: in the repository and in the model's folder.
        size: bytes; exact where the checksum is known.
        sha256: None takes what the source itself publishes, and records it.
        sources: where it can be had, the first choice first.
    """

    path: str
    size: int
    sha256: str | None
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """One export of a model, the network last: what is wrong shows before the long download."""

    layout: str
    files: tuple[File, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class Licence:
    """What must be agreed to before the first download.

    Attributes:
        name: short, for tables.
        url: the agreement itself.
        text: what is shown.
    """

    name: str
    url: str
    text: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can be asked for by name; without distributions it is built in."""

    name: str
    languages: tuple[str, ...]
    licence: Licence
    distributions: tuple[Distribution, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of the distribution that is pulled unless another one is asked for."""
        return self.distributions[0].size

    @property
    def advice(self) -> str:
        """The command that brings it, and how much that is."""
        return f"asr models pull {self.name} ({human_size(self.size)})"


def human_size(size: int) -> str:
    """Bytes for people, in decimal units, with two or three figures."""
    if size < 1e5:
        return f"{max(1, round(size / 1e3))} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"


OWN_CARD = Licence("see its README.md", "", "")

FUNASR_1_1 = Licence(
    name="FunASR Model 1.1",
    url="https://github.com/modelscope/FunASR/blob/main/MODEL_LICENSE",
    text="""\
SenseVoiceSmall, by the FunAudioLLM team of Alibaba Group, comes under the
FunASR Model Open Source License Agreement, version 1.1,
Copyright (C) 2023-2028 Alibaba Group. All rights reserved.

What it asks, in our words; the agreement is what counts:
  - You may use, copy, modify and share the model, and what is derived from it.
  - When you do, name the source and the authors, and keep the model's name: SenseVoiceSmall.
  - It is meant for reference and learning; nobody but you is liable for what you do with it.
  - Smearing or insulting it forfeits the licence; breaking any term ends it.
  - Revised agreements take effect when published; whoever uses the model then accepts them.

The agreement: https://github.com/modelscope/FunASR/blob/main/MODEL_LICENSE
""",
)

# Sizes and checksums are what public projects that pin these files state, several of them in
# agreement each time. A machine that reaches the hubs has still to confirm them by a pull.
#
# The quantised export by FunASR, and a copy of the same bytes. The .bpe.model is only beside the
# original weights.
_FUNASR = (
    Source("modelscope", "iic/SenseVoiceSmall-onnx", "master"),
    Source("hf", "DennisHuang648/SenseVoiceSmall-onnx", "0e0d0a81fe03a27c0d56329ff6fc2dcc3fe01f7e"),
)
_ORIGINAL = (
    Source("modelscope", "iic/SenseVoiceSmall", "master"),
    Source("hf", "FunAudioLLM/SenseVoiceSmall", "3847d57b6bdf2dd8875cb1508d2af43d80a16bf7"),
)
_SHERPA_HF = Source(
    "hf",
    "csukuangfj/sherpa-onnx-sense-voice-zh-en-ja-ko-yue-2024-07-17",
    "2365baeacb507f821a0c8120fcee3d484dba7a07",
)
_SHERPA_INT8 = (
    _SHERPA_HF,
    Source("modelscope", "pengzhendong/sherpa-onnx-sense-voice-zh-en-ja-ko-yue", "master"),
)

_SHERPA_TOKENS = (
    "tokens.txt",
    315_894,
    "f449eb28dc567533d7fa59be34e2abca8784f771850c78a47fb731a31429a1dc",
)

_FUNASR_INT8 = Distribution(
    LAYOUT_FUNASR,
    (
        File(
            "config.yaml",
            1_855,
            "f71e239ba36705564b5bf2d2ffd07eece07b8e3f2bbf6d2c99d8df856339ac19",
            _FUNASR,
        ),
        File(
            "am.mvn",
            11_203,
            "29b3c740a2c0cfc6b308126d31d7f265fa2be74f3bb095cd2f143ea970896ae5",
            _FUNASR,
        ),
        File(
            "tokens.json",
            352_064,
            "a2594fc1474e78973149cba8cd1f603ebed8c39c7decb470631f66e70ce58e97",
            _FUNASR,
        ),
        File(
            "chn_jpn_yue_eng_ko_spectok.bpe.model",
            377_341,
            "aa87f86064c3730d799ddf7af3c04659151102cba548bce325cf06ba4da4e6a8",
            _ORIGINAL,
        ),
        File(
            "model_quant.onnx",
            241_216_270,
            "21dc965f689a78d1604717bf561e40d5a236087c85a95584567835750549e822",
            _FUNASR,
        ),
    ),
)

_SENSEVOICE_INT8 = Model(
    "sensevoice-small-int8",
    ("zh", "en", "yue", "ja", "ko"),
    FUNASR_1_1,
    (
        _FUNASR_INT8,
        Distribution(
            LAYOUT_SHERPA,
            (
                File(*_SHERPA_TOKENS, _SHERPA_INT8),
                File(
                    "model.int8.onnx",
                    239_233_841,
                    "c71f0ce00bec95b07744e116345e33d8cbbe08cef896382cf907bf4b51a2cd51",
                    _SHERPA_INT8,
                ),
            ),
        ),
    ),
)

# FunASR publishes no float32 ONNX file.
_SENSEVOICE = Model(
    "sensevoice-small",
    ("zh", "en", "yue", "ja", "ko"),
    FUNASR_1_1,
    (
        Distribution(
            LAYOUT_SHERPA,
            (
                File(*_SHERPA_TOKENS, (_SHERPA_HF,)),
                File(
                    "model.onnx",
                    937_617_178,
                    "977016bd9c79f9eb343430b5cc305e07ab64d5212dff41b0dcfa1694bee9a8cb",
                    (_SHERPA_HF,),
                ),
            ),
        ),
    ),
)

#: Name -> what can be pulled. Built-in models are found in the package; here are their languages.
MODELS: dict[str, Model] = {model.name: model for model in (_SENSEVOICE_INT8, _SENSEVOICE)}
BUILT_IN: dict[str, Model] = {"tiny-en": Model("tiny-en", ("en",), OWN_CARD)}
