"""Published reports, fed with their own numbers: each conclusion of their authors that the numbers carry is stated, and of those
that they do not carry the contrary is said, or that nothing is told apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark.catalogue.tables import BY_NAME
from peakmark.config import published, site
from peakmark.judging import findings, rows
from peakmark.resources import ROOT
from peakmark.storage.results import Results

HYPERION, PROMETHEUS = "four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"
VARIANTS = {"memory_throughput": "pool", "memory_latency": "", "disk": "psync"}
AREAS = {"RWS": 16 << 10, "RWR": 256 << 20}

# (report, table, what its author concludes, words of what is found in its numbers): carried ones, and those that are not.
CARRIED = [
    (
        "disk-patterns-2020",
        "disk_throughput",
        "values increase with the record size",
        "1 MiB is faster than 64 KiB at all 28 points",
    ),
    ("disk-patterns-2020", "disk_throughput", "and go on to do so", "16 MiB is faster than 1 MiB at 20 of 28 points"),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "reading in sequence is above writing",
        "RS is faster than WS at all 21 points",
    ),
    ("disk-patterns-2020", "disk_throughput", "so at random", "RR is faster than WR at 19 of 21 points"),
    (
        "disk-patterns-2020",
        "disk_throughput",
        "IOZone is above its own program",
        "IOZone says more at 62 of 84 points",
    ),
    (
        "disk-patterns-2020",
        "disk_iops",
        "and in operations per second",
        "IOZone says more at all 14 points",
    ),
    ("file-io-lab", "disk_throughput", "reads are faster than writes", "RS is faster than WS at all 12 points"),
    (
        "file-io-lab",
        "disk_throughput",
        "its I/O reads faster than it writes over",
        "RR is faster than WR at all 12 points",
    ),
    (
        HYPERION,
        "network_throughput",
        "throughput increases with the packet",
        "32 KiB is faster than 1 KiB at all 8 points",
    ),
    (HYPERION, "network_throughput", "UDP loses data", "TCP is faster than UDP at all 8 points"),
    (
        HYPERION,
        "disk_throughput",
        "its disk program is far below IOZone",
        "IOZone says more at all 36 points",
    ),
    (PROMETHEUS, "network_throughput", "32 KB is better than 1 KB", "32 KiB is faster than 1 KiB at all 8 points"),
    (PROMETHEUS, "disk_iops", "WR has low values compared to RR in IOPS", "RR is faster than WR at all 8 points"),
    (PROMETHEUS, "disk_latency", "and high ones in milliseconds", "RR is shorter than WR at all 8 points"),
]
NEAR_THE_LIMIT = [
    ("disk-patterns-2020", "disk_throughput", "reads come close to the theoretical value", "97.6 % (RS of 1 MiB, 2 threads) of the limit"),
    ("disk-patterns-2020", "disk_throughput", "IOZone is near it in all patterns", "IOZone reaches 46.5 % (RR of 64 KiB, 1 thread) to 96.3 %"),
    (HYPERION, "cpu", "its CPU program is way below the theoretical value", "7.37 % (HP, 2 threads) of the limit, 3.09 % in the median of 12 rows; short of it at all 12 points (by chance 0.0005)"),
    (HYPERION, "cpu", "LINPACK is close to it", "HPL reaches 51.9 % (DP, 1 thread) to 99.8 % (DP, 2 threads) of the limit"),
    (HYPERION, "memory_throughput", "random copies are the most efficient", "to 83.1 % (RWR pool of 1 MiB, 4 threads) of the limit"),
    (HYPERION, "disk_latency", "latencies below the half turn of the disk", "16 rows are above the limit, which cannot be"),
    (PROMETHEUS, "cpu", "efficiency is highest in single precision with 4 threads", "to 14.6 % (SP, 4 threads) of the limit"),
    (PROMETHEUS, "network_throughput", "TCP is most efficient with 4 threads of 32 KB", "to 91.6 % (TCP of 32 KiB, 4 streams) of the limit"),
]  # fmt: skip
SITES = {
    "disk-patterns-2020": ("chameleon-skylake-ssd", "report-3"),
    HYPERION: ("hyperion", "report-1"),
    PROMETHEUS: ("hyperion", "report-2"),
}
NOT_CARRIED = [
    ("file-io-lab", "disk_throughput", "the smallest records are best", "1 MiB is faster than 64 KiB at 15 of 16 points"),
    ("file-io-lab", "disk_throughput", "eight processes are best", "8 threads are faster than 1 thread at 7 of 12 points (by chance 0.8)"),
    ("file-io-lab", "disk_iops", "one process is best, eight are worst", "All rows have n = 1: too few repetitions"),
    ("disk-patterns-2020", "disk_throughput", "random writes behave otherwise than sequential ones", "WR is faster than WS at 14 of 21 points (by chance 0.5)"),
    ("six-core-evaluation", "memory_throughput", "order decides over throughput", "RS is faster than RR at 6 of 6 points (by chance 0.03)"),
    (HYPERION, "cpu", "integers of 8 and 16 bits are the fastest", "All rows have n = 1: too few repetitions"),
    (HYPERION, "disk_iops", "reading at random is faster than writing", "RR is faster than WR at 6 of 8 points (by chance 0.3)"),
    (PROMETHEUS, "cpu", "all integer widths are equally fast", "All rows have n = 1: too few repetitions"),
    ("disk-patterns-2020", "disk_throughput", "it hardly varies with threads", "48 threads are faster than 1 thread at all 12 points"),
    ("file-io-lab", "disk_throughput", "one configuration is best and one worst", "All rows have n = 1: too few repetitions"),
    ("six-core-evaluation", "memory_throughput", "threads made all slower", "2 threads are faster than 1 thread at 6 of 9 points (by chance 0.5)"),
    (HYPERION, "memory_throughput", "random access is faster than sequential", "RWR is faster than RWS at 7 of 9 points (by chance 0.2)"),
    (HYPERION, "memory_throughput", "throughput grows with threads", "4 threads are faster than 1 thread at 5 of 6 points (by chance 0.2)"),
    (HYPERION, "disk_latency", "reading and writing differ", "RR is shorter than WR at 4 of 8 points (by chance 1)"),
    (PROMETHEUS, "memory_throughput", "random copies are better than sequential", "RWS is faster than RWR at 6 of 9 points (by chance 0.5)"),
    (PROMETHEUS, "disk_throughput", "reading at random is better", "RR is faster than RS at 7 of 9 points (by chance 0.2)"),
    (PROMETHEUS, "disk_throughput", "writing at random is better", "WR is faster than WS at 6 of 9 points (by chance 0.5)"),
    (PROMETHEUS, "network_throughput", "TCP is better than UDP", "UDP is faster than TCP at 6 of 8 points (by chance 0.3)"),
]  # fmt: skip


def fed(folder: Path, name: str, facts: bool = False) -> Results:
    """A campaign of a report's own numbers: every run that it prints, else its average as one; with ``facts`` beside its own
    theoretical values.
    """
    config = (
        {"site_facts": site.load(ROOT / "config/sites" / f"{SITES[name][0]}.yaml", SITES[name][1])} if facts else None
    )
    records: dict[str, tuple[Any, list[dict[str, Any]]]] = {}
    for (table_name, printed, size, threads, instrument), values in published.load(name).runs().items():
        table, workload, block = BY_NAME[table_name], printed, size
        if table_name == "network_latency":
            workload = f"LAT-{printed}"
        if table_name == "memory_latency":
            workload, block = "LAT", AREAS[printed]
        variant = VARIANTS.get(table_name, VARIANTS.get(table.subsystem, ""))
        for number, value in enumerate(values):
            of = make.cell(
                instrument, workload, subsystem=table.subsystem, variant=variant, block=block, concurrency=threads,
                repetition=number,
            )  # fmt: skip
            records.setdefault(of.id, (of, []))[1].append(make.measurement(of, table.metric, value))
    return Results.read(
        make.write(folder / name, [make.record(of, found) for of, found in records.values()], config=config)
    )


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """(report, table) -> what is found of it, a line each."""
    folder = tmp_path_factory.mktemp("results")
    return {
        (name, table): "\n".join(one.text for one in findings.of(found))
        for name in sorted({name for name, *_ in (*CARRIED, *NOT_CARRIED)})
        for table, found in rows.build(fed(folder, name)).items()
        if found
    }


@pytest.mark.parametrize(("report", "table", "claim", "words"), CARRIED)
def test_what_the_numbers_carry_is_said(
    said: dict[tuple[str, str], str], report: str, table: str, claim: str, words: str
) -> None:
    (line,) = (line for line in said[report, table].splitlines() if words in line)
    assert "by chance" in line, claim


@pytest.fixture(scope="module")
def of_limits(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """The same of shares of the theoretical values that the reports used."""
    folder = tmp_path_factory.mktemp("limits")
    return {
        (name, table): "\n".join(one.text for one in findings.of(found) if one.topic == "Limit")
        for name in SITES
        for table, found in rows.build(fed(folder, name, facts=True)).items()
        if found
    }


@pytest.mark.parametrize(("report", "table", "claim", "words"), NEAR_THE_LIMIT)
def test_how_close_each_program_comes_to_the_limit_is_said(
    of_limits: dict[tuple[str, str], str], report: str, table: str, claim: str, words: str
) -> None:
    assert words in of_limits[report, table], claim


@pytest.mark.parametrize(("report", "table", "claim", "words"), NOT_CARRIED)
def test_what_they_do_not_carry_is_contradicted_or_left_open(
    said: dict[tuple[str, str], str], report: str, table: str, claim: str, words: str
) -> None:
    assert words in said[report, table], claim
