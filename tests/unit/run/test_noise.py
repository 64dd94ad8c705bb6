"""What else goes on on a node: read from a system made of files, from this machine, and put into
words.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import campaign_data as data
import pytest

from peakmark import statistics
from peakmark.analysis import checks, core_checks
from peakmark.analysis.row import Measured, RunValue
from peakmark.limits import Limit
from peakmark.machine.host import Host
from peakmark.run import noise
from peakmark.run.noise import Process, Reading
from peakmark.storage import records
from peakmark.storage.types import Record
from peakmark.validation import convert

FILES = {
    "/proc/stat": "cpu  1000 100 400 9000 50 30 20 300 0 0\ncpu0 500 50 200 4500 25 15 10 250 0 0\n"
    "cpu1 500 50 200 4500 25 15 10 50 0 0\nintr 5\n",
    "/proc/loadavg": "1.25 0.80 0.40 2/200 4711\n",
    "/proc/self/mountinfo": "31 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    "/proc/self/cgroup": "0::/job/step\n",
    "/sys/fs/cgroup/job/cpu.stat": "usage_usec 9\nnr_throttled 4\nthrottled_usec 2500000\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2900000\n",
    "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq": "3500000\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "1200000\n",
    "/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq": "3400000\n",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "3\n",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count": "4\n",
    "/sys/class/hwmon/hwmon0/name": "nvme\n",
    "/sys/class/hwmon/hwmon0/temp1_input": "99000\n",
    "/sys/class/hwmon/hwmon1/name": "k10temp\n",
    "/sys/class/hwmon/hwmon1/temp1_input": "61500\n",
    "/sys/class/hwmon/hwmon1/temp3_input": "58000\n",
    "/sys/class/thermal/thermal_zone0/type": "x86_pkg_temp\n",
    "/sys/class/thermal/thermal_zone0/temp": "60000\n",
    "/proc/77/stat": "77 (a) b (c) R 1 77 77 0 -1 0 0 0 0 0 150 50 0 0 20 0 1 0 4242 0 0\n",
    "/proc/2/stat": "2 (kthreadd) S 0 0 0 0 -1 0 0 0 0 0 9 9 0 0 20 0 1 0 1 0 0\n",
    "/proc/9/stat": "9 (kworker/0:1) R 2 0 0 0 -1 0 0 0 0 0 9 9 0 0 20 0 1 0 1 0 0\n",
    "/proc/88/stat": "88 (ended",
}
UNKNOWN_LIMIT = Limit(None, "", "", "", "unknown", "not known")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    for name, text in FILES.items():
        path = tmp_path / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Host(tmp_path, lambda _: None)


def test_a_node_is_read_as_any_user_can(host: Host) -> None:
    found = noise.read([0], host)
    assert (found.load, found.celsius) == (1.25, 61.5)
    assert (found.clock_hz, found.clock_limit_hz) == (2.9e9, 3.5e9)
    assert (found.used, found.stolen, found.cpus) == (15.0, 2.5, 1)
    assert (found.throttled, found.hot) == (2.5, 7)
    assert found.processes[77] == Process(1, os.getuid(), True, 2.0, 4242)
    # Kernel threads work for us, and what ended meanwhile is not there.
    assert set(found.others()) == {77}
    every = noise.read([], host)
    assert (every.clock_hz, every.stolen, every.cpus) == (1.2e9, 3.0, 2)


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    found = noise.read([0], Host(tmp_path, lambda _: None)).to_json()
    assert found == {
        "load": None, "clock_hz": None, "clock_limit_hz": None, "celsius": None, "running": 0, "users": 0
    }  # fmt: skip


def moment(at: float, **changes: Any) -> Reading:
    values: dict[str, Any] = {
        "at": at, "load": 0.5, "clock_hz": None, "clock_limit_hz": None, "celsius": None, "used": 0.0, "stolen": 0.0,
        "ours": 0.0, "throttled": None, "hot": None, "cpus": 2, "processes": {},
    }  # fmt: skip
    return Reading(**values | changes)


def test_the_time_of_others_is_what_is_left() -> None:
    before = moment(
        0.0, processes={50: Process(1, 12345, False, 10.0, 7), 60: Process(1, 0, False, 5.0, 8)}
    )
    after = moment(2.0, used=4.0, ours=2.0, stolen=0.4, throttled=None, processes={
        50: Process(1, 12345, True, 11.5, 7), 60: Process(1, 0, False, 0.1, 9), 9: Process(2, 0, False, 0.5, 1)})  # fmt: skip
    found = noise.between(before, after)
    assert found == {
        "seconds": 2.0, "steal": 0.1, "others": 0.75, "busy": 1, "users": 1, "throttled_s": None, "hot": None
    }  # fmt: skip
    assert noise.between(before, moment(0.05)) is None


@contextmanager
def competitor(detached: bool) -> Iterator[int]:
    """A program that keeps a CPU busy: a child of ours, or one that nobody here has started."""
    loop = "import os\nprint(os.getpid(), flush=True)\nwhile True: pass"
    start = (
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {loop!r}])"
        if detached
        else loop
    )
    with subprocess.Popen(
        [sys.executable, "-c", start], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        number = int(process.stdout.readline())
        try:
            if detached:
                process.wait(timeout=20)
            yield number
        finally:
            os.kill(number, signal.SIGKILL)


def used(number: int) -> float:
    return noise._processes(Host())[number].seconds


def wait_until_used(number: int, seconds: float) -> None:
    """CPU time is what is waited for: on a busy machine it takes longer."""
    goal, deadline = used(number) + seconds, time.monotonic() + 60
    while used(number) < goal:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_real_competitor_is_seen_and_a_child_of_ours_is_none() -> None:
    with competitor(detached=True) as number:
        before = noise.read()
        wait_until_used(number, 0.3)
        after = noise.read()
        assert number in after.others()
        during = noise.between(before, after)
        assert during is not None
        assert during["others"] * during["seconds"] > 0.15
    with competitor(detached=False) as number:
        wait_until_used(number, 0.05)
        assert number not in noise.read().others()


def calm(**changes: Any) -> dict[str, Any]:
    during = {"seconds": 1.0, "steal": 0.0, "others": 0.01, "busy": 0, "users": 0}
    during |= {"throttled_s": 0.0, "hot": 0}
    point = {"load": 0.1, "clock_hz": 2e9, "clock_limit_hz": 3e9, "celsius": 50.0}
    point |= {"running": 0, "users": 0}
    return {"before": point, "during": {**during, **changes}, "after": dict(point)}


def row(noises: list[dict[str, Any]], values: list[float] | None = None) -> Measured:
    values = values or [100.0 + number / 100 for number in range(len(noises))]
    summary = statistics.summarise(values)
    runs = [RunValue(value, {}, {"noise": one}) for value, one in zip(values, noises, strict=True)]
    identity = ("cpu", "cpubench", "DP", "", None, 1, "rate", "op/s")
    return Measured(
        *identity, runs=runs, summary=summary, centre=summary.median, limit=UNKNOWN_LIMIT
    )


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        ({"others": 0.9, "busy": 2, "users": 1}, "other-load", ["0.9 CPUs", "2 busy processes, of 1 other user",
                                                               "--exclusive"]),
        ({"others": 0.9}, "other-load", ["short-lived or hidden"]),
        ({"steal": 0.08}, "steal", ["8.0%", "hypervisor", "yours alone"]),
        ({"throttled_s": 0.3}, "throttled", ["30%", "quota", "ask for more CPUs"]),
        ({"hot": 2}, "hot", ["heat", "cooling"]),
    ],
)  # fmt: skip
def test_a_disturbance_is_named_with_its_remedy(
    changes: dict[str, Any], code: str, words: list[str]
) -> None:
    assert checks.check_row(row([calm() for _ in range(6)])) == []
    (note,) = checks.check_row(row([calm(**changes) for _ in range(6)]))
    assert (note.code, note.is_warning) == (code, True)
    for word in [*words, "6 of 6 repetitions"]:
        assert word in note.text


def test_the_node_of_the_server_is_named() -> None:
    calm_here = row([calm() for _ in range(6)])
    there = {"server_host": "node2", "server_noise": calm(others=0.9)}
    runs = [replace(one, context={**one.context, **there}) for one in calm_here.runs]
    (note,) = checks.check_row(replace(calm_here, runs=runs))
    assert (note.code, note.is_warning) == ("other-load", True)
    assert "0.9 CPUs" in note.text and "node2" in note.text


def test_a_median_stands_while_most_repetitions_are_calm() -> None:
    noises = [calm(), calm(others=0.9), *(calm() for _ in range(4))]
    (note,) = checks.check_row(row(noises))
    assert (note.code, note.is_warning) == ("other-load", False)
    assert "1 of 6 repetitions" in note.text


def test_a_clock_that_somebody_limited_meanwhile() -> None:
    late = calm()
    late["after"]["clock_limit_hz"] = 2e9
    (note,) = checks.check_row(row([*(calm() for _ in range(5)), late]))
    assert note.code == "clock-limit"
    assert "2 GHz" in note.text and "3 GHz" in note.text and "governor" in note.text
    waiting = calm()
    waiting["after"]["clock_hz"] = 4e8
    # CPUs that wait are slow.
    assert checks.check_row(row([*(calm() for _ in range(5)), waiting])) == []


def test_drift_tells_the_heat_where_it_is_known() -> None:
    noises = [calm() for _ in range(8)]
    noises[-1]["after"]["celsius"] = 88.0
    drifting = row(noises, [100.0 - 2 * number for number in range(8)])
    texts = [note.text for note in checks.check_row(drifting)]
    assert any("50 °C" in text and "88 °C" in text for text in texts)
    assert core_checks.heat([]) == ""


def test_records_without_noise_and_with_it_are_valid(tmp_path: Path) -> None:
    of = data.cell("cpubench", "DP", subsystem="cpu")
    for noises in (None, calm(), {**calm(), "during": None}, {
            "before": noise.read().to_json(), "during": noise.between(moment(0.0), moment(1.0)),
            "after": noise.read().to_json()}):  # fmt: skip
        one = data.record(of, [data.measurement(of, "rate", 1.0)], context={"noise": noises})
        convert(one, Record, "record")
        records.write(tmp_path / "0.json", one)
    assert checks.check_row(row([{**calm(), "during": None}] * 6)) == []
