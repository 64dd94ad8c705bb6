"""What a run finds of earlier ones: which records count, which are measured anew, and the words
about it.
"""

from __future__ import annotations

from collections.abc import Mapping

from peakmark import output
from peakmark.formatting import plural
from peakmark.plan.plan import Plan
from peakmark.storage import decisions, facts, integrity
from peakmark.storage.integrity import Finding
from peakmark.storage.results import Results

NAMED = 5
"""So many damaged records are named one by one."""


def survey(results: Results) -> dict[str, Finding]:
    """Cell id -> finding. Where the facts of a node do not count, one of its cells does not either:
    whoever measures it again collects the facts again.
    """
    findings = dict(results.findings)
    for host, reason in results.damaged_facts.items():
        for name, finding in findings.items():
            if (
                finding.state == integrity.GOOD
                and finding.data is not None
                and finding.data["context"]["host"] == host
            ):
                findings[name] = Finding(integrity.DAMAGED, reason, data=finding.data)
                break
    return findings


def unfit(finding: Finding) -> bool:
    """Whether there is a record that does not count."""
    return finding.state in (integrity.DAMAGED, integrity.OTHER)


def begin(plan: Plan, findings: Mapping[str, Finding]) -> None:
    """Set aside the records that do not count, and say what is measured anew and what is kept.

    Called when the run has the campaign to itself.
    """
    aside = {integrity.DAMAGED: 0, integrity.OTHER: 0}
    for cell in plan.cells:
        finding = findings[cell.id]
        # Where it is the node's facts that are damaged, the record itself is whole.
        whole = finding.state == integrity.DAMAGED and finding.data is not None
        if not unfit(finding) or integrity.set_aside(plan.directory, cell, good=whole) is None:
            continue
        aside[finding.state] += 1
        if finding.state == integrity.DAMAGED and aside[integrity.DAMAGED] <= NAMED:
            output.tell(finding.reason)
    for host in plan.results.damaged_facts:
        facts.set_aside(plan.directory, host)
    decisions.set_aside(plan.directory)
    kept = f"kept in {plan.directory / integrity.ASIDE}"
    if aside[integrity.DAMAGED]:
        output.tell(
            f"{_cells(aside[integrity.DAMAGED])} measured again, the records as they were are {kept}"
        )
    if aside[integrity.OTHER]:
        good = sum(finding.state == integrity.GOOD for finding in findings.values())
        their = "its" if aside[integrity.OTHER] == 1 else "their"
        stay = plural(
            good,
            "finished cell has not changed and stays",
            "finished cells have not changed and stay",
        )
        anew = f"measured anew because {their} options have changed, the earlier records are {kept}"
        output.tell(f"{_cells(aside[integrity.OTHER])} {anew}; {stay}")
    if foreign := integrity.foreign(plan.directory, plan.cells):
        records = plural(len(foreign), "record is", "records are")
        output.tell(
            f"{records} of cells that the configuration does not ask for: kept, but in no table"
        )


def _cells(count: int) -> str:
    return plural(count, "cell is", "cells are")
