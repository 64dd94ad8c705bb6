"""Published reports, fed with their own numbers: the conclusions of their authors are found, corrected
where the numbers say otherwise, and none is inverted.

What an author says of a graph whose numbers the report does not print can be held against nothing.
"""

import random
import statistics
from functools import cache

import pytest
from tests.unit import campaign_data as make
from tests.unit import published
from tests.unit.campaign_data import planned

from peakmark.rows import build
from peakmark.storage.results import Results

HYPERION, PROMETHEUS = "four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"
DISK, LAB, SIX = "disk-patterns-2020", "file-io-lab", "six-core-evaluation"
BEST = "Best and worst"

# (report, table, what its author concludes, better, worse, points that it holds for at least)
CONCLUSIONS = [
    (DISK, "disk_throughput", "values increase with the record size", "1 MiB", "64 KiB", 21),
    (DISK, "disk_throughput", "and go on to do so, in writing", "16 MiB", "1 MiB", 7),
    (DISK, "disk_throughput", "reading in sequence is above writing", "RS", "WS", 14),
    (DISK, "disk_throughput", "so at random", "RR", "WR", 14),
    (DISK, "disk_iops", "its program is below IOZone in operations", "IOZone", "MyDiskBench", 7),
    (DISK, "disk_throughput", "it hardly varies with threads: it does", "48 threads", "1 thread", 3),
    (DISK, "disk_iops", "operations grow with threads", "48 threads", "1 thread", 2),
    (LAB, "disk_throughput", "reads are faster than writes", "RS", "WS", 12),
    (LAB, "disk_throughput", "so at random", "RR", "WR", 12),
    (LAB, "disk_throughput", "sequential reads are best, but not of 16 MB", "RS", "RR", 8),
    (LAB, "disk_throughput", "of which random ones are", "RR", "RS", 4),
    (LAB, "disk_throughput", "one configuration is best", "16 MiB, 8 threads", "64 KiB, 8 threads", 2),
    (LAB, "disk_throughput", "one process writes best", "16 MiB, 1 thread", "64 KiB, 8 threads", 2),
    (LAB, "disk_iops", "its program is below IOZone", "IOZone", "MyDiskBench", 4),
    (HYPERION, "cpu", "integers of 16 bits are faster", "HP", "SP", 3),
    (HYPERION, "cpu", "several threads are faster than one", "4 threads", "1 thread", 4),
    (HYPERION, "cpu", "its program is way below LINPACK", "HPL", "MyCPUBench", 3),
    (HYPERION, "memory_throughput", "random access is faster", "RWR", "RWS", 6),
    (HYPERION, "memory_throughput", "copies grow with threads", "4 threads", "1 thread", 3),
    (HYPERION, "memory_throughput", "and with the block", "1 MiB", "1 KiB", 6),
    (HYPERION, "memory_latency", "latency grows with threads", "1 thread", "4 threads", 2),
    (HYPERION, "memory_latency", "random latency is far above sequential", "16 KiB", "256 MiB", 3),
    (HYPERION, "disk_throughput", "its disk program is far below IOZone", "IOZone", "MyDiskBench", 36),
    (HYPERION, "disk_throughput", "threads help", "4 threads", "1 thread", 12),
    (HYPERION, "disk_iops", "IOPS of reads fall with threads", "1 thread", "128 threads", 1),
    (HYPERION, "disk_iops", "IOPS of writes rise", "128 threads", "1 thread", 1),
    (HYPERION, "disk_latency", "latency falls with threads", "128 threads", "1 thread", 2),
    (HYPERION, "network_throughput", "throughput increases with the packet", "32 KiB", "1 KiB", 8),
    (HYPERION, "network_throughput", "UDP loses data", "TCP", "UDP", 8),
    (HYPERION, "network_throughput", "more streams do not help", "1 stream", "8 streams", 4),
    (HYPERION, "network_throughput", "the best is TCP with two", "32 KiB, 2 streams", "1 KiB, 8 streams", 2),
    (PROMETHEUS, "cpu", "double precision is slower", "SP", "DP", 3),
    (PROMETHEUS, "cpu", "its program is below LINPACK", "HPL", "MyCPUBench", 3),
    (PROMETHEUS, "memory_throughput", "sequential copies of small blocks", "RWS", "RWR", 6),
    (PROMETHEUS, "memory_throughput", "random copies of 10 MB are better", "RWR", "RWS", 3),
    (PROMETHEUS, "memory_throughput", "four threads are faster than one", "4 threads", "1 thread", 6),
    (PROMETHEUS, "memory_latency", "sequential access is sooner", "16 KiB", "256 MiB", 3),
    (PROMETHEUS, "disk_throughput", "reading at random is better", "RR", "RS", 3),
    (PROMETHEUS, "disk_throughput", "writing at random is: of 100 MB", "WR", "WS", 3),
    (PROMETHEUS, "disk_throughput", "random reading gains from threads", "4 threads", "1 thread", 3),
    (PROMETHEUS, "disk_throughput", "sequential reading: two threads", "1 MiB, 2 threads", "100 MiB, 1 thread", 2),
    (PROMETHEUS, "disk_throughput", "random reading: four", "1 MiB, 4 threads", "100 MiB, 1 thread", 2),
    (PROMETHEUS, "disk_throughput", "10 MB is best to write", "10 MiB, 1 thread", "1 MiB, 2 threads", 2),
    (PROMETHEUS, "disk_iops", "WR is low beside RR in IOPS", "RR", "WR", 8),
    (PROMETHEUS, "network_throughput", "32 KB is better than 1 KB", "32 KiB", "1 KiB", 4),
    (PROMETHEUS, "network_throughput", "UDP gains from threads", "8 streams", "1 stream", 4),
    (PROMETHEUS, "network_throughput", "TCP is best with 4", "32 KiB, 4 streams", "1 KiB, 1 stream", 2),
    (PROMETHEUS, "network_latency", "round trips of TCP shorten", "8 streams", "1 stream", 1),
    (SIX, "memory_throughput", "order decides over throughput", "RS", "RR", 6),
    (SIX, "memory_throughput", "threads help in sequence", "2 threads", "1 thread", 5),
    (SIX, "memory_throughput", "and made random access slower", "1 thread", "2 threads", 3),
    (SIX, "memory_throughput", "larger blocks made copies fast", "1 KiB", "1 B", 2),
]  # fmt: skip


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """What is found in a report's own numbers, as its preset would measure them.

    Each row has every run that the report prints, else its average as one. With ``six`` it has six
    repetitions that spread by 1 % around the report's median.
    """

    @cache
    def of_report(name, six):
        lot = random.Random(1)  # noqa: S311

        def values_of(values):
            if not six:
                return values
            middle = statistics.median(values)
            return [middle * lot.lognormvariate(0, 0.01) for _ in range(6)]

        records = published.records(name, values_of, definitions=False)
        folder = tmp_path_factory.mktemp("reports") / name
        make.write(folder, records, config=planned(name).to_json()["config"])
        return build.judge(Results.read(folder)).findings

    return of_report


