"""asr.engines.ort: named tensors in, named tensors out; failures are our errors, in one line."""

import os
import re
import sys

import fakes
import numpy as np
import pytest

import asr
from asr.engines import cores, named, ort


def engine(threads=1, **network):
    return ort.OrtEngine(fakes.network(**network), name="net.onnx", threads=threads)


def inputs(rows=6, dim=560):
    return {
        "speech": np.zeros((1, rows, dim), np.float32),
        "speech_lengths": np.array([rows], np.int32),
        "language": np.array([0], np.int32),
        "textnorm": np.array([15], np.int32),
    }


def test_an_engine_says_what_the_network_takes_and_gives():
    """Names, types and sizes are those of the file; a free size is its name."""
    found = engine(dim=560, tokens=7)
    assert [(t.name, t.dtype, t.shape) for t in found.inputs + found.outputs] == [
        ("speech", "tensor(float)", (1, "t", 560)),
        ("speech_lengths", "tensor(int32)", (1,)),
        ("language", "tensor(int32)", (1,)),
        ("textnorm", "tensor(int32)", (1,)),
        ("ctc_logits", "tensor(float)", (1, "t", 7)),
    ]


def test_a_run_gives_an_array_per_output_name():
    """Outputs come back by name."""
    speech = np.ones((1, 6, 560), np.float32)
    found = engine(tokens=7, weight=0.5).run({**inputs(), "speech": speech})
    assert found.keys() == {"ctc_logits"}
    assert np.array_equal(np.full((1, 6, 7), 280, np.float32), found["ctc_logits"])


def test_a_run_changes_no_input():
    """The engine borrows: the caller's features are as they were."""
    given = inputs()
    before = {name: value.copy() for name, value in given.items()}
    engine().run(given)
    assert all(np.array_equal(before[name], given[name]) for name in before)


@pytest.mark.parametrize(
    "wrong",
    [
        {"speech": np.zeros((1, 6, 80), np.float32)},
        {"speech": np.zeros((1, 6, 560), np.float64)},
        {"language": np.array([0], np.int64)},
        {"unknown": np.zeros(1, np.float32)},
    ],
    ids=["columns", "float64", "int64", "name"],
)
def test_what_the_runtime_refuses_is_an_engine_error(wrong):
    """The runtime's own exceptions do not escape, and their first line is enough."""
    with pytest.raises(asr.EngineError, match="the network failed to run: ") as seen:
        engine().run({**inputs(), **wrong})
    assert len(str(seen.value).splitlines()) == 1
    assert seen.value.exit_code == 4


def test_a_missing_input_is_an_engine_error():
    """Every input has to be there."""
    given = inputs()
    del given["speech"]
    with pytest.raises(asr.EngineError, match="speech"):
        engine().run(given)


def test_a_network_that_breaks_while_running_is_an_engine_error():
    """A fault inside the graph is the network's fault, told in one line."""
    with pytest.raises(asr.EngineError) as seen:
        engine(rows=7, fixed=False).run(inputs())
    assert len(str(seen.value).splitlines()) == 1


@pytest.mark.parametrize("data", [b"\x08", b"\x08\x08", b"\x08" + b"\xff" * 100])
def test_bytes_that_are_no_network_are_named(data):
    """The file's name, what was expected, what to do."""
    with pytest.raises(asr.LayoutError, match=r"^net.onnx: expected .* again$") as seen:
        ort.OrtEngine(data, name="net.onnx", threads=1)
    assert len(str(seen.value).splitlines()) == 1


def test_a_network_that_cannot_be_read_is_the_systems_refusal(tmp_path):
    """A path the system refuses is exit code 5, not a bad model."""
    (tmp_path / "file").touch()
    with pytest.raises(asr.SystemAccessError, match="Not a directory") as seen:
        ort.read_model(tmp_path / "file" / "model.onnx")
    assert seen.value.exit_code == 5


def tasks():
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_are_what_was_asked_for(threads):
    """The engine reports the number it was given, and the caller is one of them."""
    before = tasks()
    made = engine(threads=threads)
    assert (made.threads, tasks() - before) == (threads, threads - 1)


def test_by_default_threads_follow_the_affinity(asr_process):
    """One core allowed: one thread, and no pool beside it."""
    program = (
        "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]);"
        "import numpy, asr; before = len(os.listdir('/proc/self/task'));"
        "model = asr.Recognizer.load();"
        "print(model.engine.threads, len(os.listdir('/proc/self/task')) - before)"
    )
    assert asr_process(program=program).out.split() == ["1", "0"]


