"""Checks of the network: losses, loopback, links that are slowed down on purpose."""

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.analysis.checked import codes, row

from peakmark.analysis.checks import check_row
from peakmark.analysis.row import Measured, RunValue
from peakmark.messages import Severity


def of(workload: str, details: dict[str, Any]) -> Measured:
    metric, unit = ("latency", "s") if workload.startswith("LAT") else ("throughput", "bit/s")
    return row(details=details, subsystem="network", workload=workload, metric=metric, unit=unit)


@pytest.mark.parametrize(
    ("details", "level"),
    [
        ({"sent": 1000, "received": 995, "lost": 5}, None),
        ({"packets": 1000.0, "lost": 100.0, "loss": 0.1}, Severity.NOTE),
        ({}, None),
        ({"sent": 1000, "received": 980, "lost": 20}, Severity.NOTE),
        ({"sent": 1000, "received": 900, "lost": 100}, Severity.NOTE),
        ({"sent": 1000, "received": 890, "lost": 110}, Severity.UNSURE),
        ({"sent": 1000, "received": 500, "lost": 500}, Severity.UNSURE),
        ({"sent": 1000, "received": 400, "lost": 600}, Severity.WRONG),
    ],
)
def test_udp_loss_weighs_as_much_as_it_is(details: dict[str, Any], level: Severity | None) -> None:
    found = check_row(of("UDP", details))
    assert [(note.code, note.severity) for note in found] == (
        [("udp-loss", level)] if level else []
    )
    for note in found:
        assert dict(note.values)["share"] == details["lost"] / 1000
    assert codes(of("TCP", details)) == []


@pytest.mark.parametrize(("lost", "marked"), [(0, False), (1, False), (250, True)])
def test_round_trips_that_lost_their_datagram(lost: int, marked: bool) -> None:
    details = {"lost": lost, "round_trips": 750}
    found = check_row(of("LAT-UDP", details))
    assert [note.code for note in found] == (["lost-round-trips"] if marked else [])
    assert not marked or dict(found[0].values)["share"] == 0.25
    assert codes(of("LAT-TCP", details)) == []


def test_losses_are_those_of_one_run_each() -> None:
    """A run without the counts must not lend its place to the next."""
    base = of("LAT-UDP", {"lost": 0, "round_trips": 10})
    lost, rare = (
        RunValue(1e-5, {"lost": 5}),
        RunValue(1e-5, {"lost": 1, "round_trips": 99_999}),
    )
    found = check_row(replace(base, runs=[lost, rare, *base.runs]))
    (note,) = [note for note in found if note.code == "lost-round-trips"]
    assert dict(note.values)["share"] == 1.0
    assert "lost-round-trips" not in codes(replace(base, runs=[rare, *base.runs]))


def test_loopback_is_named() -> None:
    loop = {"network": {"interface": "lo", "loopback": True}}
    found = check_row(row(context=loop, subsystem="network", workload="TCP"))
    assert [(note.code, note.is_warning) for note in found] == [("loopback", False)]
    assert codes(row(context={"network": None}, subsystem="network", workload="TCP")) == []


def test_a_link_that_is_shaped() -> None:
    context = {"network": {"loopback": False, "shaping": "tbf 100 Mbit/s"}}
    network = {"subsystem": "network", "instrument": "netbench", "workload": "TCP"}
    (note,) = check_row(row(context=context, **network))
    assert (note.code, note.is_warning) == ("shaped", True)
    assert "tbf 100 Mbit/s" in note.text
    assert codes(row(context={"network": {"loopback": False, "shaping": None}}, **network)) == []
