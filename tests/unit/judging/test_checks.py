"""Each check finds what it is for, names the remedy, and is silent about a calm row."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from tests.unit import campaign_data

from peakmark import limits, statistics
from peakmark.judging.checks import check_agreement, check_row
from peakmark.judging.measured import DEFAULT, Measured, Run, Thresholds
from peakmark.judging.notes import Level, Note
from peakmark.limits import Limit

VM: dict[str, Any] = json.loads((campaign_data.DATA / "machine" / "zen3-vm.json").read_text())
CALM = [100.0, 100.4, 99.6, 100.2, 99.8, 100.1]
UNKNOWN = Limit(None, "", "", "", "unknown", "not known")


def row(
    values: list[float] | None = None,
    details: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    limit: Limit = UNKNOWN,
    facts: dict[str, Any] = VM,
    **identity: Any,
) -> Measured:
    values = CALM if values is None else values
    fields: dict[str, Any] = {
        "subsystem": "cpu", "instrument": "cpubench", "workload": "DP", "variant": "", "block": None, "concurrency": 1,
        "metric": "rate", "unit": "op/s",
    }  # fmt: skip
    summary = statistics.summarise(values)
    runs = tuple(Run(value, details or {}, context or {}) for value in values)
    return Measured(**(fields | identity), runs=runs, summary=summary, centre=summary.median, limit=limit, facts=facts)


def codes(measured: Measured, thresholds: Thresholds = DEFAULT) -> list[str]:
    return [note.code for note in check_row(measured, thresholds)]


def limit(value: float, unit: str = "op/s", clock: str = "observed") -> Limit:
    return Limit(value, unit, f"1 core x 3 GHz ({clock} clock)", "test", "measured", clock=clock)


def test_a_calm_row_has_no_notes() -> None:
    details = {"clock_hz_before": 3.2e9, "clock_hz_after": 3.21e9}
    assert check_row(row(details=details, limit=limit(101.0))) == []


@pytest.mark.parametrize(("value", "marked"), [(100.0, False), (96.0, False), (95.0, True), (10.0, True)])
def test_more_than_the_limit_allows(value: float, marked: bool) -> None:
    assert codes(row(limit=limit(value))) == (["above-limit"] if marked else [])


def test_a_time_below_its_limit_is_above_it() -> None:
    assert codes(row([1e-9] * 6, limit=limit(1.2e-9, "s"), unit="s")) == ["above-limit"]
    assert codes(row([1e-9] * 6, limit=limit(0.9e-9, "s"), unit="s")) == []


def test_the_remedy_knows_the_clock_and_the_cache() -> None:
    nominal = check_row(row(limit=limit(80.0, clock="nominal")))[0]
    assert "125%" in nominal.text and "observed" in nominal.text
    disk = check_row(row(limit=limit(50.0, "B/s"), subsystem="disk", workload="RS"))[0]
    assert "cache" in disk.text and "size:" in disk.text
    pool = check_row(row(limit=limit(50.0, "B/s"), subsystem="memory", workload="RWS", variant="pool"))[0]
    assert "pool:" in pool.text


def disk(details: dict[str, Any], facts: dict[str, Any] = VM) -> list[str]:
    return codes(row(details=details, facts=facts, subsystem="disk", instrument="diskbench", workload="RR"))


def test_a_disk_figure_that_never_reached_the_device() -> None:
    assert disk({"device_bytes": 10_000, "work": 10_000, "direct": True, "filesystem": "ext4"}) == []
    assert disk({"device_bytes": 100, "work": 10_000, "direct": True, "filesystem": "ext4"}) == ["cached"]
    assert disk({"device_bytes": 0, "work": 10_000, "direct": False, "filesystem": "ext4"}) == ["cached"]
    assert disk({"device_bytes": None, "work": 10_000, "direct": False, "filesystem": "zfs"}) == ["buffered"]
    assert disk({"device_bytes": None, "work": 10_000, "direct": True, "filesystem": "nfs"}) == []
    assert disk({"device_bytes": None, "work": 10_000, "direct": True, "filesystem": "tmpfs"}) == ["ram-file-system"]


def test_a_reference_that_tells_no_file_system_is_judged_by_the_facts() -> None:
    facts = copy.deepcopy(VM)
    facts["storage"] |= {"filesystem": "tmpfs", "interface": "ram"}
    assert disk({}, facts) == ["ram-file-system"]


@pytest.mark.parametrize(("pool", "marked"), [(1 << 30, False), (128 << 20, False), (127 << 20, True), (1 << 20, True)])
def test_a_pool_that_the_caches_serve(pool: int, marked: bool) -> None:
    identity = {"subsystem": "memory", "instrument": "rambench", "workload": "RWS", "block": 1024}
    details = {"working_set": "pool", "working_set_bytes": pool}
    found = check_row(row(details=details, variant="pool", **identity))
    assert [note.code for note in found] == (["pool-in-cache"] if marked else [])
    if marked:
        assert "make pool: auto, or at least 128MiB" in found[0].text
    assert codes(row(details=details, variant="block", **identity)) == []


def clocks(*pairs: tuple[float, float], values: list[float] | None = None) -> list[Note]:
    """The notes of a row whose repetitions had these clocks before and after; GHz."""
    values = [100.0] * len(pairs) if values is None else values
    measured = row(values)
    runs = [
        Run(value, {"clock_hz_before": before * 1e9, "clock_hz_after": after * 1e9})
        for value, (before, after) in zip(values, pairs, strict=True)
    ]
    return [note for note in check_row(replace(measured, runs=runs)) if note.code.startswith("clock")]


def test_a_clock_that_moves() -> None:
    assert codes(row(details={"clock_hz_before": 3.2e9, "clock_hz_after": 3.1e9})) == []
    moved = check_row(row(details={"clock_hz_before": 3.2e9, "clock_hz_after": 2.6e9}))
    assert [note.code for note in moved] == ["clock-moved"]
    assert "the clock fell by up to 19% during a run in 6 of 6 repetitions" in moved[0].text
    assert codes(row(context={"clock_hz_before": 3.2e9, "clock_hz_after": 2.6e9})) == ["clock-moved"]
    assert codes(row(context={"clock_hz_before": 3.2e9, "clock_hz_after": None})) == []


def test_a_clock_that_moves_in_few_repetitions_is_no_doubt() -> None:
    """The median stands; in half of them it does not."""
    [note] = clocks((3.0, 3.0), (3.0, 2.7), (3.0, 3.0))
    assert (note.level, note.fact) == (Level.NOTE, "the clock fell by up to 10% during a run in 1 of 3 repetitions")
    [note] = clocks((3.0, 3.0), (3.0, 2.7), (3.0, 3.3))
    assert (note.level, note.fact) == (Level.UNSURE, "the clock moved by up to 10% during a run in 2 of 3 repetitions")
    [note] = clocks((2.7, 3.0))
    assert (note.level, note.fact) == (Level.UNSURE, "the clock rose by 11% during a run")


def test_work_that_lowers_the_clock_is_told_and_no_doubt() -> None:
    details = {"clock_hz_before": 2.94e9, "clock_hz_after": 2.96e9}
    [note] = check_row(row(details=details | {"clock_hz_loaded": 2.72e9}))
    assert (note.code, note.level) == ("clock-lowered", Level.NOTE)
    assert "by 7.8%, to 2.72 GHz" in note.text
    assert codes(row(details=details | {"clock_hz_loaded": 2.93e9})) == []
    assert codes(row(details=details | {"clock_hz_loaded": None})) == []


def test_a_clock_that_differs_between_repetitions() -> None:
    """It explains why values differ, which are judged themselves: no doubt of its own."""
    [note] = clocks((3.2, 3.2), (3.2, 3.2), (2.9, 2.9))
    assert (note.code, note.level) == ("clock-differs", Level.NOTE)
    assert note.fact == "the clock of one repetition was 10% above that of another"
    assert clocks((3.2, 3.2), (3.1, 3.1)) == []


@pytest.mark.parametrize(
    ("details", "marked"),
    [
        ({"sent": 1000, "received": 995, "lost": 5}, False),
        ({"sent": 1000, "received": 900, "lost": 100}, True),
        ({"packets": 1000.0, "lost": 100.0, "loss": 0.1}, True),
        ({}, False),
    ],
)
def test_udp_loss(details: dict[str, Any], marked: bool) -> None:
    found = check_row(row(details=details, subsystem="network", workload="UDP", unit="bit/s"))
    assert [note.code for note in found] == (["udp-loss"] if marked else [])
    assert not marked or "10.00%" in found[0].text
    assert codes(row(details=details, subsystem="network", workload="TCP", unit="bit/s")) == []


@pytest.mark.parametrize(
    ("lost", "level"),
    [(0.02, Level.NOTE), (0.1, Level.NOTE), (0.11, Level.UNSURE), (0.5, Level.UNSURE), (0.6, Level.WRONG)],
)
def test_udp_loss_weighs_as_much_as_it_is(lost: float, level: Level) -> None:
    details = {"sent": 1000, "received": round(1000 * (1 - lost)), "lost": round(1000 * lost)}
    found = check_row(row(details=details, subsystem="network", workload="UDP", unit="bit/s"))
    assert [note.level for note in found if note.code == "udp-loss"] == [level]


@pytest.mark.parametrize(("lost", "marked"), [(0, False), (1, False), (250, True)])
def test_round_trips_that_lost_their_datagram(lost: int, marked: bool) -> None:
    details = {"lost": lost, "round_trips": 750}
    found = check_row(row(details=details, subsystem="network", workload="LAT-UDP", metric="latency", unit="s"))
    assert [note.code for note in found] == (["lost-round-trips"] if marked else [])
    assert not marked or "25.00%" in found[0].text
    assert codes(row(details=details, subsystem="network", workload="LAT-TCP", metric="latency", unit="s")) == []


def test_losses_are_those_of_one_run_each() -> None:
    """A run without the counts must not lend its place to the next."""
    base = row(
        details={"lost": 0, "round_trips": 10}, subsystem="network", workload="LAT-UDP", metric="latency", unit="s"
    )
    runs = [Run(1e-5, {"lost": 5}), Run(1e-5, {"lost": 1, "round_trips": 99_999}), *base.runs]
    found = [note for note in check_row(replace(base, runs=runs)) if note.code == "lost-round-trips"]
    assert [note.text[:14] for note in found] == ["up to 100.00% "]
    assert not [n for n in check_row(replace(base, runs=runs[1:])) if n.code == "lost-round-trips"]


def test_threads_beyond_what_the_job_was_given() -> None:
    assert codes(row(concurrency=2)) == []
    assert codes(row(concurrency=3)) == ["oversubscribed"]
    assert codes(row(concurrency=64, subsystem="disk", workload="RR")) == []
    facts = copy.deepcopy(VM)
    facts["limits"] |= {"cpus_allowed": [0, 1, 2, 3], "physical_cores_allowed": 2, "cpu_quota": None}
    found = check_row(row(concurrency=4, facts=facts))
    assert [(note.code, note.doubt) for note in found] == [("shared-cores", False)]
    facts["limits"]["cpu_quota"] = 1.5
    assert codes(row(concurrency=2, facts=facts)) == ["cpu-quota"]
    assert codes(row(concurrency=2, facts={})) == []
    assert codes(row(concurrency=2, facts={}, context={"cpus": [0]})) == ["oversubscribed"]


def test_spread_and_few_repetitions() -> None:
    found = check_row(row([100.0, 120.0, 80.0]))
    assert [(note.code, note.doubt) for note in found] == [("spread", True), ("few", False)]
    assert "20%" in found[0].text
    assert "75%" in found[1].text and "repetitions: 6" in found[1].text
    assert codes(row([100.0])) == ["few"]
    assert "measured once" in check_row(row([100.0]))[0].text
    assert codes(row([100.0, 104.0, 96.0])) == ["few"]


def test_a_cold_first_repetition_and_a_drift() -> None:
    assert codes(row([80.0, 100.0, 100.4, 99.6, 100.2, 99.8, 100.1])) == ["first-differs", "outlier"]
    assert codes(row([110.0, 108.5, 107.0, 105.2, 103.0, 101.0])) == ["drift"]
    assert codes(row([105.0, 103.0, 104.0, 101.0, 100.0])) == ["few"]
    assert codes(row([100.6, 100.5, 100.4, 100.3, 100.2, 100.1])) == []


def test_drift_is_one_over_time_not_over_numbers() -> None:
    """A repetition that had failed was measured after all others."""
    values = [110.0, 101.0, 108.5, 107.0, 105.2, 103.0]
    late = row(values)
    runs = [Run(value, {}, {"started": f"2026-11-21T04:0{9 if number == 1 else number}:00+00:00"})
            for number, value in enumerate(values)]  # fmt: skip
    assert codes(late) == []
    assert codes(Measured(**{**vars(late), "runs": runs})) == ["drift"]


def test_an_outlier_is_named_and_kept() -> None:
    found = check_row(row([100.0, 100.1, 99.9, 100.2, 104.0, 99.8, 100.0]))
    assert [(note.code, note.doubt) for note in found] == [("outlier", False)]
    assert "repetition 5 of 7" in found[0].text


def test_loopback_is_named() -> None:
    loop = {"network": {"interface": "lo", "loopback": True}}
    found = check_row(row(context=loop, subsystem="network", workload="TCP"))
    assert [(note.code, note.doubt) for note in found] == [("loopback", False)]
    assert codes(row(context={"network": None}, subsystem="network", workload="TCP")) == []


@pytest.mark.parametrize(("residual", "marked"), [(0.0027, False), (16.0, True), (1e5, True)])
def test_hpl_residual(residual: float, marked: bool) -> None:
    found = codes(row(details={"residual": residual}, instrument="hpl"))
    assert found == (["residual"] if marked else [])


def test_instruments_that_disagree() -> None:
    values = {"cpubench": 100e9, "hpl": 60e9, "likwid-bench": 99e9}
    found = check_agreement(values)
    assert [note.code for note in found] == ["disagreement", "disagreement"]
    assert "cpubench and hpl are a factor of 1.7 apart" in found[0].text
    assert len(check_agreement(values, own="cpubench")) == 1
    assert check_agreement(values, Thresholds(band=2.0)) == []
    assert check_agreement({"ping": 30e-6}) == []


def test_doubts_come_first() -> None:
    notes = check_row(row([100.0, 130.0], concurrency=9))
    assert [note.doubt for note in notes] == sorted((note.doubt for note in notes), reverse=True)


def test_with_a_real_limit_of_this_project() -> None:
    limit = limits.for_row("cpu", "DP", "", None, 1, "rate", VM, {}, 3.2e9)
    assert codes(row([48.4e9] * 6, limit=limit)) == []
    assert codes(row([64e9] * 6, limit=limit)) == ["above-limit"]


@pytest.mark.parametrize(
    ("limits", "metric", "value", "marked"),
    [
        ({"read_bps": 20_000_000}, "throughput", 19e6, True),
        ({"read_bps": 20_000_000}, "throughput", 10e6, False),
        ({"write_bps": 20_000_000}, "throughput", 19e6, False),
        ({"read_iops": 500}, "iops", 495.0, True),
        ({"read_bps": 4096 * 500}, "iops", 495.0, True),
        ({"read_iops": 500}, "latency", 2 / 490, True),
        ({"read_iops": 500}, "latency", 2 / 100, False),
        (None, "throughput", 19e6, False),
    ],
)
def test_a_disk_that_a_cgroup_holds_back(
    limits: dict[str, int] | None, metric: str, value: float, marked: bool
) -> None:
    identity = {"subsystem": "disk", "instrument": "diskbench", "workload": "RR", "metric": metric, "block": 4096}
    values = [value * factor for factor in (1, 1.001, 0.999, 1.002, 0.998, 1)]
    found = check_row(row(values, {}, {"io_limits": limits}, concurrency=2, **identity))
    assert [note.code for note in found] == (["io-limit"] if marked else [])
    if marked:
        assert "cgroup" in found[0].text and "io.max" in found[0].text


@pytest.mark.parametrize(("bps", "text"), [(401_000_000, "at most 401 MB/s"), (2_500_000_000, "at most 2500 MB/s")])
def test_a_limit_of_a_disk_is_in_the_unit_of_its_tables(bps: int, text: str) -> None:
    identity = {
        "subsystem": "disk",
        "instrument": "diskbench",
        "workload": "RS",
        "metric": "throughput",
        "block": 1 << 20,
    }
    values = [bps * factor for factor in (1, 1.001, 0.999, 1.002, 0.998, 1)]
    (note,) = check_row(row(values, {}, {"io_limits": {"read_bps": bps}}, **identity))
    assert text in note.text


def test_a_link_that_is_shaped() -> None:
    context = {"network": {"loopback": False, "shaping": "tbf 100 Mbit/s"}}
    network = {
        "subsystem": "network",
        "instrument": "netbench",
        "workload": "TCP",
        "metric": "throughput",
        "unit": "bit/s",
    }
    (note,) = check_row(row(context=context, **network))
    assert (note.code, note.doubt) == ("shaped", True)
    assert "tbf 100 Mbit/s" in note.text and "tc qdisc show" in note.text
    assert codes(row(context={"network": {"loopback": False, "shaping": None}}, **network)) == []


PLACED = {"cores": 1, "sockets": 1, "numa_nodes": [0], "last_level_bytes": 32 << 20}


def test_what_a_job_was_given_stands_in_its_record() -> None:
    facts = copy.deepcopy(VM)
    facts["limits"] |= {"cpus_allowed": [0], "physical_cores_allowed": 1, "cpu_quota": None}  # of the first job
    allowed = {"cores": 4, "cpu_quota": None}
    assert codes(row(facts=facts, concurrency=2, context={"cpus": [0, 1, 2, 3], "allowed": allowed})) == []
    crowded = row(facts=facts, concurrency=4, context={"cpus": [0, 1, 2, 3], "allowed": {**allowed, "cores": 2}})
    assert codes(crowded) == ["shared-cores"]
    held = row(facts=facts, concurrency=2, context={"cpus": [0, 1, 2], "allowed": {**allowed, "cpu_quota": 1.5}})
    assert codes(held) == ["cpu-quota"]


def test_a_pool_is_compared_with_the_caches_its_threads_reach() -> None:
    facts = copy.deepcopy(VM)
    facts["cpu"]["caches"] = [{"level": 3, "type": "unified", "size": 32 << 20, "shared_by": 16, "count": 2}]
    identity = {"subsystem": "memory", "instrument": "rambench", "workload": "RWS", "block": 1024, "variant": "pool"}
    details = {"working_set_bytes": 128 << 20}
    for context in ({}, {"placed": PLACED}):
        assert codes(row(facts=facts, details=details, context=context, concurrency=1, **identity)) == []
    beside = {"placed": {**PLACED, "last_level_bytes": 32 << 20}}  # two threads on the cores of one cache
    assert codes(row(facts=facts, details=details, context=beside, concurrency=2, **identity)) == []
    both = {"placed": {**PLACED, "last_level_bytes": 64 << 20}}
    assert codes(row(facts=facts, details=details, context=both, concurrency=2, **identity)) == ["pool-in-cache"]


def test_a_throttled_node_does_not_look_perfect() -> None:
    facts = copy.deepcopy(VM)
    facts["cpu"]["clock_hz"] |= {"nominal": 2.1e9}
    slow = {"clock_hz_before": 1.2e9, "clock_hz_after": 1.2e9}
    perfect = limit(101.4)
    found = check_row(row(details=slow, limit=perfect, facts=facts))
    assert [note.code for note in found] == ["below-nominal"] and found[0].doubt
    assert (
        "1.2 GHz" in found[0].text and "2.1 GHz" in found[0].text and "56% of it at the nominal clock" in found[0].text
    )
    # The clock under the work decides, whatever it was before and after.
    fast = {"clock_hz_before": 2.1e9, "clock_hz_after": 2.1e9}
    assert codes(row(details=fast, limit=perfect, facts=facts)) == []
    assert codes(row(details={**fast, "clock_hz_loaded": 1.2e9}, limit=perfect, facts=facts)) == [
        "below-nominal",
        "clock-lowered",
    ]


def test_threads_that_waited_for_their_cpus_are_told() -> None:
    measured = row()

    def of(*shares: float) -> list[Note]:
        runs = [Run(100.0 * share, {"cpu_share": share}) for share in shares]
        return check_row(Measured(**{**vars(measured), "runs": runs}))

    assert [note.code for note in of(1.0, 0.99, 1.0)] == []
    [note] = of(1.0, 0.861, 1.0)
    assert (note.code, note.level) == ("waited", Level.NOTE)
    assert note.fact.startswith("threads lost up to 13.9% of their CPUs' time in 1 of 3 repetitions to other programs")
    assert of(0.94, 0.93, 1.0)[0].level is Level.UNSURE
    # As of the hypervisor's share: what takes less than a quiet machine spreads changes no figure.
    assert of(0.96, 0.96, 0.96)[0].level is Level.NOTE
    # A core that does half of what its pipes allow needs no other reason.
    half = {"cpu_share": 0.5}
    assert codes(row(details=half, limit=limit(200.0))) == ["waited"]
    assert codes(row(details={"cpu_share": 1.0}, limit=limit(200.0))) == ["slow-core"]
    assert codes(row(details=half, subsystem="disk", instrument="diskbench")) == []


@pytest.mark.parametrize(
    ("isa", "idle", "loaded", "expected"),
    [
        ("avx512", 2.8e9, 1.9e9, ["clock-lowered"]),  # as AVX-512 allows: its base clock is below the one on the box
        ("avx2", 2.8e9, 1.9e9, ["clock-lowered"]),
        ("sse2", 2.8e9, 1.9e9, ["below-nominal", "clock-lowered"]),  # nothing but heat or power does that
        ("avx512", 1.8e9, 1.7e9, ["below-nominal", "clock-lowered"]),
        ("avx512", 2.8e9, 0.8e9, ["below-nominal", "clock-lowered"]),  # lower than any design asks for
    ],
)
def test_wide_vectors_below_the_nominal_clock_are_no_throttling(
    isa: str, idle: float, loaded: float, expected: list[str]
) -> None:
    facts = copy.deepcopy(VM)
    facts["cpu"]["clock_hz"] |= {"nominal": 2.1e9}
    details = {"isa": isa, "clock_hz_before": idle, "clock_hz_after": idle, "clock_hz_loaded": loaded}
    found = check_row(row(details=details, limit=limit(101.4), facts=facts))
    assert [note.code for note in found] == expected
    assert "below the nominal 2.1 GHz" in found[-1].text
    if len(expected) == 2:  # the share is that of the limit, which takes the clock under the work
        assert f"({100 / 101.4 * loaded / 2.1e9:.0%} of it at the nominal clock)" in found[0].text


def test_repetitions_on_other_cores_are_not_alike() -> None:
    measured = row()
    runs = [Run(100.0, {}, {"placed": {**PLACED, "cores": cores}}) for cores in (1, 1, 2)]
    assert codes(Measured(**{**vars(measured), "runs": runs})) == ["placement-differs"]


VIRTUAL = {"cpu": {"virtualised": "KVM", "cores": 4}}


@pytest.mark.parametrize(
    ("flush", "work", "facts", "found"),
    [
        (1e-4, 8e8, VIRTUAL, [("flush", Level.UNSURE)]),
        (1e-4, 8e8, {"cpu": {}}, [("flush", Level.NOTE)]),
        (0.02, 8e8, VIRTUAL, []),
        (1e-4, 1e6, VIRTUAL, []),
    ],
)
def test_a_flush_that_takes_no_time_is_remarked(
    flush: float, work: float, facts: dict[str, Any], found: list[tuple[str, Level]]
) -> None:
    details = {"flush_seconds": flush, "work": work, "seconds": 2.0}
    measured = row(details=details, subsystem="disk", instrument="diskbench", workload="WS", unit="B/s", facts=facts)
    notes = check_row(replace(measured, metric="throughput"))
    assert [(note.code, note.level) for note in notes] == found
    assert all("as with a" in note.fact for note in notes), "the fact alone says what it means"


def test_a_core_that_does_less_than_its_pipes_allow_is_unsure() -> None:
    """1.2 instead of 2 fused operations a cycle, and nothing in the record says why."""
    slow = row([60.0] * 6, facts=VIRTUAL, limit=limit(100.0))
    assert codes(slow) == ["slow-core"]
    assert codes(replace(slow, centre=80.0)) == []
    assert codes(replace(slow, concurrency=8)) == []
    noise = {"before": {}, "after": {}, "during": {"seconds": 1.0, "steal": 0.3, "others": 0.0, "busy": 0, "users": 0}}
    stolen = [replace(run, context={"noise": noise}) for run in slow.runs]
    assert codes(replace(slow, runs=stolen)) == ["steal"]
    scalar = [replace(run, options={"isa": "scalar"}) for run in slow.runs]
    assert codes(replace(slow, runs=scalar)) == ["narrower"]


@pytest.mark.parametrize(
    ("isa", "best", "said"),
    [("scalar", "avx512", "plain arithmetic as asked"), ("avx2", "avx512", "AVX2 instructions as asked"),
     ("auto", "avx512", ""), ("avx2", "avx2", ""), ("scalar", None, "plain arithmetic as asked")],
)  # fmt: skip
def test_a_share_of_narrow_instructions_is_said_to_be_theirs(isa: str, best: str | None, said: str) -> None:
    facts = {**VM, "cpu": {**VM["cpu"], "isa_best": best}}
    measured = row([3.0] * 6, facts=facts, limit=limit(100.0))
    measured = replace(measured, runs=[replace(run, options={"isa": isa}) for run in measured.runs])
    (text,) = [note.text for note in check_row(measured) if note.code == "narrower"] or [""]
    assert text.startswith(said) and bool(text) == bool(said)
    unknown = [note.code for note in check_row(replace(measured, limit=replace(measured.limit, value=None)))]
    assert "narrower" not in unknown


def test_advice_fits_the_row() -> None:
    details = {"sent": 1000, "received": 900, "lost": 100}
    for streams, fewer in ((1, False), (4, True)):
        (note,) = check_row(
            row(details=details, subsystem="network", workload="UDP", unit="bit/s", concurrency=streams)
        )
        assert ("fewer streams" in note.text) == fewer


def test_short_runs_are_remarked() -> None:
    assert codes(row(details={"seconds": 0.2}, instrument="cpubench")) == ["short-runs"]
    assert codes(row(details={"seconds": 1.0}, instrument="cpubench")) == []
    assert codes(row(details={"seconds": 0.2}, instrument="fio")) == []


def test_what_runs_on_other_cpus_takes_nothing_from_pinned_threads() -> None:
    facts = {"cpu": {"threads": 8, "cores": 8}}
    noise = {"before": {}, "after": {}, "during": {"seconds": 1.0, "steal": 0.0, "others": 1.5, "busy": 2, "users": 0}}
    for threads, level in ((1, Level.NOTE), (8, Level.UNSURE)):
        (note,) = check_row(row(context={"noise": noise, "cpus": list(range(8))}, concurrency=threads, facts=facts))
        assert (note.code, note.level) == ("other-load", level)
    # A program on the very CPU takes from it, however many others are free.
    held = row(details={"cpu_share": 0.5}, context={"noise": noise, "cpus": list(range(8))}, facts=facts)
    assert {note.code: note.level for note in check_row(held)} == {"waited": Level.UNSURE, "other-load": Level.UNSURE}


def test_a_pool_row_says_how_it_wrote() -> None:
    identity = {"subsystem": "memory", "instrument": "rambench", "workload": "WS", "variant": "pool"}
    for store, words in (("temporal", "ordinary stores"), ("streaming", "streaming stores"), ("libc", "C library")):
        [note] = check_row(row(details={"store": store}, **identity))
        assert (note.code, note.level) == ("stores", Level.NOTE) and words in note.text
    runs = [Run(100.0, {"store": store}) for store in ("temporal", "streaming")]
    assert "stores-differ" in codes(Measured(**{**vars(row(**identity)), "runs": runs}))
    assert codes(row(details={"store": None}, **identity)) == []
