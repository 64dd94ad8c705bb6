"""netbench, iperf3, qperf and ping: both sides' commands, limits of the tools, results of another
test.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from tests.unit.instruments import samples

from peakmark.cell import Cell
from peakmark.errors import ConfigError, ParseError
from peakmark.instruments import REGISTRY
from peakmark.instruments.base import Completed, Invocation
from peakmark.instruments.programs import ping
from peakmark.reasons import Unavailable


def net(
    instrument: str, workload: str, block: int, n: int = 1, variant: str = "", **options: object
) -> Cell:
    return samples.cell("network", instrument, workload, variant, block, n, **options)


def prepared(cell: Cell, version: str = "1") -> Invocation:
    tool = samples.tool(cell.instrument, version=version)
    return REGISTRY[cell.instrument].prepare(cell, tool, samples.workspace())


def client(cell: Cell) -> str:
    return " ".join(prepared(cell).command.argv)


def test_netbench_commands() -> None:
    invocation = prepared(net("netbench", "UDP", 1024, 2, "gso", seconds=2, warmup=0.5))
    command = invocation.command
    assert " ".join(command.argv) == (
        "/usr/bin/netbench UDP --message 1024 --streams 2 --seconds 2 --warmup 0.5 --cpus 0,1 --port {port} "
        "--gso {address}"
    )
    assert invocation.server is not None
    assert invocation.server.argv[:6] == (
        "/usr/bin/netbench",
        "serve",
        "--address",
        "{address}",
        "--port",
        "{port}",
    )
    assert command.env["NETBENCH_KEY"] == invocation.server.env["NETBENCH_KEY"] == "{key}"
    assert invocation.server.timeout_s > command.timeout_s
    assert client(net("netbench", "LAT-UDP", 1, 1, "busy-poll", round_trips=1e6)) == (
        "/usr/bin/netbench latency --protocol UDP --message 1 --streams 1 --round-trips 1000000 --cpus 0 --port {port} "
        "--busy-poll {address}"
    )


def test_iperf3_commands() -> None:
    assert client(net("iperf3", "TCP", 32768, 4, seconds=1.2, warmup=0.5)) == (
        "/usr/bin/iperf3 --client {address} --port {port} --json --length 32768 --parallel 4 --time 2 --omit 1"
    )
    words = client(net("iperf3", "UDP", 1024, 1, total=1 << 20))
    assert words.endswith("--bytes 1048576 --udp --bitrate 0 --udp-counters-64bit")
    server = prepared(net("iperf3", "TCP", 1024)).server
    assert server is not None
    assert (
        " ".join(server.argv) == "/usr/bin/iperf3 --server --one-off --port {port} --bind {address}"
    )
    # Since 3.14 an error ends with 1; the sentence is in the JSON and must reach parse.
    assert prepared(net("iperf3", "TCP", 1024)).command.ok_codes == (0, 1)


def test_qperf_commands() -> None:
    assert client(net("qperf", "ALL", 1, seconds=0.5)) == (
        "/usr/bin/qperf {address} --listen_port {port} --msg_size 1 --time 1 -vv -uu tcp_lat udp_lat"
    )
    assert client(net("qperf", "LAT-UDP", 1)).endswith("-uu udp_lat")
    server = prepared(net("qperf", "ALL", 1)).server
    assert server is not None
    assert server.argv == ("/usr/bin/qperf", "--listen_port", "{port}")


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
    assert command.argv == (
        "/usr/bin/ping",
        "-n",
        "-q",
        "-c",
        "50",
        "-i",
        f"{seconds:g}",
        "-s",
        "16",
        "{address}",
    )
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


@pytest.mark.parametrize(
    ("cell", "kind", "words"),
    [
        (net("iperf3", "UDP", 65536), Unavailable, "to 65507B"),
        (net("iperf3", "TCP", 2 << 20), Unavailable, "to 1MiB"),
        (net("iperf3", "UDP", 1), Unavailable, "messages of 16B to 65507B"),
        (net("iperf3", "TCP", 1024, 129), Unavailable, "128 streams"),
        (net("iperf3", "UDP", 1024, 1, "gso"), Unavailable, "no variant gso"),
        (net("iperf3", "LAT-TCP", 1), Unavailable, "no workload LAT-TCP"),
        (net("netbench", "TCP", 1024, 1, "gso"), Unavailable, "gso for UDP"),
        (net("netbench", "UDP", 1024, 1, "busy-poll"), Unavailable, "busy-poll for LAT"),
        (net("qperf", "ALL", 1, 2), Unavailable, "one stream"),
        (net("ping", "ALL", 1, 2), Unavailable, "one stream"),
        (net("ping", "ALL", 1, count=0.5), ConfigError, "count=0.5"),
    ],
)
def test_what_cannot_be_done(cell: Cell, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        prepared(cell)


def test_results_must_be_the_cells() -> None:
    for case, changed, words in (
        ("iperf3/tcp-x2", {"concurrency": 1}, "num_streams is 2"),
        ("iperf3/tcp-x2", {"workload": "UDP"}, "protocol is 'TCP'"),
        ("iperf3/tcp-x2", {"block": 1024}, "blksize is 32768"),
        ("qperf/all", {"block": 64}, "not 64 B"),
        ("qperf/lat-udp", {"workload": "ALL"}, "no result of tcp_lat"),
        ("netbench/udp-x2", {"workload": "TCP"}, "workload is 'UDP'"),
    ):
        cell, completed = samples.load(case)
        with pytest.raises(ParseError, match=words):
            REGISTRY[cell.instrument].parse(dataclasses.replace(cell, **changed), completed)  # type: ignore[arg-type]


def test_qperf_whose_ends_measured_different_times() -> None:
    """Seen on a busy machine: the clocks of both ends count hundredths of a second; latency and
    rate differ by that.
    """
    cell, completed = samples.load("qperf/lat-udp")
    fields = {
        "latency": 1553846,
        "msg_rate": 637,
        "loc_real_time": 1010000000,
        "rem_real_time": 1030000000,
    }

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
    assert parsed.warnings == ("ping: 10 of 50 packets were lost",)
    assert samples.only(parsed).details["loss"] == pytest.approx(0.2)
