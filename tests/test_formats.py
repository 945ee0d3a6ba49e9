"""asr.formats: a transcript becomes a line of JSON that docs/transcript.schema.json describes."""

import copy
import dataclasses
import json
import re
from pathlib import Path

import fakes
import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import asr
from asr import formats, text
from asr.observe import STAGES
from asr.text import Vocabulary

DOCS = Path(__file__).resolve().parents[1] / "docs"
SCHEMAS = {
    name: json.loads((DOCS / f"{name}.schema.json").read_text(encoding="utf-8"))
    for name in ("transcript", "channels", "timings")
}
VALIDATOR = fakes.schema_validator()
WORDS = ["▁hello", "▁v", "ad", "测", "试"]


def transcript(ids=None, prompts=("<|en|>", "<|NEUTRAL|>", "<|Speech|>", "<|woitn|>"), **options):
    ids = [fakes.ID[p] for p in WORDS] if ids is None else ids
    made = text.transcribe(
        fakes.decoded(ids, prompts=[fakes.ID[p] for p in prompts]),
        Vocabulary(fakes.PIECES),
        audio_s=100.0,
        requested_itn=False,
        **options,
    )
    return dataclasses.replace(made, wall_s=0.5)


def parsed(made, **extra):
    return json.loads(formats.to_json(made, "talk.wav", **extra))


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schemas_are_valid_and_closed(name):
    """Draft 2020-12, and every object says which members it may have: nothing slips in."""
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])

    def walk(node, where="$"):
        if isinstance(node, dict):
            if node.get("type") == "object" and "then" not in where:
                closed = {"additionalProperties", "maxProperties"} & set(node)
                assert closed, f"{where}: an open object"
            for key, child in node.items():
                walk(child, f"{where}.{key}")
        elif isinstance(node, list):
            for number, child in enumerate(node):
                walk(child, f"{where}[{number}]")

    walk(SCHEMAS[name])


@pytest.mark.parametrize(
    ("record", "path"),
    [
        ("Transcript", ()),
        ("Segment", ("$defs", "segment")),
        ("Word", ("$defs", "word")),
        ("Token", ("$defs", "token")),
    ],
)
def test_the_schema_describes_every_field(record, path):
    """Fields of a record and members of the schema are the same, each with a description."""
    schema = SCHEMAS["transcript"]
    for key in path:
        schema = schema[key]
    fields = [f.name for f in dataclasses.fields(getattr(asr, record))]
    beside = {"schema", "source", "timings"} if record == "Transcript" else set()
    assert set(fields) == set(schema["properties"]) - beside
    assert set(fields) == set(schema["required"]) - beside
    assert all(p.get("description") for p in schema["properties"].values())


def test_the_schema_of_timings_knows_the_contracts_stages():
    """A stage has one name: in the code, in a dump's file name and in the schema."""
    assert list(STAGES) == SCHEMAS["timings"]["$defs"]["stage"]["enum"]


def test_the_schema_is_named_in_each_line():
    """A reader can tell which schema a stored line follows."""
    expected = SCHEMAS["transcript"]["properties"]["schema"]["const"]
    assert expected == formats.SCHEMA_ID == parsed(transcript())["schema"]


@pytest.mark.parametrize(
    "made",
    [
        transcript(),
        transcript([]),
        transcript(prompts=("<unk>", "<unk>", "<unk>", "<unk>")),
        transcript(prompts=("<|nospeech|>", "<|NEUTRAL|>", "<|BGM|>", "<|withitn|>")),
        dataclasses.replace(text.from_segments((), reason="too_short", audio_s=0.0), wall_s=0.001),
    ],
    ids=["speech", "no tokens", "no tags", "nospeech", "too short"],
)
def test_every_kind_of_transcript_is_valid(made):
    """Speech, silence, too little sound: the same members, the right types."""
    VALIDATOR.validate(parsed(made))


@given(st.lists(st.integers(1, len(fakes.PIECES) - 1), max_size=12))
def test_any_tokens_make_a_valid_line(ids):
    """Whatever the network says, the line is one line, is valid, and comes back as it was."""
    made = transcript(ids)
    line = formats.to_json(made, "talk.wav")
    assert len(line.splitlines()) == 1
    found = json.loads(line)
    VALIDATOR.validate(found)
    assert found["text"] == made.text
    assert [w["text"] for s in found["segments"] for w in s["words"]] == [
        w.text for s in made.segments for w in s.words
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(extra=1),
        lambda m: m.pop("audio_s"),
        lambda m: m.update(audio_s="3.0"),
        lambda m: m.update(reason="because"),
        lambda m: m.update(confidence=1.5),
        lambda m: m.update(no_speech=True),
        lambda m: m["segments"][0].update(start_s="0"),
        lambda m: m["segments"][0]["words"][0].update(end_s=-1),
        lambda m: m["segments"][0]["words"][0].update(tokens=[]),
        lambda m: m["segments"][0]["words"][0]["tokens"][0].update(start_ms=1),
        lambda m: m.update(timings={}),
    ],
)
def test_the_schema_refuses_what_is_wrong(change):
    """A schema that accepts anything protects nobody."""
    line = parsed(transcript())
    wrong = copy.deepcopy(line)
    change(wrong)
    assert VALIDATOR.is_valid(line)
    assert not VALIDATOR.is_valid(wrong)


def test_times_are_float_seconds():
    """One unit everywhere, always a number, never a string and never milliseconds."""
    line = parsed(transcript())
    times = [
        part[key]
        for s in line["segments"]
        for part in (s, *s["words"], *(t for w in s["words"] for t in w["tokens"]))
        for key in ("start_s", "end_s")
    ]
    assert {float} == {type(t) for t in times}
    assert max(times) <= line["audio_s"]
    assert not re.search(r'_ms"', json.dumps(line))


def test_json_keeps_scripts_readable():
    """CJK is written as it is, not as escapes: people read these lines too."""
    assert "测" in formats.to_json(transcript(), "talk.wav")


def test_json_has_no_nan():
    """NaN is no JSON: a number that is none is a bug here, not in every reader."""
    with pytest.raises(ValueError, match="JSON"):
        formats.to_json(dataclasses.replace(transcript(), audio_s=float("nan")), "talk.wav")
