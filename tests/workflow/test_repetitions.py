"""Repetitions until the interval is narrow, by the whole flow on this machine and by the job of one
node.
"""

import json
import subprocess
from typing import Any

from tests.checkout import TINY, Checkout

from peakmark.storage import planfile

# Nothing is as sure as that within eight repetitions; and no rate has a median below half of the
# highest one for long.
NEVER, SOON = "0.000001%", "99%"
TABLES = ("--", "results/tiny/tables/runs.csv")
"""Words for snakemake: without figures and documents. `--until` stops at the first decision."""


def adaptive(until: str, most: int = 8) -> dict[str, Any]:
    return {"min": 6, "max": most, "until": until}


def wanted(workload: str, until: str) -> dict[str, Any]:
    grid = {"workloads": [workload], "concurrency": [1], "seconds": 0.05}
    return {**grid, "repetitions": adaptive(until)}


def decisions(checkout: Checkout, name: str) -> dict[str, dict[str, Any]]:
    text = (checkout.directory / "results/tiny/repetitions" / f"{name}.json").read_text()
    return {
        row.split("/")[2].partition("_")[0]: one for row, one in json.loads(text)["rows"].items()
    }


def counts(checkout: Checkout) -> dict[str, int]:
    found = [record["cell"]["workload"] for record in checkout.records("tiny").values()]
    return {workload: found.count(workload) for workload in sorted(set(found))}


def ok(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_rows_are_repeated_until_they_are_sure_and_no_record_changes(checkout: Checkout) -> None:
    values = {**TINY, "memory": [], "disk": [], "network": [], "cpu": [
        wanted("DP", SOON), wanted("SP", NEVER), {"workloads": ["HP"], "concurrency": [1], "repetitions": 1}]}  # fmt: skip
    config = checkout.write_config("tiny.yaml", values)
    planned = ok(checkout.peakmark("plan", "--configfile", str(config)))
    assert "17 cells" in planned and "at least 13" in planned

    checkout.measure(config)
    last = decisions(checkout, "1")
    assert (last["DP"]["decision"], last["SP"]["decision"]) == ("narrow", "cap")
    assert counts(checkout) == {"DP": 6, "HP": 1, "SP": 8}
    started = checkout.started("tiny")
    rounds = [
        int(name.rpartition("/")[2]) for name in sorted(started, key=lambda name: started[name])
    ]
    assert rounds == sorted(rounds)  # one repetition of all rows after the other
    status = ok(checkout.peakmark("status", "results/tiny"))
    assert "15 of 15" in status and "2 spared" in status
    assert (checkout.directory / "results/tiny/report.pdf").read_bytes().startswith(b"%PDF")
    table = (checkout.directory / "results/tiny/tables/cpu.csv").read_text()
    assert "after 8 repetitions" in table

    # Of a row that lost one record only that one is measured again.
    before = checkout.started("tiny")
    lost = next(name for name in before if "/SP_" in name and name.endswith("/7"))
    (checkout.directory / "results/tiny/cells" / f"{lost}.json").unlink()
    checkout.measure(config)
    after = checkout.started("tiny")
    assert {name for name in before if after[name] != before[name]} == {lost}

    # Who wants to be surer gets more repetitions of that row; those that are there stay as they
    # are.
    values["cpu"][0] = wanted("DP", NEVER)
    checkout.measure(checkout.write_config("tiny.yaml", values), *TABLES)
    surer = checkout.started("tiny")
    assert {name: surer[name] for name in after} == after
    assert counts(checkout) == {"DP": 8, "HP": 1, "SP": 8}


def test_the_job_of_a_node_decides_for_itself(checkout: Checkout) -> None:
    """``fan_out: node``: what a job on the cluster runs, here without the cluster."""
    grid = [wanted("DP", SOON), wanted("SP", NEVER)]
    config = checkout.write_config(
        "tiny.yaml", {**TINY, "memory": [], "disk": [], "network": [], "cpu": grid}
    )
    ok(checkout.peakmark("plan", "--configfile", str(config), "--write", "results/tiny/plan.json"))
    path = checkout.directory / "results/tiny/plan.json"
    plan = json.loads(path.read_text())
    planfile.write(path, {**plan, "cells": [{"job": "any.own", **cell} for cell in plan["cells"]]})
    argv = ["measure", "--plan", "results/tiny/plan.json", "--job", "any.own"]
    ok(checkout.peakmark(*argv))
    assert counts(checkout) == {"DP": 6, "SP": 8}
    before = checkout.started("tiny")
    ok(checkout.peakmark(*argv))
    assert checkout.started("tiny") == before
    assert {one["decision"] for one in decisions(checkout, "any.own").values()} == {"narrow", "cap"}
    assert "2 spared" in ok(checkout.peakmark("status", "results/tiny"))
