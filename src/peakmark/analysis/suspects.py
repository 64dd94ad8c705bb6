"""A second measurement of slow nodes and suspected links: the campaign that makes it, and what it
shows.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import nan
from typing import Any, NamedTuple

from peakmark import statistics
from peakmark.analysis import fleet
from peakmark.analysis.fleet import Family, PointOf
from peakmark.analysis.links import LinkMap, is_mapped
from peakmark.analysis.row import Row, Rows, SlowRow
from peakmark.catalogue import WORKLOADS
from peakmark.cell import Cell
from peakmark.config.types import Campaign
from peakmark.messages import Message, Severity, message
from peakmark.plan import grids
from peakmark.plan.cluster import crossed
from peakmark.storage.results import Results

CONTROLS = 2
"""Number of healthy nodes of a class, or links of a kind, that are measured beside the suspects: one
alone may have become slow meanwhile.
"""
SUFFIX = "-suspects"
LONGEST_NAME = 64 - len(SUFFIX)
"""Characters of a campaign's name to which the suffix is added: a name has at most 64."""
LEFT_OUT = {"report", "tools", "tools_on", "modules", *WORKLOADS}
"""Keys of a configuration that say nothing of how the suspects' rows are measured."""


class Suspects(NamedTuple):
    """What is measured a second time.

    Attributes:
        beside: slow node or link -> the healthy ones beside it.
        cells: a cell of each row in which one of them is slow.
    """

    beside: dict[str, list[str]]
    cells: list[Cell]


def choose(results: Results, tables: Rows, maps: Iterable[LinkMap]) -> Suspects:
    """Choose the slow nodes and suspected links, and draw healthy ones of their class by the seed."""
    beside: dict[str, list[str]] = {}
    cells: list[Cell] = []
    lot = random.Random(f"{results.config.get('seed', 1)}/controls")  # noqa: S311 - not a secret
    for family in (*fleet.families(tables), *_link_families(maps)):
        slow = [row for row in family.values() if row.slow]
        if not slow:
            continue
        names = {row.key.node for row in slow}
        healthy = sorted({node for node, _ in family} - names)
        controls = lot.sample(healthy, min(CONTROLS, len(healthy)))
        beside |= {name: list(controls) for name in sorted(names)}
        cells += [row.measured.points[0].record.cell for row in slow]
    return Suspects(beside, cells)


def _link_families(maps: Iterable[LinkMap]) -> Iterator[Family]:
    """Yield the healthy links of each point with the suspected ones, which are marked as slow; those
    of a family cross equally many uplinks.
    """
    for each in maps:
        slow = {part.name: part for part in each.slow}
        by_kind: dict[int, Family] = defaultdict(dict)
        for row in each.rows:
            name, nodes = row.key.node, row.key.node.split("+")
            path, part = crossed(nodes, each.behind), slow.get(name)
            if part and not part.confirmed:
                verdict = SlowRow(part.behind, part.low, part.high, nan)
                by_kind[len(path)][name, ""] = replace(row, slow=verdict)
            elif slow.keys().isdisjoint({name, *nodes, *path}):
                by_kind[len(path)][name, ""] = row
        yield from by_kind.values()


def configuration(results: Results, suspects: Suspects) -> dict[str, Any]:
    """Return the campaign that measures the suspects again: the settings of the first one, their
    slow rows, and as many repetitions as an interval needs.
    """
    # A healthy node comes first: with fixed peers it is the server of all others.
    ordered = [*(name for beside in suspects.beside.values() for name in beside), *suspects.beside]
    nodes = dict.fromkeys(node for name in ordered for node in name.split("+"))
    # Keys of config/config.yaml would take the place of those that are left out.
    known = Campaign.__struct_fields__
    kept = {key: results.config[key] for key in known if key in results.config}
    return {
        **{key: value for key, value in kept.items() if key not in LEFT_OUT},
        "campaign": f"{results.name[:LONGEST_NAME]}{SUFFIX}",
        "nodes": list(nodes),
        "peers": "fixed",
        "repetitions": statistics.ENOUGH,
        "suspects": suspects.beside,
        **_grids(results, suspects, [name.split("+") for name in ordered if "+" in name]),
    }


def _grids(
    results: Results, suspects: Suspects, pairs: Sequence[list[str]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the grids of the suspects' slow rows; rows that differ in the workload alone share one."""
    by_subsystem: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for cell in suspects.cells:
        grid = grids.narrowed(results.config, cell)
        if cell.peer:
            grid["pairs"] = list(map(list, dict.fromkeys(map(tuple, pairs))))
        alike = (
            other
            for other in by_subsystem[cell.subsystem]
            if {**other, "workloads": []} == {**grid, "workloads": []}
        )
        first = next(alike, None)
        if first is None:
            by_subsystem[cell.subsystem].append(grid)
        elif cell.workload not in first["workloads"]:
            first["workloads"].append(cell.workload)
    return dict(by_subsystem)


def second_verdicts(results: Results, tables: Rows) -> dict[str, Message]:
    """Say of each suspect of this campaign whether it is slow again; nothing where it has none."""
    suspects = results.config.get("suspects") or {}
    if not suspects:
        return {}
    measured: dict[str, dict[tuple[str, PointOf], Row]] = defaultdict(dict)
    for name, rows in tables.items():
        for row in filter(_is_judged, rows):
            measured[row.key.node][name, fleet.place(row)] = row
    verdicts = {}
    for suspect, healthy in suspects.items():
        shares = []
        for point, row in measured[suspect].items():
            others = [measured[name][point] for name in healthy if point in measured[name]]
            if others:
                values = [other.measured.values for other in others]
                shares.append(behind(row.measured.values, values, row.table.lower_is_better))
        verdicts[suspect] = _verdict(suspect, healthy, shares)
    return verdicts


def _is_judged(row: Row) -> bool:
    usable = is_mapped(row) if row.is_pair else row.own and row.level is not Severity.WRONG
    return bool(usable) and row.measured.summary.n >= statistics.ENOUGH


class Behind(NamedTuple):
    """Shares by which a suspect's median is behind that of the healthy ones, and by which the better
    end of its interval is behind the slowest of them.
    """

    median: float
    least: float

    @property
    def is_slow(self) -> bool:
        """Whether the whole interval is behind each healthy one by more than ``fleet.DELTA``."""
        return self.least > fleet.DELTA


def behind(
    own: Sequence[float], others: Sequence[Sequence[float]], lower_is_better: bool
) -> Behind:
    """Compare the repetitions of a suspect's row with those of the healthy ones."""
    median, interval = statistics.median(own), statistics.median_interval(own)
    centres = [statistics.median(values) for values in others]
    usual = statistics.median(centres)
    if lower_is_better:
        return Behind(median / usual - 1, interval.low / max(centres) - 1)
    return Behind(1 - median / usual, 1 - interval.high / min(centres))


def _verdict(suspect: str, healthy: Sequence[str], shares: Sequence[Behind]) -> Message:
    """Return the verdict on a suspect: confirmed where it is slow in one row at least."""
    slow = [share.median for share in shares if share.is_slow]
    case = "confirmed" if slow else "not-confirmed"
    return message(
        "second-measurement",
        case=case if shares else "missing",
        node=_shown(suspect),
        beside=tuple(map(_shown, healthy)),
        rows=len(slow),
        of=len(shares),
        behind=statistics.median(slow or [0.0]),
        least=statistics.ENOUGH,
    )


def _shown(name: str) -> str:
    """Return the name of a node, or of a link with an arrow."""
    return name.replace("+", " → ")
