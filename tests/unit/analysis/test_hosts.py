"""A row belongs to equal nodes and to what its jobs were given there: limits and claims follow the
records.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit import pdf

from peakmark.analysis import findings, ratios, verdict
from peakmark.analysis.analysis import build_rows
from peakmark.analysis.label_formatter import LabelFormatter
from peakmark.analysis.row import Row
from peakmark.cell import Cell
from peakmark.messages import Severity
from peakmark.report import html_report, pdf_report
from peakmark.resources import ROOT
from peakmark.storage import records
from peakmark.storage.results import Results
from peakmark.tables import columns, tables
from peakmark.tools.tables import BY_NAME

VM: dict[str, Any] = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
KERNELS = ROOT / "build" / "kernels"
CLOCK = {"clock_hz_before": 3e9, "clock_hz_after": 3e9}
LIMIT = 3e9 * 16  # of one core of the VM in double precision


def campaign(
    folder: Path,
    hosts: dict[str, dict[str, Any]],
    runs: list[tuple[str, int, float]],
    **context: Any,
) -> Path:
    """DP rows: (host, threads, share of the limit of one core at 3 GHz), in the order of their
    repetitions.
    """
    records, counts = [], dict.fromkeys((threads for _, threads, _ in runs), 0)
    for host, threads, share in runs:
        records += make.runs(
            "cpubench", "DP", share * LIMIT, repetition=counts[threads], concurrency=threads,
            host=host, details=CLOCK, context=context,
        )  # fmt: skip
        counts[threads] += 1
    machines = {name: {"host": name, "cpu": VM["cpu"] | facts} for name, facts in hosts.items()}
    return make.write(
        folder, records, machines={name: VM | facts for name, facts in machines.items()}
    )


def cpu_rows(folder: Path) -> list[Row]:
    return build_rows(Results.read(folder))["cpu"]


WOBBLE = (0.95, 0.951, 0.949, 0.952, 0.948, 0.95)


def test_a_row_of_one_host_has_its_limit_and_is_claimed(tmp_path: Path) -> None:
    runs = [("a", threads, threads * share) for threads in (1, 2) for share in WOBBLE]
    rows = cpu_rows(campaign(tmp_path / "c", {"a": {}}, runs))
    assert [row.measured.efficiency for row in rows] == [pytest.approx(0.95), pytest.approx(0.95)]
    assert "best with" in findings.conclusions(rows)[0].text


@pytest.fixture(scope="module")
def equal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One thread and two, of which two are far apart, on two equal nodes in turn."""
    runs = [
        (host, threads, threads * share)
        for threads in (1, 2)
        for host, share in zip("ababab", WOBBLE, strict=True)
    ]
    return campaign(tmp_path_factory.mktemp("hosts") / "equal", {"a": {}, "b": {}}, runs)


def test_a_row_over_equal_nodes_is_an_ordinary_row(equal: Path) -> None:
    rows = cpu_rows(equal)
    assert all(row.measured.efficiency and row.level is None for row in rows)
    assert not {"hosts", "hosts-differ"} & {note.code for row in rows for note in row.warnings}
    assert "best with" in findings.conclusions(rows)[0].text
    (head,) = verdict.verdicts({name: rows if name == "cpu" else [] for name in BY_NAME})
    assert (head.what, head.confidence, head.why) == ("DP, 2 threads", "no doubt seen", "")
    tables.build(equal)
    with (equal / "tables" / "runs.csv").open() as file:
        assert {line["host"] for line in csv.DictReader(file)} == {"a", "b"}


DIFFERENT = ({"model_name": "Another CPU"}, {"threads": 4})


