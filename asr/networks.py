"""The network that a model folder's engine loads: its own file, or one prepared from that."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from asr.engines.ort import OrtEngine, read_model
from asr.engines.preparation import OFF, SMALL, Preparation
from asr.errors import LayoutError, SystemAccessError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal

    from asr.layouts import Layout
    from asr.observe import Observer

#: A smaller network loads and runs so fast that preparing it gains less than looking for it costs.
LARGE_BYTES = 32_000_000


@dataclass(frozen=True, slots=True)
class Network:
    """What an engine loads.

    Attributes:
        layout: the model.
        model: the bytes of its file, or the path of the prepared one.
        preparation: how it came to be.
    """

    layout: Layout
    model: bytes | Path
    preparation: Preparation

    def engine(self, threads: int, profile_prefix: str | None = None) -> OrtEngine:
        """Load it.

        Raises:
            LayoutError: the runtime cannot.
        """
        try:
            return self._engine(threads, profile_prefix)
        except LayoutError as error:
            if self.preparation.network is None:
                raise
            from asr.optimize import cache

            cache.remove(self.preparation.network.parent)
            plain = replace(
                self, model=read_model(self.layout.network), preparation=_off(self.layout, error)
            )
            return plain._engine(threads, profile_prefix)

    def _engine(self, threads: int, profile_prefix: str | None) -> OrtEngine:
        network = self.layout.network
        return OrtEngine(
            self.model,
            name=str(self.preparation.network or network),
            threads=threads,
            folder=network.parent,
            profile_prefix=profile_prefix,
            preparation=self.preparation,
        )


def find(
    layout: Layout,
    observer: Observer,
    *,
    optimize: bool = True,
    quantize: Literal["int8"] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Network:
    """Read a model's network, or find the one prepared from it; prepare it if there is none.

    Args:
        layout: the model.
        observer: sees the steps ``prepare`` (large networks only) and ``model_read``.
        optimize: False loads the file as it is.
        quantize: ``int8`` loads byte weights made from the fp32 network, whatever its size.
        tell: told what takes long, a line each.

    Raises:
        LayoutError: no network, or one that cannot be loaded.
        SystemAccessError: the file cannot be read.
        UsageError, MissingToolError: it cannot be quantised.
    """
    found = SMALL
    if not optimize:
        found = Preparation(OFF, "not asked for")
    elif quantize is not None or _is_large(layout.network):
        found = observer.step("prepare", _prepare, layout, quantize, tell or _keep_quiet)
    model: bytes | Path = observer.step(
        "model_read", lambda: found.network or read_model(layout.network)
    )
    return Network(layout, model, found)


def _is_large(network: Path) -> bool:
    try:
        return os.stat(network).st_size >= LARGE_BYTES  # noqa: PTH116 - cheaper than Path.stat
    except OSError:
        return False  # reading it will say why


def _prepare(
    layout: Layout, quantize: Literal["int8"] | None, tell: Callable[[str], None]
) -> Preparation:
    from asr.optimize.load import prepared

    try:
        found = prepared(layout, quantize=quantize, tell=tell)
        return found if found.network or quantize is None else _off(layout, str(found.reason))
    except SystemAccessError as error:
        if quantize is not None:
            raise
        return _off(layout, error)
    except LayoutError as error:
        return Preparation(OFF, str(error))  # loading it as it is will fail, or do


def _off(layout: Layout, error: object) -> Preparation:
    """Say once that a network runs as it is, and why."""
    warnings.warn(
        f"{layout.network.name} runs as it is, not prepared for this CPU: {error}",
        RuntimeWarning,
        stacklevel=2,
    )
    return Preparation(OFF, str(error))


def _keep_quiet(_: str) -> None:
    """Nobody asked to be told."""
