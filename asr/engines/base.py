"""What every engine offers: named tensors in, named tensors out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy.typing as npt

from asr.engines.preparation import Preparation

Tensors = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A tensor as the network declares it.

    Attributes:
        name: as in the file.
        dtype: the runtime's word for it, such as ``tensor(float)``.
        shape: sizes; a name or None where the size is free.
    """

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]


class Engine(Protocol):
    """A loaded network."""

    @property
    def description(self) -> str:
        """Runtime, version and provider, for people."""
        ...

    @property
    def threads(self) -> int:
        """Threads that one call may use."""
        ...

    @property
    def preparation(self) -> Preparation:
        """What stands between the model's file and the network that runs."""
        ...

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        """What the network takes."""
        ...

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        """What the network gives."""
        ...

    @property
    def placement(self) -> Mapping[str, int]:
        """Where the nodes run: provider or device -> how many; empty if the runtime won't say."""
        ...

    def run(self, inputs: Tensors) -> dict[str, npt.NDArray[Any]]:
        """Run the network once.

        Args:
            inputs: an array for every input name.

        Returns:
            an array for every output name.

        Raises:
            EngineError: the runtime refused.
        """
        ...
