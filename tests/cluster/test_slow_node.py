"""A node that a control group slows down is named with the reason."""

import json
import os
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from testcluster.hosts import checked
from testcluster.processes import wait_until
from tests.checkout import TO_TABLES
from tests.programs import executable

from peakmark.rows import build
from workflow import CPU, Workflow

GROUPS = Path("/sys/fs/cgroup/cpu")
SLOW = "node3"
PERIOD_US, USUAL_US, SLOW_US = 20_000, 8_000, 1_000
"""The usual node has two fifths of a CPU, the slow one a twentieth."""
SHARES = 1 << 18
"""The most there is: what the quota grants a kernel, it gets before the other programs of the machine."""
WRAPPER = """#!/bin/sh
echo $$ > {group}/cgroup.procs
exec {real} "$@"
"""


@contextmanager
def limited(workflow, node, quota_us):
    """Limit a kernel on one node while the block runs: all of the node would take minutes."""
    group = GROUPS / f"peakmark-{os.getpid()}-{node}"
    kernel = workflow.directory / "build" / "kernels" / "cpubench"
    real, wrapper = kernel.with_name("real"), kernel.with_name(f"wrapper-{node}")
    shutil.copy2(kernel, real)
    executable(wrapper, WRAPPER.format(group=group, real=real))
    try:
        group.mkdir()
        (group / "cpu.shares").write_text(str(SHARES))
        (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        (group / "cpu.cfs_quota_us").write_text(str(quota_us))
    except OSError as error:
        pytest.skip(f"no control group can limit CPUs here: {error}")
    inside = workflow.cluster.hosts.enter(node)
    checked([*inside, "mount", "--bind", str(wrapper), str(kernel)])
    try:
        yield
    finally:
        checked([*inside, "umount", str(kernel)])
        wait_until(lambda: _removed(group), 10.0, "the control group is gone")


def _removed(group):
    try:
        group.rmdir()
    except OSError:
        return False
    return True


@pytest.mark.trouble
def test_a_slow_node_is_named(fleet, tmp_path):
    workflow = Workflow.make(fleet, tmp_path / "checkout")
    # One job at a time: the nodes share the CPUs of this machine.
    site = workflow.site("{max_jobs: 1}")
    workflow.configure(nodes="all", cpu=[CPU], repetitions=7, seconds=0.6, site=site)
    with ExitStack() as limits:
        for name in fleet.layout.names:
            quota_us = SLOW_US if name == SLOW else USUAL_US
            limits.enter_context(limited(workflow, name, quota_us))
        workflow.snakemake(*TO_TABLES)
        frames = build.load(workflow.results)
        values = frames.runs[["node", "repetition", "value", "disturbed"]].to_string()
        (slow,) = frames.fleet.itertuples()
        assert (slow.name, slow.subsystem) == (SLOW, "cpu"), values
        # The kernel had as little of the CPU as the control group gave it.
        assert "lost-time" in {reason["code"] for reason in json.loads(slow.reasons)}, values
