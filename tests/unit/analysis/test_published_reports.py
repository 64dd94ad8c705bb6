"""Published reports, fed with their own numbers: in the report that comes of each the conclusions of
its authors are stated, corrected where the numbers say otherwise.

What an author says of a graph whose numbers the report does not print (CPU, disk and network of
``six-core-evaluation``) can be held against nothing.
"""

import random
import re
import statistics
from functools import cache

import pytest
from tests.unit import campaign_data as make
from tests.unit import published
from tests.unit.presets import planned

from peakmark.cell import Cell
from peakmark.report import document
from peakmark.tools.tables import BY_NAME

HYPERION, PROMETHEUS = "four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"
DISK, LAB, SIX = "disk-patterns-2020", "file-io-lab", "six-core-evaluation"
VARIANTS = {"memory_throughput": "pool", "memory_latency": "", "disk": "psync"}
AREAS = {"RWS": 16 << 10, "RWR": 256 << 20}

# (report, chapter, what its author concludes, what the findings of the numbers say of it)
CONCLUSIONS = [
    (DISK, "disk", "values increase with the record size", "1MB is 14 to .* faster than 64KB at all 7"),
    (DISK, "disk", "and go on to do so", "16MB is .* faster than 1MB at all 7"),
    (DISK, "disk", "reading in sequence is above writing", "RS is .* faster than WS at all 21"),
    (DISK, "disk", "so at random", "RR is .* faster than WR at 19 of 21"),
    (DISK, "disk", "but with the largest records of many threads", "not at RR of 16MB, 24 threads or RR of 16MB, 48"),
    (DISK, "disk", "IOZone is above its own program", "MyDiskBench is .* slower than IOZone at 20 of 21"),
    (DISK, "disk", "and in operations per second", "MyDiskBench is .* slower than IOZone at all 7"),
    (DISK, "disk", "random reads are closer to IOZone than writes", "MyDiskBench is .* faster (than IOZone )?at .* at 1MB"),
    (DISK, "disk", "it hardly varies with threads: it does", "48 threads are .* faster than 1 thread at all 3"),
    (DISK, "disk", "operations grow with threads", "Gains up to 48 threads, the most measured"),
    (LAB, "disk", "reads are faster than writes", "RS is .* faster than WS at all 12"),
    (LAB, "disk", "its I/O reads faster than it writes over", "RR is .* faster than WR at all 12"),
    (LAB, "disk", "the smallest records are best: in sequence with one thread only", "1MB is .* faster than 64KB with 2, 4 and 8 threads; 64KB is"),
    (LAB, "disk", "sequential reads are best, but not of 16 MB", "RS is .* faster than RR at 64KB and 1MB; RR is .* faster at 16MB"),
    (LAB, "disk", "eight processes are best: at 16 MB", "1 thread is .* faster than 8 threads at 64KB and 1MB; 8 threads are .* faster at 16MB"),
    (LAB, "disk", "one configuration is best and one worst", r"RR: 12\d.* MB/s \(64KB, 8 threads\) to 22\d\d MB/s \(16MB, 8 threads\)|RR: 12"),
    (LAB, "disk", "one process is best in sequential writing", "[Ww]orse from 2 threads on.*WS of 64KB, WS of 16MB"),
    (LAB, "disk", "IOZone is above it", "FileIO is .* slower than IOZone at all 12"),
    (HYPERION, "cpu", "integers of 8 and 16 bits are the fastest", "HP is .* faster than SP at all 3"),
    (HYPERION, "cpu", "several threads are faster than one", "4 threads are .* faster than 1 thread at all 4"),
    (HYPERION, "cpu", "its program is way below LINPACK", "MyCPUBench is .* slower than HPL at all 3"),
    (HYPERION, "memory", "random access is faster than sequential", "RWR is .* faster than RWS at"),
    (HYPERION, "memory", "throughput grows with threads", "4 threads are .* faster than 1 thread at"),
    (HYPERION, "memory", "and with the block", "1MB is .* faster than 1KB at all 6"),
    (HYPERION, "memory", "latency grows with threads", "1 thread is .* faster than 4 threads at both"),
    (HYPERION, "memory", "random latency is far above sequential", "RWS is .* faster than RWR at all 3"),
    (HYPERION, "disk", "its disk program is far below IOZone", "MyDiskBenchmark is .* slower than IOZone at all 36"),
    (HYPERION, "disk", "threads help", "4 threads are .* faster than 1 thread at all 12"),
    (HYPERION, "disk", "reading at random is faster than writing", "RR is .* faster than WR with 1, .*128 threads"),
    (HYPERION, "disk", "IOPS depend on the number of threads", "1 thread is .* faster than 128 threads for RR; 128 threads are .* faster for WR"),
    (HYPERION, "disk", "latency falls with threads", "128 threads are .* faster than 1 thread at both"),
    (HYPERION, "network", "throughput increases with the packet", "32KB is .* faster than 1KB at all 8"),
    (HYPERION, "network", "UDP loses data", "TCP is .* faster than UDP at all 8"),
    (HYPERION, "network", "more streams do not help", "1 stream is .* faster than 8 streams at all 4"),
    (HYPERION, "network", "the best is TCP with two streams", r"TCP: .* to 2[56]\d\d\d Mb/s \(32KB, 2 streams\)"),
    (PROMETHEUS, "cpu", "all integer widths are equally fast", "QP and HP are level "),
    (PROMETHEUS, "cpu", "double precision is slower", "SP is .* faster than DP at all 3"),
    (PROMETHEUS, "cpu", "its program is below LINPACK", "MyCPUBench is .* slower than HPL at all 3"),
    (PROMETHEUS, "memory", "random copies are better than sequential: of 10 MB", "RWS is .* faster than RWR at 1 KiB and 1 MiB; RWR is .* faster at 10 MiB"),
    (PROMETHEUS, "memory", "two and four threads are faster than one", "4 threads are .* faster than 1 thread at all 6"),
    (PROMETHEUS, "memory", "sequential access has lower latency than random", "RWS is .* faster than RWR at all 3"),
    (PROMETHEUS, "disk", "reading at random is better", "RR is .* faster than RS "),
    (PROMETHEUS, "disk", "writing at random is better: of 100 MB", "WR is .* faster than WS at 100 MB"),
    (PROMETHEUS, "disk", "reading gains from threads at random", "4 threads are .* faster than 1 thread for RR"),
    (PROMETHEUS, "disk", "and loses in sequence", "Best with 2 threads and worse from 4 threads on.*RS of 1 MB"),
    (PROMETHEUS, "disk", "1 MB and one thread reads best in sequence: two threads", r"RS: .*to 35\d.* MB/s \(1 MB, 2 threads\); RR: .*\(1 MB, 4 threads\)"),
    (PROMETHEUS, "disk", "WR has low values compared to RR in IOPS", "RR is .* faster than WR at all 8"),
    (PROMETHEUS, "disk", "10 MB is the best size to write", r"WR: .*to 33\d.* MB/s \(10 MB, 1 thread\)"),
    (PROMETHEUS, "network", "32 KB is better than 1 KB", "32 KB is .* faster than 1 KB "),
    (PROMETHEUS, "network", "TCP is better than UDP: it is not", "UDP is .* faster than TCP "),
    (PROMETHEUS, "network", "UDP gains from threads", "8 streams are .* faster than 1 stream at all 4"),
    (PROMETHEUS, "network", "TCP is best with 4 threads of 32 KB", "Best with 4 streams and worse from 8 streams on.*TCP of 32 KB"),
    (PROMETHEUS, "network", "round trips of TCP are shorter with threads", "Gains up to 8 streams, the most measured.*TCP"),
    (SIX, "memory", "order decides over throughput", "Sequential is .* faster than Random at all 6"),
    (SIX, "memory", "copying is another matter than reading", "Memcpy is .* faster than Sequential at 1KB and 1MB; Sequential is .* faster at 1B"),
    (SIX, "memory", "threads made random access slower", "2 threads are .* faster than 1 thread for Sequential and Memcpy; 1 thread is .* faster for Random"),
    (SIX, "memory", "larger blocks made copies fast", "1KB is .* faster (than 1B )?for Memcpy"),
]  # fmt: skip


