"""What is made of the words of Slurm's commands, whatever a site's own have to say beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from peakmark import slurm


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder first on PATH for commands that print the file of their name, as those of sites do that wrap Slurm's."""
    for name in ("squeue", "sinfo"):
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


def test_a_reason_of_several_lines_hides_no_node(says: Path) -> None:
    (says / "sinfo.says").write_bytes(b"n1|drained|disk \xb5\nsecond line, see ticket 4\nn2|idle|none\nn3|down|a|b\n")
    assert slurm.unusable() == {"n1": "drained: disk \ufffd", "n3": "down: a|b"}


def test_lines_that_are_no_nodes_are_passed_over(says: Path) -> None:
    (says / "sinfo.says").write_bytes(
        b"Maintenance on Monday\nn2|main*|2+|4000+|idle|1:00|a,b\nn1|other|x|1|idle|1:00|a\nn1|main*|1|1200|down|1:00|a\n"
    )
    assert [(node.name, node.cpus, node.partition, node.usable) for node in slurm.nodes(None)] == [
        ("n1", 1, "main", False),
        ("n2", 2, "main", True),
    ]
