"""Measures cells as a job does: ``python -m benchmarks.method.worker ORDERS.json``, one line per
cell on stdout.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from benchmarks.kernels.namespaces import SERVER, Namespaces
from peakmark.cell import Cell
from peakmark.errors import PeakmarkError
from peakmark.machine import network
from peakmark.run.measure import Request, measure
from peakmark.run.pair import Peer
from peakmark.tools.base import Command

FarEnd = Callable[[Command, Path], AbstractContextManager[Peer]]


def beyond(names: Namespaces) -> FarEnd:
    """The far end in the other namespace; this process runs in the client's."""

    @contextmanager
    def up(server: Command, directory: Path) -> Iterator[Peer]:
        with names.serving(server, directory) as values:
            yield Peer(names.server, SERVER, network.interface_towards(SERVER), dict(values))

    return up


def main(path: str) -> int:
    """Exit code 1 when a cell failed; all others are measured nevertheless."""
    orders = json.loads(Path(path).read_text(encoding="utf-8"))
    names = Namespaces(**orders["namespaces"]) if orders["namespaces"] else None
    failed = False
    for order in orders["cells"]:
        cell = Cell.from_json(order["cell"])
        campaign = Path(order["campaign"])
        request = Request(
            cell,
            campaign / "cells" / f"{cell.id}.json",
            campaign,
            Path(orders["kernels"]),
            tool=orders["tools"].get(cell.instrument),
            far_end=beyond(names) if names else None,
        )
        try:
            record = measure(request)
            print(cell.id, record["status"], record["reason"] or "", flush=True)
        except PeakmarkError as error:
            failed = True
            print(cell.id, "failed", error, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
