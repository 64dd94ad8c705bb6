"""The facts of machines as lines for the report; what many nodes have in common is said once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import ChainableUndefined, Environment, Template

from peakmark import yamlfile
from peakmark.formatting import binary, decimal_mark, listed, plural, significant, typeset
from peakmark.resources import ROOT
from peakmark.storage.results import Results

TEXT = ROOT / "reports" / "machine.yaml"
UNREAD = "What could not be read, and how to supply it"
NAMED = 3
LEFT_OUT = {
    UNREAD, "Instruction sets", "Idle states", "Mitigations", "Mount options",
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


Facts = Mapping[str, Any]


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
        title: [[what, template.render(facts, cores=cores)] for what, template in lines.items()]
        for title, lines in _templates(mark).items()
    }
    unread = (facts.get("unknown") or {}).items()
    groups[UNREAD] = [[name, f"unknown: {how}"] for name, how in unread]
    shown = {title: [line for line in lines if line[1]] for title, lines in groups.items()}
    return [{"title": title, "items": lines} for title, lines in shown.items() if lines]


@cache
def _templates(mark: str) -> dict[str, dict[str, Template]]:
    """Group -> line -> its template."""
    environment = Environment(
        autoescape=False,  # noqa: S701 - texts as JSON, which each form of the report escapes
        undefined=ChainableUndefined,
        finalize=lambda value: "" if value is None else value,
    )
    environment.filters |= {
        "binary": binary,
        "listed": listed,
        "number": lambda text: text and decimal_mark(typeset(text), mark),
        "pairs": _pairs,
        "significant": significant,
    }
    groups = yamlfile.read(TEXT).items()
    return {
        title: {what: environment.from_string(text) for what, text in lines.items()}
        for title, lines in groups
    }


def _pairs(values: Mapping[str, Any] | None, sign: str = ": ") -> str:
    """``name: value; name: value``, of values that are not empty."""
    return "; ".join(f"{name}{sign}{value}" for name, value in (values or {}).items() if value)
