"""netbench, iperf3, qperf and ping: both sides' commands, limits of the tools, results of another
test.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from tests.unit.tools import samples

from peakmark.cell import Cell
from peakmark.errors import ParseError
from peakmark.reasons import Unavailable
from peakmark.tools import REGISTRY
from peakmark.tools.base import Completed, Invocation
from peakmark.tools.programs import ping


def net(
    instrument: str, workload: str, block: int, n: int = 1, variant: str = "", **options: object
) -> Cell:
    return samples.cell("network", instrument, workload, variant, block, n, **options)


def prepared(cell: Cell, version: str = "1") -> Invocation:
    tool = samples.tool(cell.instrument, version=version)
    return REGISTRY[cell.instrument].prepare(cell, tool, samples.workspace())


@pytest.mark.parametrize(
    ("version", "user", "seconds"),
    [
        ("20221126", 1000, 0.002),
        ("s20200821", 1000, 0.2),
        ("s20200821", 0, 0.002),
        ("unknown", 1000, 0.2),
    ],
)
def test_ping_waits_as_long_as_it_must(
    version: str, user: int, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ping.os, "geteuid", lambda: user)
    command = prepared(net("ping", "LAT-ICMP", 1, count=50), version).command
    options = ("-n", "-q", "-c", "50", "-i", f"{seconds:g}", "-s", "16", "{address}")
    assert command.argv == ("/usr/bin/ping", *options)
    assert command.timeout_s > 50 * seconds


def test_ping_without_rights_is_not_here(tmp_path: Path) -> None:
    """As in a minimal Debian 13, where an ordinary user's ping tells its version and then fails."""
    program = tmp_path / "ping"
    refused = "ping: socktype: SOCK_RAW\nping: socket: Operation not permitted"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -V ] && echo "ping from iputils 20240905" || echo "{refused}" >&2\n'
    )
    program.chmod(0o755)
    with pytest.raises(Unavailable) as reason:
        REGISTRY["ping"].find(str(program))
    assert reason.value.code == "no-rights"


def test_qperf_whose_ends_measured_different_times() -> None:
    """Seen on a busy machine: the clocks of both ends count hundredths of a second; latency and
    rate differ by that.
    """
    cell, completed = samples.load("qperf/lat-udp")
    fields = {"latency": 1553846, "msg_rate": 637}
    fields |= {"loc_real_time": 1010000000, "rem_real_time": 1030000000}

    def told(changed: dict[str, int]) -> Completed:
        text = completed.stdout
        for name, value in changed.items():
            text = re.sub(rf"({name} +=) +\S+", rf"\1 {value}", text)
        return dataclasses.replace(completed, stdout=text)

    assert samples.only(REGISTRY["qperf"].parse(cell, told(fields))).value == pytest.approx(
        2 * 1553846e-9, rel=0.02
    )
    with pytest.raises(ParseError, match="contradicts itself"):
        REGISTRY["qperf"].parse(cell, told(fields | {"rem_real_time": 1010000000}))


def test_iperf3_before_it_told_the_receivers_rate() -> None:
    """Old versions have no sum_received for UDP: the rate sent less what was lost, marked as an
    estimate.
    """
    cell, completed = samples.load("iperf3/udp-x1")
    document = json.loads(completed.stdout)
    del document["end"]["sum_received"]
    old = dataclasses.replace(completed, stdout=json.dumps(document))
    row = samples.only(REGISTRY["iperf3"].parse(cell, old))
    sent = document["end"]["sum"]
    assert row.value == pytest.approx(
        sent["bits_per_second"] * (1 - sent["lost_packets"] / sent["packets"])
    )
    assert row.details["estimate"] is True
    # The sample has both: they agree about as well as loss and rate do.
    assert row.value == pytest.approx(samples.only(samples.parse("iperf3/udp-x1")).value, rel=0.02)


def test_iperf3_loss_is_a_share_also_when_it_counts_the_warmup() -> None:
    """iperf 3.12 with --omit reported 137103 of 132000 datagrams lost, 46289 of which had arrived."""
    row = samples.only(samples.parse("iperf3/udp-omit"))
    assert row.details["lost_reported"] > row.details["packets"]
    assert row.details["loss"] == pytest.approx(1 - 46289 / 132000, rel=1e-3)


def test_threaded_iperf3_has_no_warning() -> None:
    cell, completed = samples.load("iperf3/tcp-x2")
    newer = dataclasses.replace(
        completed, stdout=completed.stdout.replace("iperf 3.12", "iperf 3.16")
    )
    assert REGISTRY["iperf3"].parse(cell, newer).warnings == ()


def test_lost_pings_are_told() -> None:
    cell, completed = samples.load("ping/loopback")
    text = completed.stdout.replace("50 received, 0% packet loss", "40 received, 20% packet loss")
    parsed = REGISTRY["ping"].parse(cell, dataclasses.replace(completed, stdout=text))
    assert "10 of 50" in parsed.warnings[0]
    assert samples.only(parsed).details["loss"] == pytest.approx(0.2)
