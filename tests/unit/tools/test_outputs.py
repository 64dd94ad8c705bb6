"""Numbers, units and warnings in outputs of the real tools: the expected values were read off the
outputs by hand.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from tests.unit.tools import samples

from peakmark.errors import ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import REGISTRY
from peakmark.tools.base import Tool

KB = 1024


def operations(threads: int, **rates: float) -> dict[tuple[str, str], float]:
    """IOZone tells operations per second alone; latencies follow."""
    every = {(name, "iops"): rate for name, rate in rates.items()}
    return every | {(name, "latency"): threads / rate for name, rate in rates.items()}


# case -> {(workload, metric): value in SI base units}
GOOD = {
    "cpubench/dp-x2": {("DP", "rate"): 21582620203.081005},
    "cpubench/qpdot-x1": {("QPDOT", "rate"): 23115185465.61519},
    "rambench/rws-pool-x2": {("RWS", "throughput"): 16842050688.319035},
    "rambench/rs-block-x1": {("RS", "throughput"): 66330377524.18737},
    "rambench/lat-x1": {("LAT", "latency"): 2.3755089e-08},
    "diskbench/rr-psync-x2": {
        ("RR", "throughput"): 44242388.561261356,
        ("RR", "iops"): 10801.364394839198,
        ("RR", "latency"): 0.0001847813564173592,
    },
    "diskbench/ws-uring-x1": {
        ("WS", "throughput"): 725147391.8629284,
        ("WS", "iops"): 11064.871091658453,
        ("WS", "latency"): 0.00030909922265625,
    },
    "netbench/tcp-x1": {("TCP", "throughput"): 5845411021.3140545},
    "netbench/udp-x2": {("UDP", "throughput"): 1003176030.645332},
    "netbench/udp-gso-x1": {("UDP", "throughput"): 5298562963.705317},
    "netbench/lat-tcp-x1": {("LAT-TCP", "latency"): 2.92819462e-05},
    "netbench/lat-udp-busy-x1": {("LAT-UDP", "latency"): 2.4196674789016998e-05},
    # From N and hpcc's HPL_time=0.283419: (2/3 N^3 + 3/2 N^2) / time.
    "hpl/hpcc-x2": {("DP", "rate"): (2 / 3 * 2688**3 + 1.5 * 2688**2) / 0.283419},
    "hpl/hpcc-reference-blas": {("DP", "rate"): (2 / 3 * 1408**3 + 1.5 * 1408**2) / 0.456611},
    "hpl/xhpl-x2": {("DP", "rate"): 1.2646e10},
    "hpl/xhpl-crowded-x4": {("DP", "rate"): 1.5974e10},
    "pmbw/rs-block-x1": {("RS", "throughput"): 175128912731.22},
    "pmbw/all-block-x2": {
        ("RS", "throughput"): 94399779774.1016,
        ("WS", "throughput"): 71652135420.7939,
        ("RWS", "throughput"): 2 / (1 / 94399779774.1016 + 1 / 71652135420.7939),
    },
    "pmbw/lat-x2": {("LAT", "latency"): 2 * 1.1063592407852983e-08},
    "likwid-bench/dp-x2": {("DP", "rate"): 45000007680 / 2.341073},
    "likwid-bench/fp32-sse-x1": {("FP32", "rate"): 11999969280 / 1.062966},
    "likwid-bench/rs-block-x1": {("RS", "throughput"): 60e9 / 1.620864},
    "likwid-bench/ws-block-x2": {("WS", "throughput"): 59999518720 / 2.693470},
    "likwid-bench/rws-pool-x2": {("RWS", "throughput"): 15032385536 / 1.217456},
    "likwid-bench/odd-size-x1": {("RS", "throughput"): 22528e6 / 0.4601822},
    "iozone/single-1m": {
        ("WS", "throughput"): 2140873 * KB,
        ("RS", "throughput"): 612163 * KB,
        ("RR", "throughput"): 570590 * KB,
        ("WR", "throughput"): 1376597 * KB,
    },
    "iozone/t2-1m": {
        ("WS", "throughput"): 1771920.12 * KB,
        ("RS", "throughput"): 611896.59 * KB,
        ("RR", "throughput"): 785946.03 * KB,
        ("WR", "throughput"): 1277927.25 * KB,
    },
    "iozone/single-ops-4k": operations(1, WS=9325, RS=7886, RR=12921, WR=8903),
    "iozone/t2-ops-4k": operations(2, WS=19784.51, RS=13382.51, RR=3913.77, WR=18600.68),
    "fio/rr-psync-x2": {
        ("RR", "throughput"): 26349568 / 0.502,
        ("RR", "iops"): 6433 / 0.502,
        ("RR", "latency"): 154466.494637e-9,
    },
    "fio/ws-psync-x1": {
        ("WS", "throughput"): 769654784 / 0.502,
        ("WS", "iops"): 734 / 0.502,
        ("WS", "latency"): 680474.405995e-9,
    },
    "fio/wr-uring-total-x1": {
        ("WR", "throughput"): 8388608 / 0.110,
        ("WR", "iops"): 2048 / 0.110,
        ("WR", "latency"): 425293.481445e-9,
    },
    "iperf3/tcp-x2": {("TCP", "throughput"): 7908617042.6355276},
    "iperf3/udp-omit": {("UDP", "throughput"): 12130623122.831923},
    "iperf3/udp-x1": {("UDP", "throughput"): 524391444.4699747},
    "qperf/all": {("LAT-TCP", "latency"): 2 * 12300e-9, ("LAT-UDP", "latency"): 2 * 18547e-9},
    "qperf/lat-udp": {("LAT-UDP", "latency"): 2 * 15872e-9},
    "ping/loopback": {("LAT-ICMP", "latency"): 0.015e-3},
}

# case -> words of the sentence that the user sees
BAD = {
    "hpl/failed": "residual check FAILED",
    "hpl/hpcc-failed": "residual check FAILED",
    "hpl/skipped": "skipped its test",
    "pmbw/skipped": "does not fit its memory",
    "likwid-bench/illegal-instruction": "did not come to its end",
    "iozone/record-error": "maximum record size 17408 kB",
    "iozone/file-too-small": "did not come to its end",
    "fio/odd-record": "Invalid argument",
    "fio/unknown-engine": "engine nosuch not loadable",
    "iperf3/refused": "Connection refused",  # 3.12 ends with exit code 0
    # Beside so much else that its warm-up took the whole time; at its end it counted from there.
    "iperf3/udp-nothing-sent": "sent no datagram",
    "qperf/lost": "no round trip of udp_lat",  # netem lost the first datagram
    "qperf/refused": "failed to connect",
    "ping/no-answer": "none of 2 packets was answered",
    "ping/unknown-host": "Name or service not known",
}
# Told as not possible here, which is no failure: a user cannot give himself rights.
REFUSED = {"ping/no-rights": "may not open its socket as this user: as root: setcap cap_net_raw"}
UNITS = {"rate": "op/s", "iops": "1/s", "latency": "s"}


def test_every_sample_is_tested() -> None:
    assert set(samples.CASES) == GOOD.keys() | BAD.keys() | REFUSED.keys()
    assert {case.split("/")[0] for case in GOOD} == REGISTRY.keys()


@pytest.mark.parametrize("case", GOOD)
def test_values(case: str) -> None:
    parsed = samples.parse(case)
    cell, _ = samples.load(case)
    assert samples.values(parsed) == pytest.approx(GOOD[case], rel=1e-9, abs=0)
    for row in parsed.measurements:
        throughput = "bit/s" if cell.subsystem == "network" else "B/s"
        assert row.unit == UNITS.get(row.metric, throughput)
        assert (row.variant, row.block, row.concurrency) == (
            cell.variant,
            cell.block,
            cell.concurrency,
        )
        for value in row.details.values():
            assert value is None or isinstance(value, str | int | float)
            assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("case", BAD)
def test_failures_are_told(case: str) -> None:
    with pytest.raises(ParseError, match=BAD[case]):
        samples.parse(case)


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_machine_refuses_is_no_failure(case: str, tmp_path: Path) -> None:
    cell, completed = samples.load(case)
    with pytest.raises(Unavailable, match=REFUSED[case]):
        samples.parse(case)
    tool = Tool(cell.instrument, completed.argv[0], "20240117")
    command = REGISTRY[cell.instrument].prepare(cell, tool, samples.workspace(tmp_path)).command
    assert completed.returncode in command.ok_codes  # what it printed is read


def test_hpl_names_the_blas() -> None:
    assert samples.parse("hpl/xhpl-x2").library == {
        "blas": "OpenBLAS",
        "core_type": "Zen",
        "requested": None,
    }
    assert samples.parse("hpl/xhpl-x2").version == "2.3"
    plain = samples.parse("hpl/hpcc-reference-blas")
    assert plain.library["blas"] == "reference BLAS or unknown"
    assert any("libopenblas0-pthread" in warning for warning in plain.warnings)
    assert not any(
        "libopenblas0-pthread" in warning for warning in samples.parse("hpl/hpcc-x2").warnings
    )


def test_threads_that_shared_a_cpu_are_told() -> None:
    assert "4 threads shared 2 CPUs" in samples.parse("hpl/xhpl-crowded-x4").warnings
    assert not any("shared" in warning for warning in samples.parse("hpl/xhpl-x2").warnings)


def test_estimates_and_halves_say_so() -> None:
    rows = {row.workload: row for row in samples.parse("pmbw/all-block-x2").measurements}
    assert rows["RWS"].details["estimate"] is True
    assert "no copy" in rows["RWS"].details["formula"]
    assert "estimate" not in rows["RS"].details
    assert (
        rows["RS"].details["routine"] == "ScanRead256PtrSimpleLoop"
    )  # the better of the two, here
    assert all(row.details["half"] is True for row in samples.parse("qperf/all").measurements)
    latencies = [
        row for row in samples.parse("iozone/t2-ops-4k").measurements if row.metric == "latency"
    ]
    assert len(latencies) == 4
    assert all(row.details["derived"] is True for row in latencies)


def test_percentiles_are_in_seconds() -> None:
    rows = {row.metric: row for row in samples.parse("fio/rr-psync-x2").measurements}
    assert rows["latency"].details["p99"] == pytest.approx(1548288e-9)
    assert rows["latency"].details["max"] == pytest.approx(6164822e-9)
    rows = {row.metric: row for row in samples.parse("diskbench/rr-psync-x2").measurements}
    assert rows["latency"].details["p99"] == 0.003964927
    ping = samples.only(samples.parse("ping/loopback"))
    assert ping.details["min"] == pytest.approx(5e-6)
    assert ping.details["max"] == pytest.approx(32e-6)


def test_percentiles_of_fio_are_of_submission_and_completion_where_it_gives_them() -> None:
    cell, completed = samples.load("fio/wr-uring-total-x1")
    document = json.loads(completed.stdout)
    write = document["jobs"][0]["write"]
    whole = {name: value + 33576 for name, value in write["clat_ns"]["percentile"].items()}
    write["lat_ns"]["percentile"] = whole
    completed = dataclasses.replace(completed, stdout=json.dumps(document))
    rows = {row.metric: row for row in REGISTRY["fio"].parse(cell, completed).measurements}
    assert rows["latency"].details["p99"] == pytest.approx(whole["99.000000"] / 1e9)
    assert rows["latency"].value == pytest.approx(write["lat_ns"]["mean"] / 1e9)


def test_losses_are_kept() -> None:
    udp = samples.only(samples.parse("iperf3/udp-x1"))
    assert udp.details["loss"] == pytest.approx(
        50029 / 114560, rel=0.01
    )  # what was under way at the end counts as lost
    assert samples.only(samples.parse("netbench/udp-gso-x1")).details["lost"] == 106659
    assert samples.only(samples.parse("iperf3/tcp-x2")).details["retransmits"] == 52


def test_warnings_of_tools() -> None:
    assert any("one thread" in warning for warning in samples.parse("iperf3/tcp-x2").warnings)
    assert samples.parse("iperf3/udp-x1").warnings == ()  # one stream needs one thread only
    assert any(
        "1408 B" in warning for warning in samples.parse("likwid-bench/odd-size-x1").warnings
    )
    assert any("loopback" in warning for warning in samples.parse("netbench/tcp-x1").warnings)
