"""Processor and main memory: identity, clocks, instruction sets, caches; size, kind and channels.

lscpu, /proc/cpuinfo and sysfs for the processor; udev or EDAC, where they let an ordinary user read
them, for memory modules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from peakmark import data
from peakmark.machine import topology
from peakmark.machine.host import Facts, Host, chosen, first_int

_SYSTEM = "/sys/devices/system/cpu"
# Instruction sets that a kernel or a limit depends on, as the kernel's flags name them.
_ISA = [
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
    "avx512_bf16",
    "avx512_fp16",
    "amx_int8",
    "amx_bf16",
    "asimd",
    "asimddp",
    "asimdhp",
    "i8mm",
    "bf16",
    "sve",
    "sve2",
]
_ARM_NAMES = {"asimd": "neon", "asimddp": "dotprod", "asimdhp": "fp16"}
# Fields of /proc/cpuinfo and what lscpu calls them.
_LSCPU_NAMES = {
    "vendor_id": "Vendor ID",
    "cpu family": "CPU family",
    "model": "Model",
    "model name": "Model name",
    "stepping": "Stepping",
    "flags": "Flags",
    "Features": "Flags",
}
_ASK_THE_HOST = (
    "the kernel offers no cpufreq here: on a virtual machine its host decides, ask there"
)


def collect_cpu(host: Host) -> Facts:
    """The ``cpu`` part of the facts; clocks in Hz, caches in bytes."""
    fields = _cpu_fields(host)
    flags = fields.get("Flags", "").split()
    isa = [_ARM_NAMES.get(flag, flag) for flag in _ISA if flag in flags]
    vendor, family, model = _identity(fields)
    stepping, name = _int(fields.get("Stepping")), fields.get("Model name")
    locations = topology.read(host) or topology.read(host, [0])
    parts = topology.reach(locations, locations)
    clock, clock_source = _clocks(host, fields, "constant_tsc" in flags)
    numa = topology.numa(host)
    facts = {
        "vendor": vendor,
        "model_name": name,
        "family": family,
        "model": model,
        "stepping": stepping,
        "microarchitecture": data.microarchitecture(vendor, family, model, stepping, name),
        "sockets": parts["sockets"],
        "cores": parts["cores"],
        "threads": len(locations),
        "clock_hz": clock,
        "clock_source": clock_source,
        "isa": isa,
        "isa_best": _best(isa),
        "caches": _caches(host),
        "numa_nodes": max(1, len(numa)),
        "numa": numa,
        "smt": host.read_switch(_SYSTEM, "smt/active"),
        "idle_states": _idle_states(host),
        "virtualised": fields.get("Hypervisor vendor")
        or ("unknown hypervisor" if "hypervisor" in flags else None),
        "governor": host.read(_SYSTEM, "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(host),
        "microcode": fields.get("microcode"),
        "mitigations": _mitigations(host),
    }
    for key in ("governor", "turbo"):
        if facts[key] is None:
            host.missing(f"cpu.{key}", _ASK_THE_HOST)
    return facts


def how_to_read_energy(host: Host) -> str:
    """What lets a user read the energy of processors and memory."""
    if host.glob("/sys/class/powercap/intel-rapl:*/energy_uj"):
        return "only root may read the counters: chmod a+r /sys/class/powercap/*/energy_uj lets all"
    return "the kernel shows no counters of energy, as on most virtual machines"


def _cpu_fields(host: Host) -> dict[str, str]:
    """lscpu's fields and those of the first processor in /proc/cpuinfo, by lscpu's names."""
    fields: dict[str, str] = {}

    def add(entries: Any) -> None:
        for entry in entries or ():
            if entry.get("data") is not None:
                fields.setdefault(entry["field"].rstrip(":"), str(entry["data"]))
            add(entry.get("children"))  # newer versions nest

    add((host.run_json(["lscpu", "-J"]) or {}).get("lscpu"))
    cpuinfo = host.pairs("/proc/cpuinfo")
    return fields | {_LSCPU_NAMES.get(name, name): text for name, text in cpuinfo.items()}


def _identity(fields: Mapping[str, str]) -> tuple[str | None, int | None, int | None]:
    """(vendor, family, model). On Arm: ("ARM", implementer code, part number), as in the MIDR."""
    if "CPU implementer" in fields:
        return "ARM", _int(fields["CPU implementer"]), _int(fields.get("CPU part"))
    return fields.get("Vendor ID"), _int(fields.get("CPU family")), _int(fields.get("Model"))


def _clocks(
    host: Host, fields: Mapping[str, str], constant_tsc: bool
) -> tuple[dict[str, float | None], dict[str, str | None]]:
    """Nominal and maximum clock in Hz, and where each was read; the observed one is measured."""
    cpufreq = f"{_SYSTEM}/cpu0/cpufreq"
    cppc = host.read_int(_SYSTEM, "cpu0/acpi_cppc/nominal_freq")
    in_name = re.search(r"@\s*([\d.]+)\s*GHz", fields.get("Model name", ""))
    # With a constant TSC the kernel's BogoMIPS is twice the TSC rate, and the TSC runs at the base
    # clock.
    bogomips = fields.get("bogomips") if constant_tsc else None
    readings: tuple[tuple[str, str | float | None, float, str], ...] = (
        ("nominal", host.read_int(cpufreq, "base_frequency"), 1e3, "cpufreq base_frequency"),
        ("nominal", cppc, 1e6, "acpi_cppc nominal_freq"),
        ("nominal", in_name[1] if in_name else None, 1e9, "CPU model name"),
        ("nominal", bogomips, 5e5, "rate of the time stamp counter (BogoMIPS / 2)"),
        ("maximum", host.read_int(cpufreq, "cpuinfo_max_freq"), 1e3, "cpufreq cpuinfo_max_freq"),
        ("maximum", fields.get("CPU max MHz"), 1e6, "lscpu"),
    )
    clocks: dict[str, float | None] = dict.fromkeys(("nominal", "maximum", "observed"))
    sources: dict[str, str | None] = dict.fromkeys(clocks)
    for name, value, unit, source in readings:
        clock = float(value or 0.0) * unit  # some kernels show 0 for what they do not know
        if clock and clocks[name] is None:
            clocks[name], sources[name] = clock, source
    for name in ("nominal", "maximum"):
        if clocks[name] is None:
            how = f"write cpu.{name}_hz in the site file, from the CPU's datasheet"
            host.missing(f"cpu.clock_hz.{name}", how)
    return clocks, sources


def _best(isa: list[str]) -> str:
    """The widest instruction set the kernels can use, by the names of their ``--isa`` option."""
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= set(isa):
        return "avx512"
    if {"avx2", "fma"} <= set(isa):
        return "avx2"
    return next((name for name in ("sse2", "neon") if name in isa), "scalar")


def _caches(host: Host) -> list[Facts]:
    """Each kind of cache once, lowest level first, with how many threads share one and how many
    there are.
    """
    kinds = Counter(
        (cache.level, cache.kind, cache.size, len(cache.cpus))
        for cache in topology.read_caches(host)
    )
    return [
        {"level": level, "type": kind, "size": size, "shared_by": shared, "count": count}
        for (level, kind, size, shared), count in sorted(kinds.items())
    ]


def _turbo(host: Host) -> bool | None:
    """Whether the clock may rise above the nominal one; None where the kernel does not say."""
    no_turbo = host.read_switch(_SYSTEM, "intel_pstate/no_turbo")
    return host.read_switch(_SYSTEM, "cpufreq/boost") if no_turbo is None else not no_turbo


def _idle_states(host: Host) -> list[str] | None:
    """Names of the states that an idle core may enter; None where there is no cpuidle."""
    places = host.glob(_SYSTEM, "cpu0/cpuidle/state[0-9]*")
    places.sort(key=lambda place: int(place.rpartition("state")[2]))
    enabled = [place for place in places if host.read(place, "disable") != "1"]
    return [host.read(place, "name") or "unnamed" for place in enabled] if places else None


def _mitigations(host: Host) -> dict[str, str]:
    """Vulnerability -> the kernel's text, without those that do not affect this CPU."""
    places = host.glob(_SYSTEM, "vulnerabilities/*")
    texts = {place.rpartition("/")[2]: host.read(place) for place in places}
    return {name: text for name, text in texts.items() if text and text != "Not affected"}


