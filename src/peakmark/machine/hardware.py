"""Read facts of the processor (model, clocks, instruction sets, caches) and of the main memory.

Facts of the processor come from lscpu, /proc/cpuinfo and sysfs. Memory modules come from udev or EDAC,
which an ordinary user may read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from peakmark import data
from peakmark.machine import topology
from peakmark.machine.host import Facts, Host, chosen, first_int, parse_cpu_list, possible

_SYSTEM = "/sys/devices/system/cpu"
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
"""Instruction sets on which a kernel or a limit depends, as Linux's flags name them."""
_ARM_NAMES = {"asimd": "neon", "asimddp": "dotprod", "asimdhp": "fp16"}
"""Linux's flag -> name of the instruction set, if they differ."""
_LSCPU_NAMES = {
    "vendor_id": "Vendor ID",
    "cpu family": "CPU family",
    "model": "Model",
    "model name": "Model name",
    "stepping": "Stepping",
    "flags": "Flags",
    "Features": "Flags",
}
"""Field of /proc/cpuinfo -> its name in lscpu."""
_LOWEST_MTS = {
    "DDR3": 1066,
    "DDR4": 2133,
    "DDR5": 4800,
    "LPDDR4": 2400,
    "LPDDR5": 4800,
}
"""Type of memory -> lowest rated MT/s of modules that were sold. A board may run them at a lower rate.

If a module states lower numbers, they may be its clock in MHz. For other types, such as DDR2, the
number of DDR5 is taken, so that no clock passes as a rate.
"""
_GUESTS = re.compile(
    r"KVM|QEMU|Bochs|OpenStack|VMware|VirtualBox|innotek|Xen|BHYVE|Parallels|Virtual Machine|Droplet"
    r"|Apple Virtualization|Google Compute Engine|Alibaba Cloud ECS|HVM|vServer|CVM|dummy-virt|AHV"
    r"|Cloud Hypervisor|KubeVirt|Scaleway|xen,"
)
"""Words of the firmware's vendor and product that name a virtual machine, as in systemd-detect-virt."""
_BARE_METAL = re.compile(r"metal|BM\.", re.IGNORECASE)
"""Part of the product names of a cloud's machines that are not virtual, such as ``c5.metal``."""
_DIMM_BYTES = 8
"""Bytes per transfer of a channel with modules in slots.

Firmware may state 4 instead for DDR5, whose modules consist of two halves of 4 bytes.
"""
# How the user can supply the governor and the turbo setting if Linux does not show them.
_ASK_THE_HOST = (
    "the kernel offers no cpufreq here: on a virtual machine its host decides, ask there"
)


def collect_cpu(host: Host) -> Facts:
    """Return the ``cpu`` part of the facts. Clocks are in Hz, caches in bytes."""
    fields = _cpu_fields(host)
    flags = fields.get("Flags", "").split()
    isa = [_ARM_NAMES.get(flag, flag) for flag in _ISA if flag in flags]
    kinds, numa = _kinds(host), topology.numa(host)
    # Some containers do not list the CPUs: then at least the first one is described.
    locations = topology.read(host) or topology.read(host, [0])
    # Numbers of sockets and cores over all CPUs of the machine.
    parts = topology.reach(locations, locations)
    # On Arm, firmware may number the clusters of one processor as sockets.
    if _are_clusters(locations, kinds):
        parts["sockets"] = 1
    clock, clock_source = _clocks(host, fields, "constant_tsc" in flags, mixed=bool(kinds))
    # Name of the hypervisor from lscpu, else from the CPU's flag or the firmware; None on a physical machine.
    hypervisor = fields.get("Hypervisor vendor")
    if not hypervisor and "hypervisor" in flags:
        hypervisor = "unknown hypervisor"
    hypervisor = hypervisor or _guest_of(host)
    facts = {
        **_model(host, fields, kinds),
        "sockets": parts["sockets"],
        "cores": parts["cores"],
        "threads": len(locations),
        "clock_hz": clock,
        "clock_source": clock_source,
        "isa": isa,
        "isa_best": _best(isa),
        "caches": _caches(host),
        # Memory of GPUs is in nodes without cores, and the kernel keeps empty nodes for it.
        "numa_nodes": max(1, sum(bool(node["cpus"]) for node in numa)),
        "numa": numa,
        "smt": host.read_switch(_SYSTEM, "smt/active"),
        "idle_states": _idle_states(host),
        "virtualised": hypervisor,
        "governor": host.read(_SYSTEM, "cpu0/cpufreq/scaling_governor"),
        "turbo": _turbo(host),
        "microcode": fields.get("microcode"),
        "mitigations": _mitigations(host),
    }
    if kinds:
        facts["kinds"] = kinds
    for key in ("governor", "turbo"):
        if facts[key] is None:
            host.missing(f"cpu.{key}", _ASK_THE_HOST)
    return facts


