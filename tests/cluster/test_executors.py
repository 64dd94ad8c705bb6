"""The official Slurm executor runs the same Snakefile: three cells, of which one needs both nodes."""

from tests.checkout import TO_RECORDS

from workflow import NETWORK

OPTIONS = (
    "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "5",
)  # fmt: skip
"""For the test cluster, which has no accounting. After a question to which no job has ended it waits ten seconds more."""


def test_another_executor_measures_every_cell(workflow):
    cpu = [{"workloads": ["DP"], "concurrency": [1], "repetitions": 2}]
    workflow.configure(cpu=cpu, network=[NETWORK])
    options = ["--executor", "slurm", *OPTIONS, "--jobs", "3"]
    said = workflow.snakemake(*options, *TO_RECORDS)
    assert said.count("this executor starts Snakemake in every job") == 1
    records = workflow.records()
    assert [record["status"] for record in records.values()] == ["ok"] * 3, records
    numbers = {record["context"]["job_id"] for record in records.values()}
    assert len(numbers) == 3 and None not in numbers
    (context,) = (one["context"] for name, one in records.items() if name.startswith("network/"))
    assert {context["host"], context["server_host"]} == {"node1", "node2"}
    # peakmark's executor finds nothing left to do.
    assert workflow.planned() == set()
