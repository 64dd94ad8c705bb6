"""Facts of the network interface, and how traffic is shaped."""

import pytest
from tests.unit.machine.hosts import DATA, files_of, host

from peakmark.machine import network

ROUTE = "Iface\tDestination\tGateway\neth1\t000200C0\t0\n{}\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"


def test_virtio_network_tells_no_speed(tmp_path):
    host(tmp_path, {"/proc/net/route": ROUTE.format("eth0")})
    files = """
        /sys/class/net/eth0/type 1
        /sys/class/net/eth0/mtu 1400
        /sys/class/net/eth0/speed -1
        /sys/class/net/eth0/device/uevent x
    """
    this = host(tmp_path, files, {"ethtool -i": (DATA / "ethtool/virtio-i.txt").read_text()})
    facts = network.collect(this)
    assert (facts["interface"], facts["kind"]) == ("eth0", "ethernet")
    assert (facts["driver"], facts["mtu"]) == ("virtio_net", 1400)
    assert facts["speed_bps"] is None
    assert "network.speed_bps" in this.unknown


@pytest.mark.parametrize(("interface", "speed", "note"), [
    ("veth0", None, "virtual"),
    ("br0", 25e9, "eno1"),
    ("ib0", pytest.approx(54.545e9, rel=1e-4), "FDR"),
    ("ib1", 40e9, "FDR10"),  # what it carries
    ("ib2", None, "no InfiniBand port"),  # without a cable
    ("bond0", 50e9, "single stream"),
    ("lo", None, "loopback"),
])  # fmt: skip
def test_speed_is_that_of_a_wire(tmp_path, interface, speed, note):
    this = host(tmp_path, files_of("wires"))
    facts = network.collect(this, interface)
    assert facts["speed_bps"] == speed
    assert note in facts["speed_note"]
    assert facts["loopback"] == (interface == "lo")
    assert network.collect(this, "nic9")["speed_bps"] is None
    assert "nic9" in this.unknown["network.interface"]


def test_what_tc_slows_down_is_told(tmp_path):
    for printed, shaping in {
        "qdisc tbf 1: root refcnt 2 rate 100Mbit burst 32Kb lat 50ms": "tbf rate 100Mbit",
        "qdisc netem 8001: root limit 1000 delay 10ms  2ms loss 1%": "netem delay 10ms loss 1%",
        "qdisc fq_codel 0: root refcnt 2 limit 10240p rate 1": None,
        "": None,
    }.items():
        assert network.shaping(host(tmp_path, "", {"tc qdisc": printed}), "eth0") == shaping