GROUPS = {
    "no group at all": ({}, None),
    "version 2": ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 2),
    "version 2, no limit": (
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
    "version 2, of a parent": (
        {
            "proc/self/cgroup": "0::/a/b\n",
            "sys/fs/cgroup/a/cpu.max": "100000 100000\n",
            "sys/fs/cgroup/a/b/cpu.max": "300000 100000\n",
        },
        1,
    ),
    "version 2, less than a core": (
        {"proc/self/cgroup": "0::/x\n", "sys/fs/cgroup/x/cpu.max": "1000 100000\n"}, 1),
    "version 1": (
        {
            "proc/self/cgroup": "4:memory:/\n3:cpu,cpuacct:/docker/1\n0::/\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000\n",
        },
        2,
    ),
    "version 1, a path that is not seen": (
        {
            "proc/self/cgroup": "3:cpu,cpuacct:/docker/1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        1,
    ),
    "version 1, no limit": (
        {
            "proc/self/cgroup": "3:cpu:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
        None,
    ),
    "not what it should be": (
        {"proc/self/cgroup": "0::/\n:\n", "sys/fs/cgroup/cpu.max": "x y z\n"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", GROUPS)
def test_cores_follow_the_quota_of_the_control_group(tmp_path, monkeypatch, name):
    """The least of affinity and quotas, of the group and those above it, in both versions."""
    files, expected = GROUPS[name]
    for path, content in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    for allowed in (8, 1):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=allowed: set(range(n)))
        assert min(allowed, expected or allowed) == cores.available(tmp_path)


def test_the_default_is_at_most_four(monkeypatch):
    """Beyond four threads small networks wait for each other."""
    for allowed, expected in ((2, 2), (64, 4)):
        monkeypatch.setattr(ort.cores, "available", lambda n=allowed: n)
        assert expected == ort.default_threads()


def test_the_runtime_prints_nothing(capfd):
    """Failures reach the user as our one line, never as the runtime's own log."""
    with pytest.raises(asr.EngineError):
        engine(rows=7, fixed=False).run(inputs())
    assert capfd.readouterr() == ("", "")


def test_preparation_of_weights_changes_no_result():
    """The switch exists only to measure what preparation costs: the scores are the same."""
    network = fakes.network(tokens=7, weight=0.25)
    speech = np.linspace(-1, 1, 6 * 560, dtype=np.float32).reshape(1, 6, 560)
    found = [
        ort.OrtEngine(network, name="n", threads=1, prepack=on).run({**inputs(), "speech": speech})
        for on in (True, False)
    ]
    assert np.allclose(found[0]["ctc_logits"], found[1]["ctc_logits"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["ort", "ort:CPU", "ort:cpuexecutionprovider"])
def test_the_cpu_has_several_names(name):
    """All of them are the engine that is taken when nobody asks, with every node on the CPU."""
    assert named.is_default(name)
    found = asr.Recognizer.load("tiny-en", threads=1, engine=name).engine
    assert found.description.endswith(", CPU")
    assert list(found.placement) == ["CPUExecutionProvider"]
    assert found.placement["CPUExecutionProvider"] > 100


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("ort:Azure", asr.EngineError, "found none"),
        ("ort:CUDA", asr.MissingToolError, "onnxruntime-gpu"),
        ("ort:CUDAExecutionProvider", asr.MissingToolError, "CUDAExecutionProvider: expected"),
        ("ort:fast", asr.UsageError, "ort:fast"),
        ("tensorrt", asr.UsageError, "found 'tensorrt'"),
        ("openvino", asr.MissingToolError, "asr-rtf[openvino]"),
        ("openvino:GPU", asr.UsageError, "found 'openvino:GPU'"),
    ],
)
def test_an_engine_that_is_not_to_be_had_is_refused(name, error, words, monkeypatch):
    """Never replaced by the CPU: the Azure provider is in every wheel and would run no node."""
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(error, match=re.escape(words)):
        asr.Recognizer.load("tiny-en", threads=1, engine=name)


def test_a_provider_that_the_runtime_gives_up_is_refused(monkeypatch):
    """ONNX Runtime drops a provider whose libraries are missing and goes on with the CPU."""
    session = ort.import_runtime().InferenceSession
    monkeypatch.setattr(session, "get_providers", lambda _: ["CPUExecutionProvider"])
    with pytest.raises(asr.EngineError, match="gave it up for the CPU"):
        ort.OrtEngine(fakes.network(), name="n", threads=1, provider="Azure")


def test_a_runtime_that_does_not_tell_where_nodes_run_is_refused_for_others_than_the_cpu(
    monkeypatch,
):
    """Before 1.24 nobody knows whether a provider does anything; on the CPU it does not matter."""
    tells = "get_provider_graph_assignment_info"
    session = next(c for c in ort.import_runtime().InferenceSession.__mro__ if tells in vars(c))
    monkeypatch.delattr(session, tells)
    assert engine().placement == {}
    with pytest.raises(asr.MissingToolError, match=r"1\.24"):
        ort.OrtEngine(fakes.network(), name="n", threads=1, provider="Azure")


def test_byte_weights_are_made_for_the_cpu_of_onnx_runtime_only():
    """Asking another engine for them is a mistake, not something to pass over."""
    with pytest.raises(asr.UsageError, match="quantize"):
        asr.Recognizer.load("tiny-en", engine="openvino", quantize="int8")
