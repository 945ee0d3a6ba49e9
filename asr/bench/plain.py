"""Dataclasses to plain JSON values and back; a wrong value is named by its place."""

import dataclasses
import types
import typing
from typing import Any, TypeVar

from asr.errors import RecordError

T = TypeVar("T")

#: For ``field(metadata=ABSENT)``: None is written by leaving the key out.
ABSENT = {"absent": True}


def key_of(field: "dataclasses.Field[Any]") -> str:
    """The JSON key: the name, without the underscore that keeps it apart from a Python keyword."""
    return field.name.rstrip("_")


def to_plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Turn dataclasses, however deep, into dicts and lists."""
    if dataclasses.is_dataclass(value):
        pairs = ((f, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {
            key_of(f): to_plain(v)
            for f, v in pairs
            if v is not None or not f.metadata.get("absent")
        }
    if isinstance(value, dict):
        return {key: to_plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(v) for v in value]
    return value


def from_plain(kind: type[T], value: object, place: str) -> T:
    """Build a dataclass from what JSON gave.

    Args:
        kind: the dataclass.
        value: what ``to_plain`` made of one. Keys that this version does not know are passed
            over: a newer one of the same schema may only add.
        place: file and path so far, for messages.

    Raises:
        RecordError: a key is missing or a value has another type than the field.
    """
    built: T = _build(kind, value, place)
    return built


def _build(kind: Any, value: Any, place: str) -> Any:  # noqa: ANN401 - follows the annotations
    if dataclasses.is_dataclass(kind):
        if not isinstance(value, dict):
            raise _wrong(place, "an object", value)
        return _build_dataclass(kind, value, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _build_first([a for a in arguments if a is not type(None)], value, place)
    if origin is typing.Literal:
        if value not in arguments:
            raise _wrong(place, f"one of {', '.join(map(str, arguments))}", value)
        return value
    if origin is list:
        if not isinstance(value, list):
            raise _wrong(place, "a list", value)
        return [_build(arguments[0], v, f"{place}[{i}]") for i, v in enumerate(value)]
    if origin is dict:
        if not isinstance(value, dict):
            raise _wrong(place, "an object", value)
        return {k: _build(arguments[1], v, f"{place}.{k}") for k, v in value.items()}
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is not Any and type(value) is not kind:
        raise _wrong(place, kind.__name__, value)
    return value


def _build_first(kinds: list[Any], value: Any, place: str) -> Any:  # noqa: ANN401
    """The first kind that fits; the last one's complaint when none does."""
    try:
        return _build(kinds[0], value, place)
    except RecordError:
        if len(kinds) == 1:
            raise
    return _build_first(kinds[1:], value, place)


def _build_dataclass(kind: Any, value: dict[str, Any], place: str) -> Any:  # noqa: ANN401
    hints = typing.get_type_hints(kind)
    arguments = {}
    for field in dataclasses.fields(kind):
        key = key_of(field)
        if key in value:
            arguments[field.name] = _build(hints[field.name], value[key], f"{place}.{key}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise RecordError(f"{place}: expected the key {key!r}, found none")
    return kind(**arguments)


def _wrong(place: str, expected: str, found: object) -> RecordError:
    return RecordError(f"{place}: expected {expected}, found {str(found)[:60]!r}")
