"""Rows whose repetitions Slurm spreads over equal nodes, beside jobs of another user."""

import json
import random
import threading
from collections import Counter

import pytest
from testcluster import Cluster
from tests import presets

from peakmark.analysis.analysis import build_rows as rows_of
from peakmark.storage.results import Results
from workflow import Workflow

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
FIRST = (1 << 32) - 3
"""The highest priority of a job."""


class Others:
    """Another user's exclusive jobs of some seconds, on one node or on any, until it is ended."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.count = 0
        self.idle = Counter[str]()
        self.reasons = Counter[str]()
        self.cancelled: set[str] = set()
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._submit), threading.Thread(target=self._look)]

    def __enter__(self) -> "Others":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()
        self.cluster.run(["scancel", "--user=nobody"])

    def _submit(self) -> None:
        draw = random.Random(1)  # noqa: S311 - when jobs come, not a secret
        while not self._over.wait(draw.uniform(5.0, 15.0)):
            where = draw.choice(["", *(f"--nodelist={name}" for name in self.cluster.layout.names)])
            words = ["sbatch", "--parsable", "--exclusive", "--mem=0", "--output=/dev/null"]
            words += [
                "--chdir=/tmp",
                f"--wrap=sleep {draw.randint(2, 8)}",
                *([where] if where else []),
            ]
            number = self.cluster.run([*NOBODY, *words]).stdout.strip()
            # Slurm would let them wait behind all jobs of the campaign, which are in its queue
            # already.
            self.cluster.run(["scontrol", "update", f"JobId={number}", f"Priority={FIRST}"])
            self.count += 1

    def _look(self) -> None:
        """How often a node had no job while some waited that any node could run."""
        # At no regular times: Slurm itself acts every second.
        draw = random.Random(2)  # noqa: S311 - when to look, not a secret
        while not self._over.wait(draw.uniform(0.5, 1.5)):
            ended = self.cluster.run(
                ["squeue", "--noheader", "--user=root", "--states=CANCELLED", "--format=%i"]
            )
            self.cancelled.update(ended.stdout.split())
            squeue = ["squeue", "--noheader", "--format=%T|%N|%D|%u|%r"]
            jobs = [line.split("|") for line in self.cluster.run(squeue).stdout.splitlines()]
            waiting = [job[4] for job in jobs if job[0] == "PENDING" and job[2:4] == ["1", "root"]]
            if not waiting:
                continue
            busy = {job[1] for job in jobs}
            both_are = any(job[2] == "2" and job[1] for job in jobs)
            idle = 0 if both_are else sum(name not in busy for name in self.cluster.layout.names)
            self.idle["looks"] += 1
            self.idle["idle"] += idle
            if idle:
                self.reasons.update(set(waiting))


def measured_once_on_both(workflow: Workflow, others: Others) -> None:
    """No job was cancelled, both nodes had their share, and no row is void for its hosts."""
    records = workflow.records()
    assert not others.cancelled and not workflow.attempts()
    hosts = Counter(
        record["context"]["host"] for name, record in records.items() if "/netbench/" not in name
    )
    assert (
        set(hosts) == set(workflow.cluster.layout.names) and min(hosts.values()) > len(records) / 5
    ), hosts
    rows = rows_of(Results.read(workflow.results))
    codes = {note.code for table in rows.values() for row in table for note in row.warnings}
    assert "hosts" not in codes, "no row is void for its hosts"
    print(json.dumps(hosts))


def test_repetitions_of_a_row_run_on_all_nodes_of_the_class(equal_workflow: Workflow) -> None:
    cpu = [{"workloads": ["DP", "SP"], "concurrency": [1, 2]}]
    equal_workflow.configure(cpu=cpu, repetitions=6, seconds=0.3)
    with Others(equal_workflow.cluster) as others:
        equal_workflow.snakemake()
    measured_once_on_both(equal_workflow, others)


@pytest.mark.trouble
def test_quick_beside_the_jobs_of_another_user(equal_workflow: Workflow) -> None:
    workflow = equal_workflow
    with Others(workflow.cluster) as others:
        done = workflow.preset("quick", "scale=0.25")
    looks = f"{others.idle['idle']} of {2 * others.idle['looks']} looks"
    print(
        f"{others.count} jobs of others; a node was idle in {looks}, while jobs waited for {dict(others.reasons)}"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    presets.assert_whole(workflow.results, workflow.records())
    measured_once_on_both(workflow, others)
