"""The real programs, where they are installed: found, run for a moment as prepared, and read."""

import os
from contextlib import ExitStack

import pytest
from tests.unit.cases import cases
from tests.unit.hostile import KERNELS
from tests.unit.tools import samples

from peakmark.errors import Unavailable
from peakmark.run import execute, pair
from peakmark.tools import REGISTRY

MIB = 1 << 20
CPUS = (min(os.sched_getaffinity(0)),)


def run(cell, directory):
    """As measure does it, without lock, record or facts."""
    instrument = REGISTRY[cell.instrument]
    names = instrument.executables
    path = instrument.on_path(None if instrument.reference else str(KERNELS / names[0]))
    if path is None:
        pytest.skip(f"{' or '.join(names)} is not here")
    try:
        tool = instrument.find(path)
    except Unavailable as reason:
        if "may not open its socket" not in str(reason):
            raise
        pytest.skip(str(reason))
    assert tool.path == path and tool.version
    invocation = instrument.prepare(cell, tool, samples.workspace(directory, CPUS))
    with ExitStack() as stack:
        values = {"address": pair.LOOPBACK}
        if invocation.server is not None:
            values = stack.enter_context(pair.serving(invocation.server, directory)).values
        done = execute.run(invocation, directory, values)
    assert done.returncode in invocation.ok_codes, done.stderr + done.stdout
    assert set(invocation.outputs) <= set(done.files)
    return instrument.parse(cell, done)


@cases("tools", ids=lambda of: "-".join(map(str, of[:5])))
def test_the_real_tool(of, tmp_path):
    cell = samples.listed(of)
    parsed = run(cell, tmp_path)
    assert parsed.measurements
    known = {cell.workload, "RS", "WS", "RR", "WR", "LAT-TCP", "LAT-UDP", "LAT-ICMP"}
    assert {row.workload for row in parsed.measurements} <= known
    assert all(row.value > 0 for row in parsed.measurements)
