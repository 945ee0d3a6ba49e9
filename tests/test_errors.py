"""asr.errors: every exception is raised somewhere, is one line, and has the contract's code."""

import inspect
import re
from pathlib import Path

import fakes
import numpy as np
import pytest

import asr
from asr import errors
from asr.cli import main

CLASSES = {
    name: found
    for name, found in vars(errors).items()
    if inspect.isclass(found) and issubclass(found, errors.AsrError)
}

# architecture.md, section 6.
CODES = {
    "AsrError": 70,
    "UsageError": 2,
    "AudioError": 3,
    "LayoutError": 4,
    "EngineError": 4,
    "RecordError": 4,
    "FrontEndError": 4,
    "DecodeError": 4,
    "SystemAccessError": 5,
    "SourceError": 6,
    "MissingToolError": 7,
    "TextChangedError": 12,
    "NoisyError": 15,
}
BUILTINS = {
    "UsageError": ValueError,
    "AudioError": ValueError,
    "LayoutError": ValueError,
    "RecordError": ValueError,
    "FrontEndError": ValueError,
    "DecodeError": ValueError,
    "EngineError": RuntimeError,
    "TextChangedError": RuntimeError,
    "NoisyError": RuntimeError,
    "SystemAccessError": OSError,
    "MissingToolError": ImportError,
    "SourceError": OSError,
}
SECOND = fakes.hiss(16000)


def loop(tmp_path):
    (tmp_path / "loop.wav").symlink_to(tmp_path / "loop.wav")
    return tmp_path / "loop.wav"


def changed(tmp_path):
    """Two calls, two texts: only the command compares them, so it raises where it can be seen."""
    from asr.cli import hear
    from asr.cli.outputs import Job

    texts = iter(["one", "two"])

    class Fickle:
        def transcribe(self, *_args, **_options):
            found = fakes.recognizer(fakes.rows(["▁hello"])).transcribe(SECOND, sample_rate=16000)
            import dataclasses

            return dataclasses.replace(found, text=next(texts))

    from asr.cli import build_parser

    options = build_parser().parse_args(["transcribe", "x.wav", "--repeat", "2"])
    seen = []
    original, hear.fail = hear.fail, lambda error, code: seen.append(error) or code
    try:
        assert hear.transcribe(Fickle(), Job(tmp_path / "x.wav"), options) == 12
    finally:
        hear.fail = original
    raise seen[0]


def noisy(_):
    """A record of a loud machine, judged strictly."""
    import dataclasses

    import records

    from asr.cli import bench

    found = records.bench()
    loud = dataclasses.replace(found.noise, class_="noisy")
    bench._verdict(dataclasses.replace(found, noise=loud), strict=True)


TRIGGERS = {
    "UsageError": lambda _: asr.Recognizer.load(threads=0),
    "AudioError": lambda p: fakes.recognizer(fakes.rows([])).transcribe(p / "nope.wav"),
    "LayoutError": lambda p: asr.Recognizer.load(p),
    "EngineError": lambda p: asr.Recognizer.load(
        written(p, fakes.network(rows=7, fixed=False)), threads=1
    ).transcribe(SECOND, sample_rate=16000),
    "FrontEndError": lambda _: asr.Recognizer.load(backend="mmx"),
    "DecodeError": lambda _: fakes.recognizer(fakes.rows([]) * np.nan).transcribe(
        SECOND, sample_rate=16000
    ),
    "SystemAccessError": lambda p: fakes.recognizer(fakes.rows([])).transcribe(loop(p)),
    "TextChangedError": changed,
    "NoisyError": noisy,
}


def written(tmp_path, network):
    folder = fakes.model_folder(tmp_path)
    fakes.network_of(folder).write_bytes(network)
    return folder


def named_elsewhere():
    """Names that other test files expect with ``pytest.raises``."""
    files = [p for p in Path(__file__).parent.glob("test_*.py") if p != Path(__file__)]
    calls = (c for p in files for c in re.findall(r"raises\(([^)]*)", p.read_text("utf-8")))
    return {name for call in calls for name in re.findall(r"\w+Error", call)}


def test_every_exception_has_a_test_that_triggers_it():
    """An error path that no test walks is one that may never have worked."""
    assert set() == set(CLASSES) - {"AsrError"} - set(TRIGGERS) - named_elsewhere()


@pytest.mark.parametrize("name", TRIGGERS)
def test_an_exception_is_raised_as_itself_in_one_line(name, tmp_path):
    """Exactly this class, with a message of one line that says more than its name."""
    with pytest.raises(asr.AsrError) as seen:
        TRIGGERS[name](tmp_path)
    assert type(seen.value).__name__ == name
    assert len(str(seen.value).splitlines()) == 1
    assert len(str(seen.value)) > 20


@pytest.mark.parametrize("name", CLASSES)
def test_exit_codes_are_those_of_the_contract(name):
    """The code is part of the class; several programs rely on the same numbers."""
    assert CODES[name] == CLASSES[name].exit_code


@pytest.mark.parametrize("name", CLASSES)
def test_every_exception_also_is_a_builtin(name):
    """``except ValueError`` works for who does not know us; a docstring says when it is raised."""
    assert issubclass(CLASSES[name], BUILTINS.get(name, Exception))
    assert CLASSES[name].__doc__


@pytest.mark.parametrize("name", CLASSES)
def test_exceptions_are_public_names(name):
    """What may be raised can be caught by a name of the package itself."""
    assert getattr(asr, name) is CLASSES[name]


@pytest.mark.parametrize("name", CLASSES)
def test_the_command_returns_each_exceptions_code(name, monkeypatch, capsys):
    """Any of them, raised anywhere: the command prints one line and returns the code."""

    def fail(*_args, **_options):
        raise CLASSES[name]("a file: expected this,\nfound that")

    monkeypatch.setattr(asr.Recognizer, "load", fail)
    assert main(["inspect", "tiny-en"]) == CODES[name]
    found = capsys.readouterr()
    assert found.out == ""
    assert len(found.err.splitlines()) == 1
    assert "expected this, found that" in found.err
