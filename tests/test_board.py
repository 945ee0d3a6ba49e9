"""What a record says of a board: its cores, governor, temperature, what held its clock down."""

import json
import os

import pytest
from records import bench

from asr.bench import heat, machine
from asr.bench.plain import to_plain
from asr.bench.record import Heat
from asr.engines import cores, ort

FEATURES = "fp asimd aes crc32 atomics fphp asimdhp cpuid asimdrdm lrcpc dcpop"
ZONE, COOLER = "sys/class/thermal/thermal_zone", "sys/class/thermal/cooling_device"


def cpuinfo(*parts, features=f"{FEATURES} asimddp"):
    """The file as Linux on Arm writes it: a block per core."""
    return "\n".join(
        f"processor\t: {number}\nBogoMIPS\t: 108.00\nFeatures\t: {features}\n"
        f"CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x4\nCPU part\t: {part}\n"
        "CPU revision\t: 1\n"
        for number, part in enumerate(parts)
    )


def governors(*names):
    return {
        f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor": f"{name}\n"
        for core, name in enumerate(names)
    }


RPI5 = {
    "proc/cpuinfo": cpuinfo(*["0xd0b"] * 4),
    "proc/meminfo": "MemTotal:        8252288 kB\n",
    **governors(*["ondemand"] * 4),
    f"{ZONE}0/temp": "61350\n",
    f"{COOLER}0/type": "pwm-fan\n",
    f"{COOLER}0/cur_state": "2\n",
    "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled": "50005\n",
}
RK3588 = {
    "proc/cpuinfo": cpuinfo(*["0xd05"] * 4, *["0xd0b"] * 4),
    "proc/meminfo": "MemTotal:        7939944 kB\n",
    **governors(*["powersave"] * 4, *["schedutil"] * 4),
    f"{ZONE}0/temp": "48076\n",
    f"{ZONE}1/temp": "52692\n",
    f"{ZONE}2/temp": "N/A\n",
    f"{COOLER}0/type": "thermal-cpufreq-0\n",
    f"{COOLER}0/cur_state": "0\n",
    f"{COOLER}1/type": "thermal-cpufreq-1\n",
    f"{COOLER}1/cur_state": "3\n",
}
RPI4 = {"proc/cpuinfo": cpuinfo(*["0xd08"] * 4, features="fp asimd evtstrm crc32 cpuid")}
EMPTY = {}


@pytest.fixture
def board(tmp_path, monkeypatch):
    """A function that makes a board's files and lets the process use some of its cores."""
    monkeypatch.setattr(cores, "_is_arm", lambda: True)

    def make(files, allowed):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed), raising=False)
        for path, content in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(content)
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("files", "allowed", "counted"),
    [
        (RPI5, range(4), [0, 1, 2, 3]),
        (RK3588, range(8), [4, 5, 6, 7]),
        (RK3588, [3, 4, 5], [4, 5]),
        (RK3588, [0, 1], [0, 1]),
        (RPI4, range(4), [0, 1, 2, 3]),
        (EMPTY, range(3), [0, 1, 2]),
    ],
)
def test_threads_are_the_a76_cores(board, files, allowed, counted):
    """Of big and small cores the big ones count, unless the process may use small ones alone."""
    root = board(files, allowed)
    assert counted == cores.counted(root)
    assert len(counted) == cores.available(root)


def test_a_quota_still_counts(board):
    """A container with half of the big cores gets as many threads."""
    quota = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}
    assert cores.available(board({**RK3588, **quota}, range(8))) == 2


def test_other_machines_do_not_read_the_file(board, monkeypatch):
    """On x86 the file has no parts, and reading it can cost milliseconds."""
    root = board(RK3588, range(8))
    monkeypatch.setattr(cores, "_is_arm", lambda: False)
    assert cores.parts(root) == {}
    assert cores.available(root) == 8


def test_the_default_is_the_number_of_big_cores(board, monkeypatch):
    """An engine without --threads takes the A76 cores of a chip of eight."""
    root = board({**RK3588, "proc/cpuinfo": cpuinfo(*["0xd05"] * 6, "0xd0b", "0xd0b")}, range(8))
    monkeypatch.setattr(cores.available, "__defaults__", (root,))
    assert ort.default_threads() == 2


