"""Each check finds what it is for, with its weight and its numbers, and is silent otherwise."""

from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pandas as pd
import pytest
from tests.unit.campaign_data import VM, cell, measurement, noise, placed, reached

from peakmark import statistics
from peakmark.limits import Limit
from peakmark.messages import Trust
from peakmark.rows import checks, schema
from peakmark.rows.checks import check_row
from peakmark.rows.placements import add_placements
from peakmark.rows.rows import RowRuns
from peakmark.rows.runs import add_clock, line_of
from peakmark.storage.activity import HEAT_MS
from peakmark.storage.record_types import RecordContext
from peakmark.tools.base import Measurement

W, U, N = Trust.NO, Trust.CARE, Trust.OK
PLACED = placed(1, 1)["placed"]
CALM = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]
WHEN = {"host": "node1", "started": "2026-11-21T04:00:00", "seconds": 1.0}
UNKNOWN = Limit(None, "", "", "", "unknown")
CPU = {"subsystem": "cpu", "instrument": "cpubench", "workload": "DP", "metric": "rate"}
METRICS = {"memory": "throughput", "disk": "throughput", "network": "throughput"}


def row(
    values=None, details=None, context=None, options=None, *, limit=UNKNOWN, facts=VM, **identity
):
    """A row of six calm repetitions, or of as many as one of the lists has.

    ``details``, ``context`` and ``options`` are of all repetitions, or a list with those of each.
    """
    lists = [each for each in (values, details, context, options) if isinstance(each, list)]
    n = len(next(iter(lists), CALM))
    values = CALM[:n] if values is None else values
    known = [
        each if isinstance(each, list) else [each or {}] * n for each in (details, context, options)
    ]
    of = CPU | {"metric": METRICS.get(identity.get("subsystem"), "rate")} | identity
    metric = of.pop("metric")
    machine = SimpleNamespace(facts_for=lambda *_: facts)
    lines = []
    for number, (value, detail, around, asked) in enumerate(zip(values, *known, strict=True)):
        measured_cell = cell(**of, repetition=number, **asked)
        measured = measurement(measured_cell, metric, value, details=detail)
        context = msgspec.convert(WHEN | around, RecordContext)
        line = line_of(machine, measured_cell, msgspec.convert(measured, Measurement), context)
        lines.append(line | {"value": value})
    frame = schema.typed("runs", pd.DataFrame(lines).assign(measurement=0, record="r"))
    frame = add_placements(add_clock(frame), {})
    runs = tuple(schema.lines(frame.assign(share=frame["value"].map(limit.share).astype(float))))
    table = of["subsystem"] if metric == "rate" else f"{of['subsystem']}_{metric}"
    return RowRuns(line_of_row(runs, table, limit), runs, facts)


def line_of_row(runs, table, limit):
    """The line of ``rows`` of these runs, with what the checks read of it."""
    first = runs[0]
    names = ("subsystem", "instrument", "workload", "variant", "block_bytes", "concurrency")
    summary = statistics.summarise([run.value for run in runs])
    return SimpleNamespace(
        **{name: getattr(first, name) for name in names},
        table=table,
        value=summary.median,
        n=summary.n,
        printed_in="",
        settings="{}",
        level=summary.level,
        limit=limit.value,
        limit_kind=limit.kind,
        limit_origin=limit.origin,
        limit_clock=limit.clock,
        nominal_hz=None,
        efficiency=limit.share(summary.median) if limit.value else None,
        share=limit.share(summary.median),
    )


def limit(value, unit="op/s", clock="observed"):
    return Limit(value, unit, f"1 core x 3 GHz ({clock} clock)", "test", "measured", clock=clock)


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


# -- cores: their clock, their number, which of them the threads had, who else was on them


def ghz(*pairs, loaded=None):
    """Details of repetitions with these clocks before and after the work, and under it."""
    under = {} if loaded is None else {"clock_hz_loaded": loaded * 1e9}
    return [
        {"clock_hz_before": before * 1e9, "clock_hz_after": after * 1e9} | under
        for before, after in pairs
    ]


def threads(count, cores=None, quota=None, cpus=4):
    """A row of so many threads, whose jobs were given so much."""
    allowed = placed(1, cores, quota)["allowed"]
    return row(concurrency=count, context={"allowed": allowed, "cpus": list(range(cpus))})


def on_box(isa, idle, loaded=None):
    """A row at its limit, on a CPU that says 2.1 GHz on the box."""
    clock = VM["cpu"]["clock_hz"] | {"nominal": 2.1e9}
    details = ghz((idle, idle), loaded=loaded)[0] | {"isa": isa}
    facts = VM | {"cpu": VM["cpu"] | {"clock_hz": clock}}
    return row([101.4] * 6, details, limit=limit(101.4), facts=facts)


