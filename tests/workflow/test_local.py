"""The flow on this machine, as a user runs it."""

import json
import os

from tests.checkout import TINY, TO_RECORDS
from tests.programs import executable, needs
from tests.unit.campaign_data import cell_of

TABLES = {"cpu", "memory_throughput", "disk_throughput", "network_throughput", "network_latency"}


def test_from_config_to_pdf_and_then_nothing_to_do(measured):
    checkout, config = measured, measured.directory / "tiny.yaml"
    results = checkout.directory / "results" / "tiny"
    assert (results / "report.pdf").read_bytes().startswith(b"%PDF")
    assert {path.stem for path in results.glob("tables/*.csv")} == {*TABLES, "runs"}
    records = checkout.records("tiny")
    plan = json.loads((results / "plan.json").read_text())
    assert len(records) == len(plan["cells"]) == 12
    assert {record["status"] for record in records.values()} == {"ok"}

    before = checkout.started("tiny")
    order = [cell_of(cell).id for cell in plan["cells"]]
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

    # A changed option voids the cells it belongs to and no others. More repetitions change no record,
    # and fewer neither.
    kernel.unlink()
    changed = {**TINY, "cpu": [{**TINY["cpu"][0], "seconds": 0.04}]}
    changed["memory"] = [{**TINY["memory"][0], "repetitions": 4}]
    changed["disk"] = [{**TINY["disk"][0], "repetitions": 1}]
    checkout.measure(checkout.write_config("tiny.yaml", changed), *TO_RECORDS)
    newest = checkout.started("tiny")
    assert {name for name in after if newest[name] != after[name]} == {
        name for name in after if name.startswith("cpu/")
    }
    assert {name[:7] for name in set(newest) - set(after)} == {"memory/"}
    assert "13 of 13 cells done" in checkout.peakmark("status", "results/tiny").stdout
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
    one = checkout.measure(config, "--dry-run", "--", f"results/tiny/cells/{name}.json")
    assert "instrument=fio, workload=WS-psync, block=64KiB, concurrency=1" in one.stdout
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
