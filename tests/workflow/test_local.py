"""The flow on this machine, as a user runs it."""

import json
import os
import sys
from pathlib import Path

from tests.checkout import TINY, TO_RECORDS, TO_TABLES
from tests.programs import executable, needs

from peakmark.cell import Cell

TABLES = [
    "cpu", "memory_throughput", "memory_latency", "disk_throughput", "disk_latency", "disk_iops",
    "network_throughput", "network_latency",
]  # fmt: skip


def test_from_config_to_pdf_and_then_nothing_to_do(checkout):
    config = checkout.write_config("tiny.yaml", TINY)
    first = checkout.measure(config)
    results = checkout.directory / "results" / "tiny"
    assert (results / "report.pdf").read_bytes().startswith(b"%PDF")
    for table in TABLES:
        assert (results / "tables" / f"{table}.csv").stat().st_size > 0
    records = checkout.records("tiny")
    plan = json.loads((results / "plan.json").read_text())
    assert len(records) == len(plan["cells"]) == 12
    assert {record["status"] for record in records.values()} == {"ok"}
    assert str(results.relative_to(checkout.directory) / "report.pdf") in first.stdout

    before = checkout.started("tiny")
    order = [Cell.from_json(cell).id for cell in plan["cells"]]
    # The plan's order mixes repetitions and programs.
    assert sorted(before, key=lambda name: before[name]) == order
    again = checkout.measure(config)
    assert checkout.started("tiny") == before
    assert "nothing to do" in again.stderr
    # The last words are there also when nothing is to do.
    assert "results/tiny/report.pdf" in again.stdout

    # Exactly the cells whose records are gone are measured again. A source newer than its kernel
    # voids nothing, and is compiled before the next cell; so is, later, a kernel that is not there.
    gone = sorted(before)[::5]
    for name in gone:
        (results / "cells" / f"{name}.json").unlink()
    kernel = checkout.directory / "build/kernels/netbench"
    source = checkout.directory / "src/kernels/net/netbench.c"
    source.touch()
    checkout.measure(config, *TO_RECORDS)
    after = checkout.started("tiny")
    assert {name for name in before if after[name] != before[name]} == set(gone)
    assert kernel.stat().st_mtime_ns > source.stat().st_mtime_ns

    # A changed option voids the cells it belongs to and no others.
    kernel.unlink()
    changed = {**TINY, "cpu": [{**TINY["cpu"][0], "seconds": 0.04}]}
    checkout.measure(checkout.write_config("tiny.yaml", changed), *TO_RECORDS)
    newest = checkout.started("tiny")
    assert {name for name in after if newest[name] != after[name]} == {
        name for name in after if name.startswith("cpu/")
    }
    assert kernel.is_file()


@needs("fio")
def test_a_failed_cell_is_kept_listed_and_the_only_one_repeated(checkout, tmp_path):
    broken = executable(
        tmp_path / "fio",
        "#!/bin/sh\n[ $1 = --version ] && { echo fio-3.33; exit; }\necho no luck >&2; exit 9\n",
    )
    values = {**TINY, "cpu": [], "memory": [], "network": [], "tools": {"fio": str(broken)}}
    values["disk"] = [{**TINY["disk"][0], "references": {"fio": {"seconds": 0.1}}}]
    config = checkout.write_config("tiny.yaml", values)
    first = checkout.snakemake(config)
    assert first.returncode == 1
    assert "no luck" in first.stderr
    assert "Traceback" not in first.stderr
    name = "disk/fio/WS-psync_64KiB_x1/any/0"
    results = checkout.directory / "results" / "tiny"
    attempt = json.loads((results / "attempts" / name / "0.json").read_text())
    assert attempt["status"] == "failed"
    assert "exit code 9" in attempt["reason"]
    assert "no luck" in attempt["reason"]
    assert name not in checkout.records("tiny")
    assert not (results / "report.pdf").exists()

    status = checkout.peakmark("status", "results/tiny")
    assert status.returncode == 0
    assert "2 of 3 cells done" in status.stdout
    assert name in status.stdout

    before = checkout.started("tiny")
    executable(broken, f'#!/bin/sh\nexec {os.environ.get("FIO", "/usr/bin/fio")} "$@"\n')
    checkout.measure(config, *TO_RECORDS)
    after = checkout.started("tiny")
    assert set(after) - set(before) == {name}
    assert {key: after[key] for key in before} == before
    assert (results / "attempts" / name / "0.json").exists()  # a failed attempt stays on record


def test_missing_tools_leave_empty_columns_with_the_reason(checkout, tmp_path):
    """Only what the shell and the kernels need is on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    needed = "sh bash make gcc as ld cat mkdir rm uname env which sed grep ar"
    for program in needed.split():
        for place in ("/usr/bin", "/bin"):
            if Path(place, program).exists() and not (folder / program).exists():
                (folder / program).symlink_to(Path(place, program))
    values = {**TINY, "memory": [], "network": [], "disk": []}
    values["cpu"] = [{**TINY["cpu"][0], "references": {"hpl": {}, "likwid-bench": {}}}]
    config = checkout.write_config("tiny.yaml", values)
    path = f"{Path(sys.executable).parent}:{folder}"
    checkout.measure(config, *TO_TABLES, env={"PATH": path})
    table = (checkout.directory / "results/tiny/tables/cpu.csv").read_text()
    assert "HPL Measured Ops/Sec (GigaOPS)" in table
    planned = checkout.peakmark("plan", str(config), env={"PATH": path})
    assert "column stays empty" in planned.stdout
    assert "apt-get install hpcc" in planned.stdout