def _guest_of(host: Host) -> str | None:
    """Return the name of the vendor in the firmware of a virtual machine; None for other machines.

    Arm has no flag for virtual machines, so that lscpu may miss them.
    """
    place = "/sys/class/dmi/id"
    texts = host.read_files(place, "sys_vendor", "product_name", "bios_vendor", "chassis_asset_tag")
    # Virtual machines without this table have a device tree that names QEMU's board.
    texts.append(host.read("/proc/device-tree/compatible") or "")
    name = " ".join(texts)
    # Amazon's bare-metal machines have the same vendor, and ``metal`` in the name of their product.
    is_amazon = "Amazon EC2" in name
    if _BARE_METAL.search(name) or not (is_amazon or _GUESTS.search(name)):
        return None
    return texts[0] or "unknown hypervisor"


def how_to_read_energy(host: Host) -> str:
    """Return how a user can get access to the energy counters of processors and memory."""
    if host.glob("/sys/class/powercap/intel-rapl:*/energy_uj"):
        return "only root may read the counters: chmod a+r /sys/class/powercap/*/energy_uj allows all users"
    return "the kernel has no energy counters, as on most virtual machines"


def _cpu_fields(host: Host) -> dict[str, str]:
    """Return the fields of lscpu and of the first CPU in /proc/cpuinfo, under lscpu's names."""
    fields: dict[str, str] = {}
    answer = host.run_json(["lscpu", "-J"]) or {}
    # Of a repeated field of lscpu the first counts. /proc/cpuinfo overrides lscpu.
    for name, text in _lscpu_fields(answer.get("lscpu")):
        fields.setdefault(name, text)
    for name, text in host.pairs("/proc/cpuinfo").items():
        fields[_LSCPU_NAMES.get(name, name)] = text
    return fields


