"""Facts and counters of GPUs, from real outputs of nvidia-smi and what gpubench lists."""

import json

import pytest
from tests.programs import executable
from tests.unit.machine.hosts import NAME, SMI, gpu_facts, gpu_host, gpus, host

from peakmark.machine import gpu
from peakmark.machine.host import Host


def on_bus(root, **files):
    """Put the first GPU into a slot of generation 4, with these files of its PCI device."""
    slot = root / "sys/devices/pci0000:00/0000:00:01.0"
    device = slot / "0000:00:06.0"
    device.mkdir(parents=True)
    (slot / "max_link_speed").write_text("16.0 GT/s PCIe\n")
    usual = dict.fromkeys(("current_link_speed", "max_link_speed"), "32.0 GT/s PCIe")
    usual |= {"current_link_width": "16", "max_link_width": "16", "vendor": "0x10de"}
    usual["class"] = "0x030200"
    for name, text in {**usual, **files}.items():
        (device / name).write_text(f"{text}\n")
    devices = root / "sys/bus/pci/devices"
    devices.mkdir(parents=True)
    (devices / device.name).symlink_to(device)


def test_the_driver_and_nvidia_smi_complete_each_other(tmp_path):
    on_bus(tmp_path, numa_node="0")
    facts = gpu_facts(tmp_path)
    found = facts["gpu"]
    assert (found["driver"], found["vbios"], found["power_cap_watts"]) == (
        "580.159.04",
        "96.00.DA.00.0C",
        700,
    )
    assert (found["count"], found["name"], found["sms"]) == (1, NAME, 132)
    (one,) = found["gpus"]
    assert (one["generation"], one["width"], one["numa_node"]) == (5, 16, 0)


def test_without_nvidia_smi_the_facts_are_those_of_the_driver(tmp_path):
    """The link that sysfs shows may be that of an emulated slot."""
    on_bus(tmp_path, numa_node="-1", current_link_speed="2.5 GT/s PCIe", current_link_width="8")
    found = gpu.collect(gpu_host(tmp_path, gpus(2)), tmp_path / "gpubench")
    assert (found["count"], found["driver"], found["vbios"]) == (2, "CUDA 13.0", None)
    assert found["pcie"]["current_width"] == 8 and gpu.on_bus(Host(tmp_path)) == 1
    first = found["gpus"][0]
    assert (first["generation"], first["width"], first["numa_node"]) == (None, None, -1)


def test_gpus_that_differ_have_no_fact_in_common(tmp_path):
    answer = gpus(2)
    answer["gpus"][1] |= {"sms": 114, "mig": True}
    found = gpu.collect(gpu_host(tmp_path, answer), tmp_path / "gpubench")
    assert found["sms"] is None and found["partitioned"] and found["name"] == NAME


@pytest.mark.parametrize("answer", [None, {"driver": 13000, "gpus": []}, {}])
def test_a_machine_without_gpus_has_no_such_facts(tmp_path, answer):
    assert gpu.collect(gpu_host(tmp_path, answer), tmp_path / "gpubench") is None


TOPOLOGY = (
    "\x1b[4m\tGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tPIX\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tNODE\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU2\tSYS\tNODE\t X \tPXB\t48-95,144-191\t1\t\tN/A\n"
    "NIC0\tPIX\tSYS\tPXB\t X \n"
    "\nLegend:\n\n  NV#  = Connection traversing a bonded set of # NVLinks\n"
)
"""What ``nvidia-smi topo -m`` prints of three GPUs, of which two are connected by NVLink."""


def test_nvlinks_are_counted_between_the_gpus_that_the_job_sees(tmp_path):
    answer = gpus(3)
    addresses = [one["pci"] for one in answer["gpus"]]
    log = "".join(f'<gpu id="0000{pci}"/>' for pci in addresses)
    tools = {"topo": TOPOLOGY, "nvidia-smi": f"<nvidia_smi_log>{log}</nvidia_smi_log>"}
    first, second, third = answer["gpus"]
    for seen, links in (([first, third], [[0, 0], [0, 0]]), ([first, second], [[0, 18], [18, 0]])):
        this = host(tmp_path, "", tools | {"gpubench": json.dumps(answer | {"gpus": seen})})
        found = gpu.collect(this, tmp_path / "gpubench")
        assert [one["nvlinks"] for one in found["gpus"]] == links


@pytest.mark.parametrize("name", ["h100", "h200"])
def test_counters_are_those_of_errors_and_throttling(tmp_path, name):
    counters = gpu.read_counters(gpu_host(tmp_path, None, (SMI / f"{name}.xml").read_text()))
    names = {key.removeprefix("0000:00:06.0 ") for key in counters}
    errors = {"sram_correctable", "sram_uncorrectable_parity", "sram_uncorrectable_secded"}
    errors |= {"dram_correctable", "dram_uncorrectable", "remapped_row_corr", "remapped_row_unc"}
    held = {"sw_power_cap", "sw_therm_slowdown", "hw_therm_slowdown", "hw_power_brake"}
    assert names == errors | held | {"replay_counter", "lost_lanes"}
    assert set(counters.values()) == {0}


@pytest.mark.parametrize("text", [None, "", "NVIDIA-SMI has failed", "<nvidia_smi_log><gpu"])
def test_without_an_answer_there_are_no_counters(tmp_path, text):
    assert gpu.read_counters(gpu_host(tmp_path, None, text)) == {}


def test_a_machine_without_a_driver_says_so(monkeypatch):
    monkeypatch.setenv("PEAKMARK_LIBCUDA", "libnosuch.so.1")
    count, reason = gpu.survey.__wrapped__()
    assert (count, reason) == (0, "NVIDIA's driver is not installed (libnosuch.so.1)")


def test_a_driver_that_finds_no_gpu_says_so(tmp_path, monkeypatch):
    source = tmp_path / "cuda.c"
    source.write_text(
        "int cuInit(unsigned f) { return 100; }\nint cuDeviceGetCount(int *n) { return 3; }\n"
    )
    library = tmp_path / "libcuda.so.1"
    make = executable(tmp_path / "make", f"#!/bin/sh\ngcc -shared -fPIC -o {library} {source}\n")
    assert Host().run([str(make)]) == ""
    monkeypatch.setenv("PEAKMARK_LIBCUDA", str(library))
    assert gpu.survey.__wrapped__() == (0, "NVIDIA's driver shows no GPU (error 100)")


def test_the_numa_nodes_are_those_of_the_first_gpus(tmp_path):
    on_bus(tmp_path, numa_node="0")
    found = gpu.collect(gpu_host(tmp_path, gpus(2)), tmp_path / "gpubench")
    assert gpu.numa_nodes(found, 1) == gpu.numa_nodes(found, 2) == {0}
    assert gpu.numa_nodes(None, 1) == set()
