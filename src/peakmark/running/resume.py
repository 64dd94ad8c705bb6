"""What a run finds of earlier ones: which records count, which are measured anew, and the words about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from peakmark import output
from peakmark.cell import Cell
from peakmark.formatting import plural
from peakmark.planning.plan import Plan
from peakmark.storage import facts, integrity
from peakmark.storage.integrity import Finding

NAMED = 5
"""So many damaged records are named one by one."""


def survey(directory: Path, cells: Iterable[Cell]) -> dict[str, Finding]:
    """Cell id -> finding. Where the facts of a node do not count, one of its cells does not either: whoever measures it
    again collects the facts again.
    """
    found = integrity.survey(directory, cells)
    for host, reason in facts.damaged(directory).items():
        for name, one in found.items():
            if one.state == integrity.GOOD and one.data is not None and one.data["context"]["host"] == host:
                found[name] = Finding(integrity.DAMAGED, reason, one.data)
                break
    return found


def unfit(finding: Finding | None) -> bool:
    """Whether there is a record that does not count."""
    return finding is not None and finding.state in (integrity.DAMAGED, integrity.OTHER)


def begin(plan: Plan, found: Mapping[str, Finding]) -> None:
    """Set aside the records that do not count, and say what is measured anew and what is kept.

    Called when the run has the campaign to itself.
    """
    aside = {integrity.DAMAGED: 0, integrity.OTHER: 0}
    for cell in plan.cells:
        finding = found.get(cell.id)
        if finding is None or not unfit(finding):
            continue
        whole = (
            finding.state == integrity.DAMAGED and finding.data is not None
        )  # it is the node's facts that are damaged
        if integrity.set_aside(plan.directory, cell, good=whole) is None:
            continue
        aside[finding.state] += 1
        if finding.state == integrity.DAMAGED and aside[integrity.DAMAGED] <= NAMED:
            output.tell(finding.reason.partition(": delete it")[0])
    for host in facts.damaged(plan.directory):
        facts.set_aside(plan.directory, host)
    kept = f"kept in {plan.directory / integrity.ASIDE}"
    if aside[integrity.DAMAGED]:
        output.tell(f"{_cells(aside[integrity.DAMAGED])} measured again, the records as they were are {kept}")
    if aside[integrity.OTHER]:
        good = sum(finding.state == integrity.GOOD for finding in found.values())
        output.tell(
            f"{_cells(aside[integrity.OTHER])} measured anew because {'its' if aside[integrity.OTHER] == 1 else 'their'} options "
            f"have changed, the earlier records are {kept}; "
            + plural(good, "finished cell has not changed and stays", "finished cells have not changed and stay")
        )
    foreign = integrity.foreign(plan.directory, plan.cells)
    if foreign:
        output.tell(
            f"{plural(len(foreign), 'record is', 'records are')} of cells that the configuration does not ask for: kept, but in no table"
        )


def _cells(count: int) -> str:
    return plural(count, "cell is", "cells are")