def found(findings, table, better, worse):
    of_table = findings[findings["table"].eq(table)]
    return of_table[of_table["better"].eq(better) & of_table["worse"].eq(worse)]


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize(("report", "table", "claim", "better", "worse", "points"), CONCLUSIONS)
def test_what_the_numbers_carry_is_found(
    findings, report, table, claim, better, worse, points, six
):
    lines = found(findings(report, six), table, better, worse)
    counts = [
        text.count(",") + 1 for text in lines["points"].str.replace(r'"[^"]*"', "x", regex=True)
    ]
    assert max(counts, default=0) >= points, claim
    comparisons = lines[lines["topic"].ne(BEST)]
    assert comparisons["factor_low"].gt(1.05).all()


@pytest.mark.parametrize("report", [DISK, LAB, HYPERION, PROMETHEUS, SIX])
def test_a_conclusion_and_its_reverse_share_no_point(findings, report):
    lines = findings(report, True)
    compared = lines[lines["certainty"].ne("") & lines["certainty"].ne("level")]
    for line in compared.itertuples():
        reverse = found(
            compared[compared["topic"].eq(line.topic)], line.table, line.worse, line.better
        )
        for other in reverse["points"]:
            assert not set(line.points[1:-1].split(", ")) & set(other[1:-1].split(", "))