def waited(*shares):
    return row(details=[{"cpu_share": share} for share in shares])


def probed(*pairs, values=None):
    """A row beside whose repetitions DRAM was read at these GB/s before and after."""
    details = [{"probe_before": 1e9 * pair[0], "probe_after": 1e9 * pair[1]} for pair in pairs]
    return row(values, details)


def narrow(isa, best, limit_at=100.0):
    facts = VM | {"cpu": VM["cpu"] | {"isa_best": best}}
    reach = replace(limit(100.0), value=limit_at)
    return row([80.0] * 6, options={"isa": isa}, facts=facts, limit=reach)


def crowded(*held, share=1.0, count=2, slower=0.0, ns=25.0):
    """Threads on two cores, and on how many of them others used the pipes, which slowed them down."""
    times = {"core_to_core_before": 1e-9 * ns, "core_to_core_after": 1e-9 * ns}
    details = [
        times | {"cpu_share": share} | ({} if cores is None else {"held_up": cores})
        for cores in held
    ]
    values = [CALM[number] - bool(cores) * slower for number, cores in enumerate(held)]
    job = placed(1, 2) | {"placed": PLACED | {"cores": 2}}
    facts = {"cpu": {"cores": 2}}
    return row(values, details, job, limit=limit(170.0), facts=facts, concurrency=count)


def disturbed(*contexts, values=None):
    """A row that uses all CPUs: quiet repetitions, but for the last ones."""
    quiet = [noise()] * (len(values or CALM) - len(contexts))
    return row(values, context=[*quiet, *contexts], facts={})


# -- the cases

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

