"""Read facts and counters of a node's GPUs.

The facts come from NVIDIA's driver through gpubench, and from nvidia-smi if it is installed. A node
without NVIDIA's driver has no facts of GPUs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peakmark.machine.host import Facts, Host, first_int, pcie_link, possible

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LIBRARY = "libcuda.so.1"
"""The driver's library, unless ``PEAKMARK_LIBCUDA`` names another."""
_ENVIRONMENT = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "PEAKMARK_LIBCUDA")
"""Variables that decide which driver and which GPUs a program finds."""
_COUNT_PROGRAM = """
import ctypes, json, sys
try:
    cuda = ctypes.CDLL(sys.argv[1])
except OSError:
    print(json.dumps({"count": 0, "reason": f"NVIDIA's driver is not installed ({sys.argv[1]})"}))
    sys.exit()
count, error = ctypes.c_int(0), cuda.cuInit(0)
if not error:
    error = cuda.cuDeviceGetCount(ctypes.byref(count))
reason = f"NVIDIA's driver shows no GPU (error {error})"
print(json.dumps({"count": count.value, "reason": reason}))
"""
"""Python program that asks the driver for the number of GPUs.

It runs in a separate process, because the driver starts threads. gpubench cannot be used instead,
because plans are made before it is compiled.
"""
_WIDTHS = "pci/pci_gpu_link_info/link_widths"
"""Part of the log of nvidia-smi with the lanes of a GPU's link."""
_SHARED = (
    "name", "compute", "sms", "clock_hz", "memory_clock_hz", "bus_bits", "l2_bytes", "memory_bytes",
    "ecc", "vbios", "power_cap_watts", "generation",
)  # fmt: skip
"""Facts that all GPUs of a node usually have in common."""


@cache
def survey() -> tuple[int, str]:
    """Return (number of GPUs that the driver gives to programs of this machine, reason why it gives none).

    The reason is meaningless if there are GPUs. ``_COUNT_PROGRAM`` asks the driver in a separate process,
    because the driver starts threads.
    """
    library = os.environ.get("PEAKMARK_LIBCUDA", LIBRARY)
    command = [*_environment(), sys.executable, "-I", "-S", "-c", _COUNT_PROGRAM, library]
    answer = Host().run_json(command) or {"count": 0, "reason": "NVIDIA's driver does not answer"}
    return int(answer["count"]), str(answer["reason"])


def on_bus(host: Host) -> int:
    """Return the number of NVIDIA GPUs on the PCI bus, including GPUs that this job may not use."""
    count = 0
    for device in host.glob("/sys/bus/pci/devices/*"):
        # PCI class 0x03 is a display controller, and vendor 0x10de is NVIDIA.
        is_display = (host.read(device, "class") or "").startswith("0x03")
        count += is_display and host.read(device, "vendor") == "0x10de"
    return count


def _environment() -> list[str]:
    """Return the start of a command that runs with the GPU variables of this process.

    ``Host.run`` passes only PATH to tools, so ``env`` sets these variables.
    """
    settings = [f"{name}={os.environ[name]}" for name in _ENVIRONMENT if name in os.environ]
    return ["env", *settings]


def collect(host: Host, gpubench: Path) -> Facts | None:
    """Return the ``gpu`` part of the facts, or None if gpubench finds no GPU.

    The part has a list of the GPUs, and the facts that all GPUs have in common.

    Args:
        host: the machine.
        gpubench: the compiled kernel.
    """
    listed = host.run_json([*_environment(), str(gpubench.absolute()), "--list"])
    if not listed or not listed.get("gpus"):
        return None
    reported = {facts["pci"]: facts for facts in _by_nvidia_smi(host)}  # PCI address -> facts
    gpus = [_gpu(host, gpu, reported.get(gpu["pci"], {})) for gpu in listed["gpus"]]
    nvlinks = _count_nvlinks(host, list(reported))
    for gpu in gpus:
        gpu["nvlinks"] = [nvlinks.get((gpu["pci"], other["pci"])) for other in gpus]
    # Without nvidia-smi, the driver is named by its version of CUDA: 12040 is CUDA 12.4.
    version = listed["driver"]
    cuda = f"CUDA {version // 1000}.{version % 1000 // 10}"
    facts: Facts = {
        "driver": next((one["driver"] for one in reported.values()), cuda),
        "count": len(gpus),
        "partitioned": any(gpu["mig"] for gpu in gpus),
    }
    # A fact in which GPUs differ is None.
    for name in _SHARED:
        values = {gpu[name] for gpu in gpus}
        facts[name] = values.pop() if len(values) == 1 else None
    # The narrowest link of all GPUs stands for the node.
    links = [gpu["pcie"] for gpu in gpus if gpu["pcie"]]
    facts["pcie"] = min(links, key=itemgetter("current_width"), default=None)
    return facts | {"gpus": gpus}


def _gpu(host: Host, listed: Facts, reported: Facts) -> Facts:
    """Return the facts of one GPU.

    Args:
        host: the machine.
        listed: facts from the driver, as gpubench prints them.
        reported: facts from nvidia-smi; empty without it.
    """
    device = f"/sys/bus/pci/devices/{listed['pci']}"
    return {
        "index": listed["index"],
        "pci": listed["pci"],
        "numa_node": host.read_int(device, "numa_node"),
        "mig": listed["mig"],
        "pcie": pcie_link(host, device),
        **{name: listed.get(name) for name in _SHARED},
        "vbios": reported.get("vbios"),
        "power_cap_watts": reported.get("power_cap_watts"),
        # sysfs may show the link of an emulated slot on a virtual machine.
        "generation": reported.get("generation"),
        "width": reported.get("width"),
    }


