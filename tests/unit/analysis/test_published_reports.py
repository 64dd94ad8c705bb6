"""Published reports, fed with their own numbers: in the report that comes of each every conclusion
of its authors that the numbers carry is stated, and of those that they do not carry the contrary
is said, or that nothing is told apart.

What an author says of a graph whose numbers the report does not print (CPU, disk and network of
``six-core-evaluation``) can be held against nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from tests.unit import campaign_data as make
from tests.unit.presets import planned

from peakmark.cell import Cell
from peakmark.config import published
from peakmark.report import document
from peakmark.tools.tables import BY_NAME

HYPERION, PROMETHEUS = "four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"
DISK, LAB, SIX = "disk-patterns-2020", "file-io-lab", "six-core-evaluation"
VARIANTS = {"memory_throughput": "pool", "memory_latency": "", "disk": "psync"}
AREAS = {"RWS": 16 << 10, "RWR": 256 << 20}
SITES = {
    DISK: (["chameleon-skylake-ssd"], "report-3"),
    HYPERION: (["hyperion"], "report-1"),
    PROMETHEUS: (["hyperion", "prometheus"], "report-2"),
}

# (report, chapter, what its author concludes, words of what is found in its numbers): carried ones,
# and those that are not.
CARRIED = [
    (DISK, "disk", "values increase with the record size", "1MB is faster than 64KB at all 28 points"),
    (DISK, "disk", "and go on to do so", "16MB is faster than 1MB at 20 of 28 points"),
    (DISK, "disk", "reading in sequence is above writing", "RS is faster than WS at all 21 points"),
    (DISK, "disk", "so at random", "RR is faster than WR at 19 of 21 points"),
    (DISK, "disk", "but with the largest records of many threads", "the other way round with RR of 16MB, 24 threads, RR of 16MB, 48 threads"),
    (DISK, "disk", "IOZone is above its own program", "IOZone says more at 62 of 84 points"),
    (DISK, "disk", "and in operations per second", "IOZone says more at all 14 points"),
    (LAB, "disk", "reads are faster than writes", "RS is faster than WS at all 12 points"),
    (LAB, "disk", "its I/O reads faster than it writes over", "RR is faster than WR at all 12 points"),
    (HYPERION, "network", "throughput increases with the packet", "32KB is faster than 1KB at all 8 points"),
    (HYPERION, "network", "UDP loses data", "TCP is faster than UDP at all 8 points"),
    (HYPERION, "disk", "its disk program is far below IOZone", "IOZone says more at all 36 points"),
    (PROMETHEUS, "network", "32 KB is better than 1 KB", "32 KB is faster than 1 KB at all 8 points"),
    (PROMETHEUS, "disk", "WR has low values compared to RR in IOPS", "RR is faster than WR at all 8 points"),
    (PROMETHEUS, "disk", "and high ones in milliseconds", "RR is shorter than WR at all 8 points"),
]  # fmt: skip
NEAR_THE_LIMIT = [
    (DISK, "disk", "reads come close to the theoretical value", "97.3 % (RS of 1MB, 2 threads) of the limit"),
    (DISK, "disk", "reading at random is efficient at nearly all points", "93.9 % (RR of 1MB, 12 threads) of the limit, 83.9 % in the median of 21 rows"),
    (DISK, "disk", "IOZone is near it in all patterns", "IOZone reaches 46.5 % (RR of 64KB, 1 thread) to 91.9 %"),
    (DISK, "disk", "IOZone writes more than six times what the datasheet allows", "7 rows are above the limit, which cannot be: the limit or the figure of IOZone"),
    (HYPERION, "cpu", "its CPU program is way below the theoretical value", "7.37 % (HP, 2 threads) of the limit, 3.09 % in the median of 12 rows"),
    (HYPERION, "cpu", "LINPACK is close to it", "HPL reaches 51.9 % (DP, 1 thread) to 99.8 % (DP, 2 threads) of the limit"),
    (HYPERION, "memory", "random copies are the most efficient", "to 83.1 % (RWR pool of 1MB, 4 threads) of the limit, 22.6 % in the median of 18 rows"),
    (HYPERION, "disk", "latency falls with threads, far below the half turn of the disk", "16 rows are above the limit, which cannot be"),
    (HYPERION, "network", "a round trip of UDP takes 15 ns", "4 rows are above the limit, which cannot be"),
    (PROMETHEUS, "cpu", "efficiency is highest in single precision with 4 threads", "to 14.6 % (SP, 4 threads) of the limit"),
    (PROMETHEUS, "disk", "one thread writes 10 MB at 176 % of the limit", "1 row is above the limit, which cannot be"),
    (PROMETHEUS, "network", "TCP is most efficient with 4 threads of 32 KB", "to 91.6 % (TCP of 32 KB, 4 streams) of the limit"),
]  # fmt: skip
NOT_CARRIED = [
    (LAB, "disk", "the smallest records are best", "1MB is faster than 64KB at 15 of 16 points"),
    (LAB, "disk", "eight processes are best", "8 threads are faster than 1 thread at 7 of 12 points (by chance 0.8)"),
    (DISK, "disk", "random writes behave otherwise than sequential ones", "WR is faster than WS at 14 of 21 points (by chance 0.5)"),
    (DISK, "disk", "it hardly varies with threads", "48 threads are faster than 1 thread at all 12 points"),
    (SIX, "memory", "order decides over throughput", "Sequential is faster than Random at 6 of 6 points (by chance 0.03)"),
    (SIX, "memory", "copying is another matter than reading", "Memcpy is faster than Sequential at 4 of 6 points (by chance 0.7)"),
    (SIX, "memory", "threads made all slower", "2 threads are faster than 1 thread at 6 of 9 points (by chance 0.5)"),
    (SIX, "memory", "larger blocks made copies slow", "1KB is faster than 1MB at 5 of 6 points (by chance 0.2)"),
    (SIX, "memory", "from the smallest on", "1KB is faster than 1B at 3 of 6 points (by chance 1)"),
    (HYPERION, "memory", "random access is faster than sequential", "RWR is faster than RWS at 7 of 9 points (by chance 0.2)"),
    (HYPERION, "memory", "throughput grows with threads", "4 threads are faster than 1 thread at 5 of 6 points (by chance 0.2)"),
    (HYPERION, "disk", "reading at random is faster than writing", "RR is faster than WR at 6 of 8 points (by chance 0.3)"),
    (HYPERION, "disk", "reading and writing differ in latency", "RR is shorter than WR at 4 of 8 points (by chance 1)"),
    (PROMETHEUS, "memory", "random copies are better than sequential", "RWS is faster than RWR at 6 of 9 points (by chance 0.5)"),
    (PROMETHEUS, "memory", "two and four threads are faster than one", "4 threads are faster than 1 thread at 6 of 6 points (by chance 0.03)"),
    (PROMETHEUS, "disk", "reading at random is better", "RR is faster than RS at 7 of 9 points (by chance 0.2)"),
    (PROMETHEUS, "disk", "writing at random is better", "WR is faster than WS at 6 of 9 points (by chance 0.5)"),
    (PROMETHEUS, "disk", "reading gains from threads at random and loses in sequence", "4 threads are faster than 1 thread at 8 of 12 points (by chance 0.4)"),
    (PROMETHEUS, "disk", "10 MB is the best size to write, 1 MB to read", "1 MB is faster than 10 MB at 7 of 12 points (by chance 0.8)"),
    (PROMETHEUS, "network", "TCP is better than UDP", "UDP is faster than TCP at 6 of 8 points (by chance 0.3)"),
]  # fmt: skip
# Of too few values to tell: page one says that they were measured once, and no sentence claims it.
OPEN = [
    (HYPERION, "cpu", "integers of 8 and 16 bits are the fastest", r"(QP|HP) is faster"),
    (HYPERION, "cpu", "several threads are faster than one", r"threads are faster"),
    (HYPERION, "memory", "latency grows with threads at random, not in sequence", r"1 thread has shorter|grows from"),
    (HYPERION, "disk", "IOPS depend on the number of threads", r"best with|128 threads (are|have)"),
    (PROMETHEUS, "cpu", "all integer widths are equally fast", r"(QP|HP|SP) is faster"),
    (PROMETHEUS, "cpu", "double precision is slower", r"than DP"),
    (PROMETHEUS, "memory", "sequential access has lower latency than random", r"RWS (is|has) shorter"),
    (PROMETHEUS, "disk", "1 MB and one thread reads best in sequence, 4 threads at random", r"best with"),
    (PROMETHEUS, "network", "UDP gains from threads", r"8 streams are faster"),
    (PROMETHEUS, "network", "round trips of TCP are shorter with threads, of UDP not", r"8 streams have shorter"),
    (LAB, "disk", "one configuration is best and one worst", r"best with"),
    (LAB, "disk", "one process is best at random, eight are worst", r"than 8 threads"),
]  # fmt: skip


@pytest.fixture(scope="module")
def report_text(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """What the report says of a chapter, a line for each sentence: page one's and those below its
    tables.

    The campaign has a report's own numbers as its preset would measure them: every run that it
    prints, else its average as one; with ``facts`` beside its own theoretical values.
    """

    @cache
    def chapters(name: str, facts: bool) -> dict[str, str]:
        records: dict[str, dict[str, Any]] = {}
        for (table_name, printed, size, threads, tool), values in published.load(name).runs.items():
            table, workload, block = BY_NAME[table_name], printed, size
            if table_name == "network_latency":
                workload = f"LAT-{printed}"
            if table_name == "memory_latency":
                workload, block = "LAT", AREAS[printed]
            variant = VARIANTS.get(table_name, VARIANTS.get(table.subsystem, ""))
            place = {"variant": variant, "block": block, "concurrency": threads}
            place |= {"subsystem": table.subsystem, "metric": table.metric}
            for each in make.runs(tool, workload, *values, **place):
                first = records.setdefault(Cell.from_json(each["cell"]).id, each)
                first["measurements"] += each["measurements"] if first is not each else []
        files, formulas = SITES.get(name, ([], ""))
        sites = {"site": [f"config/sites/{file}.yaml" for file in files], "formula_set": formulas}
        config = planned(name, **(sites if facts else {})).config
        of = make.judge(tmp_path_factory.mktemp("reports") / name, records.values(), config=config)
        data = document.build(of, {})
        found = {}
        for section in data["sections"]:
            texts = [one["text"] for part in section["parts"] for one in part["findings"]]
            found[section["title"].lower()] = "\n".join([*map(str, data["caveats"]), *texts])
        return found

    return lambda name, chapter, facts=False: chapters(name, facts)[chapter]


@pytest.mark.parametrize(("report", "chapter", "claim", "words"), CARRIED)
def test_what_the_numbers_carry_is_said(
    report_text: Callable[..., str], report: str, chapter: str, claim: str, words: str
) -> None:
    (line,) = (line for line in report_text(report, chapter).splitlines() if words in line)
    assert "by chance" in line and "not ruled out" not in line, claim


@pytest.mark.parametrize(
    ("report", "chapter", "claim", "words", "facts"),
    [*((*case, True) for case in NEAR_THE_LIMIT), *((*case, False) for case in NOT_CARRIED)],
)
def test_shares_of_the_limit_are_said_and_what_is_not_carried_is_contradicted_or_left_open(
    report_text: Callable[..., str], report: str, chapter: str, claim: str, words: str, facts: bool
) -> None:
    assert words in report_text(report, chapter, facts), claim


@pytest.mark.parametrize(("report", "chapter", "claim", "never"), OPEN)
def test_what_was_measured_once_is_not_claimed(
    report_text: Callable[..., str], report: str, chapter: str, claim: str, never: str
) -> None:
    text = report_text(report, chapter)
    assert "measured once" in text and not re.search(never, text), claim
