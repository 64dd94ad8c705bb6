"""What error counters that moved, and links below their best, say of a row."""

import pytest
from tests.unit.analysis.checked import N, U, check_marks, noise, row

from peakmark import disturbances
from peakmark.analysis import core_checks

QUIET = noise()
NETWORK = {"subsystem": "network", "instrument": "netbench", "workload": "TCP"}
DISK = {"subsystem": "disk", "instrument": "diskbench", "workload": "RS"}
LINK = {"current_width": 4, "max_width": 4, "current_speed": "16.0 GT/s", "max_speed": "16.0 GT/s"}


def meanwhile(*moved, **identity):
    """A row during whose first repetitions these counters moved."""
    busy = [noise(moved=each) for each in moved]
    return row(context=[*busy, *[QUIET] * (6 - len(busy))], **identity)


def linked(identity, part, **link):
    facts = {part: {"device": "nvme0n1", "interface": "eth0", "pcie": LINK | link}}
    return row(facts=facts, **identity)


@pytest.mark.parametrize(("measured", "weights", "first"), [
    (meanwhile(), {}, {}),
    (meanwhile({"mc0 ce_count": 2}, {"mc0 ce_count": 1}), {"memory-corrected": U},
     {"device": "mc0", "count": 3, "often.count": 2}),
    (meanwhile({"cpu MCE": 1, "cpu DFR": 1}), {"machine-check": U}, {"count": 2, "often.count": 1}),
    (meanwhile({"nvme0 aer_dev_correctable": 8}), {"pcie-corrected": N}, {"device": "nvme0"}),
    (meanwhile({"nvme0 aer_dev_fatal": 1}), {"pcie-uncorrected": U}, {}),
    (meanwhile({"mc1 ue_count": 1, "nvme0 temp1_alarm": 1, "cpu package_power_limit_count": 4}),
     {"memory-uncorrected": U, "disk-hot": U, "power-limited": U}, {}),
    # Every program's packets count: they say nothing of what the cores did.
    (meanwhile({"eth0 rx_dropped": 5, "tcp RetransSegs": 2}), {}, {}),
    (meanwhile({"eth0 rx_dropped": 5, "eth0 tx_dropped": 4, "tcp RetransSegs": 2}, **NETWORK),
     {"network-drops": N, "retransmits": N}, {"device": "eth0", "count": 9, "often.count": 1}),
    (meanwhile({"eth0 rx_errors": 5, "udp RcvbufErrors": 2}, **NETWORK),
     {"network-errors": N, "udp-overflow": N}, {}),
    (linked(DISK, "storage"), {}, {}),
    (linked(DISK, "storage", current_width=2), {"slow-link": N}, {"device": "nvme0n1"}),
    (linked(NETWORK, "network", current_speed="8.0 GT/s"), {"slow-link": N}, {"device": "eth0"}),
    (linked(NETWORK, "storage", current_speed="8.0 GT/s"), {}, {}),
])  # fmt: skip
def test_health(measured, weights, first):
    check_marks(measured, weights, first)


@pytest.mark.parametrize(("slowed", "is_disturbed"), [(20, False), (200, True)])
def test_heat_for_some_of_the_time_disturbs(slowed, is_disturbed):
    hot = meanwhile({disturbances.HEAT_MS: slowed})  # of a second
    assert core_checks.causes(hot)[0] == ({"hot"} if is_disturbed else frozenset())


def test_counters_of_the_server_name_its_host():
    there = [noise(moved={"mc0 ce_count": 2})] * 6
    context = [QUIET | {"server_noise": each["noise"], "server_host": "node2"} for each in there]
    measured = row(context=context, **NETWORK)
    check_marks(measured, {"memory-corrected": U}, {"count": 12, "often.where": "server"})
