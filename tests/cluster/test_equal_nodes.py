"""Rows whose repetitions Slurm spreads over equal nodes, beside jobs of another user."""

import random
import threading
from contextlib import contextmanager

from tests.checkout import TO_RECORDS

from peakmark.rows.build import judge
from peakmark.storage.results import Results

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
FIRST = (1 << 32) - 3
"""The highest priority of a job."""


@contextmanager
def jobs_of_another_user(cluster):
    """Another user's exclusive jobs of some seconds, on one node or on any, while the block runs."""
    over = threading.Event()

    def submit():
        draw = random.Random(1)  # noqa: S311 - when jobs come, not a secret
        nodes = [[], *([f"--nodelist={name}"] for name in cluster.layout.names)]
        while not over.wait(draw.uniform(1.0, 4.0)):
            place = draw.choice(nodes)
            words = ["sbatch", "--parsable", "--exclusive", "--mem=0", "--output=/dev/null"]
            words += ["--chdir=/tmp", f"--wrap=sleep {draw.randint(1, 3)}", *place]
            number = cluster.run([*NOBODY, *words]).stdout.strip()
            # Slurm would let them wait behind all jobs of the campaign, which are queued already.
            cluster.run(["scontrol", "update", f"JobId={number}", f"Priority={FIRST}"])

    thread = threading.Thread(target=submit)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        cluster.run(["scancel", "--user=nobody"])


def test_repetitions_of_a_row_run_on_all_nodes_of_the_class(equal_workflow):
    """No job is cancelled, both nodes measure, and no row is void for its hosts."""
    workflow, cluster = equal_workflow, equal_workflow.cluster
    cpu = [{"workloads": ["DP", "SP"], "concurrency": [1]}]
    workflow.configure(cpu=cpu, repetitions=6, seconds=0.3)
    with jobs_of_another_user(cluster):
        workflow.snakemake(*TO_RECORDS)
    squeue = ["squeue", "--noheader", "--user=root", "--states=CANCELLED"]
    assert not cluster.run(squeue).stdout and not workflow.attempts()
    hosts = {record["context"]["host"] for record in workflow.records().values()}
    assert hosts == set(cluster.layout.names)
    assert "hosts" not in set(judge(Results.read(workflow.results)).warnings["code"])