@pytest.fixture(scope="module")
def report_text(tmp_path_factory):
    """What the report says of a chapter below its tables, a line for each sentence.

    The campaign has a report's own numbers as its preset would measure them: every run that it
    prints, else its average as one. With ``six`` each row has six repetitions that spread by 1 %
    around the report's median.
    """

    @cache
    def chapters(name, six):
        lot = random.Random(1)  # noqa: S311
        records = {}
        for (table_name, printed, size, threads, tool), values in published.runs(name).items():
            table, workload, block = BY_NAME[table_name], printed, size
            if table_name == "network_latency":
                workload = f"LAT-{printed}"
            if table_name == "memory_latency":
                workload, block = "LAT", AREAS[printed]
            variant = VARIANTS.get(table_name, VARIANTS.get(table.subsystem, ""))
            place = {"variant": variant, "block": block, "concurrency": threads}
            place |= {"subsystem": table.subsystem, "metric": table.metric}
            measured = list(values)
            if six:
                middle = statistics.median(values)
                measured = [middle * lot.lognormvariate(0, 0.01) for _ in range(6)]
            for each in make.runs(tool, workload, *measured, **place):
                first = records.setdefault(Cell.from_json(each["cell"]).id, each)
                first["measurements"] += each["measurements"] if first is not each else []
        folder, config = tmp_path_factory.mktemp("reports") / name, planned(name).config
        of = make.judge(folder, records.values(), config=config)
        data = document.build(of)
        found = {}
        for section in data["sections"]:
            texts = [one["text"] for part in section["parts"] for one in part["findings"]]
            found[section["title"].lower()] = "\n".join(texts)
        return found

    return lambda name, chapter, six: chapters(name, six)[chapter]


@pytest.mark.parametrize("six", [False, True])
@pytest.mark.parametrize(("report", "chapter", "claim", "words"), CONCLUSIONS)
def test_what_the_numbers_carry_is_said(report_text, report, chapter, claim, words, six):
    lines = report_text(report, chapter, six).splitlines()
    assert any(re.search(words, line) for line in lines), claim
