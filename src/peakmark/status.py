"""How far a campaign has come, from its plan and its records alone."""

from __future__ import annotations

from peakmark import records
from peakmark.campaign import Campaign
from peakmark.cell import SUBSYSTEMS, Cell
from peakmark.errors import RecordError


def describe(campaign: Campaign, only_failed: bool = False) -> str:
    """Counts by subsystem, then every cell that is missing, with the reason of its last attempt."""
    cells = campaign.cells
    missing = [cell for cell in cells if not campaign.record_path(cell).exists()]
    lines = []
    if not only_failed:
        lines.append(f"{campaign.directory}: {len(cells) - len(missing)} of {len(cells)} cells done")
        for subsystem in SUBSYSTEMS:
            mine = [cell for cell in cells if cell.subsystem == subsystem]
            left = sum(cell.subsystem == subsystem for cell in missing)
            if mine:
                lines.append(f"  {subsystem:<8} {len(mine) - left:>5} of {len(mine):>5}")
    failed = [(cell, reason) for cell in missing if (reason := last_failure(campaign, cell)) is not None]
    if failed:
        lines.append(f"{len(failed)} failed; the next run measures them again:")
        lines += [f"  {cell.id}\n    {reason}" for cell, reason in failed]
    elif only_failed and missing:
        lines.append(f"{len(missing)} cells are not measured; the next run goes on with them")
    elif not missing:
        lines.append("complete")
    return "\n".join(lines)


def last_failure(campaign: Campaign, cell: Cell) -> str | None:
    """Reason of the newest failed attempt, None when there was none."""
    attempts = list(campaign.attempts(cell))
    if not attempts:
        return None
    try:
        record = records.read(attempts[-1])
    except RecordError as error:
        return str(error)
    return f"{record['context']['host']}: {record['reason']} ({attempts[-1]})"
