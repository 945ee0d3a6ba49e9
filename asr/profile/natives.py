"""Which library a native function belongs to."""

import importlib
from collections.abc import Callable
from typing import Any

#: Top-level module of a function or of its object's class -> the library that is entered. What is
#: not listed is the interpreter's own (len, str.join, re ...): no crossing.
_LIBRARIES = {
    "_rust_fe": "rust_fe",
    "onnxruntime": "onnxruntime",
    "numpy": "numpy",
    "_cffi_backend": "cffi",
    "sentencepiece": "sentencepiece",
    "av": "av",
    "posix": "system",
    "nt": "system",
    "time": "system",
    "_io": "system",
    "_thread": "system",
    "select": "system",
    "fcntl": "system",
}

INTERPRETER = "interpreter"

#: Objects whose functions the profile hook of Python does not see, and what they are reached by:
#: cffi and nanobind make callables of their own kind.
_UNSEEN = {"soundfile": ("_snd", "libsndfile"), "soxr": ("soxr_ext", "soxr")}

#: NumPy functions that make a second copy of what an array holds.
COPYING = frozenset(
    [
        *(f"numpy.{name}" for name in ("array", "asarray", "ascontiguousarray", "asfortranarray")),
        *(f"numpy.{name}" for name in ("copy", "copyto", "concatenate", "frombuffer")),
        *(f"numpy.ndarray.{name}" for name in ("copy", "__copy__", "__deepcopy__", "astype")),
        *(f"numpy.ndarray.{name}" for name in ("flatten", "ravel", "tobytes", "repeat", "take")),
    ]
)


def describe(function: Any) -> tuple[str, str]:  # noqa: ANN401 - whatever was called
    """Name a built-in function or method.

    Args:
        function: as the profile hook hands it over.

    Returns:
        the library, and the function's name with it: ``numpy``, ``numpy.ndarray.copy``.
    """
    module = getattr(function, "__module__", None)
    owner = getattr(function, "__self__", None)
    name = function.__name__
    if owner is not None and type(owner).__name__ != "module" and not isinstance(module, str):
        kind = owner if isinstance(owner, type) else type(owner)
        module, name = kind.__module__, f"{kind.__name__}.{name}"
    parts = (module or "builtins").split(".")
    library = _LIBRARIES.get(parts[-1] if parts[0] == "asr" else parts[0], INTERPRETER)
    if library == INTERPRETER:
        return library, f"{parts[0]}.{name}"
    return library, f"{parts[0] if library in ('system', 'cffi') else library}.{name}"


class Doors:
    """Stand before the libraries that the profile hook cannot see, and announce each call.

    Args:
        enter: called with library and function before a call.
        leave: called after it.
    """

    def __init__(self, enter: Callable[[str, str], None], leave: Callable[[], None]) -> None:
        self._enter = enter
        self._leave = leave
        self._put_back: list[tuple[Any, str, Any]] = []

    def open(self) -> None:
        """Take the libraries' places."""
        for module_name, (attribute, library) in _UNSEEN.items():
            module = importlib.import_module(module_name)
            behind = getattr(module, attribute)
            self._put_back.append((module, attribute, behind))
            setattr(module, attribute, _Door(behind, library, self._enter, self._leave))

    def close(self) -> None:
        """Put the libraries back."""
        while self._put_back:
            setattr(*self._put_back.pop())


class _Door:
    def __init__(
        self,
        behind: Any,  # noqa: ANN401 - a module, or what cffi makes of a library
        library: str,
        enter: Callable[[str, str], None],
        leave: Callable[[], None],
    ) -> None:
        self._behind = behind
        self._library = library
        self._enter = enter
        self._leave = leave

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever lies behind
        found = getattr(self._behind, name)
        if not callable(found) or isinstance(found, type):
            return found

        def announced(*arguments: object) -> Any:  # noqa: ANN401
            self._enter(self._library, f"{self._library}.{name}")
            try:
                return found(*arguments)
            finally:
                self._leave()

        return announced
