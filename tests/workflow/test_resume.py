"""What a run makes of damaged, edited and outdated records, and of a killed snakemake."""

import csv
import json
import os
import re
import signal
import time

import psutil
from tests.checkout import TINY, TO_RECORDS, TO_TABLES
from tests.programs import wait_for

CPU = {**TINY, "memory": [], "disk": [], "network": []}
CPU["cpu"] = [{"workloads": ["DP", "SP"], "concurrency": [1]}]
LIMIT_S = 60
MARK = "PEAKMARK_TEST_MARK"


def in_tables(checkout):
    """Cell id -> its last value in the table of runs."""
    with (checkout.directory / "results/tiny/tables/runs.csv").open() as stream:
        return {
            line["record"].removeprefix("cells/").removesuffix(".json"): float(line["value"])
            for line in csv.DictReader(stream)
        }


def values(checkout):
    """Cell id -> the last value of its record."""
    records = checkout.records("tiny")
    return {name: record["measurements"][-1]["value"] for name, record in records.items()}


def test_damaged_records_are_measured_again(measured):
    checkout, config = measured, measured.directory / "tiny.yaml"
    before, cells = checkout.started("tiny"), checkout.directory / "results/tiny/cells"
    edited, cut, swapped, *sound = sorted(before)

    record = json.loads((cells / f"{edited}.json").read_text())
    record["measurements"][0]["value"] *= 10
    forged = json.dumps(record)
    (cells / f"{edited}.json").write_text(forged)
    text = (cells / f"{cut}.json").read_text()
    (cells / f"{cut}.json").write_text(text[: len(text) // 2])
    (cells / f"{swapped}.json").write_text((cells / f"{sound[0]}.json").read_text())
    damaged = {edited, cut, swapped}

    status = checkout.peakmark("status", "results/tiny")
    assert "9 of 12 cells done" in status.stdout and "that of another cell" in status.stdout
    for name in damaged:
        assert name in status.stdout
    tables = checkout.peakmark("tables", "results/tiny")
    assert tables.returncode == 0
    assert set(in_tables(checkout)) == {*sound}  # no doubtful number is in a table

    checkout.measure(config, "--dry-run")
    assert (cells / f"{edited}.json").read_text() == forged  # a dry run changes nothing

    second = checkout.measure(config, *TO_TABLES)
    assert "3 cells" in second.stderr
    after = checkout.started("tiny")
    assert {name for name in before if after[name] != before[name]} == damaged
    assert in_tables(checkout) == values(checkout)
    kept = checkout.directory / "results/tiny/set-aside" / f"{edited}.0.json"
    assert kept.read_text() == forged  # what was edited is kept aside


def test_what_makes_the_report_is_newer_and_the_report_is_made_anew(measured):
    """As after git pull: the style, then the layout has changed; no record has."""
    config, layout = measured.directory / "tiny.yaml", measured.directory / "mine.yaml"
    own = {"PYTHONPATH": str(measured.directory / "src")}
    results = measured.directory / "results/tiny"

    def run(*words):
        return measured.measure(config, *words, env=own).stderr

    before = measured.started("tiny")
    style = measured.directory / "reports/html/report.css"
    style.write_text(style.read_text() + "\n.of-the-next-version { color: inherit }\n")
    run()
    assert "of-the-next-version" in (results / "report.html").read_text()
    assert "nothing to do" in run()

    columns = [{"heading": "Workload", "text": "{workload}"}, {"value": "measured"}]
    table = {"name": "cpu", "of": "cpu", "title": "CPU", "columns": columns}
    document = {"schema": 1, "name": "mine", "description": "A table.", "tables": [table]}
    measured.write_config("tiny.yaml", {**TINY, "report": {"tables": "mine.yaml"}})
    for heading in ("MyCPUBench Measured Ops/Sec", "Another Measured Ops/Sec"):
        columns[1]["heading"] = heading
        layout.write_text(json.dumps(document))
        run(*TO_TABLES)
        assert heading in (results / "tables/mine/cpu.csv").read_text()
    assert measured.started("tiny") == before


def processes_with(mark):
    """Processes with this value of PEAKMARK_TEST_MARK in their environment."""
    processes = psutil.process_iter(["environ"])
    return [one for one in processes if (one.info["environ"] or {}).get(MARK) == mark]


def test_a_killed_snakemake_leaves_no_process_and_no_file_and_the_next_run_completes(
    checkout, tmp_path
):
    """SIGKILL while the second cell is measured."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    long = {**CPU, "cpu": [], "scratch": str(scratch), "repetitions": 1}
    long["disk"] = [{**TINY["disk"][0], "workloads": ["WS", "RS"], "seconds": 60}]
    config = checkout.write_config("tiny.yaml", {**CPU, "repetitions": 1})
    checkout.measure(config, *TO_RECORDS)
    finished = checkout.started("tiny")
    checkout.write_config("tiny.yaml", {**long, "cpu": CPU["cpu"]})
    words = ["snakemake", "--profile", "local", "--configfile", str(config)]
    process = checkout.start(*words, env={MARK: str(tmp_path)})
    try:
        wait_for(lambda: list(scratch.rglob("peakmark-0")), "a disk cell is being measured")
        assert len(processes_with(str(tmp_path))) > 2
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: not processes_with(str(tmp_path)), "every process of the killed run is gone")
    assert not list(scratch.iterdir())  # nothing is left on the scratch disk
    assert checkout.started("tiny") == finished

    short = {**long, "cpu": CPU["cpu"], "disk": [{**long["disk"][0], "seconds": 0.05}]}
    checkout.write_config("tiny.yaml", short)
    checkout.measure(config, *TO_RECORDS)
    after = checkout.started("tiny")
    assert len(after) == 4
    assert {name: after[name] for name in finished} == finished


def test_ctrl_c_during_the_report_names_the_command_that_finishes_it(measured):
    checkout, results = measured, measured.directory / "results/tiny"
    (results / "report.pdf").unlink()
    (results / "logs/report.log").unlink()
    with checkout.start("peakmark", "run", "tiny.yaml", start_new_session=True) as process:
        while not (results / "logs/report.log").exists():
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        said = "".join(process.communicate(timeout=LIMIT_S))
    assert process.returncode == 130 and not (results / "report.pdf").exists()
    assert "Traceback" not in said and "interrupted" in said and "failed" not in said, said
    command = re.search(r"\S*peakmark run .*", said)
    assert command is not None, said
    done = checkout.run("sh", "-c", command[0])
    assert done.returncode == 0, done.stderr
    assert (results / "report.pdf").exists()
