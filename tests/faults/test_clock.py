"""The wall clock is set back by an hour while a cell is measured."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from bench import KERNELS, Bench, disk_cell, executable, network_cell

from peakmark.cell import Cell

PRELOAD = """#!/bin/sh
case "$*" in *--version*|-v) exec {program} "$@" ;; esac
export LD_PRELOAD={shim} SHIM_BACK_MS={after}
exec {program} "$@"
"""
KERNEL_CELLS = [
    Cell("cpu", "cpubench", "SP", "", None, 1, "any", 0, {"seconds": 0.4, "warmup": 0.0}),
    Cell("memory", "rambench", "RWS", "block", 4096, 1, "any", 0, {"seconds": 0.4, "warmup": 0.0}),
    disk_cell(seconds=0.4),
    network_cell(seconds=0.4),
    network_cell(workload="LAT-UDP", seconds=0.4),
]


@pytest.mark.parametrize("cell", KERNEL_CELLS, ids=lambda cell: f"{cell.instrument}-{cell.workload}")
def test_our_kernels_do_not_notice(bench: Bench, shim: str, cell: Cell) -> None:
    """They ask only the clock that nobody can set."""
    program = KERNELS / cell.instrument
    wrapped = executable(
        bench.directory / "bin" / cell.instrument, PRELOAD.format(program=program, shim=shim, after=150)
    )
    before = time.monotonic()
    done = bench.measure(cell, kernels=wrapped.parent)
    elapsed = time.monotonic() - before
    assert done.returncode == 0, done.stderr
    record = json.loads(bench.record_path(cell).read_text())
    assert record["status"] == "ok", record["reason"]
    details = record["measurements"][0]["details"]
    assert 0.35 <= details["seconds"] <= elapsed
    assert 0.35 <= record["context"]["seconds"] <= elapsed
    bench.assert_nothing_left()


@pytest.mark.parametrize(
    "cell",
    [disk_cell("fio", seconds=0.5), network_cell("iperf3", seconds=1), network_cell("qperf", "ALL", seconds=1)],
    ids=lambda cell: cell.instrument,
)
def test_a_reference_tool_that_asks_the_wall_clock_gives_no_wrong_number(bench: Bench, shim: str, cell: Cell) -> None:
    """Either the same rate as without, within a factor, or a failed attempt: never one that is off by an hour."""
    found = subprocess.run(["which", cell.instrument], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"{cell.instrument} is not here")
    right = bench.assert_completes(cell)["measurements"][0]["value"]
    bench.record_path(cell).unlink()
    text = PRELOAD.format(program=found.stdout.strip(), shim=shim, after=300)
    done = bench.measure(cell, str(executable(bench.directory / "bin" / cell.instrument, text)))
    if done.returncode:
        bench.assert_failed(cell, done.stderr)
    else:
        value = json.loads(bench.record_path(cell).read_text())["measurements"][0]["value"]
        assert right / 10 < value < right * 10
        bench.assert_nothing_left()


def test_the_shim_sets_the_clock_back(shim: str) -> None:
    """The fault is there: `date` sees it."""
    env = {"LD_PRELOAD": shim, "SHIM_BACK_MS": "0", "PATH": "/usr/bin:/bin"}
    shown = subprocess.run(["date", "+%s"], env=env, capture_output=True, text=True, check=True)
    assert 3500 < time.time() - int(shown.stdout) < 3700
