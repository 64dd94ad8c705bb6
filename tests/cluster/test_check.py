"""`peakmark check` on nodes of a cluster: slurmd of one is held back by a control group."""

import sys
from pathlib import Path

import pytest
from benchmarks.check import groups, made
from testcluster.hosts import base_environment
from tests.checkout import ROOT

from peakmark.errors import Unavailable

CHECK, KERNELS = ROOT / "src" / "peakmark" / "check", ROOT / "build" / "kernels"
SLOW, HEALTHY = "node3", "node2"
QUOTA = 0.3
"""CPUs that the control group allows the slow node, of which the row needs one."""
CALLS = 2
"""Calls within which a slow node must be named."""
DRAIN = ("--for", "health", "--drain")


def test_a_node_slowed_by_a_control_group_is_named_and_drained(fleet, tmp_path):
    row = made.dp(1)
    values = {row: made.healthy_value(row, KERNELS)}
    campaign = made.write(tmp_path / "class", values, nodes=fleet.layout.names)
    python = str(Path(sys.executable).resolve())
    argv = [python, "-IBS", str(CHECK), str(campaign), "--kernels", str(KERNELS), "--seconds", "8"]

    def check(node, *words):
        """A job on the node: it is a child of slurmd, as are prolog and HealthCheckProgram."""
        job = ["srun", f"--nodelist={node}", *argv, *words]
        return fleet.run(job, check=False, env=base_environment())

    (slurmd,) = [each for each in fleet.processes(SLOW) if each.name == "slurmd"]
    try:
        with groups.quota_group(QUOTA, SLOW) as group:
            (group / "cgroup.procs").write_text(str(slurmd.pid))
            try:
                for _ in range(CALLS):
                    slow = check(SLOW, *DRAIN)
                    if slow.returncode == 1:
                        break
            finally:
                (group.parent / "cgroup.procs").write_text(str(slurmd.pid))
    except Unavailable as error:
        pytest.skip(f"no control group can limit CPUs here: {error}")
    line = slow.stdout.strip()
    assert slow.returncode == 1, line + slow.stderr
    assert line.startswith(f"slow: {SLOW} in cpu DP x1: ") and "allows 0.3 CPUs" in line
    node = fleet.run(["scontrol", "show", "node", SLOW]).stdout
    assert "DRAIN" in node and f"Reason=peakmark: {line}" in node
    # The same machine without the group: good, or busy with other tests.
    healthy = check(HEALTHY)
    assert healthy.returncode in (0, 3), healthy.stdout + healthy.stderr
    assert healthy.stdout.startswith((f"good: {HEALTHY} ", f"cannot tell: {HEALTHY}: "))