def _int(text: str | None) -> int | None:
    try:
        return int(text or "", 0)
    except ValueError:
        return None


def collect_memory(host: Host) -> Facts:
    """The ``memory`` part of the facts: bytes, MT/s, and the channels of the whole node that hold a
    module.
    """
    meminfo = host.meminfo()
    modules = _udev_modules(host)
    edac_channels, edac_type = _edac(host)
    udev_channels = _udev_channels(modules)
    channels = udev_channels or edac_channels
    source = "udev (SMBIOS locators)" if udev_channels else "EDAC"
    facts = {
        "total": meminfo.get("MemTotal"),
        "available": meminfo.get("MemAvailable"),
        "type": _common({module.get("TYPE") for module in modules}) or edac_type,
        "speed_mts": _slowest(modules),
        "channels": channels,
        "channels_source": source if channels else None,
        "modules": len(modules) or None,
        "huge_pages": {
            "size": meminfo.get("Hugepagesize"),
            "total": meminfo.get("HugePages_Total"),
            "free": meminfo.get("HugePages_Free"),
        },
        "transparent_huge_pages": chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "transparent_huge_pages_defrag": chosen(
            host.read("/sys/kernel/mm/transparent_hugepage/defrag")
        ),
        "swap_total": meminfo.get("SwapTotal"),
    }
    for name in ("type", "speed_mts", "channels"):
        if facts[name] is None:
            how = f"write memory.{name} in the site file: as root, `dmidecode -t memory` shows it"
            host.missing(f"memory.{name}", how)
    return facts


