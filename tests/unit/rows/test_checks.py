"""Each check finds what it is for, with its weight and its numbers, and is silent otherwise."""

from dataclasses import replace

import pytest
from tests.unit.campaign_data import VM, reached
from tests.unit.rows.checked import (
    PLACED,
    UNKNOWN,
    N,
    U,
    W,
    check_marks,
    limit,
    noise,
    row,
    rows_and_marks,
)

from peakmark.rows import checks
from peakmark.rows.checks import check_row
from peakmark.storage.activity import HEAT_MS


def disk(details=None, **more):
    of = {"subsystem": "disk", "instrument": "diskbench", "workload": "RR", "block": 4096}
    return row(details=details, **of | more)


def held(metric, value, **limits):
    """Two threads of a disk to which a cgroup grants so much."""
    more = {"metric": metric, "concurrency": 2, "values": [value] * 6}
    return disk(context={"io_limits": limits}, **more)


def moved(of_10000, direct, file_system):
    """A disk of whose 10,000 B so many reached the device."""
    tells = {"device_bytes": of_10000, "work": 10_000, "direct": direct, "filesystem": file_system}
    return disk(tells)


def memory(details=None, **more):
    of = {"subsystem": "memory", "instrument": "rambench", "block": 1024, "variant": "pool"}
    return row(details=details, **of | more)


def pool(mebibytes, threads=1, facts=VM, last_level=0, **more):
    """Threads that walk a pool, on cores that reach so many MiB of the last cache."""
    context = {"placed": PLACED | {"last_level_bytes": last_level << 20}} if last_level else {}
    size = {"working_set_bytes": mebibytes << 20}
    return memory(size, facts=facts, context=context, concurrency=threads, **more)


def network(workload, details=None, **more):
    return row(details=details, subsystem="network", workload=workload, **more)


def udp(sent, lost, **more):
    return network("UDP", {"sent": sent, "received": sent - lost, "lost": lost} | more)


def meanwhile(*moved, **identity):
    """A row during whose first repetitions these counters moved."""
    busy = [noise(moved=each) for each in moved]
    return row(context=[*busy, *[noise()] * (6 - len(busy))], **identity)


WIRE = {"subsystem": "network", "instrument": "netbench", "workload": "TCP"}
RANKS = {"subsystem": "mpi", "instrument": "mpibench", "workload": "RATE", "metric": "throughput"}
PACKETS = {"eth0 rx_dropped": 5, "eth0 tx_dropped": 4}
MIXED = {"mc1 ue_count": 1, "nvme0 temp1_alarm": 1, "cpu package_power_limit_count": 4}
FAULTY = noise(moved={"mc0 ce_count": 2})["noise"]
ON_SERVER = noise() | {"server_noise": FAULTY, "server_host": "node2"}
SPLIT_CACHE = {"level": 3, "type": "unified", "size": 32 << 20, "shared_by": 16, "count": 2}
SPLIT = VM | {"cpu": VM["cpu"] | {"caches": [SPLIT_CACHE]}}
ON_TMPFS = VM | {"storage": VM["storage"] | {"filesystem": "tmpfs", "interface": "ram"}}
EIGHT = {"facts": {"cpu": {"threads": 8, "cores": 8}}, "context": noise(others=1.5, busy=2) | {"cpus": list(range(8))}}  # fmt: skip
LOOPBACK = reached("lo")
SHAPED = reached(shaping="tbf 100 Mbit/s")
WHOLE, RARE = {"lost": 0, "round_trips": 10}, {"lost": 1, "round_trips": 99_999}
QUARTER = {"lost": 250, "round_trips": 750}
LATE = [{"started": f"2026-11-21T04:0{minute}:00"} for minute in (0, 9, 2, 3, 4, 5)]
FALLING = [110.0, 101.0, 108.5, 107.0, 105.2, 103.0]
STEADILY = [110.0, 108.5, 107.0, 105.2, 103.0, 101.0]
AUTUMN = [{"started": f"2026-10-25T02:{time}:00"} for time in ("00:00+02", "20:00+02", "40:00+02", "00:00+01", "20:00+01", "40:00+01")]  # fmt: skip
"""The night in which the clocks go back: later starts have smaller times of day."""

