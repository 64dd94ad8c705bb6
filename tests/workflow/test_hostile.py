"""Names that a shell would take for commands, and that hold everything a name may hold, from a configuration to the PDF."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml
from checkout import TINY, Checkout

# No slash, as it is one name; what a shell makes of it leaves a file called pwned-N.
HOSTILE = "-x $(touch pwned-1) `touch pwned-2`; touch pwned-3 & 'q' \"d\" {b} {{c}} %s \\ é\n|* > pwned-4 #~"


def assert_untouched(*places: Path) -> None:
    for place in places:
        assert not list(place.rglob("pwned*")), "a shell has read a name"


@pytest.mark.parametrize("where", [pytest.param("names", marks=pytest.mark.trouble), "checkout"])
def test_a_hostile_configuration_reaches_no_shell(checkout: Checkout, tmp_path: Path, where: str) -> None:
    if where == "checkout":
        # make, which compiles the kernels, knows neither blanks nor dollars in a folder's name: they are compiled here.
        name = tmp_path / HOSTILE.replace("\n", "").replace("{b} {{c}} ", "")
        checkout.directory.rename(name)
        checkout = Checkout(name)
    folder = tmp_path / HOSTILE
    folder.mkdir(exist_ok=True)
    scratch = folder / "scratch"
    scratch.mkdir()
    tool = folder / "fio"
    tool.write_text(f'#!/bin/sh\nexec {shutil.which("fio") or "fio"} "$@"\n')
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
    argv = next(record for record in records.values() if record["cell"]["instrument"] == "fio")["context"]["commands"]
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
