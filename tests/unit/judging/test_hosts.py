"""A row belongs to one host and to what its jobs were given there: limits and claims follow the records."""

import copy
import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark.cell import Cell
from peakmark.figures import figures
from peakmark.instruments.tables import BY_NAME
from peakmark.judging import findings, ratios, verdict
from peakmark.judging.naming import Naming
from peakmark.judging.notes import Level
from peakmark.judging.row import Row
from peakmark.judging.rows import build as build_rows
from peakmark.reporting import report, webpage
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import presentation, tables

VM: dict[str, Any] = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
KERNELS = ROOT / "build" / "kernels"
CLOCK = {"clock_hz_before": 3e9, "clock_hz_after": 3e9}
LIMIT = 3e9 * 16  # of one core of the VM in double precision


def campaign(
    folder: Path, hosts: dict[str, dict[str, Any]], runs: list[tuple[str, int, float]], **context: Any
) -> Path:
    """DP rows: (host, threads, share of the limit of one core at 3 GHz), in the order of their repetitions."""
    records, counts = [], dict.fromkeys((threads for _, threads, _ in runs), 0)
    for host, threads, share in runs:
        of = make.cell("cpubench", "DP", subsystem="cpu", concurrency=threads, repetition=counts[threads])
        counts[threads] += 1
        measured = make.measurement(of, "rate", share * LIMIT, details=CLOCK)
        records.append(make.record(of, [measured], host=host, context=context))
    make.write(folder, records)
    for name, facts in hosts.items():
        path = folder / "machine" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**copy.deepcopy(VM), "host": name, "cpu": VM["cpu"] | facts}))
    return folder


def cpu_rows(folder: Path) -> list[Row]:
    return build_rows(Results.read(folder))["cpu"]


WOBBLE = (0.95, 0.951, 0.949, 0.952, 0.948, 0.95)


def test_a_row_of_one_host_has_its_limit_and_is_claimed(tmp_path: Path) -> None:
    runs = [("a", threads, threads * share) for threads in (1, 2) for share in WOBBLE]
    rows = cpu_rows(campaign(tmp_path / "c", {"a": {}}, runs))
    assert [row.measured.efficiency for row in rows] == [pytest.approx(0.95), pytest.approx(0.95)]
    assert "best with" in findings.of(rows)[0].text


