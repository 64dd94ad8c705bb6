"""`peakmark check` on nodes of a cluster: slurmd of one is held back by a control group."""

import shlex
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks.check import groups, made
from testcluster.processes import wait_until
from tests.checkout import ROOT
from tests.programs import executable

from peakmark.errors import Unavailable

KERNELS = ROOT / "build" / "kernels"
SLOW, HEALTHY = "node3", "node2"
QUOTA = 0.3
"""CPUs that the control group allows the slow node, of which the row needs one."""
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def check(fleet, tmp_path_factory):
    """Start of an argv that checks a node, without peakmark's environment."""
    row = made.dp(1)
    values = {row: made.healthy_value(row, KERNELS)}
    folder = tmp_path_factory.mktemp("check")
    campaign = made.write(folder / "class", values)
    python = str(Path(sys.executable).resolve())
    program = str(ROOT / "src" / "peakmark" / "check")
    return [python, "-IBS", program, str(campaign), "--kernels", str(KERNELS), "--seconds", "6"]


@pytest.fixture
def slow(fleet):
    """A node whose slurmd, and what it starts, has a part of a CPU."""
    (slurmd,) = [each for each in fleet.processes(SLOW) if each.name == "slurmd"]
    try:
        with groups.quota_group(QUOTA, SLOW) as group:
            (group / "cgroup.procs").write_text(str(slurmd.pid))
            try:
                yield SLOW
            finally:
                (group.parent / "cgroup.procs").write_text(str(slurmd.pid))
    except Unavailable as error:
        pytest.skip(f"no control group can limit CPUs here: {error}")


@contextmanager
def configured(cluster, *lines):
    """Add lines to slurm.conf while the block runs."""
    path = cluster.layout.path("slurm/slurm.conf")
    before = path.read_text()
    path.write_text("\n".join([before, *lines, ""]))
    cluster.run(["scontrol", "reconfigure"])
    try:
        yield
    finally:
        path.write_text(before)
        cluster.run(["scontrol", "reconfigure"])


def reason(cluster, node):
    """Why a node is drained; empty if it is not."""
    said = cluster.run(["scontrol", "show", "node", node]).stdout
    if "DRAIN" not in said:
        return ""
    return said.partition("Reason=")[2].strip()


def test_the_health_check_of_slurm_drains_the_slow_node_alone(fleet, check, slow, tmp_path):
    words = shlex.join([*check, "--for", "health"])
    drain = 'scontrol update nodename="$SLURMD_NODENAME" state=drain reason="peakmark: $line"'
    script = executable(tmp_path / "health", f"#!/bin/sh\nline=$({words}) || {drain}\n")
    with configured(fleet, f"HealthCheckProgram={script}", "HealthCheckInterval=5"):
        wait_until(lambda: reason(fleet, slow), LIMIT_S, "the slow node is drained", 0.2)
    named = reason(fleet, slow)
    assert named.startswith(f"peakmark: slow: {slow} in cpu DP x1: ")
    assert "its control group allows 0.3 CPUs" in named
    assert not reason(fleet, HEALTHY)
