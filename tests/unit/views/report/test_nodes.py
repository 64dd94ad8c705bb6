"""The facts of a machine as the report tells them."""

import pytest
from tests.unit import campaign_data as make

from peakmark.views import appendix

NETWORK = {"interface": "eth0", "kind": "ethernet", "speed_bps": 1e9, "mtu": 1500}
FAST = {"interface": "ib0", "kind": "infiniband", "speed_bps": 200e9, "mtu": 4092}
OVER_IB = make.reached("ib0", link=FAST, server_interface="ib0")
OVER_LO = make.reached("lo", server_interface="ib0")
DISTANCES = ([10, 21, 21], [21, 10, 21], [21, 21, 10])


def group(folder, records, title, **facts):
    """A group of what the report tells of node1."""
    frames = make.frames(folder, records, facts={"host": "node1", **facts})
    (node,) = appendix.facts_of_nodes(frames)
    return dict(node["groups"][title])


@pytest.mark.parametrize(("networks", "interface", "rate"), [
    ([{}], "eth0 (of the default route; not measured)", "1.000 Gb/s"),
    ([OVER_IB, OVER_IB], "ib0 (measured)", "200.0 Gb/s"),
    ([OVER_IB, OVER_LO], "ib0 (measured)", "200.0 Gb/s"),
    ([OVER_LO], "lo (measured)", None),
])  # fmt: skip
def test_the_network_is_the_one_that_was_measured(tmp_path, networks, interface, rate):
    records = make.runs("netbench", "TCP", *[1e9] * len(networks))
    for record, network in zip(records, networks, strict=True):
        record["context"] |= network or {}
    lines = group(tmp_path / "c", records, "Network", network=NETWORK)
    assert next(iter(lines.items())) == ("Interface", interface)
    assert lines.get("Line rate") == rate
    assert (lines["Kind"] == "loopback") == (networks == [OVER_LO])


@pytest.mark.parametrize(("sizes", "text"), [
    ([1 << 36, 1 << 36], "2: 64 GiB and 64 GiB; distances 10 21 21, 21 10 21"),
    ([1 << 36, 1 << 36, 0],
     "3: 64 GiB, 64 GiB and no memory; distances 10 21 21, 21 10 21, 21 21 10"),
])  # fmt: skip
def test_the_memory_of_several_numa_nodes_is_a_list(tmp_path, sizes, text):
    numa = [
        {"node": number, "cpus": str(number), "memory": size, "distances": DISTANCES[number]}
        for number, size in enumerate(sizes)
    ]
    cpu = {"model_name": "X", "numa": numa}
    lines = group(tmp_path / "c", make.runs("hpl", "DP", 1e9), "Processor", cpu=cpu)
    assert lines["NUMA nodes"] == text
