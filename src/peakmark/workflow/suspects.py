"""Build the campaign that measures slow nodes and suspected links again, together with healthy ones."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from peakmark import statistics
from peakmark.catalogue import WORKLOADS
from peakmark.cell import Cell
from peakmark.config.types import Campaign
from peakmark.formatting import parse_size
from peakmark.plan import grids
from peakmark.plan.cluster import crossed, read_behind
from peakmark.rows import schema
from peakmark.rows.schema import CampaignFrames, is_mapped

CONTROLS = 2
"""Number of healthy nodes of a class, or links of a kind, that are measured with the suspects. A single
one may have become slow meanwhile.
"""
SUFFIX = "-suspects"
LONGEST_NAME = 64 - len(SUFFIX)
"""Number of characters that are kept of a campaign's name before the suffix: a name has at most 64."""
LEFT_OUT = {"report", "tools", "tools_on", "modules", *WORKLOADS}
"""Keys of a configuration that do not change how the rows of the suspects are measured."""


class Suspects(NamedTuple):
    """Slow nodes and links, and the rows to measure again.

    Attributes:
        beside: slow node or link -> healthy nodes or links with which it is compared.
        cells: one cell of each row in which a suspect is slow.
    """

    beside: dict[str, list[str]]
    cells: list[Cell]


class Family(NamedTuple):
    """Nodes of one class, or links of one kind, which are compared with each other.

    Attributes:
        names: names of all nodes or links of the family.
        slow: rows in which a node or link of the family is slow.
    """

    names: set[str]
    slow: pd.DataFrame


def choose(frames: CampaignFrames) -> Suspects:
    """Choose the slow nodes and suspected links, and draw healthy ones of the same family by the seed."""
    controls_of: dict[str, list[str]] = {}
    cells: list[Cell] = []
    seed = frames.campaign["config"].get("seed", 1)
    generator = random.Random(f"{seed}/controls")  # noqa: S311 - not a secret
    for family in (*node_families(frames.rows), *link_families(frames)):
        if family.slow.empty:
            continue
        slow = sorted(set(family.slow["node"]))
        healthy = sorted(family.names.difference(slow))
        controls = generator.sample(healthy, min(CONTROLS, len(healthy)))
        for name in slow:
            controls_of[name] = list(controls)
        cells += cells_of(family.slow, frames.runs)
    return Suspects(controls_of, cells)


def node_families(rows: pd.DataFrame) -> Iterator[Family]:
    """Yield the nodes of each class, with the rows in which they are slow."""
    judged = rows[rows["is_judged"]]
    for _, family in judged.groupby("node_class", sort=False):
        yield Family(set(family["node"]), family[family["is_slow"]])


def link_families(frames: CampaignFrames) -> Iterator[Family]:
    """Yield the healthy and suspected links of each point, in a family for each number of uplinks."""
    known = read_behind(frames.campaign)
    rows = frames.rows[is_mapped(frames.rows)]
    for place, pairs in rows.groupby("place", sort=False):
        slow = frames.fleet[frames.fleet["point"].eq(place)]
        is_suspect = slow["kind"].eq("link") & ~slow["confirmed"]
        suspects = set(slow.loc[is_suspect, "name"])
        by_kind: dict[int, set[str]] = defaultdict(set)
        for name in pairs["node"]:
            nodes = name.split("+")
            path = crossed(nodes, known)
            is_healthy = set(slow["name"]).isdisjoint({name, *nodes, *path})
            if name in suspects or is_healthy:
                by_kind[len(path)].add(name)
        for names in by_kind.values():
            yield Family(names, pairs[pairs["node"].isin(names & suspects)])


def cells_of(rows: pd.DataFrame, runs: pd.DataFrame) -> list[Cell]:
    """Return the first cell of each row."""
    kept = runs[runs["kept"]].sort_values("repetition", kind="stable")
    first = kept.drop_duplicates(["point", "instrument"])
    of_rows = rows[["point", "instrument"]].merge(first, on=["point", "instrument"])
    return [cell_of(run) for run in schema.lines(of_rows)]


def cell_of(run: Any) -> Cell:
    """Return the cell that measured a value, without its options.

    The path of the cell has the planned point, because a run of a matrix or a ladder has other points.
    """
    subsystem, instrument, point, place, repetition = run.cell.split("/")
    name, block, concurrency = point.rsplit("_", maxsplit=2)
    variant = name.removeprefix(run.measured_workload).removeprefix("-")
    size = None
    if block not in ("none", "auto"):
        size = parse_size(block)
    word = run.concurrency_word
    threads = 1
    if not word:
        threads = int(concurrency.removeprefix("x"))
    node, _, peer = place.partition("+")
    return Cell(
        subsystem, instrument, run.measured_workload, variant, size, threads, node,
        int(repetition), word=word, peer=peer,
    )  # fmt: skip


def configuration(frames: CampaignFrames, suspects: Suspects) -> dict[str, Any]:
    """Return the configuration of the campaign that measures the suspects again.

    The new campaign has the settings of the first one, the rows in which the suspects are slow, and enough
    repetitions for an interval of the median.
    """
    config = frames.campaign["config"]
    # A healthy node comes first, because with fixed peers it is the server of all other nodes.
    ordered = [*chain.from_iterable(suspects.beside.values()), *suspects.beside]
    pairs = []
    nodes: list[str] = []
    for name in ordered:
        ends = name.split("+")
        nodes += ends
        if len(ends) > 1 and ends not in pairs:
            pairs.append(ends)
    # Write every key, because config/config.yaml would replace keys that are left out.
    kept = {}
    for key in Campaign.__struct_fields__:
        if key in config and key not in LEFT_OUT:
            kept[key] = config[key]
    return {
        **kept,
        "campaign": f"{frames.campaign['name'][:LONGEST_NAME]}{SUFFIX}",
        "nodes": list(dict.fromkeys(nodes)),
        "peers": "fixed",
        "repetitions": statistics.ENOUGH,
        "suspects": suspects.beside,
        **grids_of(config, suspects.cells, pairs),
    }


def grids_of(
    config: dict[str, Any], cells: Iterable[Cell], pairs: Sequence[list[str]]
) -> dict[str, list[dict[str, Any]]]:
    """Return subsystem -> grids of the slow rows. Rows that differ only in the workload share a grid."""
    by_subsystem: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cell in cells:
        grid = grids.narrowed(config, cell)
        if cell.peer:
            grid["pairs"] = [list(ends) for ends in pairs]
        for other in by_subsystem[cell.subsystem]:
            if {**other, "workloads": []} == {**grid, "workloads": []}:
                if cell.workload not in other["workloads"]:
                    other["workloads"].append(cell.workload)
                break
        else:
            by_subsystem[cell.subsystem].append(grid)
    return dict(by_subsystem)
