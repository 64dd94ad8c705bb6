"""Names that a shell would take for commands, and that hold everything a name may hold, from a
configuration to the PDF; kernels, folders and a standard output that fail a run.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from tests.checkout import LIMIT_S, TINY, Checkout
from tests.programs import needs

# No slash, as it is one name; what a shell makes of it leaves a file called pwned-N.
HOSTILE = "-x $(touch pwned-1) `touch pwned-2`; touch pwned-3 & 'q' \"d\" {b} {{c}} %s \\ é\n|* > pwned-4 #~"


def assert_untouched(*places: Path) -> None:
    for place in places:
        assert not list(place.rglob("pwned*"))  # a shell has read a name


@needs("fio")
@pytest.mark.parametrize("where", [pytest.param("names", marks=pytest.mark.trouble), "checkout"])
def test_a_hostile_configuration_reaches_no_shell(
    checkout: Checkout, tmp_path: Path, where: str
) -> None:
    if where == "checkout":
        # make, which compiles the kernels, knows neither blanks nor dollars in a folder's name:
        # they are compiled here.
        name = tmp_path / HOSTILE.replace("\n", "").replace("{b} {{c}} ", "")
        checkout.directory.rename(name)
        checkout = Checkout(name)
    folder = tmp_path / HOSTILE
    folder.mkdir(exist_ok=True)
    scratch = folder / "scratch"
    scratch.mkdir()
    tool = folder / "fio"
    tool.write_text(f'#!/bin/sh\nexec {shutil.which("fio")} "$@"\n')
    tool.chmod(0o755)
    site = folder / "site.yaml"
    site.write_text(yaml.safe_dump({"schema": 1, "name": "hostile", "description": HOSTILE}))
    values = {**TINY, "cpu": [], "memory": [], "network": [], "repetitions": 1}
    values["disk"] = [{**TINY["disk"][0], "references": {"fio": {"seconds": 0.1}}}]
    values |= {"scratch": str(scratch), "tools": {"fio": str(tool)}, "site": str(site)}
    values["report"] = {"title": HOSTILE, "author": f"#{HOSTILE}$x$ @y", "course": HOSTILE}
    done = checkout.snakemake(checkout.write_config("hostile.yaml", values))
    assert done.returncode == 0, done.stderr
    records = checkout.records("tiny")
    assert {record["status"] for record in records.values()} == {"ok"}, records
    assert len(records) == 2
    argv = next(record for record in records.values() if record["cell"]["instrument"] == "fio")[
        "context"
    ]["commands"]
    assert argv[0]["argv"][0] == str(tool)
    assert (checkout.directory / "results/tiny/report.pdf").read_bytes().startswith(b"%PDF")
    plan = json.loads((checkout.directory / "results/tiny/plan.json").read_text())
    assert plan["config"]["report"]["title"] == HOSTILE
    assert not list(scratch.iterdir())
    assert_untouched(tmp_path)
    status = checkout.peakmark("status", "results/tiny")
    assert status.stdout.splitlines()[-1] == "complete"
    again = checkout.snakemake(checkout.directory / "hostile.yaml")
    assert again.returncode == 0
    assert_untouched(tmp_path)


def test_what_fails_a_run_is_said_and_the_next_one_goes_on(checkout: Checkout) -> None:
    """A kernel that is cut off measured nothing; a full standard output and a file in the way lose
    nothing.
    """
    values = {**TINY, "memory": [], "disk": [], "network": [], "repetitions": 1}
    config = checkout.write_config(
        "tiny.yaml", {**values, "cpu": [{"workloads": ["DP"], "concurrency": [1]}]}
    )
    kernel = checkout.directory / "build/kernels/cpubench"
    whole = kernel.read_bytes()
    kernel.write_bytes(whole[: len(whole) // 2])
    cut = checkout.snakemake(config)
    assert cut.returncode == 1
    assert "1 failed; the next run measures them again" in cut.stdout
    assert "make clean kernels" in cut.stderr
    # Nothing of Snakemake's own.
    assert "WorkflowError" not in cut.stderr and "Snakefile" not in cut.stderr
    assert not checkout.records("tiny")

    kernel.write_bytes(whole)
    words = [
        "snakemake",
        "--cores",
        "1",
        "--configfile",
        str(config),
    ]  # without a profile of its own
    with Path("/dev/full").open("w") as full, checkout.start(*words, stdout=full) as process:
        said = process.communicate(timeout=LIMIT_S)[1]
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("Error: standard output: No space left on device"), said
    assert len(checkout.records("tiny")) == 1

    tables = checkout.directory / "results/tiny/tables"
    shutil.rmtree(tables)
    tables.write_text("mine")
    refused = checkout.snakemake(config)
    assert refused.returncode == 1
    (error,) = refused.stderr.splitlines()[1:]
    assert error.startswith("Error: results/tiny/tables: ")
    assert tables.read_text() == "mine"
