"""Facts of machines that are not here, in the forms in which people published them."""

import pytest
from tests.unit.cases import cases
from tests.unit.machine.hosts import host

from peakmark import limits
from peakmark.limits.base import Question
from peakmark.machine import hardware

SYSTEM = "/sys/devices/system/cpu"
EDAC = "/sys/devices/system/edac/mc"


def modules(names, **words):
    """Modules as udev prints them, one for each name of a channel."""
    lines = []
    for number, name in enumerate(names):
        slot = {"SIZE": "17179869184", "BANK_LOCATOR": name, "LOCATOR": "DIMM 0", **words}
        lines += [f"E: MEMORY_DEVICE_{number}_{key}={word}" for key, word in slot.items() if word]
    return {"udevadm": "\n".join(lines)}


def letters(count):
    return [f"P0 CHANNEL {letter}" for letter in "ABCDEFGH"[:count]]


def controllers(count):
    """Channels of 16 bits as Meteor Lake's firmware names them, four for each controller."""
    return [f"Controller{number // 4}-Channel{'ABCD'[number % 4]}" for number in range(count)]


def memory_limit(facts):
    row = ("memory", "RS", "pool", None, 1, "throughput")
    return limits.for_row(Question(*row, {"cpu": {"sockets": 1}, "memory": facts}))


@cases("machines")
def test_a_channel_has_the_width_that_its_firmware_tells(tmp_path, naming, count, words, gigabytes):
    names = {"letters": letters, "controllers": controllers}[naming](count)
    facts = hardware.collect_memory(host(tmp_path, "", modules(names, **words)))
    assert memory_limit(facts).value == pytest.approx(gigabytes * 1e9)


@pytest.mark.parametrize("kind", ["LPDDR5", "LPDDR4X", "HBM2"])
@pytest.mark.parametrize("width", ["", "Unknown", "0"])
def test_without_its_width_low_power_memory_has_no_limit_but_a_reason(tmp_path, kind, width):
    words = {"TYPE": kind, "CONFIGURED_SPEED_MTS": "6400", "DATA_WIDTH": width}
    facts = hardware.collect_memory(host(tmp_path, "", modules(letters(4), **words)))
    found = memory_limit(facts)
    assert found.value is None
    words = found.reason
    assert f"a channel of {kind} may have" in words and "memory.bytes_per_transfer" in words


@pytest.mark.parametrize(("kind", "location", "count"), [
    ("dimm", "channel {channel} slot {row}", 8),
    ("rank", "csrow {row} channel {channel}", 8),  # amd64_edac counts chip selects
    ("dimm", "branch {row} channel {channel} slot 0", 16),
])  # fmt: skip
@pytest.mark.parametrize("memory", ["Registered-DDR4", "Unbuffered-DDR5"])
def test_edac_names_modules_or_ranks_and_channels_or_branches(
    tmp_path, kind, location, count, memory
):
    files = {}
    for number in range(16):
        row, channel = divmod(number, 8)
        place = f"{EDAC}/mc0/{kind}{number}"
        files[f"{place}/dimm_location"] = location.format(row=row, channel=channel)
        files |= {f"{place}/size": "16384", f"{place}/dimm_mem_type": memory}
    facts = hardware.collect_memory(host(tmp_path, files))
    assert (facts["channels"], facts["channels_source"], facts["type"]) == (count, "EDAC", memory)


def arm(root, kinds, lscpu="", implementer="0x41"):
    """A machine of ``kinds``: part number, highest clock in kHz, package, number of CPUs."""
    files, cpuinfo, cpu = {}, [], 0
    for part, clock, package, count in kinds:
        for _ in range(count):
            cpuinfo.append(
                f"processor\t: {cpu}\nFeatures\t: fp asimd\nCPU implementer\t: {implementer}\n"
                f"CPU architecture: 8\nCPU part\t: {part}\n"
            )
            place = f"{SYSTEM}/cpu{cpu}"
            files |= {
                f"{place}/topology/physical_package_id": str(package),
                f"{place}/topology/thread_siblings_list": str(cpu),
                f"{place}/cpufreq/cpuinfo_max_freq": str(clock),
            }
            cpu += 1
    files |= {"/proc/cpuinfo": "\n".join(cpuinfo), f"{SYSTEM}/online": f"0-{cpu - 1}"}
    return host(root, files, {"lscpu -J": lscpu})


@cases("machines")
def test_two_kinds_of_arm_cores_are_told(tmp_path, kinds, names, implementer):
    lscpu = '{"lscpu": [{"field": "Model name:", "data": "Cortex-A53"}]}'
    this = arm(tmp_path, kinds, lscpu, implementer)
    facts = hardware.collect_cpu(this)
    assert (facts["model_name"], facts["model"], facts["microarchitecture"]) == (names, None, None)
    assert facts["clock_hz"]["maximum"] == max(kind[1] for kind in kinds) * 1e3
    assert [kind["maximum"] for kind in facts["kinds"]] == [kind[1] * 1e3 for kind in kinds]
    assert facts["sockets"] == 1  # S922X: its clusters are numbered as packages
    assert names in this.unknown["cpu.microarchitecture"]
    row = ("cpu", "DP", "", None, 2, "rate")
    known = {"cpu": facts, "limits": {"physical_cores_allowed": 2}}
    found = limits.for_row(Question(*row, known, clock_hz=2e9))
    assert found.value is None and f"several kinds ({names})" in found.reason


def test_one_kind_of_arm_core_in_two_sockets(tmp_path):
    facts = hardware.collect_cpu(
        arm(tmp_path, [("0xd0c", 3000000, package, 2) for package in (0, 1)])
    )
    assert (facts["sockets"], facts["microarchitecture"]) == (2, "Neoverse N1")
    assert "kinds" not in facts


def test_two_kinds_of_intels_cores_are_told(tmp_path):
    files = f"""
        {SYSTEM}/online 0-7
        /sys/devices/cpu_core/cpus 0-3
        /sys/devices/cpu_atom/cpus 4-7
        {SYSTEM}/cpu0/cpufreq/cpuinfo_max_freq 4900000
        {SYSTEM}/cpu0/cpufreq/base_frequency 2100000
        {SYSTEM}/cpu4/cpufreq/cpuinfo_max_freq 3600000
        /proc/cpuinfo model name : 12th Gen Intel(R) Core(TM) i7-12700
    """
    facts = hardware.collect_cpu(host(tmp_path, files))
    assert facts["model_name"] == "12th Gen Intel(R) Core(TM) i7-12700"
    told = [tuple(kind.values()) for kind in facts["kinds"]]
    assert told == [("4 x P-core", "0,1,2,3", 4.9e9), ("4 x E-core", "4,5,6,7", 3.6e9)]
    assert (facts["clock_hz"]["maximum"], facts["clock_hz"]["nominal"]) == (4.9e9, None)
