"""Hostile names from a configuration to the PDF; kernels, folders and an output that fail a run."""

import json
import shutil
from pathlib import Path

from tests.checkout import (
    HOSTILE,
    LIMIT_S,
    TINY,
    TO_TABLES,
    Checkout,
    assert_untouched,
    hostile_config,
)
from tests.programs import needs


@needs("fio")
def test_a_hostile_configuration_reaches_no_shell(checkout, tmp_path):
    # make, which compiles the kernels, knows neither blanks nor dollars in a folder's name.
    checkout = Checkout(checkout.directory.rename(tmp_path / f"{HOSTILE} %s \\"))
    folder = tmp_path / f"{HOSTILE} 'q' {{b}} {{{{c}}}}\n"
    values = hostile_config(folder)
    config = checkout.write_config("hostile.yaml", values)
    checkout.measure(config)
    records = checkout.records("tiny")
    assert [record["status"] for record in records.values()] == ["ok", "ok"], records
    (argv,) = (
        record["context"]["commands"][0]["argv"]
        for record in records.values()
        if record["cell"]["instrument"] == "fio"
    )
    assert argv[0] == values["tools"]["fio"]
    results = checkout.directory / "results/tiny"
    assert (results / "report.pdf").read_bytes().startswith(b"%PDF")
    plan = json.loads((results / "plan.json").read_text())
    assert plan["config"]["report"]["title"] == folder.name
    assert not list(Path(values["scratch"]).iterdir())
    assert checkout.peakmark("status", "results/tiny").stdout.splitlines()[-1] == "complete"
    assert_untouched(tmp_path)


def test_what_fails_a_run_is_said_and_the_next_one_goes_on(checkout):
    values = {**TINY, "memory": [], "disk": [], "network": [], "repetitions": 1}
    config = checkout.write_config(
        "tiny.yaml", {**values, "cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
    )
    kernel = checkout.directory / "build/kernels/cpubench"
    whole = kernel.read_bytes()
    kernel.write_bytes(whole[: len(whole) // 2])
    cut = checkout.snakemake(config)
    assert cut.returncode == 1
    assert "1 failed" in cut.stdout
    assert "make clean kernels" in cut.stderr
    # Nothing of Snakemake's own.
    assert "WorkflowError" not in cut.stderr and "Snakefile" not in cut.stderr
    assert not checkout.records("tiny")

    kernel.write_bytes(whole)
    words = ["snakemake", "--cores", "1", "--configfile", str(config), *TO_TABLES]
    # Without a profile.
    with Path("/dev/full").open("w") as full, checkout.start(*words, stdout=full) as process:
        said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 1
    assert "Error: standard output:" in said.splitlines()[-1], said
    assert len(checkout.records("tiny")) == 1

    tables = checkout.directory / "results/tiny/tables"
    shutil.rmtree(tables)
    tables.write_text("mine")
    refused = checkout.snakemake(config)
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()[1:]
    assert line.startswith("Error: ") and "results/tiny/tables" in line
    assert tables.read_text() == "mine"
