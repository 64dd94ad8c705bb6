"""Processor: identity, clocks, instruction sets, caches, topology. lscpu and hwloc first, else
sysfs.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

from peakmark import data
from peakmark.machine import topology
from peakmark.machine.host import Host, parse_cpu_list

# Instruction sets that a kernel or a limit depends on, as the kernel's flags name them, and Arm's
# in our words.
_ISA = (
    *(
        "sse2",
        "sse4_1",
        "avx",
        "avx2",
        "fma",
        "avx_vnni",
        "avx512f",
        "avx512bw",
        "avx512vl",
        "avx512dq",
        "avx512_vnni",
    ),
    *("avx512_fp16", "amx_int8", "asimd", "asimddp", "i8mm", "sve", "sve2"),
)
_ISA_WORDS = {"asimd": "neon", "asimddp": "dotprod"}
_SYSTEM = "/sys/devices/system/cpu"


def collect(host: Host) -> dict[str, Any]:
    """The ``cpu`` part of the facts; clocks in Hz, caches in bytes."""
    lscpu = _lscpu(host)
    cpuinfo = host.pairs(
        "/proc/cpuinfo"
    )  # of the first processor: microcode and Arm's part number are nowhere else
    flags = set(
        (lscpu.get("Flags") or cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()
    )
    vendor, family, model = _identity(lscpu, cpuinfo)
    stepping = _int(lscpu.get("Stepping")) if vendor != "ARM" else None
    model_name = lscpu.get("Model name") or cpuinfo.get("model name")
    isa = [_ISA_WORDS.get(flag, flag) for flag in _ISA if flag in flags]
    sockets, cores, threads = _counts(host, lscpu)
    clock, clock_source = _clocks(host, lscpu, cpuinfo)
    governor, turbo = host.read(f"{_SYSTEM}/cpu0/cpufreq/scaling_governor"), _turbo(host)
    numa = topology.numa(host)
    for name, value in (("governor", governor), ("turbo", turbo)):
        if value is None:
            host.missing(
                f"cpu.{name}",
                "the kernel offers no cpufreq here: on a virtual machine its host decides, ask there",
            )
    return {
        "vendor": vendor,
        "model_name": model_name,
        "family": family,
        "model": model,
        "stepping": stepping,
        "microarchitecture": data.microarchitecture(vendor, family, model, stepping, model_name),
        "sockets": sockets,
        "cores": cores,
        "threads": threads,
        "clock_hz": clock,
        "clock_source": clock_source,
        "isa": isa,
        "isa_best": _best(isa),
        "caches": _caches(host),
        "numa_nodes": max(1, len(numa)),
        "numa": numa,
        "smt": host.switch(f"{_SYSTEM}/smt/active"),
        "idle_states": _idle_states(host),
        "virtualised": lscpu.get("Hypervisor vendor")
        or ("unknown hypervisor" if "hypervisor" in flags else None),
        "governor": governor,
        "turbo": turbo,
        "microcode": cpuinfo.get("microcode"),
        "mitigations": _mitigations(host),
    }


def _lscpu(host: Host) -> dict[str, str]:
    """lscpu's fields by name without the colon; newer versions nest them as children."""
    fields: dict[str, str] = {}

    def walk(entries: Any) -> None:
        for entry in entries if isinstance(entries, list) else []:
            if entry.get("data") is not None:
                fields.setdefault(str(entry.get("field", "")).rstrip(":"), str(entry["data"]))
            walk(entry.get("children"))

    document = host.run_json(["lscpu", "-J"])
    walk(document.get("lscpu") if isinstance(document, Mapping) else None)
    return fields


def _identity(
    lscpu: Mapping[str, str], cpuinfo: Mapping[str, str]
) -> tuple[str | None, int | None, int | None]:
    """(vendor, family, model). On Arm: ("ARM", implementer code, part number), as in the kernel's
    MIDR.
    """
    if "CPU implementer" in cpuinfo:
        return "ARM", _int(cpuinfo["CPU implementer"]), _int(cpuinfo.get("CPU part"))
    vendor = lscpu.get("Vendor ID") or cpuinfo.get("vendor_id")
    family = lscpu.get("CPU family") or cpuinfo.get("cpu family")
    return vendor, _int(family), _int(lscpu.get("Model") or cpuinfo.get("model"))


def _counts(host: Host, lscpu: Mapping[str, str]) -> tuple[int, int, int]:
    """(sockets, physical cores, hardware threads) that are online in the whole machine."""
    cpu_locations = topology.read(host)
    if cpu_locations:
        parts = topology.reach(cpu_locations, cpu_locations)
        return parts["sockets"], parts["cores"], len(cpu_locations)
    threads = _int(lscpu.get("CPU(s)")) or 1
    sockets = _int(lscpu.get("Socket(s)")) or 1
    per_socket = _int(lscpu.get("Core(s) per socket"))
    return sockets, sockets * per_socket if per_socket else threads, threads


