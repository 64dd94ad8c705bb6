"""What is possible nowhere is refused when it is planned; limits of references are named."""

import pytest
from tests.unit.hostile import one_grid, refused

from peakmark import plan
from peakmark.errors import ConfigError
from peakmark.workflow import startup

IMPOSSIBLE = {
    "a datagram that is too large": (one_grid("network", workloads=["UDP"], blocks=["64KiB"]), ["UDP", "65507", "64KiB"]),
    "a datagram without a number": (one_grid("network", workloads=["UDP"], blocks=["1B"]), ["24B"]),
    "a message that is too large": (one_grid("network", blocks=["1GiB"]), ["64MiB", "1GiB"]),
    "too many streams": (one_grid("network", concurrency=[2000]), ["1024 streams"]),
    "less than a message a stream": (one_grid("network", concurrency=[8], total=100), ["total", "8 threads"]),
    "segments of TCP": (one_grid("network", variants=["gso"]), ["gso", "UDP"]),
    "a depth beyond the kernel's": (one_grid("disk", variants=["io_uring-qd9999"]), ["4096 requests"]),
    "a depth beyond the file": (one_grid("disk", variants=["io_uring-qd64"], size="64KiB"), ["64 in flight", "size"]),
    "files smaller than a record": (one_grid("disk", concurrency=[8], size="16KiB"), ["16KiB", "8 threads", "larger size"]),
    "a record that is too large": (one_grid("disk", blocks=["2GiB"], size="8GiB"), ["1GiB", "2GiB"]),
    "a record that is too small": (one_grid("disk", blocks=["16B"]), ["32B"]),
    "a block of half a cache line": (one_grid("memory", blocks=["1000B"]), ["multiple of 64 B", "1000 B"]),
    "less than a block a thread": (one_grid("memory", concurrency=[4], total="64KiB"), ["65536", "4 threads"]),
    "size of the memory": (one_grid("memory", size="1GiB"), ["memory[0].size", "disk"]),
    "flushes of the memory": (one_grid("memory", sync="each"), ["memory[0].sync", "disk"]),
    "new files of the network": (one_grid("network", fill="new"), ["network[0].fill", "disk"]),
    "instructions of the disk": (one_grid("disk", isa="scalar"), ["disk[0].isa", "cpu and memory"]),
    "a pool of the disk": (one_grid("disk", pool="1GiB"), ["disk[0].pool", "memory"]),
    "variants of the CPU": (one_grid("cpu", variants=[""]), ["cpu[0].variants", "of no use"]),
    "fio under cpu": (one_grid("cpu", references={"fio": {}}), ["cpu[0].references", "fio", "hpl, likwid-bench"]),
    "a tool without such rows": (one_grid("memory", workloads=["RWR"], references={"pmbw": {}}), ["pmbw", "RS, WS, RWS"]),
    "a budget of fio": (one_grid("disk", references={"fio": {"budget_s": 3}}), ["references.fio.budget_s", "hpl"]),
    "a key with a slip": (one_grid("memory", conurrency=[1]), ["memory[0]", "conurrency", "did you mean concurrency?"]),
    "a workload with a slip": (one_grid("cpu", workloads=["DPP"]), ["cpu[0].workloads", "DPP", "DP"]),
    "more cells than a year has seconds": (
        one_grid("cpu", concurrency=list(range(1, 4097)), repetitions=1000),
        ["4096000 cells", "at most 1000000"],
    ),
    "a layout that is a folder": ({**one_grid("cpu"), "report": {"tables": "docs"}}, ["report.tables", "docs", "file-io-lab"]),
    "a report that is a number": ({**one_grid("cpu"), "report": 5}, ["report is 5", "a mapping"]),
    "grids that are a word": ({"cpu": "all"}, ['cpu is "all"', "a list"]),
}  # fmt: skip


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_what_is_possible_nowhere_is_refused_when_it_is_planned(kind):
    values, words = IMPOSSIBLE[kind]
    with pytest.raises(ConfigError) as caught:
        plan.make(values)
    refused(str(caught.value), *words)


@pytest.mark.parametrize(("values", "row", "words"), [
    (one_grid("network", blocks=["2MiB"], references={"iperf3": {}}), "network/iperf3/TCP_2MiB_x1/any", "to 1MiB"),
    (one_grid("memory", concurrency=[5], references={"pmbw": {}}), "memory/pmbw/RWS-block_64KiB_x5/any", "fixed list"),
    (one_grid("disk", blocks=["1000B"], references={"iozone": {}}), "disk/iozone/ALL-psync_1000B_x1/any", "multiple of 1024 B"),
    (one_grid("cpu", references={"hpl": {"budget_s": 0.1}}), "cpu/hpl/DP_none_x1/any", "budget_s"),
])  # fmt: skip
def test_what_a_reference_cannot_do(values, row, words):
    """The own kernel's row stays; the tool's column is empty there."""
    made = plan.make(values)
    assert words in made.impossible[row]
    assert row in "\n".join(startup.check(made, made.cells))
