"""What each program is started with, which cells it cannot measure, and results of other cells."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import REGISTRY, common
from peakmark.tools.base import Invocation

MIB = 1 << 20
OFFERED = """\
ScanWrite64PtrUnrollLoop
  ScanRead64PtrSimpleLoop
  ScanRead256PtrSimpleLoop
  ScanRead256PtrUnrollLoop
  PermRead64SimpleLoop
load_avx - text
load_avx512 - text
copy_avx - text
copy_mem_avx - text
"""
"""Routines, as pmbw and likwid-bench list theirs."""


@pytest.fixture(autouse=True)
def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "ask", lambda *_: OFFERED)


def cell(name: str, workload: str, variant: str, block: int | None, n: int, **options: Any) -> Cell:
    every = REGISTRY[name].workloads
    subsystem = next((one for one in every if workload in every[one]), next(iter(every)))
    return samples.cell(subsystem, name, workload, variant, block, n, **options)


def prepared(of: Cell) -> Invocation:
    space = samples.workspace(cpus=(2, 3, 4), isa=["sse2", "avx"])
    return REGISTRY[of.instrument].prepare(of, samples.tool(of.instrument), space)


COMMANDS = [
    (cell("cpubench", "QP", "", None, 3, seconds=0.5, warmup=0.1, seed=9),
     "cpubench --workload QP --threads 3 --cpus 2,3,4 --warmup 0.1 --seed 9 --seconds 0.5"),
    (cell("cpubench", "DP", "", None, 1, operations=1e12, seconds=1, isa="scalar"),
     "cpubench --workload DP --threads 1 --cpus 2 --operations 1000000000000 --isa scalar"),
    (cell("rambench", "RWR", "pool", MIB, 2, pool="256MiB", seconds=1),
     "rambench --workload RWR --block 1048576 --pool 268435456 --seconds 1 --threads 2 --cpus 2,3"),
    (cell("rambench", "RS", "block", 64, 1, total=10**11, store="libc"),
     "rambench --workload RS --block 64 --pool block --total 100000000000 --threads 1 --cpus 2"),
    (cell("rambench", "LAT", "", MIB, 1, accesses=1e8, huge_pages=False, store="temporal"),
     "rambench --workload LAT --block 1048576 --accesses 100000000 --threads 1 --cpus 2"
     " --huge-pages off"),
    (cell("diskbench", "WR", "io_uring-qd8", 4096, 2, seconds=2.5, warmup=0, seed=7, size="64MiB"),
     "diskbench --workload WR --record 4096 --size 67108864 --directory . --engine io_uring"
     " --depth 8 --seconds 2.5 --threads 2 --cpus 2,3,4 --warmup 0 --seed 7"),
    (cell("iozone", "ALL", "psync", MIB, 1, size=64 * MIB),
     "iozone -I -e -i 0 -i 1 -i 2 -r 1024k -s 65536k -f iozone.0"),
    # A third of a MiB in whole records of 4 KiB is 85 of them.
    (cell("iozone", "ALL", "psync", 4096, 3, size=MIB, ops=True),
     "iozone -I -e -O -i 0 -i 1 -i 2 -r 4k -s 340k -t 3 -F iozone.0 iozone.1 iozone.2"),
    (cell("fio", "WS", "io_uring-qd16", MIB, 2, seconds=1.5, warmup=0.25, size=64 * MIB, seed=3),
     "fio --name=peakmark --directory=. --size=33554432 --bs=1048576 --rw=write --direct=1"
     " --ioengine=io_uring --iodepth=16 --numjobs=2 --thread --group_reporting --fallocate=none"
     " --overwrite=1 --time_based --runtime=1500ms --ramp_time=250ms --end_fsync=1 --randseed=3"
     " --lat_percentiles=1 --output-format=json"),
    (cell("pmbw", "RS", "block", MIB, 2),
     "pmbw -M 16777217 -p 2 -P 2 -s 2097152 -S 2097152 -f ScanRead256PtrSimpleLoop"
     " -f ScanRead256PtrUnrollLoop -o pmbw.txt"),
    (cell("netbench", "UDP", "gso", 1024, 2, seconds=2, warmup=0.5),
     "netbench UDP --message 1024 --streams 2 --seconds 2 --warmup 0.5 --cpus 2,3 --port {port}"
     " --gso {address}"),
    (cell("netbench", "LAT-UDP", "busy-poll", 1, 1, round_trips=1e6),
     "netbench latency --protocol UDP --message 1 --streams 1 --round-trips 1000000 --cpus 2"
     " --port {port} --busy-poll {address}"),
    (cell("iperf3", "TCP", "", 32768, 4, seconds=1.2, warmup=0.5),
     "iperf3 --client {address} --port {port} --json --length 32768 --parallel 4 --time 2 --omit 1"),
    (cell("iperf3", "UDP", "", 1024, 1, total=MIB),
     "iperf3 --client {address} --port {port} --json --length 1024 --parallel 1 --bytes 1048576"
     " --udp --bitrate 0 --udp-counters-64bit"),
    (cell("qperf", "ALL", "", 1, 1, seconds=0.5),
     "qperf {address} --listen_port {port} --msg_size 1 --time 1 -vv -uu tcp_lat udp_lat"),
]  # fmt: skip


@pytest.mark.parametrize(("of", "words"), COMMANDS, ids=lambda one: getattr(one, "id", ""))
def test_command(of: Cell, words: str) -> None:
    argv = [*prepared(of).command.argv]
    argv = argv[argv.index(f"/usr/bin/{of.instrument}") :]
    assert " ".join(argv) == f"/usr/bin/{words}"


SERVERS = {
    "netbench": "serve --address {address} --port {port}",
    "iperf3": "--server --one-off --port {port} --bind {address}",
    "qperf": "--listen_port {port}",
}


@pytest.mark.parametrize("name", SERVERS)
def test_server(name: str) -> None:
    of = cell(name, "LAT-UDP" if name == "qperf" else "UDP", "", 1024, 1)
    invocation = prepared(of)
    assert invocation.server is not None
    assert " ".join(invocation.server.argv).startswith(f"/usr/bin/{name} {SERVERS[name]}")
    assert invocation.server.timeout_s > invocation.command.timeout_s
    if name == "netbench":
        keys = {side.env["NETBENCH_KEY"] for side in (invocation.command, invocation.server)}
        assert keys == {"{key}"}
    # Since 3.14 iperf3 ends with 1 after an error; the sentence is in the JSON.
    assert (1 in invocation.command.ok_codes) == (name == "iperf3")


# An option -> a cell whose command has it.
OPTIONS = {
    "--store libc": cell("rambench", "RWS", "block", 1024, 1, store="libc"),
    "--total 1048576": cell("diskbench", "WS", "psync", 4096, 1, total=MIB, seconds=1),
    "--io_size=524288": cell("fio", "RR", "psync", 4096, 2, total=MIB),
    "-uu udp_lat": cell("qperf", "LAT-UDP", "", 1, 1),
    f"-s {1 << 29}": cell("pmbw", "RS", "pool", MIB, 2, pool=1 << 29),
    # Seen: `-W N:2147483648B:1` cannot be read by likwid-bench; in kB of 1000 B any size can.
    "-t copy_avx -W N:4000B:2": cell("likwid-bench", "RWS", "block", 1000, 2),
    "N:2146435072B:1": cell("likwid-bench", "RWS", "pool", 1024, 1, pool="2047MiB"),
    "N:2147484kB:1": cell("likwid-bench", "RWS", "pool", 1024, 1, pool="2GiB"),
}


@pytest.mark.parametrize("words", OPTIONS)
def test_option(words: str) -> None:
    command = " ".join(prepared(OPTIONS[words]).command.argv)
    assert words in command
    if "total" in OPTIONS[words].options:
        timed = ("--seconds", "--time_based", "--runtime", "--ramp_time")
        assert not any(word in command for word in timed)


UDP = 65507
IMPOSSIBLE = [
    (cell("rambench", "RS", "", 1024, 1), "variant block or pool"),
    (cell("rambench", "LAT", "pool", 1024, 1), "no variant"),
    (cell("rambench", "RS", "pool", 1024, 1, pool="16GiB"), "pool smaller"),
    (cell("iozone", "ALL", "psync", 512, 1), "multiple of 1024 B"),
    (cell("iozone", "RR", "psync", 4096, 1), "no workload RR"),
    (cell("iozone", "ALL", "io_uring-qd8", 4096, 1), "no variant"),
    (cell("fio", "ALL", "psync", MIB, 1), "no workload ALL"),
    (cell("pmbw", "RWR", "block", MIB, 1), "neither a copy nor random"),
    (cell("pmbw", "RR", "pool", MIB, 1), "8-byte loads"),
    (cell("pmbw", "WR", "pool", MIB, 1), "random writes"),
    (cell("pmbw", "RS", "block", 10_000_000, 1), "fixed list"),
    (cell("pmbw", "RS", "block", MIB, 11), "fixed list"),
    (cell("pmbw", "RS", "block", 1 << 34, 1), "16GiB"),
    (cell("pmbw", "LAT", "block", MIB, 1), "no variant"),
    (cell("likwid-bench", "RS", "block", 1024, 1, isa="avx512"), "avx512"),
    (cell("likwid-bench", "RS", "pool", 1024, 1, pool="16GiB"), "16GiB"),
    (cell("likwid-bench", "RS", "", 1024, 1), "variant block or pool"),
    (cell("iperf3", "UDP", "", 65536, 1), f"to {UDP}B"),
    (cell("iperf3", "TCP", "", 2 * MIB, 1), "to 1MiB"),
    (cell("iperf3", "UDP", "", 1, 1), f"16B to {UDP}B"),
    (cell("iperf3", "TCP", "", 1024, 129), "128 streams"),
    (cell("iperf3", "UDP", "gso", 1024, 1), "no variant gso"),
    (cell("iperf3", "LAT-TCP", "", 1, 1), "no workload LAT-TCP"),
    (cell("netbench", "TCP", "gso", 1024, 1), "gso for UDP"),
    (cell("netbench", "UDP", "busy-poll", 1024, 1), "busy-poll for LAT"),
    (cell("qperf", "ALL", "", 1, 2), "one stream"),
    (cell("ping", "ALL", "", 1, 2), "one stream"),
]
MISCONFIGURED = [
    (cell("cpubench", "DP", "", None, 1, isa="mmx"), "isa='mmx'"),
    (cell("iozone", "ALL", "psync", MIB, 8, size=4 * MIB), "no record of 1MiB"),
    (cell("iozone", "ALL", "psync", MIB, 1, ops="yes"), "ops='yes'"),
    (cell("fio", "RR", "psync", MIB, 8, size=4 * MIB), "no record of 1MiB"),
    (cell("ping", "ALL", "", 1, 1, count=0.5), "count=0.5"),
]


@pytest.mark.parametrize(
    ("of", "kind", "words"),
    [
        *((of, Unavailable, words) for of, words in IMPOSSIBLE),
        *((of, ConfigError, words) for of, words in MISCONFIGURED),
    ],
    ids=lambda one: getattr(one, "id", ""),
)
def test_a_cell_that_the_program_cannot_measure(
    of: Cell, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        prepared(of)


OTHERS: list[tuple[str, dict[str, Any], str]] = [
    ("diskbench/rr-psync-x2", {"variant": "io_uring-qd2"}, "engine or depth"),
    ("diskbench/rr-psync-x2", {"block": 8192}, "iops"),
    ("diskbench/rr-psync-x2", {"concurrency": 1}, "threads is 2"),
    ("iozone/t2-1m", {"options": {"ops": True}}, "operations per second"),
    ("iozone/t2-1m", {"concurrency": 3}, "2 processes"),
    ("iozone/t2-1m", {"block": 4096}, "record size"),
    ("fio/rr-psync-x2", {"workload": "RS"}, "pattern"),
    ("fio/rr-psync-x2", {"block": 8192}, "record size"),
    ("pmbw/rs-block-x1", {"block": 2048}, "another size"),
    ("likwid-bench/rs-block-x1", {"concurrency": 2}, "2 threads"),
    ("iperf3/tcp-x2", {"concurrency": 1}, "num_streams is 2"),
    ("iperf3/tcp-x2", {"workload": "UDP"}, "protocol is 'TCP'"),
    ("iperf3/tcp-x2", {"block": 1024}, "blksize is 32768"),
    ("qperf/all", {"block": 64}, "not 64 B"),
    ("qperf/lat-udp", {"workload": "ALL"}, "no result of tcp_lat"),
    ("netbench/udp-x2", {"workload": "TCP"}, "workload is 'UDP'"),
]


@pytest.mark.parametrize(("case", "changes", "words"), OTHERS)
def test_a_result_of_another_cell_is_refused(
    case: str, changes: dict[str, Any], words: str
) -> None:
    of, completed = samples.load(case)
    options = {**of.options, **changes.get("options", {})}
    with pytest.raises(ParseError, match=words):
        other = dataclasses.replace(of, **{**changes, "options": options})
        REGISTRY[of.instrument].parse(other, completed)


@pytest.mark.parametrize(
    ("case", "old", "new", "words"),
    [
        ("fio/rr-psync-x2", "26349568", "0", "io_bytes is 0"),
        ("hpl/xhpl-x2", "1.2646e+01", "1.3646e+01", "contradicts itself"),
    ],
)
def test_numbers_that_contradict_each_other_are_refused(
    case: str, old: str, new: str, words: str
) -> None:
    of, completed = samples.load(case)
    changed = dataclasses.replace(completed, stdout=completed.stdout.replace(old, new))
    with pytest.raises(ParseError, match=words):
        REGISTRY[of.instrument].parse(of, changed)


@pytest.mark.parametrize(
    "case",
    ["cpubench/dp-x2", "rambench/rs-block-x1", "diskbench/rr-psync-x2", "netbench/tcp-x1"],
)
def test_a_rate_that_is_not_work_by_time_is_refused(case: str) -> None:
    of, completed = samples.load(case)
    document = json.loads(completed.stdout)
    document["work"] *= 2
    changed = dataclasses.replace(completed, stdout=json.dumps(document))
    with pytest.raises(ParseError, match="contradicts itself"):
        REGISTRY[of.instrument].parse(of, changed)
    twice = dataclasses.replace(completed, stdout=completed.stdout * 2)
    with pytest.raises(ParseError, match="one line"):
        REGISTRY[of.instrument].parse(of, twice)


def test_results_of_pmbw_and_likwid_that_were_not_asked_for_are_refused() -> None:
    of, completed = samples.load("pmbw/rs-block-x1")
    text = completed.files["pmbw.txt"]
    for changed, words in (
        (text + text, "two results"),
        (text.splitlines(keepends=True)[1], "ScanRead256PtrSimpleLoop"),
    ):
        with pytest.raises(ParseError, match=words):
            REGISTRY["pmbw"].parse(of, samples.with_text(completed, "pmbw.txt", changed))
    of, completed = samples.load("likwid-bench/rs-block-x1")
    argv = tuple("copy_avx" if word == "load_avx" else word for word in completed.argv)
    with pytest.raises(ParseError, match="not asked for"):
        REGISTRY["likwid-bench"].parse(of, dataclasses.replace(completed, argv=argv))
