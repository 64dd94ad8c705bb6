"""Checks of the network: losses, loopback, links that are slowed down on purpose."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.judging.checked import codes, row

from peakmark.judging.checks import check_row
from peakmark.judging.measured import RunValue
from peakmark.messages import Severity


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
    [
        (0.02, Severity.NOTE),
        (0.1, Severity.NOTE),
        (0.11, Severity.UNSURE),
        (0.5, Severity.UNSURE),
        (0.6, Severity.WRONG),
    ],
)
def test_udp_loss_weighs_as_much_as_it_is(lost: float, level: Severity) -> None:
    details = {"sent": 1000, "received": round(1000 * (1 - lost)), "lost": round(1000 * lost)}
    found = check_row(row(details=details, subsystem="network", workload="UDP", unit="bit/s"))
    assert [note.severity for note in found if note.code == "udp-loss"] == [level]


@pytest.mark.parametrize(("lost", "marked"), [(0, False), (1, False), (250, True)])
def test_round_trips_that_lost_their_datagram(lost: int, marked: bool) -> None:
    details = {"lost": lost, "round_trips": 750}
    found = check_row(
        row(details=details, subsystem="network", workload="LAT-UDP", metric="latency", unit="s")
    )
    assert [note.code for note in found] == (["lost-round-trips"] if marked else [])
    assert not marked or "25.00%" in found[0].text
    assert (
        codes(
            row(
                details=details, subsystem="network", workload="LAT-TCP", metric="latency", unit="s"
            )
        )
        == []
    )


def test_losses_are_those_of_one_run_each() -> None:
    """A run without the counts must not lend its place to the next."""
    base = row(
        details={"lost": 0, "round_trips": 10},
        subsystem="network",
        workload="LAT-UDP",
        metric="latency",
        unit="s",
    )
    runs = [
        RunValue(1e-5, {"lost": 5}),
        RunValue(1e-5, {"lost": 1, "round_trips": 99_999}),
        *base.runs,
    ]
    found = [
        note for note in check_row(replace(base, runs=runs)) if note.code == "lost-round-trips"
    ]
    assert [note.text[:14] for note in found] == ["up to 100.00% "]
    assert not [n for n in check_row(replace(base, runs=runs[1:])) if n.code == "lost-round-trips"]


def test_loopback_is_named() -> None:
    loop = {"network": {"interface": "lo", "loopback": True}}
    found = check_row(row(context=loop, subsystem="network", workload="TCP"))
    assert [(note.code, note.is_warning) for note in found] == [("loopback", False)]
    assert codes(row(context={"network": None}, subsystem="network", workload="TCP")) == []


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
    assert (note.code, note.is_warning) == ("shaped", True)
    assert "tbf 100 Mbit/s" in note.text and "tc qdisc show" in note.text
    assert codes(row(context={"network": {"loopback": False, "shaping": None}}, **network)) == []
