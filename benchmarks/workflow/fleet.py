"""A campaign of many nodes made of one that was measured on one: its records, edited and sealed
again, for each node.

``python -m benchmarks.workflow.fleet results/quick 64 results/fleet64``. Every node differs from
the first by chance, as nodes of one kind do; two are slow: one in its memory, one in its clock.
"""

from __future__ import annotations

import copy
import json
import random
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.storage import facts, integrity, planfile, records
from peakmark.storage.results import Results

CHANCE = 0.004
"""Share by which nodes of one kind differ, and the repetitions of one node once more."""
SLOW: Mapping[str, tuple[int, float]] = {"memory": (5, 0.9), "cpu": (7, 0.94)}
"""Resource -> the node that is slow in it, and by what factor."""


def spread(source: Path, nodes: int, target: Path) -> int:
    """Write a campaign of ``nodes`` nodes. Returns the number of records. Errors: PeakmarkError."""
    campaign = Results.read(source)
    names = [f"node{number}" for number in range(1, nodes + 1)]
    models = [(cell, integrity.look(campaign.record_path(cell), cell)) for cell in campaign.cells]
    good = [
        (cell, found.data)
        for cell, found in models
        if found.state == integrity.GOOD and found.data is not None
    ]
    if not good:
        raise PeakmarkError(f"{source} has no record that counts")
    cells = []
    for name in names:
        lot = random.Random(name)  # noqa: S311 - values, not secrets
        factors = {part: lot.gauss(1, CHANCE) for part in ("cpu", "memory", "disk", "network")}
        for part, (number, factor) in SLOW.items():
            factors[part] *= factor if name == f"node{number}" else 1.0
        for cell, data in good:
            twin = Cell.from_json({**cell.to_json(), "node": name})
            cells.append({"id": twin.id, **twin.to_json()})
            _record(
                data,
                twin,
                name,
                factors[cell.subsystem] * lot.gauss(1, CHANCE),
                campaign.record_path(cell),
                target,
            )
    planfile.write(target / "plan.json", {**campaign.plan, "campaign": target.name, "cells": cells})
    for path in sorted((source / facts.FOLDER).glob("*.json")):
        for name in names:
            (target / facts.FOLDER).mkdir(parents=True, exist_ok=True)
            facts.write(target / facts.FOLDER / f"{name}.json", {**facts.read(path), "host": name})
    return len(cells)


def _record(
    data: Mapping[str, Any], cell: Cell, node: str, factor: float, source: Path, target: Path
) -> None:
    twin = copy.deepcopy(dict(data))
    twin.pop(records.CHECKSUM, None)
    twin["cell"] = cell.to_json()
    twin["context"]["host"] = node
    for one in twin["measurements"]:
        one["value"] *= 1 / factor if one["metric"] == "latency" else factor
    path = target / "cells" / f"{cell.id}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    for name in twin["raw"]:
        (path.parent / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source.parent / name, path.parent / name)
    path.write_text(records.text_of(twin), encoding="utf-8")


if __name__ == "__main__":
    try:
        print(
            json.dumps({"records": spread(Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))})
        )
    except PeakmarkError as failure:
        sys.exit(f"fleet: {failure}")