@pytest.mark.parametrize(
    ("files", "allowed", "expected"),
    [
        (RPI5, range(4), {
            "cpu": "Cortex-A76 (0xd0b)", "core_kinds": "4 x Cortex-A76 (0xd0b)", "a76_cores": 4,
            "dot_product": "yes", "governor": "ondemand", "memory_gib": 8, "cores": 4}),
        (RK3588, range(8), {
            "cpu": "Cortex-A76 (0xd0b)", "a76_cores": 4, "dot_product": "yes",
            "core_kinds": "4 x Cortex-A55 (0xd05), 4 x Cortex-A76 (0xd0b)",
            "governor": "schedutil", "memory_gib": 8, "cores": 8}),
        (RPI4, range(4), {
            "cpu": "Cortex-A72 (0xd08)", "core_kinds": "4 x Cortex-A72 (0xd08)", "a76_cores": 0,
            "dot_product": "no", "governor": "unknown"}),
    ],
    ids=["rpi5", "rk3588", "rpi4"],
)  # fmt: skip
def test_a_record_names_the_cores_and_their_governor(board, files, allowed, expected):
    """The core that works is named, not the first one; the governor is that of the A76 cores."""
    found = machine.fields(board(files, allowed))
    assert expected == {name: found[name] for name in expected}


def test_mixed_governors_are_all_named(board):
    """Two clusters of A76, two governors: neither is hidden."""
    files = {**RPI5, **governors("performance", "performance", "ondemand", "ondemand")}
    assert machine.fields(board(files, range(4)))["governor"] == "ondemand performance"


def test_a_machine_without_arm_cores_has_the_fields_it_always_had(board):
    """Other machines keep their fingerprint."""
    found = machine.fields(board({"proc/cpuinfo": "processor: 0\nmodel name: X\n"}, [0]))
    assert not {"core_kinds", "a76_cores", "dot_product"} & set(found)
    assert found["cpu"] == "X"


@pytest.mark.parametrize(
    ("files", "expected", "words"),
    [
        (RPI5, Heat(61.35, 61.35, 0x50005, None),
         ["under-voltage", "throttled"]),
        ({**RPI5, next(k for k in RPI5 if "throttled" in k): "50000\n"},
         Heat(61.35, 61.35, 0x50000, None),
         ["under-voltage since the board was started", "throttled since the board was started"]),
        (RK3588, Heat(52.692, 52.692, None, True), ["clock held down by the kernel"]),
        ({**RK3588, f"{COOLER}1/cur_state": "0\n"}, Heat(52.692, 52.692, None, False), []),
        (EMPTY, None, None),
    ],
    ids=["rpi5 throttled", "rpi5 was throttled", "rk3588 held", "rk3588 cool", "nothing"],
)  # fmt: skip
def test_heat_is_read_from_firmware_and_kernel(board, files, expected, words):
    """The hottest zone, the firmware's bits, the kernel's cooling of the clock; a fan is none."""
    found = heat.Watch(board(files, [0])).finish()
    assert expected == found
    assert words == (heat.words(found) if found else None)


def test_the_temperature_is_that_before_and_after(board):
    """A record has both ends."""
    root = board(RPI5, [0])
    watch = heat.Watch(root)
    (root / f"{ZONE}0/temp").write_text("80100\n")
    found = watch.finish()
    assert (found.celsius_start, found.celsius_end) == (61.35, 80.1)


def test_a_report_says_what_held_the_clock_down():
    """The table on the terminal and the page name it; a record without it has no such key."""
    from dataclasses import replace

    from asr.cli.bench_tables import _head
    from asr.report.content import _machine

    run = bench()
    hot = replace(run, heat=Heat(50.0, 85.0, 0x4, True))
    assert "[throttled, clock held down by the kernel]" in _head(hot)
    assert "50 to 85 °C; throttled" in json.dumps(to_plain(_machine(hot)), ensure_ascii=False)
    assert "[" not in _head(run)
    assert "heat" not in to_plain(run)
