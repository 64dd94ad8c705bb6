"""This machine for real, and other machines from copied or written-down /sys trees."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

import pytest
from tests.unit.machine.hosts import DATA, host

from peakmark import machine
from peakmark.errors import RecordError
from peakmark.machine import cpu, software
from peakmark.machine.host import Host
from peakmark.storage import facts as stored
from peakmark.storage.types import Facts
from peakmark.validation import convert


def test_this_machine_gives_valid_facts(tmp_path: Path) -> None:
    facts = machine.collect(tmp_path)
    assert facts["host"] == platform.node()
    assert sorted(facts["limits"]["cpus_allowed"]) == sorted(os.sched_getaffinity(0))
    assert 1 <= facts["limits"]["physical_cores_allowed"] <= facts["cpu"]["cores"]
    assert facts["limits"]["memory_bytes"] <= facts["memory"]["total"]
    assert facts["storage"]["filesystem"]
    assert "cpu.clock_hz.observed" in facts["unknown"]
    json.dumps(facts, allow_nan=False)


def test_facts_read_back_and_a_damaged_file_is_named(tmp_path: Path) -> None:
    facts = machine.cached(tmp_path / "machine", tmp_path)
    path = tmp_path / "machine" / f"{platform.node()}.json"
    assert stored.read(path)["cpu"] == facts["cpu"]
    assert (
        machine.cached(tmp_path / "machine", Path("/dev/shm"))["storage"]["scratch"] == "/dev/shm"
    )
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    with pytest.raises(RecordError, match=str(path)):
        stored.read(path)
    path.write_text(text.replace('"sockets": ', '"sockets": -'))
    with pytest.raises(RecordError, match="checksum does not fit"):
        stored.read(path)
    assert machine.cached(tmp_path / "machine", tmp_path)["cpu"] == facts["cpu"], "collected again"
    assert stored.read(path)["cpu"] == facts["cpu"]
    assert "-" in (tmp_path / "set-aside" / "machine" / f"{path.stem}.0.json").read_text()
    old = {**facts, "cpu": {**facts["cpu"], "sockets": -1}}
    path.write_text(json.dumps(old))  # from before facts had a seal
    with pytest.raises(RecordError, match=r"cpu\.sockets is -\d+: allowed is at least 1"):
        stored.read(path)


def test_no_tool_and_an_empty_system_still_give_facts(tmp_path: Path) -> None:
    bare = Host(tmp_path, lambda _: None)
    facts = machine.collect(tmp_path, host=bare)
    assert facts["cpu"]["microarchitecture"] is None
    assert facts["storage"]["device"] is None
    assert facts["network"]["interface"] is None
    assert {
        "memory.channels",
        "memory.speed_mts",
        "storage.filesystem",
        "network.interface",
    } <= set(facts["unknown"])


def test_a_stored_collection_of_a_real_vm_is_valid() -> None:
    facts = stored.read(DATA / "machine" / "zen3-vm.json")
    assert facts["cpu"]["microarchitecture"] == "Zen 3"
    convert(facts, Facts, "facts")


def test_facts_that_explain_differences(tmp_path: Path) -> None:
    files = {
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=1-2 ro isolcpus=2-3 nosmt mitigations=off nfsroot=10.0.0.1:/x",
        "/proc/sys/kernel/numa_balancing": "1",
        "/sys/class/dmi/id/bios_version": "2.14.1",
        "/sys/class/dmi/id/bios_date": "06/12/2025",
        "/sys/devices/system/cpu/smt/active": "0",
        "/proc/cpuinfo": "processor\t: 0\nmicrocode\t: 0x2b000590\n\nprocessor\t: 1\nmicrocode\t: 0x1\n",
    }
    for number, (name, disabled) in enumerate((("POLL", "0"), ("C1", "0"), ("C6", "1"))):
        place = f"/sys/devices/system/cpu/cpu0/cpuidle/state{number}/"
        files |= {f"{place}name": name, f"{place}disable": disabled}
    this = host(tmp_path, files)
    system, processor = software.collect_os(this), cpu.collect(this)
    # No disk, no server.
    assert system["command_line"].split() == ["isolcpus=2-3", "nosmt", "mitigations=off"]
    assert (system["numa_balancing"], system["firmware"]) == (1, "2.14.1 06/12/2025")
    assert (processor["smt"], processor["idle_states"]) == (False, ["POLL", "C1"])
    assert processor["microcode"] == "0x2b000590"


def test_facts_that_are_there_are_asked_of_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first cell on a node asks; for all further ones, a program would be started beside each
    measurement.
    """
    asked = tmp_path / "asked"
    program = tmp_path / "bin" / "sinfo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho $0 >> {asked}\necho slurm 22.05.8\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert machine.cached(tmp_path / "machine", tmp_path)["slurm"]["version"] == "22.05.8"
    assert asked.read_text().split() == [str(program)]
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    with monkeypatch.context() as nothing:
        nothing.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program was started"))
        facts = machine.cached(tmp_path / "machine", tmp_path)
    assert (facts["slurm"]["version"], facts["slurm"]["job_id"]) == ("22.05.8", "8")
