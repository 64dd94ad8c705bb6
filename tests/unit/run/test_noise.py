"""Other load on a node, and counters of errors, drops and throttling: from files, and from this machine."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

from tests.unit.cases import cases
from tests.unit.machine.hosts import files_of, host, listed

from peakmark.machine import network, storage
from peakmark.run import noise
from peakmark.run.noise import Process, Reading
from peakmark.storage.activity import Activity

STAT = (
    "cpu  1000 100 400 9000 50 30 20 300 0 0\ncpu0 500 50 200 4500 25 15 10 250 0 0\n"
    "cpu1 500 50 200 4500 25 15 10 50 0 0\nintr 5\n"
)


def test_a_node_is_read_as_any_user_can(tmp_path):
    (tmp_path / "bare" / "proc").mkdir(parents=True)
    bare = noise.read([0], host(tmp_path / "bare"))
    assert bare.clock_limit_hz is None and not bare.others
    host(tmp_path, {"/proc/stat": STAT})
    node = host(tmp_path, files_of("load"))
    reading = noise.read([0], node)
    assert reading.clock_limit_hz == 3.5e9
    assert (reading.used, reading.stolen, reading.cpus) == (15.0, 2.5, 1)
    assert reading.throttled == 2.5
    assert sum(reading.counters.values()) == 7
    assert reading.processes[77] == Process(1, os.getuid(), 2.0, 4242)
    assert set(reading.others) == {77}  # kernel threads work for us
    both = noise.read([0, 1], node)
    assert (both.stolen, both.cpus) == (3.0, 2)


def moment(at, **changes):
    unknown = dict.fromkeys(("clock_limit_hz", "throttled"))
    counted = {"used": 0.0, "stolen": 0.0, "ours": 0.0, "cpus": 2, "processes": {}, "counters": {}}
    return Reading(at=at, **unknown | counted | changes)


def test_the_time_of_others_is_the_rest():
    processes = {50: Process(1, 12345, 10.0, 7), 60: Process(1, 0, 5.0, 8)}
    later = {
        50: Process(1, 12345, 11.5, 7),
        60: Process(1, 0, 0.1, 9),  # another process under the number
        9: Process(2, 0, 0.5, 1),  # a kernel thread
    }
    before = moment(0.0, stolen=1.0, processes=processes)
    counters = {"cpu0 core_throttle_count": 3, "eth0 rx_dropped": 7, "eth1 rx_dropped": 0}
    before = replace(before, counters=dict.fromkeys(counters, 0))
    after = moment(2.0, used=4.0, ours=2.0, stolen=1.4, processes=later, counters=counters)
    assert noise.between(before, after) == Activity(
        seconds=2.0,
        steal=0.1,
        others=0.75,
        busy=1,
        users=1,
        throttled_s=None,
        hot=3,
        moved={"eth0 rx_dropped": 7},
    )
    assert noise.between(before, moment(0.05)) is None


@contextmanager
def competitor(detached):
    """A program that keeps a CPU busy: a child of ours, or one that nobody here has started."""
    loop = "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"
    start = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {loop!r}])"
    argv = [sys.executable, "-c", start if detached else loop]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        number = int(process.stdout.readline())
        try:
            if detached:
                process.wait(timeout=20)
            yield number
        finally:
            os.kill(number, signal.SIGKILL)


def wait_until_used(number, seconds):
    """CPU time is what is waited for: on a busy machine it takes longer."""
    goal, deadline = None, time.monotonic() + 60
    while goal is None or noise.read([0]).processes[number].seconds < goal:
        assert time.monotonic() < deadline
        goal = goal or noise.read([0]).processes[number].seconds + seconds


def test_a_real_competitor_is_seen_and_a_child_of_ours_is_none():
    with competitor(detached=True) as number:
        before = noise.read([0])
        wait_until_used(number, 0.3)
        after = noise.read([0])
        during = noise.between(before, after)
        assert number in after.others and during is not None
        assert during.others * during.seconds > 0.15
    with competitor(detached=False) as number:
        wait_until_used(number, 0.05)
        assert number not in noise.read([0]).others


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