def _by_nvidia_smi(host: Host) -> Iterator[Facts]:
    """Yield, for each GPU, its PCI address and the facts that are taken from nvidia-smi; nothing without nvidia-smi."""
    for log, gpu in _read_log(host):
        yield {
            "driver": log.findtext("driver_version"),
            "pci": _address(gpu),
            "vbios": gpu.findtext("vbios_version"),
            "power_cap_watts": _power_cap(gpu),
            "generation": _number(gpu, "pci/pci_gpu_link_info/pcie_gen/max_link_gen"),
            "width": _number(gpu, f"{_WIDTHS}/current_link_width"),
        }


def _count_nvlinks(host: Host, addresses: list[str]) -> dict[tuple[str, str], int]:
    """Return (PCI address, PCI address) -> number of NVLinks between these GPUs; empty without nvidia-smi.

    A pair without NVLinks has the number 0.

    Args:
        host: the machine.
        addresses: PCI addresses of the GPUs in the order of nvidia-smi.
    """
    # A line is ``GPU0``, then a cell for each GPU, such as ``NV18`` for 18 NVLinks, then other columns.
    text = host.run(["nvidia-smi", "topo", "-m"]) or ""
    counts = {}
    rows = [line.split("\t") for line in text.splitlines() if re.match(r"GPU\d+\t", line)]
    for one, (_, *cells) in zip(addresses, rows, strict=False):
        for other, cell in zip(addresses, cells, strict=False):
            links = re.fullmatch(r"NV(\d+)", cell)
            counts[one, other] = int(links[1]) if links else 0
    return counts


def _read_log(host: Host) -> Iterator[tuple[Element, Element]]:
    """Yield, for each GPU, the log of ``nvidia-smi -q -x`` and the GPU's part of it.

    Without nvidia-smi, nothing is yielded.
    """
    from xml.etree import ElementTree  # late: most nodes have no GPU

    text = host.run(["nvidia-smi", "-q", "-x"])
    if text is None:
        return
    # Warnings may stand before or after the log.
    text = re.sub(r"(?s)^.*?(?=<nvidia_smi_log)|(?<=</nvidia_smi_log>).*$", "", text)
    try:
        log = ElementTree.fromstring(text)  # noqa: S314 - the driver's own tool wrote it
    except ElementTree.ParseError:
        return
    for gpu in log.iter("gpu"):
        yield log, gpu


def _power_cap(gpu: Element) -> float | None:
    """Return the power cap of a GPU in watts; None if it is unknown. Drivers before 530 have other names for it."""
    for path in (
        "gpu_power_readings/current_power_limit",
        "gpu_power_readings/enforced_power_limit",
        "power_readings/enforced_power_limit",
        "power_readings/power_limit",
    ):
        if watts := possible(_number(gpu, path), "W"):
            return watts
    return None


def _address(gpu: Element) -> str:
    """Return the PCI address of a GPU in the form of sysfs: 0000:00:06.0 for 00000000:00:06.0."""
    domain, _, rest = gpu.get("id", "").lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _number(gpu: Element, path: str) -> int | None:
    """Return the number at the start of a value in the log: 16 for ``16x``, 700 for ``700.00 W``."""
    return first_int(gpu.findtext(path))


_COUNTERS = {
    "ecc_errors/volatile": "",
    "retired_pages/multiple_single_bit_retirement": "single_bit_",
    "retired_pages/double_bit_retirement": "double_bit_",
    "remapped_rows": "",
    "clocks_event_reasons_counters": "",
    "pci": "",
}
"""Part of nvidia-smi's log -> prefix of the names of its counters in the result.

The prefix tells apart counters that have the same name in two parts.
"""
COUNTED = re.compile(
    r"[sd]ram_(un)?correctable(_\w+)?|(single|double)_bit_retired_count|remapped_row_(corr|unc)"
    r"|(sw|hw)_\w+|replay_counter"
)
"""Pattern of the names of counters: errors, repairs, and times in us for which the clock was reduced."""


def read_counters(host: Host) -> dict[str, int]:
    """Return the counters of all GPUs, or an empty dict without nvidia-smi.

    A key is PCI address and name, such as ``0000:19:00.0 dram_uncorrectable``. Indices are not used,
    because the driver and nvidia-smi number GPUs differently.
    """
    counters = {}
    for _, gpu in _read_log(host):
        for name, count in _counters_of(gpu):
            counters[f"{_address(gpu)} {name}"] = count
    return counters


def _counters_of(gpu: Element) -> Iterator[tuple[str, int]]:
    """Yield (name, value) of each counter of a GPU.

    The last one, ``lost_lanes``, is the number of lanes that the GPU's link lacks: 0 if the link
    has all lanes that GPU and slot support.
    """
    for part, prefix in _COUNTERS.items():
        for child in gpu.iterfind(f"{part}/*"):
            name = prefix + child.tag.removeprefix("clocks_event_reasons_counters_")
            count = first_int(child.text)
            if count is not None and COUNTED.fullmatch(name):
                yield name, count
    lanes = _number(gpu, f"{_WIDTHS}/current_link_width")
    most = _number(gpu, f"{_WIDTHS}/max_link_width")
    if lanes and most:
        yield "lost_lanes", most - lanes


def numa_nodes(facts: Any, count: int) -> set[int]:
    """Return the NUMA nodes of the first ``count`` GPUs; empty if they are unknown.

    Args:
        facts: the ``gpu`` part of the facts; None without GPUs.
        count: number of GPUs.
    """
    gpus = (facts or {}).get("gpus") or []
    nodes = {gpu["numa_node"] for gpu in gpus[:count]}
    # Linux shows -1 for an unknown node.
    return {node for node in nodes if node is not None and node >= 0}
