"""Page one: sentences that an expert would not take back."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests import presets
from tests.unit import campaign_data as make

from peakmark.figures import figures
from peakmark.judging import caveats, findings, verdict
from peakmark.judging.judged import Judged
from peakmark.judging.notes import Level
from peakmark.resources import ROOT
from peakmark.storage.results import Results
from peakmark.tables import tables

QUIET = (1.0, 1.002, 0.998)
WILD = (1.0, 1.5, 0.5)


def judged(folder: Path, wobble: Sequence[float], loopback: bool = True, limit: float = 2e10) -> Judged:
    """A CPU row and a network row of three repetitions each; the network's limit is stated where it is no loopback."""
    records = []
    for number, factor in enumerate(wobble):
        of = make.cell("cpubench", "DP", subsystem="cpu", repetition=number)
        records.append(make.record(of, [make.measurement(of, "rate", 5e10 * factor)]))
        of = make.cell("netbench", "TCP", subsystem="network", block=1024, repetition=number)
        context = {"network": {"interface": "lo" if loopback else "eth1", "loopback": loopback}}
        records.append(make.record(of, [make.measurement(of, "throughput", 1e10 * factor)], context=context))
    site = {} if loopback else {"site_facts": {"network": {"speed_bps": limit, "mtu": 1500}}}
    return Judged(Results.read(make.write(folder, records, config=site)))


def said(of: Judged) -> list[str]:
    return caveats.build(of.rows, verdict.verdicts(of.rows), of.results.config)


def test_where_nothing_is_sure_that_is_said_first(tmp_path: Path) -> None:
    first = said(judged(tmp_path / "wild", WILD))[0]
    assert first.startswith("None of the 2 figures above is sure: another run may well give others.")
    assert not any("figures above is sure" in text for text in said(judged(tmp_path / "quiet", QUIET)))


def test_a_figure_over_loopback_says_so_in_its_row_and_asks_for_no_limit(tmp_path: Path) -> None:
    of = judged(tmp_path / "a", QUIET)
    (network,) = (one for one in verdict.verdicts(of.rows) if one.subsystem == "network")
    assert network.what == "TCP of 1 KiB, 1 stream, over loopback"
    assert network.limit == "none: no link"
    assert any(text.startswith("The network was measured within one machine, over loopback") for text in said(of))
    assert not any("network" in text and "site file" in text for text in said(of))
    (real,) = (one for one in verdict.verdicts(judged(tmp_path / "b", QUIET, False).rows) if one.subsystem == "network")
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
def test_a_share_of_instructions_that_were_asked_for_is_not_the_nodes(tmp_path: Path, isa: str, told: bool) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu", isa=isa)
    site = {"cpu": {"cores": 2, "sockets": 1, "operations_per_cycle": {"DP": 32}}}
    clocks = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    records = [make.record(of, [make.measurement(of, "rate", 3e9, details=clocks)])]
    found = Judged(Results.read(make.write(tmp_path / "c", records, config={"site_facts": site})))
    assert verdict.verdicts(found.rows)[0].share
    assert any(text.startswith("CPU: plain arithmetic as asked, beside the limit") for text in said(found)) is told


