"""Facts of memory: channels, size, and what a control group leaves of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.machine.hosts import DATA, host

from peakmark.machine import allowed, memory


def test_memory_from_udev(tmp_path: Path) -> None:
    # Written down in the form that udev 252 prints; four channels, two of their eight slots empty.
    slots = [
        f"MEMORY_DEVICE_{number}_{key}={value}"
        for number, channel in enumerate("AABBCCDD")
        for key, value in (
            ("BANK_LOCATOR", f"P0 CHANNEL {channel}"),
            ("LOCATOR", f"DIMM {number % 2}"),
            ("TYPE", "DDR4"),
            ("CONFIGURED_SPEED_MTS", "2933"),
            *((("PRESENT", "0"),) if number in (1, 3) else (("SIZE", "17179869184"),)),
        )
    ]
    facts = memory.collect(host(tmp_path, {}, {"udevadm": "\n".join(slots)}))
    assert (facts["channels"], facts["speed_mts"]) == (4, 2933)
    assert (facts["type"], facts["modules"]) == ("DDR4", 6)


def test_memory_locators_without_a_channel_stay_unknown(tmp_path: Path) -> None:
    text = "MEMORY_DEVICE_0_LOCATOR=DIMM 0\nMEMORY_DEVICE_0_SIZE=1024\nMEMORY_DEVICE_0_CONFIGURED_SPEED_MTS=3200\n"
    bare = host(tmp_path, {}, {"udevadm": text})
    facts = memory.collect(bare)
    assert facts["channels"] is None
    assert facts["speed_mts"] == 3200
    assert "dmidecode" in bare.unknown["memory.channels"]
    assert "memory.speed_mts" not in bare.unknown


def test_memory_channels_from_edac(tmp_path: Path) -> None:
    files = {}
    for controller in (0, 1):
        for dimm, (channel, size) in enumerate(((0, 16384), (0, 0), (1, 16384), (2, 0))):
            place = f"/sys/devices/system/edac/mc/mc{controller}/dimm{dimm}/"
            files |= {
                place + "dimm_location": f"channel {channel} slot 0",
                place + "size": str(size),
            }
            files[place + "dimm_mem_type"] = "Registered-DDR4"
    facts = memory.collect(host(tmp_path, files))
    assert (facts["channels"], facts["channels_source"]) == (4, "EDAC")
    assert facts["type"] == "Registered-DDR4"


def test_real_meminfo_in_bytes(tmp_path: Path) -> None:
    meminfo = (DATA / "proc/meminfo.txt").read_text()
    facts = memory.collect(host(tmp_path, {"/proc/meminfo": meminfo}))
    assert facts["total"] == 24684096 * 1024
    assert facts["huge_pages"]["size"] == 2 << 20


def test_memory_limit_of_cgroup_2_is_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 16777216 kB\n",
        "/proc/self/cgroup": "0::/system.slice/slurmstepd.scope/job_7/step_0\n",
        "/proc/self/mountinfo": "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n",
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/memory.max": "max",
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/memory.max": "4294967296",
        "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/cpu.max": "250000 100000",
    }
    facts = allowed.collect(host(tmp_path, files), affinity={0})
    assert facts["memory_bytes"] == 4 << 30
    assert facts["memory_limited_by"] == "cgroup"
    assert facts["cpu_quota"] == 2.5


def test_memory_limit_of_cgroup_1_and_its_word_for_no_limit(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": "MemTotal: 16777216 kB\n",
        "/proc/self/cgroup": "4:memory:/slurm/job_7\n1:cpu,cpuacct:/slurm/job_7\n0::/\n",
        "/proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
        "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes": "2147483648",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
        "/sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_quota_us": "-1",
        "/sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_period_us": "100000",
    }
    machine_host = host(tmp_path, files)
    assert allowed.collect(machine_host, affinity={0})["memory_bytes"] == 2 << 30
    (tmp_path / "sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes").write_text(
        "9223372036854771712"
    )
    facts = allowed.collect(machine_host, affinity={0})
    assert facts["memory_bytes"] == 16 << 30
    assert facts["memory_limited_by"] is facts["cpu_quota"] is None


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("memory/job_7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ("unified/job_7/memory.events", "low 0\nmax 91\noom 3\noom_kill 3\noom_group_kill 0\n"),
    ],
)
def test_processes_that_the_kernel_ended_for_memory_are_counted(
    tmp_path: Path, file: str, text: str
) -> None:
    files = {
        "/proc/self/cgroup": "4:memory:/job_7\n0::/job_7/step_0\n",
        "/proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "31 23 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n",
    }
    assert allowed.oom_kills(host(tmp_path, files)) is None
    assert allowed.oom_kills(host(tmp_path, {**files, f"/sys/fs/cgroup/{file}": text})) == 3