def _udev_modules(host: Host) -> list[dict[str, str]]:
    """Populated memory modules as udev stored them from SMBIOS (systemd 248 and later); readable by
    all users.
    """
    dmi = "/sys/devices/virtual/dmi/id"
    text = host.run(["udevadm", "info", "--query=property", f"--path={dmi}"]) or ""
    slots: dict[str, dict[str, str]] = {}
    for slot, key, value in re.findall(r"(?m)^(?:E: )?MEMORY_DEVICE_(\d+)_(\w+?)=(.*)$", text):
        slots.setdefault(slot, {})[key] = value.strip()
    return [
        module
        for module in slots.values()
        if module.get("PRESENT") != "0" and first_int(module.get("SIZE"))
    ]


def _slowest(modules: list[dict[str, str]]) -> int | None:
    """The configured transfer rate of the slowest module: all run at it."""
    speeds = [first_int(module.get("CONFIGURED_SPEED_MTS")) or 0 for module in modules]
    return min(speeds, default=None) or None


def _udev_channels(modules: list[dict[str, str]]) -> int | None:
    """Distinct channels named by the modules' locators; None where the firmware names none ("DIMM
    3" says nothing).
    """
    channel_name = re.compile(r"channel[ _]?([a-z0-9]+?)(?=[-_ ]|$)", re.I)
    owner_name = re.compile(r"(?:\bP|CPU|NODE|PROC|SOCKET|CONTROLLER)[ _]?\d+", re.I)
    channels = set()
    for module in modules:
        bank, slot = module.get("BANK_LOCATOR", ""), module.get("LOCATOR", "")
        channel = channel_name.search(bank) or channel_name.search(slot)
        if channel is None:
            return None
        owners = {owner.upper() for owner in owner_name.findall(f"{bank} {slot}")}
        channels.add((*sorted(owners), channel[1].upper()))
    return len(channels) or None


def _edac(host: Host) -> tuple[int | None, str | None]:
    """(channels that hold a module, memory type) from the kernel's error detection drivers, where
    they are loaded.
    """
    channels, types = set(), set()
    for dimm in host.glob("/sys/devices/system/edac/mc/mc[0-9]*/dimm[0-9]*"):
        location = re.search(r"channel (\d+)", host.read(dimm, "dimm_location") or "")
        if location and host.read_int(dimm, "size"):
            channels.add((dimm.rpartition("/")[0], location[1]))
            types.add(host.read(dimm, "dimm_mem_type"))
    return len(channels) or None, _common(types)


def _common(values: set[str | None]) -> str | None:
    """The value all share, or None when there is none or they differ."""
    known = values - {None, "", "Unknown"}
    return known.pop() if len(known) == 1 else None
