"""Captions of tables and figures."""

from __future__ import annotations

from collections.abc import Collection

from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing
from peakmark.messages import message
from peakmark.tools.tables import TABLES

PERCENTILES = ("disk_latency_percentiles", "network_latency_percentiles")
LINKS = ("network_throughput_links", "network_latency_links")
FIGURES = (
    "overview", "fleet", "cpu", "memory_throughput_pool", "memory_throughput_block", "memory_latency",
    "memory_core_to_core", "memory_numa_latency", "memory_numa_throughput", "memory_ladder_latency", "memory_ladder_throughput", "memory_loaded_latency", "roofline", "disk_throughput",
    "disk_iops", "disk_latency", "network_throughput", "network_latency", *PERCENTILES, *LINKS,
)  # fmt: skip
NODES = "nodes"  # each figure of many nodes
WORKLOAD = "workload"  # a figure of one workload, unless it is a latency
KINDS = ("together", "bars")  # figures of a layout, after its title
PARTS = ("repetitions", "references", "beyond", "limits")  # what a figure of a layout may show


def text(name: str, noun: str = "nodes") -> str:
    """The caption of a figure, on one line; ``noun``: what its dots are."""
    table = name.rpartition("_")[0]  # of a figure of one workload, such as disk_throughput_RS
    if name in (*FIGURES, *KINDS, NODES):
        case = name
    else:
        case = table if table.endswith("latency") else WORKLOAD
    return f"{message('caption', case=case, noun=noun).fact}."


def of_drawing(drawing: Drawing, shown: Collection[str]) -> str:
    """The caption of a figure that a layout asks for: its title, its kind, and what of ``PARTS`` is
    ``shown``.
    """
    kind = drawing.kind if drawing.kind in KINDS else WORKLOAD
    parts = [f"{message('caption-part', case=part).fact}." for part in PARTS if part in shown]
    return " ".join([f"{drawing.title}.", text(kind), *parts])


def texts() -> dict[str, str]:
    """Figure name -> caption, of figures of one workload too: what ``rules/tables.smk`` hands on."""
    alone = [
        f"{table.name}_{name}" for table in TABLES for name in SUBSYSTEMS[table.subsystem].workloads
    ]
    return {
        name: text(name)
        for name in (*FIGURES, *alone)
        if name in FIGURES or name.rpartition("_")[0] in FIGURES
    }


def tables() -> dict[str, str]:
    """Table name -> title with its resource: ``Memory: throughput``."""
    return {table.name: of_table(table.title, table.subsystem) for table in TABLES}


def inside(title: str) -> str:
    """A title within a sentence: its first letter small, unless the word is an abbreviation."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def of_table(title: str, subsystem: str) -> str:
    """What a table is called: ``Disk: throughput``, without the resource where the title names it
    already.
    """
    resource = SUBSYSTEMS[subsystem].title
    return title if title.lower().startswith(resource.lower()) else f"{resource}: {inside(title)}"