@pytest.mark.parametrize("other", DIFFERENT)
def test_a_row_that_mixes_unequal_nodes_is_void(tmp_path: Path, other: dict[str, Any]) -> None:
    runs = [
        (host, 1, share * (2 if host == "b" else 1))
        for host, share in zip("ababab", WOBBLE, strict=True)
    ]
    (row,) = cpu_rows(campaign(tmp_path / "c", {"a": {}, "b": other}, runs))
    assert (row.measured.efficiency, row.limit.value, row.level) == (None, None, Severity.WRONG)
    (doubt,) = [note for note in row.specific_warnings if note.code == "hosts"]
    assert all(
        word in doubt.text
        for word in ("on a", "on b", str(*other.values()), "nodes:", "slurm.constraint")
    )
    (head,) = verdict.verdicts({name: [row] if name == "cpu" else [] for name in BY_NAME})
    assert head.what == verdict.NO_ROW and "on b" in head.why
    assert {found.heading for found in findings.conclusions([row])} == {"Doubt"}


def test_tables_page_and_paper_say_which_nodes_are_not_equal(tmp_path: Path) -> None:
    runs = [(host, 1, share) for host, share in zip("ababab", WOBBLE, strict=True)]
    folder = campaign(tmp_path / "c", {"a": {}, "b": {"model_name": "Another CPU"}}, runs)
    tables.build(folder)
    with (folder / "tables" / "cpu.csv").open() as file:
        (line,) = csv.DictReader(file)
    assert line["Doubt"] == "wrong" and "Another CPU" in line["Notes"]
    page = " ".join(html_report.build(folder).read_text().split())
    paper = " ".join(pdf.text(pdf_report.build(folder)).split())
    for text in (page, paper):
        assert "1 is wrong" in text
        assert "Another CPU" in text


