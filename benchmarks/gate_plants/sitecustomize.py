"""Plants a regression in whatever ``asr`` this interpreter runs: for benchmarks/gate_proof.py.

Python imports a module of this name at start when its folder is in PYTHONPATH. ``ASR_PLANT`` is
``KIND STAGE NANOSECONDS``; without it nothing is planted. The real function behind the stage is
replaced by one that calls it and then wastes that time:

``sleep``    sleeps;
``copy``     copies the stage's result again and again;
``write``    writes its values into a file, one call and one flush each;
``threads``  gives the network one thread more than was asked for.
"""

import importlib.abc
import importlib.util
import itertools
import os
import sys
import tempfile
import time

#: Stage -> the module that must be loaded, and the function's place in it.
PLACES = {
    "read": ("asr.audio.reader", "Reader.head"),
    "fbank": ("asr.frontend", "FrontEnd.fbank"),
    "cmvn": ("asr.frontend", "FrontEnd.cmvn"),
    "infer": ("asr.engines.ort", "OrtEngine.run"),
    "text": ("asr.text", "transcribe"),
    "threads": ("asr.engines.ort", "OrtEngine.__init__"),
}


def wasting(function, kind, ns):
    """The function, and then the waste."""

    def planted(*arguments, **named):
        if kind == "threads":
            named["threads"] += 1
            return function(*arguments, **named)
        value = function(*arguments, **named)
        end_ns = time.perf_counter_ns() + ns
        if kind == "sleep":
            time.sleep(ns / 1e9)
        elif kind == "copy":
            copy(array_of(value), end_ns)
        else:
            write(array_of(value), end_ns)
        return value

    return planted


def array_of(value):
    """The array in a record or mapping, or one of its size in place of it."""
    import numpy as np

    for name in ("values", "samples"):
        found = getattr(value, name, None)
        if isinstance(found, np.ndarray):
            return found
    return np.zeros(10_000, np.float32)


def copy(values, end_ns):
    """A copy nobody needs, repeated."""
    import numpy as np

    while time.perf_counter_ns() < end_ns:
        np.array(values[:50])


def write(values, end_ns):
    """The dump that once made a 220 ms pipeline take 550: one write and flush per value."""
    with tempfile.TemporaryFile("w") as file:
        for value in itertools.cycle(values.flat):
            file.write(f"{value}\n")
            file.flush()
            if time.perf_counter_ns() >= end_ns:
                break


def plant(kind, stage, ns):
    """Replace the function as soon as its module has been loaded."""
    module_name, place = PLACES["threads" if kind == "threads" else stage]

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name != module_name:
                return None
            sys.meta_path.remove(self)
            spec = importlib.util.find_spec(name)
            execute = spec.loader.exec_module

            def exec_and_plant(module):
                execute(module)
                holder = module
                *outer, attribute = place.split(".")
                for part in outer:
                    holder = getattr(holder, part)
                setattr(holder, attribute, wasting(getattr(holder, attribute), kind, ns))

            spec.loader.exec_module = exec_and_plant
            return spec

    sys.meta_path.insert(0, Finder())


if os.environ.get("ASR_PLANT"):
    kind_, stage_, ns_ = os.environ["ASR_PLANT"].split()
    plant(kind_, stage_, int(ns_))
