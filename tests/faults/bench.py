"""One cell measured by the real command, with faults around it, and what is left afterwards."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.programs import LIMIT_S, wait_for

from peakmark import catalogue
from peakmark.cell import Cell
from peakmark.errors import MeasurementError
from peakmark.run.measure import Request, measure
from peakmark.storage import planfile

ROOT = Path(__file__).resolve().parents[2]
KERNELS = ROOT / "build" / "kernels"
MIB = 1 << 20
MARK = "PEAKMARK_FAULT_MARK"


def disk_cell(
    instrument: str = "diskbench", workload: str = "WS", seconds: float = 0.05, **options: Any
) -> Cell:
    options = {"seconds": seconds, "warmup": 0.0, "seed": 1, "size": MIB, **options}
    return Cell("disk", instrument, workload, "psync", 65536, 1, "any", 0, options)


def network_cell(
    instrument: str = "netbench", workload: str = "TCP", seconds: float = 0.05
) -> Cell:
    block = 1 if workload.startswith("LAT") or workload == "ALL" else 1024
    options = {"seconds": seconds, "warmup": 0.0}
    return Cell("network", instrument, workload, "", block, 1, "any", 0, options)


@dataclass
class Bench:
    """A campaign folder, a scratch directory, and the processes that were started for them."""

    directory: Path
    scratch: Path = field(init=False)
    campaign: Path = field(init=False)

    def __post_init__(self) -> None:
        self.scratch, self.campaign = self.directory / "scratch", self.directory / "results" / "c"
        self.scratch.mkdir()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, MARK: str(self.directory), "TMPDIR": str(self.scratch)}

    def argv(self, cell: Cell, tool: str = "auto", kernels: Path = KERNELS) -> list[str]:
        # Kernels are found in the folder of --kernels; the key `tools` names references alone.
        named = tool != "auto" and cell.instrument not in catalogue.KERNELS.values()
        tools = {cell.instrument: tool} if named else {}
        # A cell that other programs disturb would wait for idle CPUs, and be measured again.
        config = {"tools": tools, "modules": {}, "repeat_disturbed": 0}
        lines = [{"id": cell.id, **cell.to_json()}]
        plan = {"schema": 1, "campaign": "c", "config": config, "cluster": None, "cells": lines}
        planfile.write(self.campaign / "plan.json", plan)
        words = ["measure", "--plan", str(self.campaign / "plan.json"), "--cell", cell.id]
        return [sys.executable, "-m", "peakmark", *words, "--kernels", str(kernels)]

    def record_path(self, cell: Cell) -> Path:
        return self.campaign / "cells" / f"{cell.id}.json"

    def measure(
        self, cell: Cell, tool: str = "auto", **more: Any
    ) -> subprocess.CompletedProcess[str]:
        return self.run(self.argv(cell, tool, **more))

    def run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LIMIT_S}
        return subprocess.run(argv, env=self.environment, check=False, **how)

    @contextlib.contextmanager
    def measuring(
        self, cell: Cell, tool: str = "auto", **more: Any
    ) -> Iterator[subprocess.Popen[str]]:
        with self.start(self.argv(cell, tool, **more)) as process:
            try:
                yield process
            finally:
                process.kill()

    def start(self, argv: Sequence[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(argv, env=self.environment, stderr=subprocess.PIPE, text=True)

    def processes(self, name: str | None = None) -> list[int]:
        """Ids of the processes that were started for this bench, by what the kernel calls them."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    ours = f"{MARK}={self.directory}".encode() in (entry / "environ").read_bytes()
                    if ours and (name is None or (entry / "comm").read_text().strip() == name):
                        found.append(int(entry.name))
        return sorted(found)

    def attempts(self, cell: Cell) -> list[dict[str, Any]]:
        folder = self.campaign / "attempts" / cell.id
        paths = sorted(folder.glob("*.json"), key=lambda path: int(path.stem))
        return [json.loads(path.read_text()) for path in paths]

    def failure(self, cell: Cell, tool: str, monkeypatch: pytest.MonkeyPatch) -> str:
        """Measure in this process by a tool, which must fail; the message."""
        monkeypatch.setenv("TMPDIR", str(self.scratch))
        kernels = Path(tool).parent
        path = self.record_path(cell)
        with pytest.raises(MeasurementError) as failed:
            measure(Request(cell, path, self.campaign, kernels, tool=tool))
        assert "\n" not in str(failed.value)
        return str(failed.value)

    def assert_nothing_left(self) -> None:
        wait_for(lambda: not self.processes(), "no process of the cell is left")
        assert not list(self.scratch.iterdir())  # nothing is left on the scratch disk

    def assert_failed(self, cell: Cell, said: str, *words: str) -> None:
        """No record, a failed attempt with the reason, one sentence for the user, and nothing left."""
        assert not self.record_path(cell).exists()
        assert "Traceback" not in said, said
        reason = self.attempts(cell)[-1]["reason"]
        for word in words:
            assert word in reason, reason
            assert word in said, said
        self.assert_nothing_left()

    def assert_completes(self, cell: Cell, tool: str = "auto") -> dict[str, Any]:
        """The next run measures it."""
        done = self.measure(cell, tool)
        assert done.returncode == 0, done.stderr
        record: dict[str, Any] = json.loads(self.record_path(cell).read_text())
        assert record["status"] == "ok", record["reason"]
        self.assert_nothing_left()
        return record