@pytest.mark.parametrize(
    ("hosts", "found"),
    [("aaabbb", []), ("aaaabbbb", [("a", "b")]), ("abababab", []), ("aaaabbbbcccc", [("a", "c")])],
)
def test_hosts_that_differ_beyond_chance_say_by_how_much(
    tmp_path: Path, hosts: str, found: list[tuple[str, str]]
) -> None:
    """Three repetitions on each of two nodes can show nothing, however far they are apart."""
    runs = [
        (host, 1, 0.9 - 0.02 * (number // 4) + number / 1000) for number, host in enumerate(hosts)
    ]
    (row,) = cpu_rows(campaign(tmp_path / "c", {host: {} for host in "abc"}, runs))
    notes = [note for note in row.warnings if note.code == "hosts-differ"]
    assert [(dict(note.values)["highest"], dict(note.values)["lowest"]) for note in notes] == found
    assert all("nodes: all" in note.text and note.severity is Severity.NOTE for note in notes)
    for note in notes:
        by_host = {
            host: [point.value for point in row.measured.points if point.where == host]
            for host in hosts
        }
        high, low = (statistics.median(by_host[host]) for host in found[0])
        assert dict(note.values)["share"] == pytest.approx(high / low - 1)


def test_nodes_without_facts_count_as_equal_and_the_row_says_so(tmp_path: Path) -> None:
    runs = [(host, 1, share) for host, share in zip("ababab", WOBBLE, strict=True)]
    (row,) = cpu_rows(campaign(tmp_path / "c", {"a": {}}, runs))
    assert row.level is None
    assert [dict(note.values)["hosts"] for note in row.warnings if note.code == "hosts"] == [("b",)]
    three = [(host, 1, share) for host, share in zip("cababa", WOBBLE, strict=True)]
    (row,) = cpu_rows(campaign(tmp_path / "three", {"a": {}, "b": {}}, three))
    assert row.level is None and row.measured.efficiency
    assert [dict(note.values)["hosts"] for note in row.warnings if note.code == "hosts"] == [("c",)]
    doubtful = [
        (host, threads, share * (1 + number)) for number, (host, threads, share) in enumerate(runs)
    ]
    (row,) = cpu_rows(campaign(tmp_path / "d", {"a": {}}, doubtful))
    assert row.level is not None and "hosts" not in {note.code for note in row.warnings}


def test_equal_nodes_with_other_limits_have_none_in_common(tmp_path: Path) -> None:
    """Half the memory channels populated on one of two hosts: half its limit, by the same model
    name.
    """
    records = []
    for number, host in enumerate("ababab"):
        records += make.runs("rambench", "RS", 1e10, repetition=number, host=host)
    machines = {}
    for host, count in {"a": 8, "b": 4}.items():
        memory = {"channels": count, "speed_mts": 3200, "populated_channels": count}
        machines[host] = VM | {"host": host, "memory": VM["memory"] | memory}
    (row,) = make.judge(tmp_path / "c", records, machines=machines).rows["memory_throughput"]
    assert row.measured.efficiency is None and row.level is Severity.UNSURE
    assert "a and b" in str(row.limit.reason)
    assert [note.case for note in row.specific_warnings if note.code == "hosts"] == ["limits"]


@pytest.mark.parametrize("kernel", ["", "another"])
def test_real_rows_of_two_nodes_are_void_only_where_these_are_not_equal(
    tmp_path: Path, kernel: str
) -> None:
    folder = make.golden("two-nodes", tmp_path / "c")
    path = folder / "machine" / "node2.json"
    facts = json.loads(path.read_text())
    facts.pop(records.CHECKSUM)
    facts["os"]["kernel"] = kernel or facts["os"]["kernel"]
    path.write_text(records.text_of(facts))
    results = Results.read(folder)
    assert results.left_out == ()
    rows = [row for table in build_rows(results).values() for row in table if row.own is not None]
    several = [row for row in rows if len(row.own.hosts) > 1]
    void = [row for row in several if any(note.code == "hosts" for note in row.warnings)]
    assert len(several) > 10 and len(void) >= (len(several) // 2 if kernel else 0)
    assert kernel or not void


def beside(
    folder: Path, own: str, reference: str, values: dict[str, float], other: str = "AMD EPYC"
) -> Row:
    """A row of a CPU: hosts of both programs by repetition, and the own value on each host over the
    reference's.
    """
    records = []
    for instrument, hosts in (("cpubench", own), ("likwid-bench", reference)):
        for number, host in enumerate(hosts):
            value = 1e10 * (values[host] if instrument == "cpubench" else 1)
            value *= 2 if host == "b" else 1
            records += make.runs(
                instrument, "DP", value, repetition=number, host=host, details=CLOCK
            )
    machines = {
        host: VM | {"host": host, "cpu": VM["cpu"] | {"model_name": model}}
        for host, model in (("a", "AMD EPYC"), ("b", other))
    }
    (row,) = make.judge(folder, records, machines=machines).rows["cpu"]
    return row


@pytest.mark.parametrize(
    ("own", "reference", "value", "rounds", "says"),
    [
        ("abab", "abab", 1.2, 4, "n = 4"),  # in rounds on the same node
        ("abab", "baba", 1.2, 0, "n = 4"),  # on the same nodes, in no round together
        ("ab", "bb", 1.3, 1, "n = 2"),  # on b alone
        ("aa", "bb", 0.55, 0, "on other nodes"),
    ],
)
def test_a_ratio_is_taken_within_the_nodes_where_both_ran(
    tmp_path: Path, own: str, reference: str, value: float, rounds: int, says: str
) -> None:
    row = beside(tmp_path / "c", own, reference, {"a": 1.1, "b": 1.3})
    ratio = ratios.of(row.measured, row.series["likwid-bench"])
    assert (ratio.value, ratio.rounds) == (pytest.approx(value), rounds)
    assert says in ratios.text(row)


def test_a_reference_on_another_kind_of_node_has_no_ratio(tmp_path: Path) -> None:
    row = beside(tmp_path / "c", "aaaaaa", "bbbbbb", {"a": 0.4}, other="Another CPU")
    assert ratios.best(row) is None and ratios.text(row) == ""
    assert row.level is not Severity.WRONG and row.measured.efficiency is not None
    assert [(note.about, note.severity) for note in row.warnings if note.code == "hosts"] == [
        ("likwid-bench", Severity.WRONG)
    ]
    assert not {"Reference", "Disagreement"} & {
        found.heading for found in findings.conclusions([row])
    }
    assert "disagreement" not in {note.code for note in row.warnings}


def between(folder: Path, pairs: list[tuple[str, str, float]], kernels: dict[str, str]) -> Row:
    """A row of the network: client, server and bit/s of each repetition, and the kernel of each
    host.
    """
    records = []
    for number, (client, server, value) in enumerate(pairs):
        context = {"server_host": server}
        records += make.runs(
            "netbench", "TCP", value, repetition=number, host=client, context=context
        )
    machines = {
        host: VM | {"host": host, "os": VM["os"] | {"kernel": kernel}}
        for host, kernel in kernels.items()
    }
    (row,) = make.judge(folder, records, machines=machines).rows["network_throughput"]
    return row


def test_pairs_of_equal_nodes_are_one_row(tmp_path: Path) -> None:
    equal = dict.fromkeys("abc", "6.1.0-1")
    row = between(tmp_path / "equal", [(*pair, 1e9) for pair in ("ab", "bc", "ca")], equal)
    assert row.level is None and not row.unequal_nodes
    there = [("a", "b", 1e9 + number) for number in range(4)]
    back = [("b", "a", 1.02e9 + number) for number in range(4)]
    row = between(tmp_path / "differ", [*there, *back], equal)
    (note,) = [note for note in row.warnings if note.code == "hosts-differ"]
    assert (dict(note.values)["highest"], dict(note.values)["lowest"]) == ("b → a", "a → b")


def test_pairs_that_differ_in_their_kinds_of_node_are_not(tmp_path: Path) -> None:
    kernels = {"a": "6.1.0-1", "b": "6.1.0-1", "c": "6.1.0-2"}
    row = between(tmp_path / "mixed", [("a", "b", 1e9), ("a", "c", 1e9)], kernels)
    assert row.level is Severity.WRONG and "6.1.0-2 on c" in row.specific_warnings[0].text
    row = between(tmp_path / "pair", [("a", "c", 1e9), ("a", "c", 1e9)], kernels)
    assert row.level is None and not row.unequal_nodes


def test_shares_at_the_clocks_on_the_box_stand_beside_the_one_seen(tmp_path: Path) -> None:
    clocks = {"clock_hz": {"nominal": 6e9, "maximum": 12e9, "observed": None}}
    folder = campaign(tmp_path / "c", {"a": clocks}, [("a", 1, share) for share in WOBBLE])
    (row,) = cpu_rows(folder)
    assert row.shares == {"nominal": pytest.approx(0.475), "maximum": pytest.approx(0.2375)}
    (warning,) = [note for note in row.specific_warnings if note.code == "below-nominal"]
    assert dict(warning.values)["nominal"] == 6e9
    heads = verdict.verdicts(build_rows(Results.read(folder)))
    assert "47.5 %" in heads[0].clocks and "23.8 %" in heads[0].clocks
    assert (heads[0].confidence, heads[0].why) == ("unsure", warning.fact)
    tables.build(folder)
    heading, line = (folder / "tables" / "cpu.csv").read_text().splitlines()
    assert "at nominal clock (%)" in heading and "47.5" in line


def test_records_tell_what_their_jobs_were_given_not_what_the_first_one_was(tmp_path: Path) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2 or not (KERNELS / "cpubench").exists():
        pytest.skip("needs two CPUs and built kernels")
    program = (
        "import sys; from pathlib import Path; from peakmark.cell import Cell; import json\n"
        "from peakmark.run.measure import Request, measure\n"
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
    assert (found[1]["cell"]["concurrency"], found[1]["measurements"][0]["concurrency"]) == (
        "cpus",
        2,
    )
    (facts,) = (json.loads(path.read_text()) for path in (folder / "machine").glob("*.json"))
    assert facts["cpu"]["threads"] >= 2


def test_rows_of_a_word_show_it_with_what_it_meant_on_their_node(tmp_path: Path) -> None:
    """Also where some of them are not measured: their number comes from the others of the node, or
    is not known yet.
    """

    def of(workload: str, repetition: int = 0, node: str = "a") -> Cell:
        data = make.cell(
            "cpubench", workload, subsystem="cpu", node=node, repetition=repetition
        ).to_json()
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
    said = [LabelFormatter.of(row).threads(row) for row in cpu_rows(folder)]
    assert said == ["8 threads (cores)", "8 threads (cores)", "cores"]


def test_the_limit_of_a_row_is_that_of_the_cores_its_own_jobs_were_given(tmp_path: Path) -> None:
    """The facts of the host are from its first job, which had one core."""
    placed = {"word": None, "threads": 2, "placement": "compact", "cpus": [0, 1], "cores": 2, "sockets": 1,
              "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
    folder = campaign(
        tmp_path / "c", {"a": {}}, [("a", 2, 2 * share) for share in WOBBLE], placed=placed
    )
    path = folder / "machine" / "a.json"
    facts = json.loads(path.read_text())
    facts["limits"] |= {"physical_cores_allowed": 1, "cpus_allowed": [0]}
    path.write_text(json.dumps(facts))
    (row,) = cpu_rows(folder)
    assert row.limit.value == pytest.approx(2 * LIMIT) and row.measured.efficiency == pytest.approx(
        0.95
    )


def test_an_area_that_the_node_chose_joins_what_was_planned_without_it(tmp_path: Path) -> None:
    """Own and reference, measured or not: one row for each number of threads, under the bytes that
    were walked.
    """

    def of(instrument: str, threads: int, repetition: int) -> Cell:
        return make.cell(
            instrument,
            "LAT",
            subsystem="memory",
            block=None,
            concurrency=threads,
            repetition=repetition,
        )

    def walked(cell: Cell, area: int) -> dict[str, Any]:
        return make.record(cell, [make.measurement(cell, "latency", 1e-7, block=area)])

    measured = [walked(of("rambench", 1, 0), 2 << 30), walked(of("pmbw", 1, 0), 2 << 30)]
    folder = make.write(
        tmp_path / "c", measured, planned=[of("rambench", 1, 1), of("rambench", 2, 0)]
    )
    one, two = build_rows(Results.read(folder))["memory_latency"]
    assert (one.key.block, one.missing, sorted(one.series)) == (2 << 30, 1, ["pmbw", "rambench"])
    assert (two.key.block, two.key.concurrency, two.own) == (None, 2, None)
    assert one.measured.summary.n == 1


def test_the_limit_of_a_network_row_is_that_of_the_interface_that_was_measured(
    tmp_path: Path,
) -> None:
    here = {"mtu": 1500, "loopback": False}
    default = here | {"interface": "eth0", "kind": "ethernet", "speed_bps": 1e9}
    link = here | {"interface": "ib0", "kind": "infiniband", "speed_bps": 200e9, "mtu": 4092}
    ends = {"address": "10.0.0.1", "server_interface": "ib0"}
    network = {"interface": "ib0", "loopback": False, "link": link, **ends}
    records = make.runs("netbench", "TCP", 1e11, context={"network": network})
    facts = VM | {"host": "node1", "network": default}
    (row,) = make.judge(tmp_path / "c", records, facts=facts).rows["network_throughput"]
    assert row.limit.value is not None
    assert row.limit.value > 1e11


def test_the_heading_of_an_interval_tells_the_level_that_its_repetitions_give(
    tmp_path: Path,
) -> None:
    def heading(*counts: int) -> str:
        runs = [
            ("a", threads, threads * share)
            for threads, n in enumerate(counts, 1)
            for share in WOBBLE[:n]
        ]
        return columns.interval_label(
            cpu_rows(campaign(tmp_path / "-".join(map(str, counts)), {"a": {}}, runs))
        )

    assert heading(3, 3) == "75 % interval"
    assert heading(6) == "95 % interval"
    assert heading(3, 6) == "75 to 95 % interval"
