"""Other load on a node: read from a system made of files, and from this machine."""

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import replace

from tests.unit import campaign_data
from tests.unit.machine.hosts import files_of, host

from peakmark.run import noise
from peakmark.run.noise import Process, Reading
from peakmark.storage import records
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
    counters = {"cpu0 core_throttle_count": 3, "eth0 rx_dropped": 0}
    before = replace(before, counters=dict.fromkeys(counters, 0))
    after = moment(2.0, used=4.0, ours=2.0, stolen=1.4, processes=later, counters=counters)
    assert noise.between(before, after) == Activity(
        seconds=2.0, steal=0.1, others=0.75, busy=1, users=1, throttled_s=None, hot=3
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


def test_records_with_noise_and_without_are_valid(tmp_path):
    cell = campaign_data.cell("cpubench", "DP", subsystem="cpu")
    load = noise.since(noise.read_now())
    assert load.during is None
    dropped = moment(1.0, counters={"eth0 rx_dropped": 9})
    during = noise.between(moment(0.0, counters={"eth0 rx_dropped": 2}), dropped)
    assert during is not None and during.moved == {"eth0 rx_dropped": 7}
    record = campaign_data.struct(cell, [campaign_data.measurement(cell, "rate", 1.0)])
    for kept in (None, load, replace(load, during=during)):
        record.context.noise = kept
        records.write(tmp_path / "0.json", record)
        assert records.read(tmp_path / "0.json").context.noise == kept
