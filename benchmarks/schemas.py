"""Write docs/bench, pairs, gate and prediction.schema.json from the classes of what they describe.

    .venv/bin/python benchmarks/schemas.py [--check]

--check writes nothing and exits 12 when a published schema is not current.
"""

import dataclasses
import json
import re
import sys
import types
import typing
from pathlib import Path
from typing import Any

from asr.bench import record
from asr.bench.plain import key_of
from asr.deploy import predict
from asr.gate.outputs import plain as gate

DOCS = Path(__file__).resolve().parents[1] / "docs"
TIMES = re.compile(r"_(ns|bytes)$")


def schema_of(kind: type, name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe an annotation; dataclasses go to the definitions. name: the field's."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # taken, before its own fields look it up
            definitions[kind.__name__] = object_of(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [schema_of(a, name, definitions) for a in arguments]}
    if origin is typing.Literal:
        return {"const": arguments[0]} if len(arguments) == 1 else {"enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0], name, definitions)}
    if origin is dict:
        values = schema_of(arguments[1], name, definitions)
        return {"type": "object", "additionalProperties": values}
    plain = {str: "string", bool: "boolean", int: "integer", float: "number"}
    if kind is type(None):
        return {"type": "null"}
    if kind not in plain:
        return {}
    found: dict[str, Any] = {"type": plain[kind]}
    # `unaccounted` is what is left over between two clocks and may fall below zero.
    if kind is int and TIMES.search(name) and name not in ("stages_ns", "load_ns", "growth_bytes"):
        found["minimum"] = 0
    if name.endswith("sha256") and kind is str:
        found["pattern"] = "^([0-9a-f]{64})?$"
    return found


def object_of(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    """Describe a dataclass; the descriptions are its docstring's."""
    texts = attributes(kind.__doc__)
    hints = typing.get_type_hints(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        key = key_of(field)
        found = schema_of(hints[field.name], field.name, definitions)
        properties[key] = {"description": texts[field.name], **found}
        if not field.metadata.get("absent"):
            required.append(key)
    return {
        "description": kind.__doc__.splitlines()[0],
        "type": "object",
        "properties": properties,
        "required": required,
    }


def attributes(docstring: str) -> dict[str, str]:
    """Read a docstring's Attributes: name -> description in one line."""
    body = docstring.partition("Attributes:")[2]
    entries = re.findall(r"^ {8}(\w+): (.*(?:\n {12}.*)*)", body, re.M)
    return {name: " ".join(text.split()) for name, text in entries}


def text_of(kind: type, name: str) -> str:
    """The whole schema file of a record."""
    definitions: dict[str, Any] = {}
    top = object_of(kind, definitions)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:asr:{name}:1",
        "title": f"asr {name}",
        **top,
        "$defs": dict(sorted(definitions.items())),
    }
    if name in ("bench", "pairs"):
        schema["description"] += " Times are integer nanoseconds, memory bytes, audio seconds."
    schema["description"] += " A newer version of the same schema may only add keys."
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> int:
    """Write or check; return the exit code."""
    stale = []
    kinds = (
        (record.Bench, "bench"), (record.Pairs, "pairs"), (gate.Told, "gate"),
        (predict.Prediction, "prediction"),
    )  # fmt: skip
    for kind, name in kinds:
        path, text = DOCS / f"{name}.schema.json", text_of(kind, name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
    if stale:
        print(f"{', '.join(stale)}: not current; run benchmarks/schemas.py", file=sys.stderr)
    return 12 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