@pytest.fixture(scope="module")
def mixing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One thread and two, of which two are far apart, on two nodes of one kind in turn."""
    runs = [
        (host, threads, threads * share) for threads in (1, 2) for host, share in zip("ababab", WOBBLE, strict=True)
    ]
    return campaign(tmp_path_factory.mktemp("hosts") / "mixing", {"a": {}, "b": {}}, runs)


def test_a_row_that_mixes_hosts_is_not_claimed(mixing: Path) -> None:
    rows = cpu_rows(mixing)
    assert all(row.mixed and row.measured.efficiency for row in rows)  # alike in all that a limit is made of
    assert all(row.level is None for row in rows)  # or every row of a cluster of equal nodes would be in doubt
    assert "measured on 2 different hosts (a, b), and nothing is claimed" in rows[0].said(rows[0].remarks)[0]
    assert [found.heading for found in findings.of(rows)] == ["Hosts"]
    assert "2 of 2 rows mix hosts" in findings.of(rows)[0].text


def test_tables_say_which_rows_mix(mixing: Path) -> None:
    tables.build(mixing)
    with (mixing / "tables" / "cpu.csv").open() as file:
        assert [(line["Doubt"], "different hosts (a, b)" in line["Notes"]) for line in csv.DictReader(file)] == [
            ("", True),
            ("", True),
        ]


def test_figures_pages_and_last_words_say_that_rows_mix(mixing: Path) -> None:
    figures.build(mixing)
    caption = "Of its 2 rows 2 mix hosts."
    page = " ".join(webpage.build(mixing).read_text().split())
    paper = " ".join(pdf.text(report.build(mixing)).split())
    for text in (page, paper):
        assert caption in text
        assert "2 of 2 rows mix hosts" in text
        assert "different hosts (a, b), and nothing is claimed" in text
        assert "best with" not in text
    (head,) = verdict.verdicts({name: cpu_rows(mixing) if name == "cpu" else [] for name in BY_NAME})
    assert (head.confidence, head.why) == ("no doubt seen", "repetitions from 2 different hosts")


def test_a_row_of_one_host_speaks_on_page_one_before_a_faster_one_that_mixes(tmp_path: Path) -> None:
    runs = [("a", 1, share) for share in WOBBLE]
    runs += [(host, 2, 2 * share) for host, share in zip("ababab", WOBBLE, strict=True)]
    rows = cpu_rows(campaign(tmp_path / "c", {"a": {}, "b": {}}, runs))
    (head,) = verdict.verdicts({name: rows if name == "cpu" else [] for name in BY_NAME})
    assert head.what.startswith("DP, 1 thread")
    assert head.confidence == "no doubt seen"


def test_a_reference_that_ran_elsewhere_has_no_ratio(tmp_path: Path) -> None:
    records = []
    for instrument, host, value in (("cpubench", "a", 0.9), ("likwid-bench", "b", 0.4)):
        for number in range(6):
            of = make.cell(instrument, "DP", subsystem="cpu", repetition=number)
            records.append(make.record(of, [make.measurement(of, "rate", LIMIT * value)], host=host))
    (row,) = build_rows(Results.read(make.write(tmp_path / "c", records)))["cpu"]
    assert ratios.best(row) is None
    assert ratios.text(row) == ""
    assert not {"Reference", "Disagreement"} & {found.heading for found in findings.of([row])}
    assert "disagreement" not in {note.code for note in row.marks}


def test_a_row_that_mixes_processors_has_no_limit(tmp_path: Path) -> None:
    runs = [(host, 1, share * (2 if host == "b" else 1)) for host, share in zip("ababab", WOBBLE, strict=True)]
    (row,) = cpu_rows(campaign(tmp_path / "c", {"a": {}, "b": {"model_name": "Another CPU"}}, runs))
    assert row.measured.efficiency is None
    assert "different processors" in str(row.limit.reason) and "Another CPU" in str(row.limit.reason)
    assert row.level is Level.UNSURE and row.doubts[0].code == "hosts"
    assert "measured on 2 different hosts (a, b)" in row.doubts[0].text
    (head,) = verdict.verdicts({name: [row] if name == "cpu" else [] for name in BY_NAME})
    assert (head.limit, head.share, head.clocks, head.confidence) == ("unknown", "", "", "unsure")
    assert "different hosts" in head.why


def test_a_row_that_mixes_equal_processors_with_other_limits_has_none(tmp_path: Path) -> None:
    """Half the memory channels populated on one of two hosts: half its limit, by the same model name."""
    records, channels = [], {"a": 8, "b": 4}
    for number, host in enumerate("ababab"):
        of = make.cell("rambench", "RS", subsystem="memory", variant="pool", block=1 << 20, repetition=number)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e10)], host=host))
    folder = make.write(tmp_path / "c", records)
    (folder / "machine").mkdir()
    for host, count in channels.items():
        memory = {"channels": count, "speed_mts": 3200, "populated_channels": count}
        facts = {**copy.deepcopy(VM), "host": host, "memory": VM["memory"] | memory}
        (folder / "machine" / f"{host}.json").write_text(json.dumps(facts))
    (row,) = build_rows(Results.read(folder))["memory_throughput"]
    assert row.unlike and row.measured.efficiency is None and row.level is Level.UNSURE
    assert "hosts with different limits (a and b)" in str(row.limit.reason)


def test_rounds_of_two_hosts_are_not_divided(tmp_path: Path) -> None:
    """The own kernel on one host and the reference on another say nothing of each other."""
    records = []
    for instrument, hosts in (("cpubench", "ab"), ("likwid-bench", "bb")):
        for number, host in enumerate(hosts):
            of = make.cell(instrument, "DP", subsystem="cpu", repetition=number)
            records.append(make.record(of, [make.measurement(of, "rate", LIMIT * (0.5 + number / 4))], host=host))
    (row,) = build_rows(Results.read(make.write(tmp_path / "c", records)))["cpu"]
    assert ratios.of(row.measured, row.series["likwid-bench"]).rounds == 1
    assert "not on the same hosts" in ratios.text(row)


def test_shares_at_the_clocks_on_the_box_stand_beside_the_one_seen(tmp_path: Path) -> None:
    clocks = {"clock_hz": {"nominal": 6e9, "maximum": 12e9, "observed": None}}
    folder = campaign(tmp_path / "c", {"a": clocks}, [("a", 1, share) for share in WOBBLE])
    (row,) = cpu_rows(folder)
    assert row.shares == {"nominal": pytest.approx(0.475), "maximum": pytest.approx(0.2375)}
    assert any("below their nominal 6 GHz" in doubt.text for doubt in row.doubts)
    heads = verdict.verdicts(build_rows(Results.read(folder)))
    assert "47.5 % at the nominal clock, 23.8 % at the maximum clock" in heads[0].clocks
    assert heads[0].confidence == "unsure" and "below their nominal" in heads[0].why
    tables.build(folder)
    text = (folder / "tables" / "cpu.csv").read_text()
    assert "Efficiency at nominal clock (%)" in text and "47.5" in text


def test_records_tell_what_their_jobs_were_given_not_what_the_first_one_was(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or not (KERNELS / "cpubench").exists():
        pytest.skip("needs two CPUs and built kernels")
    program = (
        "import sys; from pathlib import Path; from peakmark.cell import Cell; import json\n"
        "from peakmark.measuring.measure import Request, measure\n"
        "cell, folder, kernels = Cell.from_json(json.loads(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])\n"
        "measure(Request(cell, folder / 'cells' / f'{cell.id}.json', folder, kernels))\n"
    )
    folder, found = tmp_path / "c", []
    for given, asked in ((cpus[:1], 1), (cpus[:2], "cpus")):
        of = {"subsystem": "cpu", "instrument": "cpubench", "workload": "DP", "variant": "", "block": None, "node": "any",
              "repetition": 0, "concurrency": asked, "options": {"seconds": 0.01, "warmup": 0.0}}  # fmt: skip
        words = [program, json.dumps(of), str(folder), str(KERNELS)]
        argv = ["taskset", "-c", ",".join(map(str, given)), sys.executable, "-c", *words]
        subprocess.run(argv, check=True, timeout=120)
        found.append(json.loads((folder / "cells" / f"{Cell.from_json(of).id}.json").read_text()))
    contexts = [record["context"] for record in found]
    assert [context["allowed"]["cpus"] for context in contexts] == [cpus[:1], cpus[:2]]
    assert [len(context["placed"]["cpus"]) for context in contexts] == [1, 2]
    assert (found[1]["cell"]["concurrency"], found[1]["measurements"][0]["concurrency"]) == ("cpus", 2)
    (facts,) = (json.loads(path.read_text()) for path in (folder / "machine").glob("*.json"))
    assert facts["cpu"]["threads"] >= 2


def test_rows_of_a_word_show_it_with_what_it_meant_on_their_node(tmp_path: Path) -> None:
    """Also where some of them are not measured: their number comes from the others of the node, or is not known yet."""

    def of(workload: str, repetition: int = 0, node: str = "a") -> Cell:
        data = make.cell("cpubench", workload, subsystem="cpu", node=node, repetition=repetition).to_json()
        return Cell.from_json(data | {"concurrency": "cores"})

    placed = {"word": "cores", "threads": 8, "placement": "compact", "cpus": list(range(8)), "cores": 8, "sockets": 1,
              "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
    cell = of("DP")
    measured = make.measurement(cell, "rate", 4 * LIMIT, concurrency=8, details=CLOCK)
    record = make.record(cell, [measured], host="a", context={"placed": placed})
    folder = make.write(tmp_path / "c", [record], planned=[of("SP"), of("SP", node="b")])
    tables.build(folder)
    lines = (folder / "tables" / "cpu.csv").read_text().splitlines()
    assert [line.split(",")[:3] for line in lines[1:]] == [
        ["a", "SP", "8 (cores)"], ["a", "DP", "8 (cores)"], ["b", "SP", "cores"],
    ]  # fmt: skip
    said = [Naming.of(row).threads(row) for row in cpu_rows(folder)]
    assert said == ["8 threads (cores)", "8 threads (cores)", "cores"]


def test_the_limit_of_a_row_is_that_of_the_cores_its_own_jobs_were_given(tmp_path: Path) -> None:
    """The facts of the host are from its first job, which had one core."""
    placed = {"word": None, "threads": 2, "placement": "compact", "cpus": [0, 1], "cores": 2, "sockets": 1,
              "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
    folder = campaign(tmp_path / "c", {"a": {}}, [("a", 2, 2 * share) for share in WOBBLE], placed=placed)
    path = folder / "machine" / "a.json"
    facts = json.loads(path.read_text())
    path.write_text(
        json.dumps({**facts, "limits": {**facts["limits"], "physical_cores_allowed": 1, "cpus_allowed": [0]}})
    )
    (row,) = cpu_rows(folder)
    assert row.limit.value == pytest.approx(2 * LIMIT) and row.measured.efficiency == pytest.approx(0.95)


def test_an_area_that_the_node_chose_joins_what_was_planned_without_it(tmp_path: Path) -> None:
    """Own and reference, measured or not: one row for each number of threads, under the bytes that were walked."""

    def of(instrument: str, threads: int, repetition: int) -> Cell:
        return make.cell(instrument, "LAT", subsystem="memory", block=None, concurrency=threads, repetition=repetition)

    def walked(cell: Cell, area: int) -> dict[str, Any]:
        return make.record(cell, [make.measurement(cell, "latency", 1e-7, block=area)])

    measured = [walked(of("rambench", 1, 0), 2 << 30), walked(of("pmbw", 1, 0), 2 << 30)]
    folder = make.write(tmp_path / "c", measured, planned=[of("rambench", 1, 1), of("rambench", 2, 0)])
    one, two = build_rows(Results.read(folder))["memory_latency"]
    assert (one.key.block, one.missing, sorted(one.series)) == (2 << 30, 1, ["pmbw", "rambench"])
    assert (two.key.block, two.key.concurrency, two.own) == (None, 2, None)
    assert one.measured.summary.n == 1


def test_the_limit_of_a_network_row_is_that_of_the_interface_that_was_measured(tmp_path: Path) -> None:
    default = {"interface": "eth0", "kind": "ethernet", "speed_bps": 1e9, "mtu": 1500, "loopback": False}
    of = make.cell("netbench", "TCP", subsystem="network", block=1024)
    link = {"interface": "ib0", "kind": "infiniband", "speed_bps": 200e9, "mtu": 4092, "loopback": False}
    network = {"interface": "ib0", "loopback": False, "address": "10.0.0.1", "server_interface": "ib0", "link": link}
    record = make.record(of, [make.measurement(of, "throughput", 1e11)], context={"network": network})
    folder = make.write(tmp_path / "c", [record], facts={**copy.deepcopy(VM), "host": "node1", "network": default})
    (row,) = build_rows(Results.read(folder))["network_throughput"]
    assert row.limit.value is not None
    assert row.limit.value > 1e11


def test_the_heading_of_an_interval_tells_the_level_that_its_repetitions_give(tmp_path: Path) -> None:
    def heading(*counts: int) -> str:
        runs = [("a", threads, threads * share) for threads, n in enumerate(counts, 1) for share in WOBBLE[:n]]
        return presentation.interval_heading(cpu_rows(campaign(tmp_path / "-".join(map(str, counts)), {"a": {}}, runs)))

    assert heading(3, 3) == "75 % interval"
    assert heading(6) == "95 % interval"
    assert heading(3, 6) == "75 to 95 % interval"