def test_a_part_of_the_node_does_not_speak_for_it(tmp_path: Path) -> None:
    def told(cores: int) -> list[str]:
        of = make.cell("cpubench", "DP", subsystem="cpu", concurrency=cores)
        placed = {"word": "", "threads": cores, "placement": "compact", "cpus": list(range(cores)), "cores": cores, "sockets": 1,
                  "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
        given = {"cpus": list(range(128)), "cores": 128, "cpu_quota": None, "memory_bytes": 1 << 38,
                 "memory_limited_by": None, "memory_nodes": None, "node_cores": 128}  # fmt: skip
        record = make.record(of, [make.measurement(of, "rate", 5e10)], context={"placed": placed, "allowed": given})
        return said(Judged(Results.read(make.write(tmp_path / str(cores), [record]))))

    assert any(text.startswith("CPU: measured on 4 of the node's 128 cores") for text in told(4))
    assert not any("share of the limit" in text for text in told(4)), "there is none"
    assert not any("128 cores" in text for text in told(128))


def test_a_missing_memory_module_is_told(tmp_path: Path) -> None:
    of = make.cell("rambench", "RS", subsystem="memory", variant="pool", block=1 << 20)
    vm = json.loads((make.DATA / "machine" / "zen3-vm.json").read_text())
    cpu = vm["cpu"] | {"model_name": "AMD EPYC 7763 64-Core Processor", "sockets": 1, "virtualised": None}
    facts = vm | {"host": "node1", "cpu": cpu, "memory": vm["memory"] | {"channels": 7, "speed_mts": 3200}}
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "throughput", 1e10)])], facts=facts)
    told = said(Judged(Results.read(folder)))
    assert sum(text.startswith("7 of 8 memory channels populated (1 socket with 8 each") for text in told) == 1


