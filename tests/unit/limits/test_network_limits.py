"""Limits of the network."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.limits.machines import VM, machine

from peakmark import limits
from peakmark.limits.network import tcp_share, udp_share


def network(workload: str, message: int, facts: dict[str, Any], **more: Any) -> limits.Limit:
    metric = "latency" if workload.startswith("LAT") else "throughput"
    return limits.for_row("network", workload, "", message, 1, metric, facts, **more)


def test_network_less_protocol_overhead() -> None:
    wire = machine(network={"speed_bps": 10e9, "mtu": 1500})
    assert network("TCP", 1024, wire).value == pytest.approx(10e9 * 1448 / 1538)
    assert network("TCP", 32768, wire).value == network("TCP", 1024, wire).value
    assert network("UDP", 1024, wire).value == pytest.approx(10e9 * 1024 / 1090)
    jumbo = machine(network={"speed_bps": 10e9, "mtu": 9000})
    assert network("TCP", 1024, jumbo).value == pytest.approx(10e9 * 8948 / 9038)
    assert network("TCP", 1024, VM).value is None
    assert "network.speed_bps" in (network("TCP", 1024, VM).reason or "")


def test_loopback_has_no_line_rate() -> None:
    wire = machine(network={"speed_bps": 10e9, "mtu": 1500})
    for limit in (
        network("TCP", 1024, wire, loopback=True),
        network("TCP", 1024, machine(network={"loopback": True})),
    ):
        assert limit.value is None and "loopback" in (limit.reason or "")
    site = {"network": {"latency": {"TCP": 1e-5}}}
    assert network("LAT-TCP", 1, wire, site=site).value == 1e-5
    assert network("LAT-TCP", 1, wire, site=site, loopback=True).value is None
    assert network("LAT-ICMP", 1, wire, site=site).value is None


def test_udp_fragments_as_ip_does() -> None:
    # 32 KiB at MTU 1500: 22 fragments of 1480 B and one of the rest, each with its own headers.
    share, text = udp_share(32768, 1500)
    assert share == pytest.approx(32768 / (32768 + 8 + 23 * (20 + 38)))
    assert "23 fragments" in text
    assert udp_share(1, 1500)[0] == pytest.approx(1 / 84)
    assert udp_share(1472, 1500)[0] == pytest.approx(1472 / 1538)


@given(st.integers(1, 65507), st.integers(576, 9000))
def test_no_overhead_is_negative(message: int, mtu: int) -> None:
    assert 0 < udp_share(message, mtu)[0] < 1
    assert 0 < tcp_share(mtu)[0] < 1


def test_one_stream_over_a_bond_has_one_member() -> None:
    facts = machine(
        network={
            "interface": "bond0",
            "kind": "bond",
            "speed_bps": 50e9,
            "stream_bps": 25e9,
            "mtu": 9000,
        }
    )
    rates = [
        limits.for_row("network", "TCP", "", 1 << 20, streams, "throughput", facts).value
        for streams in (1, 2, 4)
    ]
    assert rates[0] is not None and rates[1] == pytest.approx(2 * rates[0]) and rates[2] == rates[1]