# A row, its marks with their weight, and what the first of them tells.
CASES = [
    # What physics forbids.
    (row(limit=limit(100.0)), {}, {}),
    (row(limit=limit(96.0)), {"above-limit": U}, {"share": 100.4 / 96, "case": "run"}),
    (row(limit=limit(95.0)), {"above-limit": W}, {"share": 100.05 / 95, "case": ""}),
    (row(limit=limit(80.0, clock="nominal")), {"above-limit": W}, {"case": "nominal"}),
    (disk(limit=limit(50.0, "B/s")), {"above-limit": W}, {"case": "disk"}),
    (memory(limit=limit(50.0, "B/s")), {"above-limit": W}, {"case": "pool"}),
    (row([1e-9] * 6, limit=limit(1.2e-9, "s")), {"above-limit": W}, {}),
    (row(limit=replace(UNKNOWN, bound=95.0)), {"above-limit": W}, {"case": "bound"}),
    (row(details={"residual": 16.0}, instrument="hpl"), {"wrong-result": W}, {"residual": 16.0}),
    # Repetitions: how many, how long, how far apart, in which order of time.
    (row([100.0]), {"few": U}, {"enough": 6}),
    (row([100.0, 104.0, 96.0]), {}, {}),
    (row([100.0, 120.0, 80.0]), {"spread": U}, {"spread": 0.4}),
    (row(STEADILY), {"spread": U}, {"case": "drift"}),
    (row([105.0, 103.0, 104.0, 101.0, 100.0]), {}, {}),
    (row([100.6, 100.5, 100.4, 100.3, 100.2, 100.1]), {}, {}),
    (row(FALLING), {}, {}),
    (row(FALLING, context=LATE), {"spread": U}, {}),  # a repetition that failed is measured last
    (row(STEADILY, context=AUTUMN), {"spread": U}, {"case": "drift"}),
    # Whole microseconds, and a program that prints all digits it has.
    (row([4e-6, 6e-6, 8e-6], {"resolution": 1e-6}), {}, {}),
    (row([4e-6, 6e-6, 8e-6]), {"spread": U}, {}),
    (row([4e-6, 6e-6, 12e-6], {"resolution": 1e-6}), {"spread": U}, {}),
    # Other programs: on free CPUs they take nothing from pinned threads, on the very CPU they do.
    (row(**EIGHT), {"other-load": N}, {}),
    (row(**EIGHT, concurrency=8), {"other-load": U}, {}),
    (row(**EIGHT, details={"cpu_share": 0.5}), {"waited": U, "other-load": U}, {}),
    # Bytes that reached the disk, a cgroup that holds it back.
    (moved(10_000, True, "ext4"), {}, {}),
    (moved(8_900, True, "ext4"), {"cached": W}, {"share": 0.89}),
    (moved(0, False, "ext4"), {"cached": W}, {}),
    (moved(None, False, "zfs"), {"cached": W}, {}),
    (moved(None, True, "tmpfs"), {"cached": W}, {}),
    (disk(facts=ON_TMPFS), {"cached": W}, {}),  # of a reference, which tells no file system
    (held("throughput", 19e6, read_bps=20_000_000), {"rate-limit": W}, {"way": "read", "rate": "20.0 MB/s"}),
    (held("throughput", 10e6, read_bps=20_000_000), {}, {}),
    (held("throughput", 19e6, write_bps=20_000_000), {}, {}),
    (held("iops", 495.0, read_iops=500), {"rate-limit": W}, {"rate": "500 IOPS"}),
    (held("iops", 495.0, read_bps=4096 * 500), {"rate-limit": W}, {"rate": "2.05 MB/s"}),
    (held("latency", 2 / 490, read_iops=500), {"rate-limit": W}, {"rate": "IOPS"}),
    # Pools beside the caches that their threads reach.
    (pool(128), {}, {}),
    (pool(127), {"cached": W}, {"needed": "128MiB"}),
    (pool(127, variant="block"), {}, {}),
    (pool(1, facts={}), {}, {}),
    (pool(128, facts=SPLIT), {}, {}),
    (pool(128, 2, SPLIT), {"cached": W}, {"needed": "256MiB"}),
    (pool(128, 2, SPLIT, last_level=32), {}, {}),  # two threads on the cores of one cache
    (pool(128, 2, SPLIT, last_level=64), {"cached": W}, {"needed": "256MiB"}),
    # Losses, loopback, links that are slowed down on purpose.
    (udp(1000, 5), {}, {}),
    (udp(1000, 100), {"udp-loss": N}, {"share": 0.1, "where": ""}),
    (udp(1000, 110), {"udp-loss": U}, {"share": 0.11}),
    (udp(1000, 600), {"udp-loss": W}, {"share": 0.6}),
    (udp(1000, 100, overrun=9), {"udp-loss": N}, {"where": "dropped 9 packets"}),
    (udp(1000, 100, overrun=0), {"udp-loss": N}, {"where": "dropped 0 packets"}),
    (network("UDP", {"packets": 1000.0, "lost": 100.0, "loss": 0.1}), {"udp-loss": N}, {"share": 0.1}),
    (network("UDP"), {}, {}),
    (network("TCP", {"sent": 1000, "lost": 600}), {}, {}),
    (network("LAT-UDP", WHOLE), {}, {}),
    (network("LAT-UDP", QUARTER), {"udp-loss": U}, {"share": 0.25, "case": "round-trips"}),
    # Of one run each: one without the counts does not lend its place to the next.
    (network("LAT-UDP", [{"lost": 5}, RARE, *[WHOLE] * 4]), {"udp-loss": U}, {"share": 1.0}),
    (network("LAT-UDP", [RARE, *[WHOLE] * 5]), {}, {}),
    (network("TCP", context=LOOPBACK), {"loopback": W}, {}),
    (network("TCP", context={"network": None}), {}, {}),
    (row(context=LOOPBACK), {}, {}),
    (network("TCP", context=SHAPED), {"rate-limit": W}, {"shapes": "tbf 100 Mbit/s"}),
    # Error counters that moved: every program's packets count, and say nothing of what cores did.
    (meanwhile({"mc0 ce_count": 2}, {"mc0 ce_count": 1}), {"hardware-errors": U}, {"case": "memory-corrected", "device": "mc0", "count": 3, "often": " in 2 of "}),
    (meanwhile({"cpu MCE": 1, "cpu DFR": 1}), {"hardware-errors": U}, {"count": 2, "often": " in 1 of "}),
    (meanwhile({"nvme0 aer_dev_correctable": 8}), {"pcie-link": N}, {"device": "nvme0"}),
    (meanwhile({"nvme0 aer_dev_fatal": 1}), {"pcie-link": U}, {}),
    (meanwhile(MIXED), {"hardware-errors": U, "slowed-down": U}, {}),
    (meanwhile(PACKETS), {}, {}),
    (meanwhile(PACKETS, **WIRE), {"network-errors": N}, {"device": "eth0", "count": 9, "often": " in 1 of "}),
    (meanwhile({"eth0 rx_errors": 5}, **WIRE), {"network-errors": N}, {}),
    (meanwhile({"mlx5_0 symbol_error": 5, "mlx5_0 port_rcv_errors": 2}), {}, {}),
    (meanwhile({"mlx5_0 symbol_error": 5, "mlx5_0 port_rcv_errors": 2}, **RANKS), {"network-errors": U}, {"count": 7, "case": "port"}),
    (row(context=ON_SERVER, **WIRE), {"hardware-errors": U}, {"count": 12, "often": "where the server ran"}),
]  # fmt: skip


