"""What is read from the output of Slurm's commands, whatever a site's wrappers print besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from peakmark import slurm


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on PATH for commands that print the file of their name, as those of sites do
    that wrap Slurm's.
    """
    for name in ("squeue", "sinfo", "scontrol"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\nexec cat "{tmp_path}/{name}.says"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return tmp_path


def test_a_job_of_mine_with_any_bytes_in_its_comment_is_a_job(says: Path) -> None:
    (says / "squeue.says").write_bytes(
        b"Welcome to the cluster\n7|RUNNING|n1|0:01|caf\xe9|None\n\n8|PENDING||0:00|c/x 1.2|a|b\n"
    )
    assert [(job.number, job.state, job.reason) for job in slurm.jobs()] == [
        ("7", "RUNNING", "None"),
        ("8", "PENDING", "a|b"),
    ]
    (says / "squeue.says").write_bytes(b"")
    assert slurm.jobs() == []


NODES = b"""\
NodeName=n1 Arch=x86_64 CPUTot=2 State=IDLE+DRAIN ThreadsPerCore=1 Reason=disk \xb5 [root@2026-11-23T01:02:03] Comment=a
NodeName=n2 Arch=x86_64 CPUTot=2 State=ALLOCATED ThreadsPerCore=1
NodeName=n3 State=DOWN*+NOT_RESPONDING ThreadsPerCore=1
NodeName=n4 State=IDLE+CLOUD+POWERED_DOWN ThreadsPerCore=1
NodeName=n5 State=MIXED+PLANNED ThreadsPerCore=1
NodeName=n6 State=IDLE# ThreadsPerCore=1
"""


def test_nodes_are_unavailable_by_their_state_alone(says: Path) -> None:
    (says / "scontrol.says").write_bytes(NODES)
    assert slurm.nodes_unavailable(["n1", "n2"]) == {
        "n1": "IDLE+DRAIN (disk \ufffd)",
        "n3": "DOWN*+NOT_RESPONDING",
    }


def test_lines_that_are_no_nodes_are_passed_over(says: Path) -> None:
    (says / "sinfo.says").write_bytes(
        b"Maintenance on Monday\nn2|main*|2+|4000+|idle|1:00|1:2:1|(null)|a,b\nn1|other|x|1|idle|1:00|1:1:1||a\n"
        b"n1|main*|1|1200|down|1:00|1:1:1|gpu:1|a\n"
    )
    assert [(node.name, node.cpus, node.partition, node.usable) for node in slurm.nodes(None)] == [
        ("n1", 1, "main", False),
        ("n2", 2, "main", True),
    ]


def test_the_fields_of_a_job_may_hold_blanks(says: Path) -> None:
    (says / "scontrol.says").write_text(
        "JobId=2 JobName=0b9 UserId=root(0) Reason=NonZeroExitCode NodeList=node1 CPUs/Task=1 ReqB:S:C:T=0:0:*:* "
        "TRES=cpu=2,mem=848M,node=1,billing=2 Socks/Node=* MinMemoryNode=848M WorkDir=/tmp/a checkout "
        "StdErr=/tmp/a checkout/2.log StdIn=/dev/null StdOut=/tmp/a checkout/2.log Power= \n"
    )
    found = slurm.job("2")
    assert found["WorkDir"] == "/tmp/a checkout" and found["StdOut"] == "/tmp/a checkout/2.log"
    assert (found["JobId"], found["NodeList"], found["Power"]) == ("2", "node1", "")
    assert found["TRES"] == "cpu=2,mem=848M,node=1,billing=2" and found["Socks/Node"] == "*"
