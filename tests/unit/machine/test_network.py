"""Facts of the network interface."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.machine.hosts import DATA, host

from peakmark.machine import network


def test_virtio_network_tells_no_speed(tmp_path: Path) -> None:
    files = {
        "/sys/class/net/eth0/type": "1",
        "/sys/class/net/eth0/mtu": "1400",
        "/sys/class/net/eth0/speed": "-1",
    }
    files |= {"/sys/class/net/eth0/device/uevent": ""}
    tools = {
        "ip -j route": (DATA / "ip/default.json").read_text(),
        "ethtool -i": (DATA / "ethtool/virtio-i.txt").read_text(),
        "ethtool eth0": (DATA / "ethtool/virtio.txt").read_text(),
    }
    machine_host = host(tmp_path, files, tools)
    facts = network.collect(machine_host, None)
    assert (facts["interface"], facts["kind"]) == ("eth0", "ethernet")
    assert (facts["driver"], facts["mtu"]) == ("virtio_net", 1400)
    assert facts["speed_bps"] is None
    assert "network.speed_bps" in machine_host.unknown


def test_speed_only_of_what_hangs_on_a_wire(tmp_path: Path) -> None:
    net = "/sys/class/net/"
    files = {
        net + "lo/type": "772",
        net + "veth0/type": "1",
        net + "veth0/speed": "10000",
        net + "eno1/type": "1",
        net + "eno1/device/uevent": "",
        net + "eno1/speed": "25000",
        net + "br0/type": "1",
        net + "br0/speed": "10000",
        net + "br0/lower_eno1": "->../eno1",
        net + "ib0/type": "32",
        net + "ib0/mtu": "2044",
        net + "ib0/device/infiniband/mlx5_0/ports/1/rate": "56 Gb/sec (4X FDR)",
        net + "bond0/type": "1",
        net + "bond0/speed": "50000",
        net + "bond0/bonding/slaves": "eno1 eno2",
        "/proc/net/route": "Iface\tDestination\tGateway\neno1\t00000000\t0100A8C0\n",
    }
    wires = host(tmp_path, files)
    assert network.collect(wires, "lo")["loopback"] is True
    assert network.collect(wires, "veth0")["speed_bps"] is None
    assert network.collect(wires, None)["speed_bps"] == 25e9
    assert network.collect(wires, "br0")["speed_bps"] == 25e9
    assert network.collect(wires, "ib0")["speed_bps"] == pytest.approx(54.545e9, rel=1e-4)
    bond = network.collect(wires, "bond0")
    assert bond["speed_bps"] == 50e9
    assert "single stream" in bond["speed_note"]
    assert network.collect(wires, "nic9")["speed_bps"] is None
    assert "nic9" in wires.unknown["network.interface"]


@pytest.mark.parametrize(
    ("mode", "speed", "stream"),
    [
        ("balance-rr 0", 35e9, None),
        ("active-backup 1", 10e9, 25e9),
        ("balance-xor 2", 35e9, 25e9),
        ("broadcast 3", 10e9, 25e9),
        ("802.3ad 4", 35e9, 25e9),
        ("balance-tlb 5", 10e9, 25e9),
        ("balance-alb 6", 35e9, 25e9),
    ],
)
def test_the_rate_of_a_bond_is_that_of_its_mode(
    mode: str, speed: float, stream: float | None, tmp_path: Path
) -> None:
    files = {"/sys/class/net/bond0/type": "1", "/sys/class/net/bond0/bonding/slaves": "eno1 eno2"}
    files |= {"/sys/class/net/bond0/bonding/mode": mode, "/sys/class/net/bond0/speed": "35000"}
    files |= {"/sys/class/net/bond0/bonding/active_slave": "eno1"}
    for name, mbit in (("eno1", "10000"), ("eno2", "25000")):
        files |= {f"/sys/class/net/{name}/type": "1", f"/sys/class/net/{name}/speed": mbit}
        files[f"/sys/class/net/{name}/device/vendor"] = "0x8086"
    facts = network.collect(host(tmp_path, files), "bond0")
    assert (facts["speed_bps"], facts["stream_bps"]) == (speed, stream)
    assert mode.split()[0] in facts["speed_note"]


def test_fdr10_carries_what_the_kernel_says(tmp_path: Path) -> None:
    place = "/sys/class/net/ib0/"
    files = {
        f"{place}type": "32",
        f"{place}device/infiniband/mlx4_0/ports/1/rate": "40 Gb/sec (4X FDR10)",
    }
    assert network.collect(host(tmp_path, files), "ib0")["speed_bps"] == 40e9
