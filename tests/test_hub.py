"""asr.hub: a model's name becomes its folder, without a network."""

import socket

import pytest

import asr
from asr import hub


def test_the_default_model_is_built_in():
    """A fresh clone hears speech without a download."""
    assert hub.DEFAULT_MODEL in hub.builtin_models()
    assert (hub.find_model(hub.DEFAULT_MODEL) / "config.yaml").is_file()


def test_loading_the_default_model_opens_no_connection(monkeypatch):
    """Offline means offline: no socket is even made."""

    def refuse(*_args, **_options):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert asr.Recognizer.load(threads=1).layout.kind == "funasr"


def test_a_folder_is_itself(tmp_path):
    """A path needs no look-up, as text or as a path."""
    assert hub.find_model(tmp_path) == tmp_path
    assert hub.find_model(str(tmp_path)) == tmp_path


def test_a_folder_wins_over_a_built_in_name(tmp_path, monkeypatch):
    """What lies in front of the user is what they mean."""
    (tmp_path / hub.DEFAULT_MODEL).mkdir()
    monkeypatch.chdir(tmp_path)
    assert hub.find_model(hub.DEFAULT_MODEL).resolve() == tmp_path / hub.DEFAULT_MODEL


def test_an_unknown_name_lists_the_known_ones():
    """The message says what may be asked for."""
    with pytest.raises(asr.LayoutError, match=f"nope: .*{hub.DEFAULT_MODEL}.*found nothing") as e:
        hub.find_model("nope")
    assert len(str(e.value).splitlines()) == 1


def test_a_file_is_no_model_folder(clip):
    """A file where a folder is expected is called a file."""
    with pytest.raises(asr.LayoutError, match="found a file"):
        hub.find_model(clip)