def _lscpu_fields(entries: Any) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each field of lscpu. Newer versions of lscpu nest the fields."""
    for entry in entries or ():
        if entry.get("data") is not None:
            yield str(entry.get("field")).rstrip(":"), str(entry["data"])
        yield from _lscpu_fields(entry.get("children"))


def _model(host: Host, fields: Mapping[str, str], kinds: list[Facts]) -> Facts:
    """Return names and numbers of the processor. On Arm they come from the MIDR register.

    If there are several kinds of cores, the microarchitecture is None, on Arm also the model.
    """
    vendor, family, model = fields.get("Vendor ID"), fields.get("CPU family"), fields.get("Model")
    if "CPU implementer" in fields:
        vendor, family, model = "ARM", fields["CPU implementer"], fields.get("CPU part")
    facts: Facts = {
        "vendor": vendor,
        "model_name": fields.get("Model name"),
        "family": _int(family),
        "model": _int(model),
        "stepping": _int(fields.get("Stepping")),
    }
    facts |= data.microarchitecture(**facts)
    if kinds:
        facts["microarchitecture"] = None
        if vendor == "ARM":
            facts |= {"model_name": _names(kinds), "model": None, "stepping": None}
        how = (
            f"the cores are of several kinds ({_names(kinds)}), and a limit holds for one kind: write"
            " cpu.operations_per_cycle in the site file, and measure one kind, such as with taskset -c "
            + kinds[-1]["cpus"]
        )
        host.missing("cpu.microarchitecture", how)
    return facts


def _kinds(host: Host) -> list[Facts]:
    """Return the kinds of cores in the order of their CPUs; empty if all cores are of one kind.

    Each has ``name`` (such as ``4 x P-core``), ``cpus`` (a list as text) and ``maximum`` (highest clock in
    Hz). On Arm, kinds differ in the part number. On Intel, Linux has performance counters for each kind.
    """
    kinds = _arm_kinds(host) or _intel_kinds(host)
    if len(kinds) < 2:
        return []
    facts = []
    for name in sorted(kinds, key=lambda name: kinds[name][0]):  # by the first CPU of each kind
        cpus = kinds[name]
        maximum = _highest(host, cpus)
        facts.append(
            {"name": f"{len(cpus)} x {name}", "cpus": ",".join(map(str, cpus)), "maximum": maximum}
        )
    return facts


def _arm_kinds(host: Host) -> dict[str, list[int]]:
    """Return name -> CPUs of each kind of Arm core; empty on other processors.

    Only Arm's /proc/cpuinfo has the field ``CPU part``, which tells the kinds apart.
    """
    kinds: dict[str, list[int]] = {}
    # /proc/cpuinfo lists for each CPU these three lines, in this order.
    cpu, implementer = 0, ""
    line = r"(?m)^(processor|CPU implementer|CPU part)\s*:\s*(\S+)"
    for field, text in re.findall(line, host.read("/proc/cpuinfo") or ""):
        if field == "processor":
            cpu = _int(text) or 0
        elif field == "CPU implementer":
            implementer = text
        elif implementer:
            kinds.setdefault(_arm_name(implementer, text), []).append(cpu)
    return kinds


def _arm_name(implementer: str, part: str) -> str:
    """Return the name of an Arm core; a text with both numbers if its name is unknown.

    ``implementer`` and ``part`` are hexadecimal numbers of the MIDR register, such as ``0x41`` and ``0xd0c``.
    """
    # This table has the cores of mixed processors. Those of other processors are in the table of microarchitectures.
    for line in data.table("arm_cores"):
        if (line["implementer"], line["part"]) == (implementer, part):
            return line["name"]
    core = data.microarchitecture("ARM", _int(implementer), _int(part), None, None)
    return core["microarchitecture"] or f"part {part} of implementer {implementer}"


def _intel_kinds(host: Host) -> dict[str, list[int]]:
    """Return name -> CPUs of each kind of core on a hybrid processor from Intel; empty on other processors."""
    places = {"cpu_core": "P-core", "cpu_atom": "E-core", "cpu_lowpower": "LP E-core"}
    kinds = {}
    for place, name in places.items():
        cpus = parse_cpu_list(host.read("/sys/devices", place, "cpus"))
        if cpus:
            kinds[name] = cpus
    return kinds


def _names(kinds: list[Facts]) -> str:
    return ", ".join(kind["name"] for kind in kinds)


def _are_clusters(locations: topology.Topology, kinds: list[Facts]) -> bool:
    """Return whether the kernel's packages are clusters of one processor instead of sockets.

    Arm's firmware may number each kind of core as a separate package. Then there are several packages,
    and each has one kind of cores.
    """
    packages = []  # numbers of the packages of each kind of cores
    for kind in kinds:
        cpus = locations.keys() & set(parse_cpu_list(kind["cpus"]))
        packages.append({locations[cpu].socket for cpu in cpus})
    every = set[int]().union(*packages)
    # No package is counted twice, so none has cores of two kinds.
    is_disjoint = sum(map(len, packages)) == len(every)
    return len(every) > 1 and is_disjoint


def _highest(host: Host, cpus: list[int] | None = None) -> float | None:
    """Return the highest clock in Hz that cpufreq allows on any of the CPUs (default: all CPUs)."""
    names = [f"cpu{cpu}" for cpu in cpus] if cpus else ["cpu[0-9]*"]
    files = []
    for name in names:
        files += host.glob(_SYSTEM, name, "cpufreq/cpuinfo_max_freq")
    clocks = [hertz(host.read(file), 1e3) for file in files]
    return max(filter(None, clocks), default=None)


def hertz(text: str | float | None, unit: float) -> float | None:
    """Parse a clock, and return it in Hz; None for an invalid or implausible clock.

    Args:
        text: clock as a tool or Linux prints it.
        unit: Hz in the unit of the printed clock, such as 1e6 for MHz.
    """
    try:
        clock = float(text or "") * unit
    except ValueError:
        return None
    return possible(clock, "Hz")


def _clocks(
    host: Host, fields: Mapping[str, str], constant_tsc: bool, mixed: bool
) -> tuple[dict[str, float | None], dict[str, str | None]]:
    """Return the clocks in Hz, and the source of each. The observed clock is measured later.

    Args:
        host: the machine.
        fields: fields of lscpu and /proc/cpuinfo.
        constant_tsc: whether the time stamp counter has a constant rate.
        mixed: whether there are several kinds of cores. The nominal clock is then None, and the maximum
            clock is the highest of all kinds.
    """
    cppc = host.read(_SYSTEM, "cpu0/acpi_cppc/nominal_freq")  # in MHz, the files of cpufreq in kHz
    model = fields.get("Model name", "")
    in_name = re.search(r"@\s*([\d.,]+)\s*GHz", model)
    # A constant TSC runs at the base clock, and the kernel's BogoMIPS is twice its rate.
    bogomips = fields.get("bogomips") if constant_tsc else None
    base = host.read(_SYSTEM, "cpu0/cpufreq/base_frequency")
    # Name, clock and source of each reading. The first known reading of a name counts.
    readings: tuple[tuple[str, float | None, str], ...] = (
        ("nominal", hertz(base, 1e3), "cpufreq base_frequency"),
        ("nominal", hertz(cppc, 1e6), "acpi_cppc nominal_freq"),
        ("nominal", hertz(in_name and in_name[1], 1e9), "CPU model name"),
        ("nominal", hertz(bogomips, 5e5), "rate of the time stamp counter (BogoMIPS / 2)"),
        ("maximum", _highest(host), "cpufreq cpuinfo_max_freq"),
        ("maximum", hertz(fields.get("CPU max MHz"), 1e6), "lscpu"),
    )
    clocks: dict[str, float | None] = dict.fromkeys(("nominal", "maximum", "observed"))
    sources: dict[str, str | None] = dict.fromkeys(clocks)
    for name, clock, source in readings:
        if clock and clocks[name] is None and not (mixed and name == "nominal"):
            clocks[name], sources[name] = clock, source
    for name in ("nominal", "maximum"):
        if clocks[name] is None:
            how = f"write cpu.{name}_hz in the site file, from the CPU's datasheet"
            host.missing(f"cpu.clock_hz.{name}", how)
    return clocks, sources


def _best(isa: list[str]) -> str:
    """Return the widest instruction set that the kernels can use, named as for ``--isa``."""
    if {"avx512f", "avx512bw", "avx512vl", "avx512dq"} <= set(isa):
        return "avx512"
    if {"avx2", "fma"} <= set(isa):
        return "avx2"
    return next((name for name in ("sse2", "neon") if name in isa), "scalar")


def _caches(host: Host) -> list[Facts]:
    """Return the kinds of caches, lowest level first, with the number of caches of each kind."""
    kinds = Counter(
        (cache.level, cache.kind, cache.size, len(cache.cpus))
        for cache in topology.read_caches(host)
    )
    return [
        {"level": level, "type": kind, "size": size, "shared_by": shared, "count": count}
        for (level, kind, size, shared), count in sorted(kinds.items())
    ]


def _turbo(host: Host) -> bool | None:
    """Return whether the clock may exceed the nominal clock; None if Linux does not say."""
    no_turbo = host.read_switch(_SYSTEM, "intel_pstate/no_turbo")
    if no_turbo is not None:
        return not no_turbo
    return host.read_switch(_SYSTEM, "cpufreq/boost")


def _idle_states(host: Host) -> list[str] | None:
    """Return the names of the enabled idle states of the first CPU; None without cpuidle."""
    places = host.glob(_SYSTEM, "cpu0/cpuidle/state[0-9]*")
    if not places:
        return None
    enabled = [place for place in places if host.read(place, "disable") != "1"]
    return [host.read(place, "name") or "unnamed" for place in enabled]


def _mitigations(host: Host) -> dict[str, str]:
    """Return vulnerability -> Linux's text, for vulnerabilities that affect this CPU."""
    texts = {}
    for place in host.glob(_SYSTEM, "vulnerabilities/*"):
        text = host.read(place)
        if text and text != "Not affected":
            texts[place.rpartition("/")[2]] = text
    return texts