@rows_and_marks(CASES)
def test_a_row_has_these_marks(made, weights, first):
    check_marks(made, weights, first)


@pytest.mark.parametrize(("slowed", "is_disturbed"), [(20, False), (200, True)])
def test_heat_for_some_of_the_time_disturbs(slowed, is_disturbed):
    hot = meanwhile({HEAT_MS: slowed})  # of a second
    assert hot.runs[0].causes == ("hot" if is_disturbed else "")


def test_the_heaviest_comes_first():
    found = check_row(row([100.0, 130.0], concurrency=9, context={"cpus": [0]}))
    assert [each.trust for each in found] == [W, U]


def test_the_threshold_falls_to_the_true_spread_as_repetitions_come():
    widths = [checks.largest_quiet_cv(n) for n in (2, 3, 6, 30, 1000)]
    assert widths == sorted(widths, reverse=True)
    # Of the chi-square distribution with 2 degrees of freedom 98 % lie below 7.824, with 29 below
    # 46.693.
    assert checks.largest_quiet_cv(3) == pytest.approx(0.05 * (7.824 / 2) ** 0.5, rel=0.01)
    assert checks.largest_quiet_cv(30) == pytest.approx(0.05 * (46.693 / 29) ** 0.5, rel=0.002)
    assert checks.QUIET_CV < widths[-1] < 1.1 * checks.QUIET_CV
