"""The facts of machines as lines for the report; what many nodes have in common is said once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from peakmark.formatting import binary, decimal_mark, listed, plural, significant, typeset
from peakmark.storage.results import Results

NAMED = 3
LEFT_OUT = {
    "What could not be read, and how to supply it", "Instruction sets", "Idle states", "Mitigations", "Mount options",
    "Block size, logical", "Block size, physical", "Kernel parameters", "Its flags", "Further flags", "Left out", "Programs",
    "Libraries", "Facts collected", "Architecture", "C library", "Swap", "Write cache",
}  # fmt: skip
"""Groups and lines for which paper has no room."""


def alike(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The facts of many nodes as those of one: what all have alike, group by group, and what
    differs, with the nodes.
    """
    if len(machines) < 2:
        return [dict(facts) for facts in machines]
    values: dict[tuple[str, str], dict[str, list[str]]] = {}
    for machine in machines:
        for group in machine["groups"]:
            for what, value in group["items"]:
                values.setdefault((group["title"], what), {}).setdefault(value, []).append(
                    str(machine["name"])
                )
    groups: dict[str, list[list[str]]] = {}
    differing = []
    for (title, what), by_value in values.items():
        if len(by_value) == 1 and len(next(iter(by_value.values()))) == len(machines):
            groups.setdefault(title, []).append([what, next(iter(by_value))])
        else:
            differing.append([what, _differing(by_value)])
    if differing:
        groups["What differs between the nodes"] = differing
    name = f"{len(machines)} nodes: {machines[0]['name']} to {machines[-1]['name']}"
    return [
        {
            "name": name,
            "groups": [{"title": title, "items": items} for title, items in groups.items()],
        }
    ]


