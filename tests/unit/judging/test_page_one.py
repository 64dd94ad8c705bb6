"""Page one: sentences that an expert would not take back."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.figures import figures
from peakmark.judging import caveats, verdict
from peakmark.judging.analysis import Analysis
from peakmark.messages import Severity
from peakmark.storage.results import Results
from peakmark.tables import tables

QUIET = (1.0, 1.002, 0.998)

WILD = (1.0, 1.5, 0.5)


def judged(
    folder: Path, wobble: Sequence[float], loopback: bool = True, limit: float = 2e10
) -> Analysis:
    """A CPU row and a network row of three repetitions each; the network's limit is stated where it
    is no loopback.
    """
    records = []
    for number, factor in enumerate(wobble):
        of = make.cell("cpubench", "DP", subsystem="cpu", repetition=number)
        records.append(make.record(of, [make.measurement(of, "rate", 5e10 * factor)]))
        of = make.cell("netbench", "TCP", subsystem="network", block=1024, repetition=number)
        context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
        records.append(
            make.record(of, [make.measurement(of, "throughput", 1e10 * factor)], context=context)
        )
    site = {} if loopback else {"site_facts": {"network": {"speed_bps": limit, "mtu": 1500}}}
    return Analysis(Results.read(make.write(folder, records, config=site)))


def said(of: Analysis) -> list[str]:
    return caveats.build(of.rows, verdict.verdicts(of.rows), of.results.config)


def test_where_nothing_is_sure_that_is_said_first(tmp_path: Path) -> None:
    first = said(judged(tmp_path / "wild", WILD))[0]
    assert first.startswith(
        "None of the 2 figures above is sure: another run may well give others."
    )
    assert not any(
        "figures above is sure" in text for text in said(judged(tmp_path / "quiet", QUIET))
    )


def test_a_figure_over_loopback_says_so_in_its_row_and_asks_for_no_limit(tmp_path: Path) -> None:
    of = judged(tmp_path / "a", QUIET)
    (network,) = (one for one in verdict.verdicts(of.rows) if one.subsystem == "network")
    assert network.what == "TCP of 1 KiB, 1 stream, over loopback"
    assert network.limit == "none: no link"
    assert any(
        text.startswith("The network was measured within one machine, over loopback")
        for text in said(of)
    )
    assert not any("network" in text and "site file" in text for text in said(of))
    (real,) = (
        one
        for one in verdict.verdicts(judged(tmp_path / "b", QUIET, False).rows)
        if one.subsystem == "network"
    )
    assert real.what == "TCP of 1 KiB, 1 stream"
    assert real.limit.endswith("b/s")
    assert not any("loopback" in text for text in said(judged(tmp_path / "c", QUIET, False)))


def test_no_repetition_lies_outside_the_figure(tmp_path: Path) -> None:
    figure = figures.overview(judged(tmp_path / "c", (0.9, 1.0, 3.6), False).rows)
    assert figure is not None
    assert figure.axes[0].get_xlim()[1] > 1.8


def test_beside_what_was_measured_stand_its_lowest_and_highest_repetition(tmp_path: Path) -> None:
    cpu, network = verdict.verdicts(judged(tmp_path / "c", (0.9, 1.0, 1.2)).rows)
    assert (cpu.measured, cpu.spread) == ("50.00 GigaOPS", "45.00 to 60.00")
    assert (network.measured, network.spread) == ("10000 Mb/s", "9000 to 12000")


@pytest.mark.parametrize(("isa", "told"), [("scalar", True), ("auto", False)])
def test_a_share_of_instructions_that_were_asked_for_is_not_the_nodes(
    tmp_path: Path, isa: str, told: bool
) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu", isa=isa)
    site = {"cpu": {"cores": 2, "sockets": 1, "operations_per_cycle": {"DP": 32}}}
    clocks = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    records = [make.record(of, [make.measurement(of, "rate", 3e9, details=clocks)])]
    found = Analysis(Results.read(make.write(tmp_path / "c", records, config={"site_facts": site})))
    assert verdict.verdicts(found.rows)[0].share
    assert (
        any(
            text.startswith("CPU: plain arithmetic as asked, beside the limit")
            for text in said(found)
        )
        is told
    )


def test_a_part_of_the_node_does_not_speak_for_it(tmp_path: Path) -> None:
    def told(cores: int) -> list[str]:
        of = make.cell("cpubench", "DP", subsystem="cpu", concurrency=cores)
        placed = {"word": "", "threads": cores, "placement": "compact", "cpus": list(range(cores)), "cores": cores, "sockets": 1,
                  "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
        given = {"cpus": list(range(128)), "cores": 128, "cpu_quota": None, "memory_bytes": 1 << 38,
                 "memory_limited_by": None, "memory_nodes": None, "node_cores": 128}  # fmt: skip
        record = make.record(
            of, [make.measurement(of, "rate", 5e10)], context={"placed": placed, "allowed": given}
        )
        return said(Analysis(Results.read(make.write(tmp_path / str(cores), [record]))))

    assert any(text.startswith("CPU: measured on 4 of the node's 128 cores") for text in told(4))
    assert not any("share of the limit" in text for text in told(4)), "there is none"
    assert not any("128 cores" in text for text in told(128))


def test_a_missing_memory_module_is_told(tmp_path: Path) -> None:
    of = make.cell("rambench", "RS", subsystem="memory", variant="pool", block=1 << 20)
    vm = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
    cpu = vm["cpu"] | {
        "model_name": "AMD EPYC 7763 64-Core Processor",
        "sockets": 1,
        "virtualised": None,
    }
    facts = vm | {
        "host": "node1",
        "cpu": cpu,
        "memory": vm["memory"] | {"channels": 7, "speed_mts": 3200},
    }
    folder = make.write(
        tmp_path / "c", [make.record(of, [make.measurement(of, "throughput", 1e10)])], facts=facts
    )
    told = said(Analysis(Results.read(folder)))
    assert (
        sum(
            text.startswith("7 of 8 memory channels populated (1 socket with 8 each")
            for text in told
        )
        == 1
    )


def test_a_scaled_campaign_says_that_its_figures_are_short(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    records = [make.record(of, [make.measurement(of, "rate", 5e10)])]
    for scale, told in ((0.1, True), (1, False), (2, False)):
        found = said(
            Analysis(
                Results.read(make.write(tmp_path / str(scale), records, config={"scale": scale}))
            )
        )
        assert (
            any(text.startswith("Times, amounts of work and files are 0.1 times") for text in found)
            is told
        )


def test_the_best_row_without_doubt_speaks_and_else_none_that_is_wrong(tmp_path: Path) -> None:
    """Of two workloads the faster one is cached: it is wrong, whatever the slower one is."""

    def of(record: int, moved: float, wobble: Sequence[float]) -> list[dict[str, Any]]:
        found = []
        for number, factor in enumerate(wobble):
            cell = make.cell(
                "diskbench",
                "RS",
                subsystem="disk",
                variant="psync",
                block=record,
                repetition=number,
            )
            details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
            value = 1e9 * factor * record / 65536
            found.append(
                make.record(cell, [make.measurement(cell, "throughput", value, details=details)])
            )
        return found

    def head(name: str, *records: list[dict[str, Any]]) -> verdict.Verdict:
        folder = make.write(tmp_path / name, [one for some in records for one in some])
        return next(
            one
            for one in verdict.verdicts(Analysis(Results.read(folder)).rows)
            if one.subsystem == "disk"
        )

    fast_cached, slow_sure, slow_wild = (
        of(1 << 20, 0.1, QUIET),
        of(1 << 16, 1.0, QUIET),
        of(1 << 16, 1.0, WILD),
    )
    assert (head("a", fast_cached, slow_sure).what, head("a", fast_cached, slow_sure).confidence) == (
        "RS of 64 KiB, 1 thread", "no doubt seen")  # fmt: skip
    assert (head("b", fast_cached, slow_wild).what, head("b", fast_cached, slow_wild).confidence) == (
        "RS of 64 KiB, 1 thread", "unsure")  # fmt: skip
    fast_wild = of(1 << 20, 1.0, WILD)
    assert (head("d", fast_wild, slow_sure).what, head("d", fast_wild, slow_sure).confidence) == (
        "RS of 64 KiB, 1 thread", "no doubt seen")  # fmt: skip
    nothing = head("c", fast_cached)
    assert (nothing.what, nothing.measured, nothing.row) == (verdict.NO_ROW, "", None)
    assert "the device moved only 10% of the bytes" in nothing.why
    told = said(Analysis(Results.read(tmp_path / "c")))
    assert "Disk: no row that can be trusted: the device moved only 10% of the bytes." in told


def test_a_cache_does_not_stand_for_the_memory(tmp_path: Path) -> None:
    records = []
    for variant, value in (("block", 9e11), ("pool", 2e10)):
        of = make.cell("rambench", "RS", subsystem="memory", variant=variant, block=1 << 20)
        records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    heads = verdict.verdicts(Analysis(Results.read(make.write(tmp_path / "c", records))).rows)
    assert [one.what for one in heads if one.subsystem == "memory"] == ["RS of 1 MiB, 1 thread"]
    assert [one.measured for one in heads if one.subsystem == "memory"] == ["20.00 GB/s"]


def test_the_numbers_of_a_sentence_agree_with_what_it_says(tmp_path: Path) -> None:
    def told(name: str, *factors: float) -> list[str]:
        """A disk's rows of three repetitions, wild where the factor is above one; a negative one is
        cached.
        """
        records = []
        for row, factor in enumerate(factors):
            for number in range(3):
                cell = make.cell(
                    "diskbench",
                    "RS",
                    subsystem="disk",
                    variant="psync",
                    block=4096 << row,
                    repetition=number,
                )
                details = {"device_bytes": 1e9 * (factor > 0), "work": 1e9, "filesystem": "ext4"}
                value = 1e9 * abs(factor) ** number
                records.append(
                    make.record(
                        cell, [make.measurement(cell, "throughput", value, details=details)]
                    )
                )
        return said(Analysis(Results.read(make.write(tmp_path / name, records))))

    assert (
        "Of 2 measured rows 1 is unsure: another run of an unsure one may well differ; the notes say why."
        in told("one", 1.0, 1.5)
    )
    found = told("both", 1.5, 1.5, -1.0)
    assert any(
        text.startswith(
            "Of 3 measured rows 1 is wrong and 2 are unsure: a wrong row speaks for nothing; another run"
        )
        for text in found
    )
    assert any(
        text.startswith("In all 4 rows, n = 3: ") for text in told("four", 1.0, 1.0, 1.0, 1.0)
    )


def test_more_threads_are_not_advised_where_they_were_measured(tmp_path: Path) -> None:
    records = []
    for threads, wobble in ((1, QUIET), (2, WILD)):
        for number, factor in enumerate(wobble):
            of = make.cell(
                "cpubench", "DP", subsystem="cpu", concurrency=threads, repetition=number
            )
            placed = {"word": "", "threads": threads, "placement": "compact", "cpus": list(range(threads)), "cores": threads,
                      "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
            given = {"cpus": [0, 1], "cores": 2, "cpu_quota": None, "memory_bytes": 1 << 38,
                     "memory_limited_by": None, "memory_nodes": None, "node_cores": 2}  # fmt: skip
            context = {"placed": placed, "allowed": given}
            records.append(
                make.record(
                    of, [make.measurement(of, "rate", 5e10 * factor * threads)], context=context
                )
            )
    found = said(Analysis(Results.read(make.write(tmp_path / "c", records))))
    assert (
        "CPU: measured on 1 of the node's 2 cores; its rows of more threads are in doubt." in found
    )


def test_memory_on_all_cores_speaks_before_one_thread_with_a_reference(tmp_path: Path) -> None:
    """Of as many threads as the best row has, one with a reference; and why rows of more threads do
    not speak is said.
    """

    def of(name: str, *rows: tuple[str, int, float, bool]) -> Analysis:
        records = []
        for workload, threads, value, beside in rows:
            for tool in ("rambench", "likwid-bench") if beside else ("rambench",):
                for number, factor in enumerate(QUIET):
                    cell = make.cell(tool, workload, subsystem="memory", variant="pool", block=1 << 20,
                                     concurrency=threads, repetition=number)  # fmt: skip
                    placed = {"word": "", "threads": threads, "placement": "compact", "cpus": list(range(threads)),
                              "cores": threads, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
                    given = {"cpus": [0, 1, 2, 3], "cores": 4, "cpu_quota": None, "memory_bytes": 1 << 38,
                             "memory_limited_by": None, "memory_nodes": None, "node_cores": 4}  # fmt: skip
                    context = {"placed": placed, "allowed": given}
                    values = [make.measurement(cell, "throughput", value * factor)]
                    records.append(make.record(cell, values, context=context))
        return Analysis(Results.read(make.write(tmp_path / name, records)))

    def speaks(judged: Analysis) -> tuple[str, str]:
        (memory,) = verdict.verdicts(judged.rows)
        return memory.what, memory.reference

    one = ("RWS", 1, 20e9, True)
    assert speaks(of("one", one, ("WR", 4, 45e9, False))) == ("WR of 1 MiB, 4 threads", "")
    beside = of(
        "beside",
        one,
        ("WR", 2, 45e9, False),
        ("RWS", 2, 38e9, True),
        ("WR", 4, 40e9, False),
        ("WS", 4, 30e9, False),
    )
    assert speaks(beside) == (
        "RWS of 1 MiB, 2 threads",
        "1.00 × likwid-bench (n = 3; 1.00 to 1.00)",
    )
    assert (
        "Memory: measured on 2 of the node's 4 cores; its rows of more threads are slower or without a limit or a reference."
    ) in said(beside)
    more = make.cell(
        "rambench", "RWS", subsystem="memory", variant="pool", block=1 << 20, concurrency=4
    )
    alone = of("alone", one)
    folder = make.write(
        tmp_path / "hole", [one.data for one in alone.results.records], planned=[more]
    )
    hole = said(Analysis(Results.read(folder)))
    assert (
        "Memory: measured on 1 of the node's 4 cores; its rows of more threads are not measured."
        in hole
    )
    assert (
        "Memory: measured on 1 of the node's 4 cores; concurrency: [cores] loads them all."
        in said(alone)
    )


def test_what_most_rows_share_is_said_once_and_marks_no_row(tmp_path: Path) -> None:
    """Threads that had half of their CPUs: in one row of eight a doubt about that row, in six a
    sentence about the campaign.
    """

    def of(waited: int) -> Analysis:
        records = []
        points = [
            (workload, threads) for workload in ("DP", "SP", "HP", "QP") for threads in (1, 2)
        ]
        for number, (workload, threads) in enumerate(points):
            for repetition in range(2):
                cell = make.cell(
                    "cpubench",
                    workload,
                    subsystem="cpu",
                    concurrency=threads,
                    repetition=repetition,
                )
                details = {"cpu_share": 0.5 if number < waited else 1.0}
                records.append(
                    make.record(cell, [make.measurement(cell, "rate", 5e10, details=details)])
                )
        return Analysis(Results.read(make.write(tmp_path / str(waited), records)))

    one, most = of(1), of(6)
    assert [row.level for row in one.rows["cpu"]].count(Severity.UNSURE) == 1
    assert not any("threads lost" in text for text in said(one))
    assert {row.level for row in most.rows["cpu"]} == {None}
    assert (
        sum(
            text.startswith("In 6 of 8 rows, threads lost up to 50.0% of their CPUs'")
            for text in said(most)
        )
        == 1
    )
    # What speaks for the CPU is not called without doubt, on the page and in the terminal.
    (cpu,) = verdict.verdicts(most.rows)
    assert (cpu.confidence, cpu.why[:34]) == (
        "no doubt of its own",
        "as most rows: threads lost up to 5",
    )
    (number,) = verdict.telling_numbers(most.rows)
    assert (
        number.confidence == "no doubt of its own" and "threads lost" in number.specific_warnings[0]
    )


def test_what_only_some_rows_can_show_is_counted_among_these(tmp_path: Path) -> None:
    """Clocks that move in most rows of the CPU are the machine's, however many rows of the network
    know none.
    """
    records = []
    for threads in (1, 2, 3, 4):
        for number, hz in enumerate((3.0e9, 3.0e9, 2.7e9)):
            cell = make.cell(
                "cpubench", "DP", subsystem="cpu", concurrency=threads, repetition=number
            )
            details = {"clock_hz_before": hz, "clock_hz_after": 2.7e9 if threads > 2 else hz}
            records.append(
                make.record(cell, [make.measurement(cell, "rate", 5e10, details=details)])
            )
    for block in range(1, 9):
        cell = make.cell("netbench", "TCP", subsystem="network", block=block << 10)
        records.append(make.record(cell, [make.measurement(cell, "throughput", 1e10)]))
    of = Analysis(Results.read(make.write(tmp_path / "c", records)))
    assert {row.level for row in of.rows["cpu"]} == {None}
    assert not any("clock" in note for row in of.rows["cpu"] for note in row.said(row.remarks))
    (told,) = (text for text in said(of) if "clock" in text)
    assert told.partition(": ")[0] == (
        "In 2 of 12 rows, the clock of one repetition was 11% above that of another; "
        "in 2, the clock fell by up to 10% during a run in 2 of 3 repetitions"
    )


def test_a_doubt_has_the_same_word_in_the_files(tmp_path: Path) -> None:
    judged(tmp_path / "c", WILD)
    tables.build(tmp_path / "c")
    written = (tmp_path / "c" / "tables" / "cpu.csv").read_text().splitlines()
    line = dict(zip(*csv.reader(written), strict=True))
    assert line["Doubt"] == "unsure"
    assert float(line["Level of the interval (%)"]) == 75.0, "so much do three repetitions enclose"


def test_of_a_latency_the_shortest_is_told(tmp_path: Path) -> None:
    records = []
    for threads, seconds in ((1, 2e-9), (2, 3e-9)):
        of = make.cell("rambench", "LAT", subsystem="memory", block=1 << 14, concurrency=threads)
        records.append(make.record(of, [make.measurement(of, "latency", seconds)]))
    (number,) = verdict.telling_numbers(
        Analysis(Results.read(make.write(tmp_path / "c", records))).rows
    )
    assert (number.label, number.value) == ("Memory LAT of 16 KiB, 1 thread", "2.000 ns")


@pytest.mark.parametrize(
    ("virtual", "flush", "kept"), [(True, 1e-4, True), (True, 0.1, False), (False, 1e-4, False)]
)
def test_a_disk_whose_host_keeps_its_writes_is_not_read_without_doubt(
    tmp_path: Path, virtual: bool, flush: float, kept: bool
) -> None:
    """What it read may have come from there, too: said once, and of the row that speaks for it on
    page one.
    """
    records = []
    for workload, rate in (("RS", 3e9), ("WS", 1e9)):
        for number, factor in enumerate(QUIET):
            of = make.cell(
                "diskbench",
                workload,
                subsystem="disk",
                variant="psync",
                block=1 << 20,
                repetition=number,
            )
            details = {
                "work": 8e8,
                "device_bytes": 8e8,
                **({"flush_seconds": flush} if workload == "WS" else {}),
            }
            records.append(
                make.record(
                    of, [make.measurement(of, "throughput", rate * factor, details=details)]
                )
            )
    facts = {"cpu": {"virtualised": "KVM" if virtual else None}}
    one = Analysis(Results.read(make.write(tmp_path / "c", records, facts=facts)))
    (disk,) = verdict.verdicts(one.rows)
    assert disk.what == "RS of 1 MiB, 1 thread"
    assert disk.confidence == ("no doubt of its own" if kept else "no doubt seen")
    assert disk.why.startswith("the disk's host may keep its data in memory") is kept
    read, written = one.rows["disk_throughput"]
    assert [read.level, written.level] == [None, Severity.UNSURE if kept else None]
    assert [note.code for note in read.warnings if note.severity is Severity.UNSURE] == (
        ["host-cache"] if kept else []
    )
    assert (
        sum(
            text.startswith("In 1 of 2 rows, the disk's host may keep its data")
            for text in said(one)
        )
        == kept
    )
