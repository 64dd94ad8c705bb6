"""Facts of processor and memory: identity, clocks, caches, channels."""

from pathlib import Path

import pytest
from tests.unit.cases import cases
from tests.unit.machine.hosts import DATA, files_of, host
from tests.unit.tools.samples import script

from peakmark import data
from peakmark.machine import hardware
from peakmark.machine.facts import collect


def test_observed_clock_comes_from_the_kernel(tmp_path):
    def observed(text):
        program = Path(script(tmp_path / "cpubench", text))
        facts = collect(tmp_path, cpubench=program)
        return facts["cpu"]["clock_hz"]["observed"], str(facts["unknown"])

    clock, _ = observed('test "$2" = SP && echo \'{"clock_hz_before": 3.2e9}\'')
    nothing, unknown = observed("echo nothing")
    assert (clock, nothing) == (3.2e9, None)
    assert "cpu.clock_hz.observed" in unknown and str(tmp_path / "cpubench") in unknown


def test_cpu_of_a_vm_from_real_outputs(tmp_path):
    files = {
        "/proc/cpuinfo": (DATA / "proc/cpuinfo-zen3-vm.txt").read_text(),
        "/sys/devices/system/cpu/online": "0-1",
    }
    tools = {"lscpu -J": (DATA / "lscpu/zen3-vm.json").read_text()}
    facts = hardware.collect_cpu(host(tmp_path, files, tools))
    assert (facts["vendor"], facts["family"], facts["model"]) == ("AuthenticAMD", 25, 1)
    assert facts["microarchitecture"] == "Zen 3"
    assert (facts["sockets"], facts["cores"], facts["threads"]) == (1, 2, 2)
    assert facts["isa_best"] == "avx2" and "avx512f" not in facts["isa"]
    assert facts["virtualised"] == "KVM"
    assert facts["clock_hz"]["nominal"] == pytest.approx(2.44543e9)
    assert "stamp counter" in facts["clock_source"]["nominal"]


def test_each_kind_of_cache_stands_once(tmp_path):
    lines = []
    for cpu in (0, 1):
        kinds = (f"1 Data 48K {cpu}", f"1 Instruction 32K {cpu}", "3 Unified 32768K 0-1")
        for index, values in enumerate(kinds):
            place = f"/sys/devices/system/cpu/cpu{cpu}/cache/index{index}"
            names = ("level", "type", "size", "shared_cpu_list")
            pairs = zip(names, values.split(), strict=True)
            lines += [f"{place}/{name} {text}" for name, text in pairs]
    caches = hardware.collect_cpu(host(tmp_path, "\n".join(lines)))["caches"]
    assert [tuple(cache.values()) for cache in caches] == [
        (1, "data", 48 << 10, 1, 2), (1, "instruction", 32 << 10, 1, 2), (3, "unified", 32 << 20, 2, 1),
    ]  # fmt: skip


def test_arm_is_identified_by_implementer_and_part(tmp_path):
    cpuinfo = "Features\t: fp asimd asimddp sve i8mm\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\n"
    facts = hardware.collect_cpu(host(tmp_path, {"/proc/cpuinfo": cpuinfo}))
    assert (facts["vendor"], facts["microarchitecture"]) == ("ARM", "Neoverse V1")
    assert facts["isa_best"] == "neon" and "dotprod" in facts["isa"]


@cases("machines")
def test_microarchitecture(vendor, family, model, stepping, name, expected):
    line = data.microarchitecture(vendor, family, model, stepping, name)
    assert line["microarchitecture"] == expected


def test_a_model_has_the_name_under_which_it_is_sold():
    assert (
        data.microarchitecture("AuthenticAMD", 25, 17, 1, "AMD EPYC")["product"]
        == "EPYC 9004 (Genoa)"
    )
    assert data.microarchitecture("AuthenticAMD", 25, 17, 1, "Ryzen")["product"] == ""


def test_what_the_kernel_sets_on_the_processor(tmp_path):
    this = host(tmp_path, files_of("settings"))
    facts = hardware.collect_cpu(this)
    assert (facts["smt"], facts["idle_states"], facts["turbo"]) == (False, ["POLL", "C1"], False)
    assert facts["mitigations"] == {"retbleed": "Mitigation: IBRS"}
    assert (facts["microcode"], facts["clock_hz"]["nominal"]) == ("0x2b000590", 2.6e9)
    assert {"cpu.governor", "cpu.clock_hz.maximum"} <= set(this.unknown)


def test_memory_from_udev(tmp_path):
    # Written down in the form that udev 252 prints; four channels, two of their eight slots empty.
    lines = []
    for number, channel in enumerate("AABBCCDD"):
        size = "PRESENT=0" if number in (1, 3) else "SIZE=17179869184"
        place = (f"BANK_LOCATOR=P0 CHANNEL {channel}", f"LOCATOR=DIMM {number % 2}")
        slot = (*place, "TYPE=DDR4", "CONFIGURED_SPEED_MTS=2933", size)
        lines += [f"MEMORY_DEVICE_{number}_{word}" for word in slot]
    facts = hardware.collect_memory(host(tmp_path, "", {"udevadm": "\n".join(lines)}))
    assert (facts["channels"], facts["speed_mts"]) == (4, 2933)
    assert (facts["type"], facts["modules"]) == ("DDR4", 6)
    words = ("LOCATOR=DIMM 0", "SIZE=1024", "TYPE=DDR4", "CONFIGURED_SPEED_MTS=3200")
    text = "".join(f"MEMORY_DEVICE_0_{word}\n" for word in words)
    without_channel = host(tmp_path, "", {"udevadm": text})
    facts = hardware.collect_memory(without_channel)
    assert (facts["channels"], facts["speed_mts"]) == (None, 3200)
    assert "dmidecode" in without_channel.unknown["memory.channels"]
    assert "memory.speed_mts" not in without_channel.unknown


def test_memory_channels_from_edac_and_meminfo_in_bytes(tmp_path):
    files = {"/proc/meminfo": (DATA / "proc/meminfo.txt").read_text()}
    for controller in (0, 1):
        for dimm, (channel, size) in enumerate(((0, 16384), (0, 0), (1, 16384), (2, 0))):
            place = f"/sys/devices/system/edac/mc/mc{controller}/dimm{dimm}"
            files[f"{place}/dimm_location"] = f"channel {channel} slot 0"
            files |= {f"{place}/size": f"{size}", f"{place}/dimm_mem_type": "Registered-DDR4"}
    facts = hardware.collect_memory(host(tmp_path, files))
    assert (facts["channels"], facts["channels_source"]) == (4, "EDAC")
    assert facts["type"] == "Registered-DDR4"
    assert (facts["total"], facts["huge_pages"]["size"]) == (24684096 * 1024, 2 << 20)