def on_paper(machines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The machines without what only the HTML report shows."""
    shown = []
    for facts in machines:
        groups = []
        for group in facts["groups"]:
            items = [item for item in group["items"] if item[0] not in LEFT_OUT]
            if items and group["title"] not in LEFT_OUT:
                groups.append({"title": group["title"], "items": items})
        shown.append({"name": facts["name"], "groups": groups})
    return shown


def _differing(by_value: Mapping[str, Sequence[str]]) -> str:
    """``A (60 nodes); B (node3 and node9)``; of more than four values the most frequent ones and
    how many others there are.
    """
    ordered = sorted(by_value.items(), key=lambda pair: -len(pair[1]))
    shown = [f"{value} ({who(names)})" for value, names in ordered[:4]]
    more = f"; {len(ordered) - 4} other values" if len(ordered) > 4 else ""
    return "; ".join(shown) + more


def who(names: Sequence[str]) -> str:
    """``node3 and node9``, or how many nodes."""
    return listed(names) if len(names) <= NAMED else f"{len(names)} nodes"


def joined(lines: Iterable[tuple[str, Sequence[str]]]) -> list[list[str]]:
    """Lines of node and texts, those with the same texts as one with their nodes."""
    by_text: dict[tuple[str, ...], dict[str, None]] = {}
    for name, texts in lines:
        by_text.setdefault(tuple(texts), {})[name] = None
    return [[who(list(names)), *texts] for texts, names in by_text.items()]


Facts = Mapping[str, Any]
Group = Mapping[str, Any]
"""What -> its value; one that is None or empty has no line."""


class _Quantity(str):
    """A text of the hardware, whose numbers get the report's decimal mark; kernels, libraries and
    their flags have versions.
    """


def nodes(results: Results, mark: str = ".") -> list[dict[str, Any]]:
    """One entry per machine with facts: its name and groups of (what, value); ``mark`` in the
    numbers of the hardware.
    """
    cores = _core_types(results)
    networks: dict[str, list[Facts]] = {}
    for record in results.records:
        context = record.data["context"]
        if context.get("network"):
            networks.setdefault(str(context["host"]), []).append(context["network"])
    return [
        {
            "name": name,
            "groups": _groups(
                {**facts, "network": _link(facts, networks.get(name, ()))},
                mark,
                cores.get(name, ()),
            ),
        }
        for name, facts in results.facts.items()
    ]


def _core_types(results: Results) -> dict[str, list[str]]:
    """Host -> the core types that the BLAS took in HPL's runs there: what it takes by itself may be
    another.
    """
    by_host: dict[str, list[str]] = {}
    for record in results.records:
        core = (record.data["context"].get("library") or {}).get("core_type")
        cores = by_host.setdefault(str(record.data["context"]["host"]), [])
        if core and core not in cores:
            cores.append(str(core))
    return by_host


def _link(facts: Facts, seen: Sequence[Facts]) -> Facts:
    """The interface that was measured on a host, as its records have ``seen`` it; that of its
    default route says that it was not.
    """
    if not seen:
        network = facts.get("network") or {}
        return (
            {**network, "remark": "of the default route; not measured"}
            if network.get("interface")
            else network
        )
    first = seen[0]
    others = sorted({str(entry["interface"]) for entry in seen} - {str(first["interface"])})
    remark = f"measured; others too: {', '.join(others)}" if others else "measured"
    if first.get("loopback"):
        loopback = {
            "kind": "loopback",
            "speed_note": "loopback has no line rate: no network was crossed",
        }
        return {"interface": first["interface"], "remark": remark, **loopback}
    return {**(first.get("link") or {"interface": first["interface"]}), "remark": remark}


def short(results: Results) -> str:
    """The machine in half a sentence: ``vm, AMD EPYC (Zen 3), 2 cores``; of several nodes, how many
    there are.
    """
    if len(results.facts) > 1:
        return f"{len(results.facts)} nodes"
    for name, facts in results.facts.items():
        cpu = facts.get("cpu", {})
        model = cpu.get("model_name") or "unknown processor"
        kind = f" ({cpu['microarchitecture']})" if cpu.get("microarchitecture") else ""
        cores = "? cores" if cpu.get("cores") is None else plural(cpu["cores"], "core")
        guest = " of a virtual machine" if cpu.get("virtualised") else ""
        return f"{facts.get('host', name)}, {model}{kind}, {cores}{guest},"
    return "this machine"


def _groups(facts: Facts, mark: str, cores: Sequence[str]) -> list[dict[str, Any]]:
    groups = {
        "Processor": _cpu(facts.get("cpu") or {}),
        "Memory": _memory(facts.get("memory") or {}),
        "Disk": _storage(facts.get("storage") or {}),
        "Network": _network(facts.get("network") or {}),
        "System": _system(facts),
        "Programs and libraries": _programs(facts, cores),
        "What could not be read, and how to supply it": {
            name: f"unknown: {how}" for name, how in (facts.get("unknown") or {}).items()
        },
    }
    lines = {
        title: [
            [
                what,
                decimal_mark(typeset(value), mark) if isinstance(value, _Quantity) else str(value),
            ]
            for what, value in group.items()
            if value not in (None, "")
        ]
        for title, group in groups.items()
    }
    return [{"title": title, "items": items} for title, items in lines.items() if items]


def _number(form: str, value: Any) -> _Quantity | None:
    """The value in ``form``, None without one."""
    return _Quantity(form.format(value)) if value else None


def _choice(value: Any, yes: str, no: str) -> str | None:
    return None if value is None else yes if value else no


def _cpu(cpu: Facts) -> Group:
    clocks, sources = cpu.get("clock_hz") or {}, cpu.get("clock_source") or {}
    return {
        "Model": cpu.get("model_name"),
        "Microarchitecture": cpu.get("microarchitecture"),
        "Sockets, cores, threads": f"{cpu.get('sockets')}, {cpu.get('cores')}, {cpu.get('threads')}"
        if cpu
        else None,
        **{
            f"Clock, {name}": _Quantity(
                f"{clocks[name] / 1e9:.3f} GHz ({sources.get(name) or 'source unknown'})"
            )
            for name in ("nominal", "maximum", "observed")
            if clocks.get(name)
        },
        "Instruction sets": " ".join(cpu.get("isa") or ()),
        "Caches": _Quantity("; ".join(map(_cache, cpu.get("caches") or ()))),
        "NUMA nodes": _numa(cpu),
        "Hardware threads": _choice(
            cpu.get("smt"), "several a core (SMT on)", "one a core (SMT off)"
        ),
        "Idle states": ", ".join(cpu.get("idle_states") or ()),
        "Virtual machine": cpu.get("virtualised"),
        "Governor": cpu.get("governor"),
        "Energy counters": cpu.get("energy"),
        "Turbo": _choice(cpu.get("turbo"), "on", "off"),
        "Microcode": cpu.get("microcode"),
        "Mitigations": "; ".join(
            f"{name}: {state}" for name, state in (cpu.get("mitigations") or {}).items()
        ),
    }


def _cache(cache: Facts) -> str:
    """``L2 unified 2 MiB, shared by 2 threads, 4 in all``."""
    shared = "" if cache.get("shared_by") == 1 else f", shared by {cache.get('shared_by')} threads"
    return f"L{cache['level']} {cache['type']} {binary(cache['size'])}{shared}, {cache.get('count')} in all"


def _numa(cpu: Facts) -> str | None:
    """``2: 64 GiB and 64 GiB; distances 10 21, 21 10``."""
    nodes = cpu.get("numa") or ()
    if len(nodes) < 2:
        return str(cpu["numa_nodes"]) if cpu.get("numa_nodes") else None
    sizes = listed([binary(node["memory"]) or "no memory" for node in nodes])
    distances = ", ".join(" ".join(map(str, node["distances"])) for node in nodes)
    return f"{len(nodes)}: {sizes}; distances {distances}"


def _memory(memory: Facts) -> Group:
    huge = memory.get("huge_pages") or {}
    return memory and {
        "Size": _number("{}", binary(memory.get("total"))),
        "Type": memory.get("type"),
        "Transfers": f"{memory['speed_mts']} MT/s" if memory.get("speed_mts") else None,
        "Channels": f"{memory['channels']} ({memory.get('channels_source')})"
        if memory.get("channels")
        else None,
        "Modules": memory.get("modules"),
        "Huge pages": _Quantity(f"{huge.get('total')} of {binary(huge.get('size'))}")
        if huge
        else None,
        "Transparent huge pages": memory.get("transparent_huge_pages"),
        "Swap": _Quantity(binary(memory.get("swap_total")) or "none"),
    }


def _storage(storage: Facts) -> Group:
    limit = storage.get("interface_limit")
    formula = storage.get("interface_limit_formula")
    return storage and {
        "Measured below": storage.get("scratch"),
        "File system": storage.get("filesystem"),
        "Mount options": str(storage.get("mount_options") or "").replace(",", ", "),
        "Device": ", ".join(storage.get("members") or [str(storage.get("device") or "")]),
        "Model": storage.get("model"),
        "Kind": _choice(storage.get("rotational"), "rotating", "solid state"),
        "Interface": storage.get("interface"),
        "Interface limit": _Quantity(f"{significant(limit / 1e6)} MB/s: {formula}")
        if limit
        else None,
        "PCI Express link": _pcie(storage.get("pcie")),
        "Block size, logical": binary(storage.get("logical_block_size")),
        "Block size, physical": binary(storage.get("physical_block_size")),
        "Scheduler": storage.get("scheduler"),
        "Write cache": storage.get("write_cache"),
        "Size and free space": _Quantity(
            f"{_decimal(storage.get('size'))}, {_decimal(storage.get('free'))} free"
        ),
    }


def _pcie(link: Facts | None) -> str | None:
    if not link:
        return None
    lanes = f"{link['current_width']} of {link['max_width']} lanes"
    return f"{lanes}, {link['current_speed']} of {link['max_speed']}"


def _network(network: Facts) -> Group:
    speed = network.get("speed_bps")
    return {
        "Interface": f"{network.get('interface')} ({network['remark']})"
        if network.get("remark")
        else None,
        "Kind": network.get("kind"),
        "Driver": network.get("driver"),
        "Line rate": _Quantity(f"{significant(speed / 1e9)} Gb/s") if speed else None,
        "PCI Express link": _pcie(network.get("pcie")),
        "About the line rate": network.get("speed_note"),
        "MTU": network.get("mtu"),
        "Members": ", ".join(network.get("members") or ()),
    }


def _system(facts: Facts) -> Group:
    system, limits = facts.get("os") or {}, facts.get("limits") or {}
    cpus = limits.get("cpus_allowed") or ()
    return {
        "Host": facts.get("host"),
        "Kernel": system.get("kernel"),
        "Distribution": system.get("distribution"),
        "C library": f"glibc {system['glibc']}" if system.get("glibc") else None,
        "Architecture": system.get("architecture"),
        "Kernel parameters": system.get("command_line"),
        "NUMA balancing": _choice(system.get("numa_balancing"), "on", "off"),
        "Firmware": system.get("firmware"),
        "CPUs the job may use": f"{len(cpus)}: {', '.join(map(str, cpus))}" if cpus else None,
        "CPU time the job may use": _number(
            "that of {:g} CPUs (cgroup quota)", limits.get("cpu_quota")
        ),
        "Memory the job may use": _number("{}", binary(limits.get("memory_bytes"))),
        "Slurm": _slurm(facts.get("slurm")),
        "Facts collected": facts.get("collected"),
    }


def _blas(blas: Facts, cores: Sequence[str]) -> str | None:
    """Its name and how it was made, and with which kernels HPL ran: those it takes by itself may be
    others.
    """
    if not blas.get("name"):
        return None
    own = blas.get("core_type")
    name = " ".join(word for word in str(blas.get("config") or blas["name"]).split() if word != own)
    if cores:
        kernels = f", core type {listed(cores)} in HPL's runs"
        kernels += f" (asked for; by itself it takes {own})" if own and own not in cores else ""
    else:
        kernels = f", core type {own} by itself" if own else ""
    return f"{name}{kernels} ({blas.get('library')})"


def _programs(facts: Facts, cores: Sequence[str]) -> Group:
    build = facts.get("build") or {}
    special = (build.get("isa_flags") or {}).items()
    versions = {name: tool["version"] for name, tool in (facts.get("tools") or {}).items()}
    return {
        "Compiler of the own kernels": build.get("compiler"),
        "Its flags": build.get("flags"),
        "Further flags": "; ".join(f"{isa}: {flags}" for isa, flags in special if flags),
        "Left out": "; ".join(
            f"{isa}: {why}" for isa, why in (build.get("left_out") or {}).items()
        ),
        "BLAS": _blas(facts.get("blas") or {}, cores),
        # Where those that measured lie is told with the method.
        "Programs": ", ".join(
            f"{name} {'(unknown)' if it == 'unknown' else it}" for name, it in versions.items()
        ),
        # The file behind the name holds the version.
        "Libraries": ", ".join(
            path.rpartition("/")[2] for path in (facts.get("libraries") or {}).values()
        ),
    }


def _slurm(slurm: Any) -> str | None:
    if not isinstance(slurm, Mapping):
        return None
    return "; ".join(
        f"{name} {value}" for name, value in slurm.items() if value not in (None, "", [], {})
    )


def _decimal(size: int | None) -> str:
    return "unknown" if size is None else f"{significant(size / 1e9, 3)} GB"
