"""More repetitions of a row, by the whole flow on this machine and by a job of several cells."""

import json

from tests.checkout import TINY, TO_TABLES

from peakmark.storage import planfile

ALONE = {"memory": [], "disk": [], "network": []}


def ok(run):
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_more_repetitions_change_no_record(checkout):
    grids = [{"workloads": [name], "concurrency": [1], "repetitions": 2} for name in ("DP", "SP")]
    values = {**TINY, **ALONE, "cpu": grids}
    checkout.measure(checkout.write_config("tiny.yaml", values), *TO_TABLES)
    before = checkout.started("tiny")
    rounds = [
        int(name.rpartition("/")[2]) for name in sorted(before, key=lambda name: before[name])
    ]
    assert rounds == [0, 0, 1, 1]  # one repetition of all rows after the other

    grids[0]["repetitions"] = 4
    checkout.measure(checkout.write_config("tiny.yaml", values), *TO_TABLES)
    more = checkout.started("tiny")
    assert {name: more[name] for name in before} == before and len(more) == 6

    grids[0]["repetitions"] = 2
    checkout.measure(checkout.write_config("tiny.yaml", values), *TO_TABLES)
    assert checkout.started("tiny") == more
    assert "4 of 4 cells done" in ok(checkout.peakmark("status", "results/tiny"))


def test_a_job_of_several_cells_measures_each_once(checkout):
    """``fan_out: node``: what a job on the cluster runs, here without the cluster."""
    grid = {"workloads": ["DP", "SP"], "concurrency": [1], "repetitions": 2}
    config = checkout.write_config("tiny.yaml", {**TINY, **ALONE, "cpu": [grid]})
    ok(checkout.peakmark("plan", "--configfile", str(config), "--write", "results/tiny/plan.json"))
    path = checkout.directory / "results/tiny/plan.json"
    plan = json.loads(path.read_text())
    planfile.write(path, {**plan, "cells": [{"job": "any.own", **cell} for cell in plan["cells"]]})
    argv = ["measure", "--plan", "results/tiny/plan.json", "--job", "any.own"]
    ok(checkout.peakmark(*argv))
    before = checkout.started("tiny")
    assert len(before) == 4
    ok(checkout.peakmark(*argv))
    assert checkout.started("tiny") == before