def _int(text: str | None) -> int | None:
    """Return a number of lscpu or /proc/cpuinfo, which may be hexadecimal, such as 0x41; None for other texts."""
    try:
        return int(text or "", 0)
    except ValueError:
        return None


def collect_memory(host: Host) -> Facts:
    """Return the ``memory`` part of the facts. Only channels that hold a module are counted."""
    meminfo = host.meminfo()
    modules = _udev_modules(host)
    edac_channels, edac_type = _edac(host)
    udev_channels = _udev_channels(modules)
    # udev is preferred, because its data have the width of the channels too.
    channels, source, width = edac_channels, None, None  # EDAC does not state the width
    if udev_channels:
        channels, source = udev_channels, "udev (SMBIOS locators)"
        width = _channel_bytes(modules)
    elif edac_channels:
        source = "EDAC"
    kind = _common({module.get("TYPE") for module in modules}) or edac_type
    facts = {
        "total": meminfo.get("MemTotal"),
        "type": kind,
        "speed_mts": _slowest(modules),
        "channels": channels,
        "channels_source": source,
        "bytes_per_transfer": width,
        "modules": len(modules) or None,
        "huge_pages": {
            "size": meminfo.get("Hugepagesize"),
            "total": meminfo.get("HugePages_Total"),
        },
        "transparent_huge_pages": chosen(host.read("/sys/kernel/mm/transparent_hugepage/enabled")),
        "transparent_huge_pages_defrag": chosen(
            host.read("/sys/kernel/mm/transparent_hugepage/defrag")
        ),
    }
    for name in ("type", "speed_mts", "channels"):
        if facts[name] is None:
            how = f"write memory.{name} in the site file: as root, `dmidecode -t memory` shows it (of a virtual machine: on its host)"
            host.missing(f"memory.{name}", how)
    return facts


