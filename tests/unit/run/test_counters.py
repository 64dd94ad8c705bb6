"""Counters of errors, drops and throttling, from a /sys and a /proc made of files."""

from tests.unit.cases import cases
from tests.unit.machine.hosts import files_of, host, listed

from peakmark.machine import network, storage
from peakmark.run import noise

CPU = "/sys/devices/system/cpu"
INTERRUPTS = """           CPU0       CPU1
  0:         35          0   IO-APIC   2-edge      timer
MCE:          {checks}          1   Machine check exceptions
MCP:        {polls}        107   Machine check polls
"""
AER = "RxErr {count}\nBadTLP 0\nTOTAL_ERR_COR {count}\n"


def throttled(cpu, **counts):
    return {f"{CPU}/cpu{cpu}/thermal_throttle/{name}": str(at) for name, at in counts.items()}


def write(root, count, changed=""):
    """A node of two CPUs, where every counter that can be given a number has this one."""
    host(root, files_of("counters") | (listed(changed) if isinstance(changed, str) else changed))
    checks = INTERRUPTS.format(checks=count, polls=100 * count)
    host(root, {"/proc/interrupts": checks})
    host(root, {"/sys/class/nvme/nvme0/device/aer_dev_correctable": AER.format(count=count)})


@cases("machines")
def test_only_what_moved_is_kept(tmp_path, count, changed, expected):
    write(tmp_path, 1)
    before = noise.read_counters(host(tmp_path), [0, 1])
    write(tmp_path, count, changed)
    after = noise.read_counters(host(tmp_path), [0, 1])
    assert noise.moved_counters(before, after) == expected
    alarms = {name: 1 for name in expected if name.endswith("_alarm")}
    assert noise.moved_counters(after, after) == alarms  # one that stays counts each time


def test_throttling_is_that_of_the_cpus_that_may_be_used(tmp_path):
    def reading(count):
        for cpu in range(4):
            milliseconds = {"core_throttle_total_time_ms": 100 * count * cpu}
            counts = {"core_throttle_count": count, "package_throttle_count": count}
            power = {"package_power_limit_count": count}
            host(tmp_path, throttled(cpu, **milliseconds, **counts, **power))
        return noise.read_counters(host(tmp_path), [0, 1, 2])

    assert noise.moved_counters(reading(0), reading(1)) == {
        "cpu core_throttle_count": 3,
        "cpu core_throttle_total_time_ms": 200,  # of the core that was held back longest
        "cpu package_throttle_count": 2,  # of the first and the last: two packages
        "cpu package_power_limit_count": 2,
    }


def test_a_link_is_known_as_it_is_and_at_most(tmp_path):
    place = "/sys/class/net/eth0/device/"
    link = {"current_link_width": "8", "max_link_width": "16", "max_link_speed": "16.0 GT/s PCIe"}
    files = {f"{place}{name}": text for name, text in link.items()}
    files["/sys/class/net/eth0/type"] = "1"
    node = host(tmp_path, files)
    assert network.collect(node, "eth0")["pcie"] is None
    host(tmp_path, {f"{place}current_link_speed": "8.0 GT/s PCIe"})
    assert network.collect(node, "eth0")["pcie"] == {
        "current_width": 8, "current_speed": "8.0 GT/s PCIe",
        "max_width": 16, "max_speed": "16.0 GT/s PCIe",
    }  # fmt: skip
    assert storage.collect(node, tmp_path)["pcie"] is None