def _clocks(
    host: Host, lscpu: Mapping[str, str], cpuinfo: Mapping[str, str]
) -> tuple[dict[str, float | None], dict[str, str | None]]:
    """Nominal and maximum clock with where each was read. The observed one is measured, not read:
    see ``collect``.
    """
    in_name = re.search(r"@\s*([\d.]+)\s*GHz", lscpu.get("Model name", ""))
    constant = "constant_tsc" in (lscpu.get("Flags") or cpuinfo.get("flags") or "")
    readings: dict[str, tuple[tuple[str | float | None, float, str], ...]] = {
        "nominal": (
            (
                host.read_int(f"{_SYSTEM}/cpu0/cpufreq/base_frequency"),
                1e3,
                "cpufreq base_frequency",
            ),
            (
                host.read_int(f"{_SYSTEM}/cpu0/acpi_cppc/nominal_freq") or None,
                1e6,
                "acpi_cppc nominal_freq",
            ),
            (in_name[1] if in_name else None, 1e9, "CPU model name"),
            # With a constant TSC the kernel's BogoMIPS is twice the TSC rate, and the TSC runs at
            # the base clock.
            (
                cpuinfo.get("bogomips") if constant else None,
                5e5,
                "rate of the time stamp counter (BogoMIPS / 2)",
            ),
        ),
        "maximum": (
            (
                host.read_int(f"{_SYSTEM}/cpu0/cpufreq/cpuinfo_max_freq"),
                1e3,
                "cpufreq cpuinfo_max_freq",
            ),
            (lscpu.get("CPU max MHz"), 1e6, "lscpu"),
        ),
    }
    clocks: dict[str, float | None] = dict.fromkeys((*readings, "observed"))
    sources: dict[str, str | None] = dict.fromkeys(clocks)
    for name, places in readings.items():
        known = [
            (float(value) * unit, source) for value, unit, source in places if value is not None
        ]
        if known:
            clocks[name], sources[name] = known[0]
        else:
            host.missing(
                f"cpu.clock_hz.{name}",
                f"write cpu.{name}_hz in the site file, from the CPU's datasheet",
            )
    return clocks, sources


def _best(isa: list[str]) -> str:
    """The widest instruction set the kernels can use, by the names of their ``--isa`` option."""
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= set(isa):
        return "avx512"
    if {"avx2", "fma"} <= set(isa):
        return "avx2"
    return next((name for name in ("sse2", "neon") if name in isa), "scalar")


def _caches(host: Host) -> list[dict[str, Any]]:
    """Each kind of cache once, smallest level first: level, type, size in bytes, threads that share
    one, how many.
    """
    # hwloc shows what the asking job may use, sysfs the whole node.
    return _caches_sysfs(host) or _caches_hwloc(host)


def _caches_hwloc(host: Host) -> list[dict[str, Any]]:
    text = host.run(["lstopo-no-graphics", "--disallowed", "--of", "xml", "--no-io"]) or host.run(
        ["lstopo", "--of", "xml"]
    )
    if not text:
        return []
    try:
        tree = ElementTree.fromstring(text)  # noqa: S314 - printed by the lstopo of this machine
    except ElementTree.ParseError:
        return []
    kinds = {"0": "unified", "1": "data", "2": "instruction"}
    caches = []
    for node in tree.iter("object"):
        if re.fullmatch(r"L\di?Cache", node.get("type", "")):
            cpus = sum(
                int(word, 16).bit_count() for word in (node.get("cpuset") or "").split(",") if word
            )
            kind, size = kinds[node.get("cache_type", "0")], int(node.get("cache_size", 0))
            caches.append((int(node.get("depth", 0)), kind, size, cpus))
    return _merge(caches)


def _caches_sysfs(host: Host) -> list[dict[str, Any]]:
    caches: dict[tuple[int, str, str], tuple[int, str, int, int]] = {}
    for place in host.glob(f"{_SYSTEM}/cpu[0-9]*/cache/index[0-9]*"):
        level, size = (
            host.read_int(f"{place}/level"),
            topology.cache_bytes(host.read(f"{place}/size")),
        )
        kind, shared = (
            (host.read(f"{place}/type") or "").lower(),
            host.read(f"{place}/shared_cpu_list") or "",
        )
        if level is not None and size and kind in ("data", "instruction", "unified"):
            caches[level, kind, shared] = (level, kind, size, len(parse_cpu_list(shared)))
    return _merge(list(caches.values()))


def _merge(caches: list[tuple[int, str, int, int]]) -> list[dict[str, Any]]:
    return [
        {
            "level": cache[0],
            "type": cache[1],
            "size": cache[2],
            "shared_by": cache[3],
            "count": caches.count(cache),
        }
        for cache in sorted(set(caches))
        if cache[2] > 0
    ]


def _turbo(host: Host) -> bool | None:
    """Whether the clock may rise above the nominal one; None where the kernel does not say."""
    no_turbo = host.switch(f"{_SYSTEM}/intel_pstate/no_turbo")
    return host.switch(f"{_SYSTEM}/cpufreq/boost") if no_turbo is None else not no_turbo


def _idle_states(host: Host) -> list[str] | None:
    """Names of the states that an idle core may enter, without those that are disabled; None where
    there is no cpuidle.
    """
    states = host.glob(f"{_SYSTEM}/cpu0/cpuidle/state[0-9]*")
    places = sorted(states, key=lambda state: int(state.rpartition("state")[2]))
    enabled = [place for place in places if host.read(f"{place}/disable") != "1"]
    return [host.read(f"{place}/name") or "unnamed" for place in enabled] if places else None


def _mitigations(host: Host) -> dict[str, str]:
    """Vulnerability -> the kernel's own words, without those that do not affect this CPU."""
    texts = {
        name: host.read(f"{_SYSTEM}/vulnerabilities/{name}")
        for name in host.names(f"{_SYSTEM}/vulnerabilities")
    }
    return {name: text for name, text in texts.items() if text and text != "Not affected"}


def _int(text: str | None) -> int | None:
    try:
        return None if text is None else int(text, 0)
    except ValueError:
        return None
