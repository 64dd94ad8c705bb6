"""What tables and figures are called, and what to see in a figure: for the report, the page and
Snakemake's report.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache

from peakmark import yamlfile
from peakmark.analysis.row import Row
from peakmark.catalogue import SUBSYSTEMS
from peakmark.config.layouts import Drawing
from peakmark.formatting import listed, plural
from peakmark.messages import Severity
from peakmark.resources import ROOT
from peakmark.tools import references
from peakmark.tools.tables import TABLES

FILE = ROOT / "reports" / "captions.yaml"
FIGURES = (
    "overview", "fleet", "cpu", "memory_throughput_pool", "memory_throughput_block", "memory_latency", "disk_throughput",
    "disk_iops", "disk_latency", "network_throughput", "network_latency",
)  # fmt: skip
NODES = "nodes"  # caption of each figure of many nodes
WORKLOAD = "workload"  # caption of a figure of one workload, unless it is a latency
DISTURBED = "disturbed"  # behind the caption of a figure that shows disturbed repetitions
KINDS = ("together", "bars")  # captions of figures that a layout asks for, after its own words


@cache
def sentences() -> Mapping[str, Mapping[str, str]]:
    """Figure -> what a sentence of its caption is about -> the sentence."""
    known: dict[str, dict[str, str]] = yamlfile.read(FILE)
    tools = references()
    for table in TABLES:
        for program in table.references:
            if reading := tools[program.instrument].reading:
                known[table.name][program.instrument] = reading
    return known


def text(name: str, absent: Collection[str] = ()) -> str:
    """The caption of a figure, on one line, without the sentences about what is ``absent`` from it:
    its limit, or a program.
    """
    table = name.rpartition("_")[0]  # of a figure of one workload, such as disk_throughput_RS
    known = next(
        entry
        for entry in (name, table if table.endswith("latency") else "", WORKLOAD)
        if entry in sentences()
    )
    return " ".join(
        sentence for about, sentence in sentences()[known].items() if about not in absent
    )


def of_drawing(drawing: Drawing, absent: Collection[str]) -> str:
    """The caption of a figure that a layout asks for: its title, then how to read its kind without
    what is ``absent``.
    """
    return f"{drawing.title}. {text(drawing.kind if drawing.kind in KINDS else WORKLOAD, absent)}"


def warning_counts(rows: Sequence[Row]) -> str:
    """What the table says of the rows of a figure and its marks do not: `` Of its 6 rows 1 is wrong
    and 2 are unsure.``
    """
    counts = {
        level: sum(row.level is level for row in rows)
        for level in (Severity.WRONG, Severity.UNSURE)
    }
    counted = [
        f"{count} {'is' if count == 1 else 'are'} {level}"
        for level, count in counts.items()
        if count
    ]
    return f" Of its {plural(len(rows), 'row')} {listed(counted)}." if counted else ""


def texts() -> dict[str, str]:
    """Figure name -> caption, of figures of one workload too."""
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
