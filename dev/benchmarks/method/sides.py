"""A campaign of a few short cells, measured by ``peakmark.run.measure`` in surroundings of choice:
``python -m benchmarks.method.sides ORDERS.json`` is the process that measures, with one line per cell
on stdout.
"""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.kernels.namespaces import SERVER, Namespaces
from peakmark import plan
from peakmark.cell import Cell, CellKeys
from peakmark.errors import MeasurementError, PeakmarkError
from peakmark.files import write_text
from peakmark.machine import network
from peakmark.run.measure import Request, measure
from peakmark.run.pair import Peer
from peakmark.tools.base import Command

LIMIT_S = 180.0
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Surroundings:
    """In what a side is measured.

    environment  further variables      tools       path of a reference tool by instrument
    cgroups      folders of control groups that the measuring process joins
    namespaces   the client runs in one, the server in the other; None: this machine, over loopback
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    cgroups: tuple[Path, ...] = ()
    namespaces: Namespaces | None = None


@dataclass(frozen=True)
class Bench:
    """Where things are. facts: of this machine, collected once. work: emptied afterwards."""

    kernels: Path
    work: Path
    facts: Mapping[str, Any]

    def campaign(
        self, name: str, grids: Mapping[str, Any], repetitions: int
    ) -> tuple[Path, Sequence[Cell]]:
        """A planned campaign below ``work`` with its cells in running order."""
        folder = self.work / name
        config = {"campaign": name.replace("/", "-"), "warmup": 0.02, "scratch": str(self.work)}
        config |= {"repetitions": repetitions, "reference_repetitions": repetitions, **grids}
        made = plan.make(config)
        write_text(folder / "plan.json", json.dumps(made.to_json()))
        write_text(folder / "machine" / f"{platform.node()}.json", json.dumps(self.facts))
        return folder, made.cells

    def measure(self, orders: Sequence[tuple[Path, Cell]], around: Surroundings) -> None:
        """Measure cells of campaigns in this order. Errors: MeasurementError with the words of the
        first that failed.
        """
        path = self.work / "orders.json"
        orders_json = {
            "kernels": str(self.kernels.resolve()),
            "tools": dict(around.tools),
            "namespaces": asdict(around.namespaces) if around.namespaces else None,
            "cells": [{"campaign": str(folder), "cell": cell.to_json()} for folder, cell in orders],
        }
        write_text(path, json.dumps(orders_json))
        inside = ["ip", "netns", "exec", around.namespaces.client] if around.namespaces else []
        files = [shlex.quote(str(group / "cgroup.procs")) for group in around.cgroups]
        join = "".join(f"echo $$ > {file}; " for file in files)
        worker = [sys.executable, "-m", "benchmarks.method.sides", str(path)]
        argv = [*inside, "sh", "-c", f'{join}exec "$@"', "sh", *worker]
        environment = {**os.environ, **around.environment, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LIMIT_S}
        try:
            done = subprocess.run(argv, env=environment, cwd=ROOT, check=False, **how)
        except subprocess.TimeoutExpired:
            raise MeasurementError(f"{len(orders)} cells took more than {LIMIT_S:.0f} s") from None
        if done.returncode != 0:
            wrong = [line for line in done.stdout.splitlines() if " failed " in line]
            last = done.stderr.strip().splitlines()[-1:]
            end = f"the worker ended with exit code {done.returncode}"
            raise MeasurementError([*wrong, *last, end][0])


def beyond(names: Namespaces) -> Callable[[Command, Path], AbstractContextManager[Peer]]:
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
        cell = Cell.of(msgspec.convert(order["cell"], CellKeys))
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
            print(cell.id, record.status, record.reason or "", flush=True)
        except PeakmarkError as error:
            failed = True
            print(cell.id, "failed", error, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