def test_a_scaled_campaign_says_that_its_figures_are_short(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    records = [make.record(of, [make.measurement(of, "rate", 5e10)])]
    for scale, told in ((0.1, True), (1, False), (2, False)):
        found = said(Judged(Results.read(make.write(tmp_path / str(scale), records, config={"scale": scale}))))
        assert any(text.startswith("Times, amounts of work and files are 0.1 times") for text in found) is told


def test_the_best_row_without_doubt_speaks_and_else_none_that_is_wrong(tmp_path: Path) -> None:
    """Of two workloads the faster one is cached: it is wrong, whatever the slower one is."""

    def of(record: int, moved: float, wobble: Sequence[float]) -> list[dict[str, Any]]:
        found = []
        for number, factor in enumerate(wobble):
            cell = make.cell("diskbench", "RS", subsystem="disk", variant="psync", block=record, repetition=number)
            details = {"device_bytes": 1e9 * moved, "work": 1e9, "filesystem": "ext4"}
            value = 1e9 * factor * record / 65536
            found.append(make.record(cell, [make.measurement(cell, "throughput", value, details=details)]))
        return found

    def head(name: str, *records: list[dict[str, Any]]) -> verdict.Verdict:
        folder = make.write(tmp_path / name, [one for some in records for one in some])
        return next(one for one in verdict.verdicts(Judged(Results.read(folder)).rows) if one.subsystem == "disk")

    fast_cached, slow_sure, slow_wild = of(1 << 20, 0.1, QUIET), of(1 << 16, 1.0, QUIET), of(1 << 16, 1.0, WILD)
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
    told = said(Judged(Results.read(tmp_path / "c")))
    assert "Disk: no row that can be trusted: the device moved only 10% of the bytes." in told


def test_a_cache_does_not_stand_for_the_memory(tmp_path: Path) -> None:
    records = []
    for variant, value in (("block", 9e11), ("pool", 2e10)):
        of = make.cell("rambench", "RS", subsystem="memory", variant=variant, block=1 << 20)
        records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    heads = verdict.verdicts(Judged(Results.read(make.write(tmp_path / "c", records))).rows)
    assert [one.what for one in heads if one.subsystem == "memory"] == ["RS of 1 MiB, 1 thread"]
    assert [one.measured for one in heads if one.subsystem == "memory"] == ["20.00 GB/s"]


def test_neither_a_tiny_matrix_nor_an_estimate_is_a_reference(tmp_path: Path) -> None:
    def reference(name: str, tool: str, details: dict[str, Any], subsystem: str = "cpu") -> str:
        own, workload, metric, variant, block = {
            "cpu": ("cpubench", "DP", "rate", "", None), "memory": ("rambench", "RS", "throughput", "pool", 1 << 20),
        }[subsystem]  # fmt: skip
        records = []
        for instrument, more in ((own, {}), (tool, details)):
            of = make.cell(instrument, workload, subsystem=subsystem, variant=variant, block=block)
            records.append(make.record(of, [make.measurement(of, metric, 5e10, details=more)]))
        heads = verdict.verdicts(Judged(Results.read(make.write(tmp_path / name, records))).rows)
        return next(one.reference for one in heads if one.subsystem == subsystem)

    assert reference("tiny", "hpl", {"seconds": 0.08}) == ""
    assert reference("whole", "hpl", {"seconds": 20.0}) == "1.00 × HPL (n = 1)"
    assert reference("guess", "pmbw", {"estimate": True}, "memory") == ""
    assert reference("real", "pmbw", {}, "memory") == "1.00 × pmbw (n = 1)"


def test_a_tiny_matrix_and_an_estimate_contradict_nobody(tmp_path: Path) -> None:
    def disagreement(
        name: str, instrument: str, tool: str, workload: str, details: dict[str, Any], **place: Any
    ) -> bool:
        records = []
        for program, value, more in ((instrument, 5e10, {}), (tool, 2e10, details)):
            of = make.cell(program, workload, **place)
            metric = "rate" if place["subsystem"] == "cpu" else "throughput"
            records.append(make.record(of, [make.measurement(of, metric, value, details=more)]))
        rows = Judged(Results.read(make.write(tmp_path / name, records))).rows
        (row,) = (row for table in rows.values() for row in table)
        found = {one.topic for one in findings.of([row])}
        assert ("Disagreement" in found) == any(note.code == "disagreement" for note in row.marks)
        return "Disagreement" in found

    assert not disagreement("tiny", "cpubench", "hpl", "DP", {"seconds": 0.08}, subsystem="cpu")
    assert disagreement("whole", "cpubench", "hpl", "DP", {"seconds": 20.0}, subsystem="cpu")
    memory = {"subsystem": "memory", "variant": "block", "block": 1 << 20}
    assert not disagreement("guess", "rambench", "pmbw", "RS", {"estimate": True}, **memory)
    assert disagreement("real", "rambench", "pmbw", "RS", {}, **memory)


def test_the_numbers_of_a_sentence_agree_with_what_it_says(tmp_path: Path) -> None:
    def told(name: str, *factors: float) -> list[str]:
        """A disk's rows of three repetitions, wild where the factor is above one; a negative one is cached."""
        records = []
        for row, factor in enumerate(factors):
            for number in range(3):
                cell = make.cell(
                    "diskbench", "RS", subsystem="disk", variant="psync", block=4096 << row, repetition=number
                )
                details = {"device_bytes": 1e9 * (factor > 0), "work": 1e9, "filesystem": "ext4"}
                value = 1e9 * abs(factor) ** number
                records.append(make.record(cell, [make.measurement(cell, "throughput", value, details=details)]))
        return said(Judged(Results.read(make.write(tmp_path / name, records))))

    assert "Of 2 measured rows 1 is unsure: another run of an unsure one may well differ; the notes say why." in told(
        "one", 1.0, 1.5
    )
    found = told("both", 1.5, 1.5, -1.0)
    assert any(
        text.startswith("Of 3 measured rows 1 is wrong and 2 are unsure: a wrong row speaks for nothing; another run")
        for text in found
    )
    assert any(text.startswith("In all 4 rows, n = 3: ") for text in told("four", 1.0, 1.0, 1.0, 1.0))


def test_more_threads_are_not_advised_where_they_were_measured(tmp_path: Path) -> None:
    records = []
    for threads, wobble in ((1, QUIET), (2, WILD)):
        for number, factor in enumerate(wobble):
            of = make.cell("cpubench", "DP", subsystem="cpu", concurrency=threads, repetition=number)
            placed = {"word": "", "threads": threads, "placement": "compact", "cpus": list(range(threads)), "cores": threads,
                      "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}  # fmt: skip
            given = {"cpus": [0, 1], "cores": 2, "cpu_quota": None, "memory_bytes": 1 << 38,
                     "memory_limited_by": None, "memory_nodes": None, "node_cores": 2}  # fmt: skip
            context = {"placed": placed, "allowed": given}
            records.append(make.record(of, [make.measurement(of, "rate", 5e10 * factor * threads)], context=context))
    found = said(Judged(Results.read(make.write(tmp_path / "c", records))))
    assert "CPU: measured on 1 of the node's 2 cores; its rows of more threads are in doubt." in found


def test_memory_on_all_cores_speaks_before_one_thread_with_a_reference(tmp_path: Path) -> None:
    """Of as many threads as the best row has, one with a reference; and why rows of more threads do not speak is said."""

    def of(name: str, *rows: tuple[str, int, float, bool]) -> Judged:
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
        return Judged(Results.read(make.write(tmp_path / name, records)))

    def speaks(judged: Judged) -> tuple[str, str]:
        (memory,) = verdict.verdicts(judged.rows)
        return memory.what, memory.reference

    one = ("RWS", 1, 20e9, True)
    assert speaks(of("one", one, ("WR", 4, 45e9, False))) == ("WR of 1 MiB, 4 threads", "")
    beside = of(
        "beside", one, ("WR", 2, 45e9, False), ("RWS", 2, 38e9, True), ("WR", 4, 40e9, False), ("WS", 4, 30e9, False)
    )
    assert speaks(beside) == ("RWS of 1 MiB, 2 threads", "1.00 × likwid-bench (n = 3; 1.00 to 1.00)")
    assert (
        "Memory: measured on 2 of the node's 4 cores; its rows of more threads are slower or without a limit or a reference."
    ) in said(beside)
    more = make.cell("rambench", "RWS", subsystem="memory", variant="pool", block=1 << 20, concurrency=4)
    alone = of("alone", one)
    folder = make.write(tmp_path / "hole", [one.data for one in alone.results.records], planned=[more])
    hole = said(Judged(Results.read(folder)))
    assert "Memory: measured on 1 of the node's 4 cores; its rows of more threads are not measured." in hole
    assert "Memory: measured on 1 of the node's 4 cores; concurrency: [cores] loads them all." in said(alone)


def test_what_most_rows_share_is_said_once_and_marks_no_row(tmp_path: Path) -> None:
    """Threads that had half of their CPUs: in one row of eight a doubt about that row, in six a sentence about the campaign."""

    def of(waited: int) -> Judged:
        records = []
        points = [(workload, threads) for workload in ("DP", "SP", "HP", "QP") for threads in (1, 2)]
        for number, (workload, threads) in enumerate(points):
            for repetition in range(2):
                cell = make.cell("cpubench", workload, subsystem="cpu", concurrency=threads, repetition=repetition)
                details = {"cpu_share": 0.5 if number < waited else 1.0}
                records.append(make.record(cell, [make.measurement(cell, "rate", 5e10, details=details)]))
        return Judged(Results.read(make.write(tmp_path / str(waited), records)))

    one, most = of(1), of(6)
    assert [row.level for row in one.rows["cpu"]].count(Level.UNSURE) == 1
    assert not any("threads lost" in text for text in said(one))
    assert {row.level for row in most.rows["cpu"]} == {None}
    assert sum(text.startswith("In 6 of 8 rows, threads lost up to 50.0% of their CPUs'") for text in said(most)) == 1
    # What speaks for the CPU is not called without doubt, on the page and in the terminal.
    (cpu,) = verdict.verdicts(most.rows)
    assert (cpu.confidence, cpu.why[:34]) == ("no doubt of its own", "as most rows: threads lost up to 5")
    (number,) = verdict.telling_numbers(most.rows)
    assert number.confidence == "no doubt of its own" and "threads lost" in number.doubts[0]


def test_what_only_some_rows_can_show_is_counted_among_these(tmp_path: Path) -> None:
    """Clocks that move in most rows of the CPU are the machine's, however many rows of the network know none."""
    records = []
    for threads in (1, 2, 3, 4):
        for number, hz in enumerate((3.0e9, 3.0e9, 2.7e9)):
            cell = make.cell("cpubench", "DP", subsystem="cpu", concurrency=threads, repetition=number)
            details = {"clock_hz_before": hz, "clock_hz_after": 2.7e9 if threads > 2 else hz}
            records.append(make.record(cell, [make.measurement(cell, "rate", 5e10, details=details)]))
    for block in range(1, 9):
        cell = make.cell("netbench", "TCP", subsystem="network", block=block << 10)
        records.append(make.record(cell, [make.measurement(cell, "throughput", 1e10)]))
    of = Judged(Results.read(make.write(tmp_path / "c", records)))
    assert {row.level for row in of.rows["cpu"]} == {None}
    assert not any("clock" in note for row in of.rows["cpu"] for note in row.said(row.remarks))
    (told,) = (text for text in said(of) if "clock" in text)
    assert told.partition(": ")[0] == (
        "In 2 of 12 rows, the clock of one repetition was 11% above that of another; "
        "in 2, the clock fell by up to 10% during a run in 2 of 3 repetitions"
    )


def test_a_ratio_names_buffers_that_only_one_had_in_huge_pages(tmp_path: Path) -> None:
    records = []
    for tool, details in (("diskbench", {"huge_pages": True}), ("fio", {})):
        of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9, details=details)]))
    heads = verdict.verdicts(Judged(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == "1.00 × fio (n = 1; only MyDiskBench's buffers are in huge pages)"
    assert (disk.confidence, disk.why) == ("one run", "measured once: nothing is known of the spread")


def test_a_ratio_of_two_times_says_so(tmp_path: Path) -> None:
    """Repetitions of which no round has both: the machine may have been another."""
    records = []
    for tool, number in (("diskbench", 1), ("diskbench", 2), ("fio", 0)):
        of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9)]))
    heads = verdict.verdicts(Judged(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == "1.00 × fio (n = 1; measured at another time)"


@pytest.mark.parametrize(
    ("huge", "factor", "level"),
    [(True, 1.4, None), (True, 1.8, Level.NOTE), (True, 2.5, Level.UNSURE), (False, 1.8, Level.UNSURE)],
)
def test_a_known_difference_explains_a_factor_of_two(
    tmp_path: Path, huge: bool, factor: float, level: Level | None
) -> None:
    records = []
    for tool, value, details in (("diskbench", factor, {"huge_pages": huge}), ("fio", 1.0, {})):
        of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20)
        records.append(make.record(of, [make.measurement(of, "throughput", 1e9 * value, details=details)]))
    (row,) = Judged(Results.read(make.write(tmp_path / "c", records))).rows["disk_throughput"]
    assert [note.level for note in row.marks if note.code == "disagreement"] == ([level] if level else [])


def test_a_doubt_has_the_same_word_in_the_files(tmp_path: Path) -> None:
    judged(tmp_path / "c", WILD)
    tables.build(tmp_path / "c")
    written = (tmp_path / "c" / "tables" / "cpu.csv").read_text().splitlines()
    line = dict(zip(*csv.reader(written), strict=True))
    assert line["Doubt"] == "unsure"
    assert float(line[tables.INTERVAL[2]]) == 75.0, "so much do three repetitions enclose"


@pytest.mark.parametrize("name", ["config.yaml", *(f"presets/{name}.yaml" for name in presets.NAMES)])
def test_what_ships_repeats_references_as_often_as_the_own_kernels(name: str) -> None:
    shipped = yaml.safe_load((ROOT / "config" / name).read_text())
    assert shipped["reference_repetitions"] == shipped["repetitions"]


def test_a_ratio_says_of_how_many_rounds_it_is_and_how_far_they_differ(tmp_path: Path) -> None:
    records = []
    for number, (ours, theirs) in enumerate(((1.0e9, 1.0e9), (1.2e9, 1.0e9), (1.1e9, 1.0e9))):
        for tool, value in (("diskbench", ours), ("fio", theirs)):
            of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number)
            records.append(make.record(of, [make.measurement(of, "throughput", value)]))
    heads = verdict.verdicts(Judged(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == "1.10 × fio (n = 3; 1.00 to 1.20)"


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ((1.0, 0.5, 0.8), (1.0, 0.55, 0.4), "1.00 × fio (n = 3; 0.909 to 2.00)"),
        ((0.9, 0.51, 0.8), (1.0, 0.5, 0.79), "1.01 × fio (n = 3; 0.900 to 1.02)"),
        ((1.0, 0.51, 0.61), (1.2, 0.5, 0.6), "1.02 × fio (n = 3; 0.833 to 1.02)"),
        (
            (1.0, 0.9, 0.61),
            (0.99, 0.95, 0.6),
            "1.01 × fio (n = 3; 0.947 to 1.02; 0.947 by the figures of its table, so neither is shown to be ahead)",
        ),
        ((1.0, 1.0, 0.5), (1.0,), "1.00 × fio (n = 1)"),
        (
            (1.0, 0.6, 0.5),
            (0.9,),
            "1.11 × fio (n = 1; 0.667 by the figures of its table, which are of other rounds too)",
        ),
    ],
)
def test_a_ratio_of_rounds_does_not_hide_that_its_figures_say_otherwise(
    tmp_path: Path, ours: Sequence[float], theirs: Sequence[float], text: str
) -> None:
    records = []
    for tool, values in (("diskbench", ours), ("fio", theirs)):
        for number, value in enumerate(values):
            of = make.cell(tool, "RS", subsystem="disk", variant="psync", block=1 << 20, repetition=number)
            records.append(make.record(of, [make.measurement(of, "throughput", 1e9 * value)]))
    heads = verdict.verdicts(Judged(Results.read(make.write(tmp_path / "c", records))).rows)
    (disk,) = (one for one in heads if one.subsystem == "disk")
    assert disk.reference == text


