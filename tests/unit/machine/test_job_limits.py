"""What a control group leaves of memory, CPU time and disk."""

import pytest
from tests.unit.machine.hosts import files_of, host

from peakmark.machine import job_limits
from peakmark.machine.host import Host

MEMORY = "31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"


@pytest.mark.parametrize(("most", "high", "gibibytes"), [
    ("max", "2147483648", 2), ("4294967296", "2147483648", 2), ("2147483648", "max", 2),
    ("max", "max", 8), ("max", "9223372036854771712", 8),
])  # fmt: skip
@pytest.mark.parametrize("group", ["job_7", "job_7/step_0"])
def test_limits_of_cgroup_2_are_the_smallest_on_the_way_up(tmp_path, group, most, high, gibibytes):
    files = f"""
        /proc/meminfo MemTotal: 16777216 kB
        /proc/self/cgroup 0::/slurmstepd.scope/job_7/step_0
        /proc/self/mountinfo 31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw
        /sys/fs/cgroup/slurmstepd.scope/memory.max 8589934592
        /sys/fs/cgroup/slurmstepd.scope/{group}/memory.max {most}
        /sys/fs/cgroup/slurmstepd.scope/{group}/memory.high {high}
        /sys/fs/cgroup/slurmstepd.scope/job_7/cpu.max 250000 100000
    """
    facts = job_limits.collect(host(tmp_path, files), affinity={0})
    assert (facts["memory_bytes"], facts["memory_limited_by"]) == (gibibytes << 30, "cgroup")
    assert facts["cpu_quota"] == 2.5


@pytest.mark.parametrize(("limit", "memory", "source"), [
    ("2147483648", 2 << 30, "cgroup"), ("9223372036854771712", 16 << 30, None),
])  # fmt: skip
def test_limits_of_cgroup_1(tmp_path, limit, memory, source):
    """Also its number for no limit."""
    files = f"""
        /proc/meminfo MemTotal: 16777216 kB
        /sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes {limit}
        /sys/fs/cgroup/memory/memory.limit_in_bytes 9223372036854771712
        /sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_quota_us -1
        /sys/fs/cgroup/cpu/slurm/job_7/cpu.cfs_period_us 100000
        /sys/fs/cgroup/cpu/slurm/cpu.cfs_quota_us 150000
        /sys/fs/cgroup/cpu/slurm/cpu.cfs_period_us 100000
    """
    host(tmp_path, {
        "/proc/self/cgroup": "4:memory:/slurm/job_7\n1:cpu,cpuacct:/slurm/job_7\n0::/\n",
        "/proc/self/mountinfo": f"35 {MEMORY}32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
    })  # fmt: skip
    facts = job_limits.collect(host(tmp_path, files), affinity={0})
    assert (facts["memory_bytes"], facts["memory_limited_by"]) == (memory, source)
    assert facts["cpu_quota"] == 1.5


@pytest.mark.parametrize(("file", "text"), [
    ("memory/job_7/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
    ("unified/job_7/memory.events", "low 0\nmax 91\noom 3\noom_kill 3\noom_group_kill 0\n"),
])  # fmt: skip
def test_processes_that_the_kernel_ended_are_counted(tmp_path, file, text):
    files = {
        "/proc/self/cgroup": "4:memory:/job_7\n0::/job_7/step_0\n",
        "/proc/self/mountinfo": f"35 {MEMORY}31 23 0:28 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n",
    }  # fmt: skip
    assert job_limits.oom_kills(host(tmp_path, files)) is None
    assert job_limits.oom_kills(host(tmp_path, {f"/sys/fs/cgroup/{file}": text})) == 3


@pytest.mark.parametrize("name", ["io-limits-1", "io-limits-2"])
def test_limits_of_the_disk_are_the_smallest_on_the_way_up(tmp_path, name):
    this = host(tmp_path, files_of(name) | {"/sys/block/vda/dev": "254:0"})
    limits = {"read_bps": 2000, "write_bps": 9, "read_iops": 70}
    assert job_limits.io_limits(this, ["vda"]) == limits
    assert job_limits.io_limits(this, ["sdb"]) is None
    assert job_limits.io_limits(host(tmp_path / "bare"), ["vda"]) is None


NO_LIMIT = {
    1: ("4:memory:/job_7\n", "memory/job_7/memory.limit_in_bytes", "9223372036854771712"),
    2: ("0::/job_7\n", "job_7/memory.max", "max"),
}
MOUNTS = {1: f"35 {MEMORY}", 2: "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"}


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("limit", [None, 2 << 30])
def test_memory_without_a_total_is_unknown_or_what_is_granted(tmp_path, version, limit):
    groups, file, text = NO_LIMIT[version]
    files = {"/proc/self/cgroup": groups, "/proc/self/mountinfo": MOUNTS[version]}
    files[f"/sys/fs/cgroup/{file}"] = text if limit is None else str(limit)
    facts = job_limits.collect(host(tmp_path, files), affinity={0})
    source = None if limit is None else "cgroup"
    assert (facts["memory_bytes"], facts["memory_limited_by"]) == (limit, source)


def test_this_machines_memory_is_known_where_meminfo_is_masked(monkeypatch):
    monkeypatch.setattr(Host, "meminfo", lambda _: {})
    assert job_limits.collect(Host())["memory_bytes"] >= 64 << 20