def _udev_modules(host: Host) -> list[dict[str, str]]:
    """Return the installed memory modules from SMBIOS.

    Since systemd 248, udev stores the SMBIOS data of modules for all users.
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
    """Return the configured rate in MT/s of the slowest module, at which all modules run.

    The result is None if a rate is unknown, or if a module may state its clock in MHz instead,
    which is half the rate. A module may do so if its configured number is at most half of the rated
    one, or if both are below all rates of its type (``_LOWEST_MTS``; for an unknown type below
    those of DDR5).
    """
    slowest = None
    for module in modules:
        speed = first_int(module.get("CONFIGURED_SPEED_MTS"))
        rated = first_int(module.get("SPEED_MTS")) or 0
        if speed is None or not possible(speed, "MT/s"):
            return None
        # The configured number is a clock if the rate is twice as high, up to rounding: 1467 MHz of 2933 MT/s.
        is_clock = 2 * speed <= rated + 2
        lowest = _LOWEST_MTS.get(module.get("TYPE", ""), _LOWEST_MTS["DDR5"])
        if is_clock or max(speed, rated) < lowest:
            return None
        slowest = min(speed, slowest or speed)
    return slowest


def _udev_channels(modules: list[dict[str, str]]) -> int | None:
    """Return the number of channels that the locators of the modules name.

    The result is None without modules, or if a locator, such as ``DIMM 3``, names no channel.
    """
    # ``P0 CHANNEL A`` is channel A of the socket P0. Names of channels repeat in each socket or memory controller, so
    # a channel is its name together with the names of these owners.
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


def _channel_bytes(modules: list[dict[str, str]]) -> int | None:
    """Return the bytes per transfer of a channel; None if they are unknown or differ."""
    widths: set[int | None] = set()
    for module in modules:
        # For soldered memory, firmware states the width of a channel. For DDR5 in DIMMs it may state the width of half
        # a channel, so the width of all DDR in DIMMs is taken from the standard. A module without a form factor
        # counts as a DIMM.
        bits = first_int(module.get("DATA_WIDTH"))
        is_dimm = "DIMM" in module.get("FORM_FACTOR", "DIMM").upper()
        if is_dimm and module.get("TYPE", "").upper().startswith("DDR"):
            widths.add(_DIMM_BYTES)
        elif bits in (16, 32, 64, 128):
            widths.add(bits // 8)
        else:
            widths.add(None)
    return widths.pop() if len(widths) == 1 else None


def _edac(host: Host) -> tuple[int | None, str | None]:
    """Return (number of channels that hold a module, memory type) from Linux's EDAC drivers.

    Both are None if no such driver is loaded. Drivers that count chip selects, such as amd64_edac,
    list ranks instead of modules.
    """
    channels, types = set(), set()
    controllers = "/sys/devices/system/edac/mc/mc[0-9]*"
    modules = host.glob(controllers, "dimm[0-9]*") or host.glob(controllers, "rank[0-9]*")
    for module in modules:
        # Such as ``channel 1 slot 0``. An empty slot has the size 0.
        location = re.findall(r"(branch|channel) (\d+)", host.read(module, "dimm_location") or "")
        if location and host.read_int(module, "size"):
            channels.add((module.rpartition("/")[0], *location))
            types.add(host.read(module, "dimm_mem_type"))
    return len(channels) or None, _common(types)


def _common(values: set[str | None]) -> str | None:
    """Return the only known value; None if there is none, or if several values differ."""
    known = values - {None, "", "Unknown"}
    return known.pop() if len(known) == 1 else None