def test_of_a_latency_the_shortest_is_told(tmp_path: Path) -> None:
    records = []
    for threads, seconds in ((1, 2e-9), (2, 3e-9)):
        of = make.cell("rambench", "LAT", subsystem="memory", block=1 << 14, concurrency=threads)
        records.append(make.record(of, [make.measurement(of, "latency", seconds)]))
    (number,) = verdict.telling_numbers(Judged(Results.read(make.write(tmp_path / "c", records))).rows)
    assert (number.label, number.value) == ("Memory LAT of 16 KiB, 1 thread", "2.000 ns")


@pytest.mark.parametrize(("virtual", "flush", "kept"), [(True, 1e-4, True), (True, 0.1, False), (False, 1e-4, False)])
def test_a_disk_whose_host_keeps_its_writes_is_not_read_without_doubt(
    tmp_path: Path, virtual: bool, flush: float, kept: bool
) -> None:
    """What it read may have come from there, too: said once, and of the row that speaks for it on page one."""
    records = []
    for workload, rate in (("RS", 3e9), ("WS", 1e9)):
        for number, factor in enumerate(QUIET):
            of = make.cell("diskbench", workload, subsystem="disk", variant="psync", block=1 << 20, repetition=number)
            details = {"work": 8e8, "device_bytes": 8e8, **({"flush_seconds": flush} if workload == "WS" else {})}
            records.append(make.record(of, [make.measurement(of, "throughput", rate * factor, details=details)]))
    facts = {"cpu": {"virtualised": virtual}}
    one = Judged(Results.read(make.write(tmp_path / "c", records, facts=facts)))
    (disk,) = verdict.verdicts(one.rows)
    assert disk.what == "RS of 1 MiB, 1 thread"
    assert disk.confidence == ("no doubt of its own" if kept else "no doubt seen")
    assert disk.why.startswith("the disk's host may keep its data in memory") is kept
    read, written = one.rows["disk_throughput"]
    assert [read.level, written.level] == [None, Level.UNSURE if kept else None]
    assert [note.code for note in read.marks if note.level is Level.UNSURE] == (["host-cache"] if kept else [])
    assert sum(text.startswith("In 1 of 2 rows, the disk's host may keep its data") for text in said(one)) == kept
