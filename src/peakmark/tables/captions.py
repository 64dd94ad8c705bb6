"""What tables and figures are called, and what to see in a figure: for the report, the page and Snakemake's report."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from peakmark.catalogue.subsystems import SUBSYSTEMS
from peakmark.catalogue.tables import TABLES
from peakmark.config.drawings import Drawing
from peakmark.formatting import listed, plural
from peakmark.judging.notes import Level
from peakmark.judging.row import Row
from peakmark.resources import ROOT

FOLDER = ROOT / "reports" / "captions"
FIGURES = (
    "overview", "fleet", "cpu", "memory_throughput_pool", "memory_throughput_block", "memory_latency", "disk_throughput",
    "disk_iops", "disk_latency", "network_throughput", "network_latency",
)  # fmt: skip
NODES = "nodes"  # caption of each figure of many nodes
WORKLOAD = "workload"  # caption of a figure of one workload
KINDS = ("together", "bars")  # captions of figures that a layout asks for, after its own words


def text(name: str, limit: bool = True, absent: Collection[str] = ()) -> str:
    """The caption of a figure, on one line; without ``limit`` no sentence about its dashed line, and none about programs that
    are ``absent`` from it.
    """
    caption = " ".join((FOLDER / f"{_file(name)}.rst").read_text(encoding="utf-8").split())
    sentences = re.split(r"(?<=\.) ", caption)
    dropped = [*absent, *(() if limit else ("dashed",))]
    return " ".join(
        sentence
        for sentence in sentences
        if not any(re.search(rf"\b{re.escape(word)}\b", sentence) for word in dropped)
    )


def of_drawing(drawing: Drawing, limit: bool, references: bool, beyond: bool = False) -> str:
    """The caption of a figure that a layout asks for: its title, then how to read its kind. ``limit``, ``references`` and
    ``beyond`` (references above the upper edge) say what is in it.
    """
    caption = text(drawing.kind if drawing.kind in KINDS else WORKLOAD, limit)
    absent = {
        "repetitions": drawing.value == "measured",
        "reference tools": references,
        "beyond": beyond,
    }
    dropped = [word for word, there in absent.items() if not there]
    kept = [sentence for sentence in re.split(r"(?<=\.) ", caption) if not any(word in sentence for word in dropped)]
    return " ".join([f"{drawing.title}.", *kept])


def _file(name: str) -> str:
    """The file of a figure's caption; figures of one workload, such as disk_throughput_RS, share one unless they are latencies."""
    if name in (*FIGURES, NODES, *KINDS):
        return name
    table = name.rpartition("_")[0]
    return table if table.endswith("latency") else WORKLOAD


def doubts(rows: Sequence[Row]) -> str:
    """What the table says of the rows of a figure and its marks do not: `` Of its 6 rows 1 is wrong and 2 are unsure; 2 mix hosts.``"""
    counts = {level: sum(row.level is level for row in rows) for level in (Level.WRONG, Level.UNSURE)}
    counted = [f"{count} {'is' if count == 1 else 'are'} {level}" for level, count in counts.items() if count]
    mixed = sum(row.mixed for row in rows)
    more = [f"{mixed} {'mixes' if mixed == 1 else 'mix'} hosts"] if mixed else []
    parts = [*([listed(counted)] if counted else []), *more]
    return f" Of its {plural(len(rows), 'row')} {'; '.join(parts)}." if parts else ""


def texts() -> dict[str, str]:
    """Figure name -> caption, of figures of one workload too."""
    alone = [f"{table.name}_{name}" for table in TABLES for name in SUBSYSTEMS[table.subsystem].workloads]
    return {name: text(name) for name in (*FIGURES, *alone) if name in FIGURES or name.rpartition("_")[0] in FIGURES}


def tables() -> dict[str, str]:
    """Table name -> title with its resource: ``Memory: throughput``."""
    return {table.name: f"{SUBSYSTEMS[table.subsystem].title}: {inside(table.title)}" for table in TABLES}


def inside(title: str) -> str:
    """A title within a sentence: its first letter small, unless the word is an abbreviation."""
    return title if title[1:2].isupper() else title[:1].lower() + title[1:]


def of_table(title: str, subsystem: str) -> str:
    """The caption of a table: ``Disk: throughput.``, without the resource where the title names it already."""
    resource = SUBSYSTEMS[subsystem].title
    return f"{title}." if title.lower().startswith(resource.lower()) else f"{resource}: {inside(title)}."
