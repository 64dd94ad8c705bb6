"""What tables and figures are called, and what to see in a figure: for the report, the page and Snakemake's report."""

from __future__ import annotations

from peakmark.layout import SUBSYSTEM_TITLES, TABLES
from peakmark.resources import ROOT

FOLDER = ROOT / "reports" / "captions"
FIGURES = (
    "overview", "cpu", "memory_throughput_pool", "memory_throughput_block", "memory_latency", "disk_throughput",
    "disk_iops", "disk_latency", "network_throughput", "network_latency",
)  # fmt: skip


def text(name: str) -> str:
    """The caption of a figure, on one line."""
    return " ".join((FOLDER / f"{name}.rst").read_text(encoding="utf-8").split())


def texts() -> dict[str, str]:
    """Figure name -> caption."""
    return {name: text(name) for name in FIGURES}


def tables() -> dict[str, str]:
    """Table name -> title with its resource: ``Memory: throughput``."""
    return {table.name: f"{SUBSYSTEM_TITLES[table.subsystem]}: {inside(table.title)}" for table in TABLES}


def inside(title: str) -> str:
    """A title within a sentence: its first letter small, unless the word is an abbreviation."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]