ONCE, BELOW = {"few": U}, {"slowed-down": U}
ELSEWHERE = [{"placed": PLACED | {"cores": cores}} for cores in (1, 1, 2)]
BUSY_SERVER = noise() | {"server_host": "node2", "server_noise": noise(others=0.9)["noise"]}
COOLING = [100.0 - 2 * number for number in range(8)]

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
    (network("TCP", context=reached(link={"driver": "veth"})), {"loopback": U}, {"case": "veth"}),
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

    # A clock that moves, of which the median stands while fewer than half of the repetitions did.
    (row(details=ghz((3.2, 3.1)) * 6), {}, {}),
    (row(details=ghz((3.2, 2.6)) * 6), {"clock-moved": U}, {"way": "fell", "share": 0.1875, "often": " in 6 of "}),
    (row(context={"clock_hz_before": 3.2e9, "clock_hz_after": None}), {}, {}),
    (row(details=ghz((3.0, 3.0), (3.0, 2.7), (3.0, 3.0))), {"clock-moved": N}, {"way": "fell", "often": " in 1 of 3 repetitions"}),
    (row(details=ghz((3.0, 3.0), (3.0, 2.7), (3.0, 3.3))), {"clock-moved": U}, {"share": 0.1, "often": " in 1 of "}),
    (row(details=ghz((2.7, 3.0))), {"clock-moved": U} | ONCE, {"way": "rose", "share": 1 / 9, "often": ""}),
    # One that differs explains why values do, which are judged themselves.
    (row(details=ghz((3.2, 3.2), (3.2, 3.2), (2.9, 2.9))), {}, {}),
    # Work that lowers it is no doubt: the limit takes the lower one.
    (row(details=ghz((2.94, 2.96), loaded=2.72) * 6), {}, {}),
    # A throttled node does not look perfect: the clock under the work decides.
    (on_box("scalar", 1.2), BELOW, {"nominal": 2.1e9, "clock": 1.2e9}),
    (on_box("scalar", 2.1, 1.2), BELOW, {"clock": 1.2e9}),
    # As wide vectors allow: their base clock is below the one on the box.
    (on_box("avx512", 2.8, 1.9), {}, {}),
    # Nothing but heat or power does that, or it is lower than any design asks for.
    (on_box("sse2", 2.8, 1.9), BELOW, {"clock": 1.9e9}),
    (on_box("avx512", 1.8, 1.7), BELOW, {"clock": 1.8e9}),
    (on_box("avx512", 2.8, 0.8), BELOW, {"clock": 0.8e9}),
    # Threads beyond what the jobs were given.
    (row(concurrency=2), {}, {}),
    (threads(2, 4), {}, {}),
    (threads(3, cpus=2), {"oversubscribed": W}, {"threads": 3, "cpus": 2}),
    (threads(4, 2), {}, {}),
    (threads(2, 2, 1.5), {"cpu-quota": W}, {"quota": 1.5}),
    (row(concurrency=64, subsystem="disk", workload="RR"), {}, {}),
    (row(context=ELSEWHERE), {"placement-differs": U}, {}),
    (row(context={"placed": PLACED}), {}, {}),
    # Threads that waited; what takes less than a quiet machine spreads changes no figure.
    (waited(1.0, 0.99, 1.0), {}, {}),
    # DRAM that others use: held against the median, in a run whose value is another one.
    (probed((19, 20), (20, 18), (17, 19)), {}, {}),
    (probed((20, 12), (20, 20), (20, 20), values=[80.0, 100.0, 101.0]), {"neighbours": N}, {}),
    (probed((20, 12), (20, 20), (20, 20), values=[99.0, 100.0, 101.0]), {}, {}),
    (probed((20, 12), (20, 20), (20, 20), values=[105.0, 100.0, 101.0]), {}, {}),
    (probed((20, 12), values=[80.0]), ONCE, {}),
    (waited(1.0, 0.861, 1.0), {"waited": N}, {"share": 0.139, "often": " in 1 of 3 repetitions"}),
    (waited(0.94, 0.93, 1.0), {"waited": U}, {"share": 0.07}),
    (waited(0.96, 0.96, 0.96), {"waited": N}, {}),
    (row(details={"cpu_share": 0.5}, subsystem="disk", instrument="diskbench"), {}, {}),
    # A share of narrow instructions that were asked for is theirs.
    (narrow("scalar", "avx512"), {"narrower": N}, {"asked": "plain arithmetic"}),
    (narrow("avx2", "avx512"), {"narrower": N}, {"asked": "AVX2 instructions"}),
    (narrow("auto", "avx512"), {}, {}),
    (narrow("avx2", "avx2"), {}, {}),
    (narrow("scalar", "avx512", limit_at=None), {}, {}),
    # Other load meanwhile: a median stands while most repetitions are calm.
    (disturbed(), {}, {}),
    (disturbed(*[{"noise": noise()["noise"] | {"during": None}}] * 6), {}, {}),
    (disturbed(*[noise(others=0.9, busy=2, users=1)] * 6), {"other-load": U}, {"share": 0.9, "busy": "2 busy processes, of 1 other user", "often": " in 6 of "}),
    (disturbed(*[noise(others=0.9)] * 6), {"other-load": U}, {"busy": "hidden"}),
    (disturbed(noise(others=0.9)), {"other-load": N}, {"often": " in 1 of 6 repetitions"}),
    (disturbed(*[noise(steal=0.08)] * 6), {"steal": U}, {"share": 0.08, "often": " in 6 of "}),
    (disturbed(*[noise(throttled_s=0.3)] * 6), {"cpu-quota": U}, {"share": 0.3}),
    (disturbed(*[noise(hot=2)] * 6), {"slowed-down": U}, {"often": " in 6 of "}),
    (disturbed(*[BUSY_SERVER] * 6), {"other-load": U}, {"share": 0.9, "often": "node2, where the server ran"}),
    (row(COOLING), {"spread": U}, {}),
    # Seen on a guest: 0.85 of the limit with all of its CPUs' time, and the kernel told no clock.
    (crowded(0, 1, 2, 2, 0, slower=5.0), {"neighbours": U}, {}),
    (crowded(0, 1, 0, 0, 0, slower=5.0), {"neighbours": N}, {}),
    # A run with the value of the undisturbed ones was not disturbed.
    (crowded(0, 1, 2, 2, 0, slower=1.0), {}, {}),
    # Two threads that the host placed on one core hold each other up.
    (crowded(1, 1, 1, 1, 1, ns=10.3), {}, {}),
    (crowded(1, 1, 1, 1, 1), {"neighbours": U}, {}),
    (crowded(None, None, None, None, None), {}, {}),
    # Threads that share a core as asked, or that waited for their CPU, hold each other up.
    (crowded(4, 4, 4, 4, 4, count=4), {}, {}),
    (crowded(1, 1, 1, 1, 1, share=0.5), {"waited": U}, {}),
]  # fmt: skip


def values_of(message):
    """The values of a message, and its case."""
    return {"case": message.case, **message.values}


def contains(values, expected):
    """Whether these are among the values: numbers within one per mille, words as a part of a text."""
    for name, value in expected.items():
        if isinstance(value, float):
            found = abs(values[name] / value - 1) < 1e-3
        else:
            found = values[name] == value or (value and value in values[name])
        if not found:
            return False
    return True


@pytest.mark.parametrize(
    ("made", "weights", "first"), CASES, ids=["+".join(found) or "none" for _, found, _ in CASES]
)
def test_a_row_has_these_marks(made, weights, first):
    """Messages of these weights by their codes, and the first has these values."""
    found = check_row(made)
    assert {each.code: each.trust for each in found} == weights
    assert not first or contains(values_of(found[0]), first), values_of(found[0])


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
