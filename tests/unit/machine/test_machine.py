"""This machine for real, and machines of which nothing or only stored facts are known."""

import json
import os
import platform
import subprocess
from pathlib import Path

import pytest
from tests.unit.hostile import change
from tests.unit.machine.hosts import host
from tests.unit.tools.samples import script

from peakmark.machine.facts import cached, collect
from peakmark.machine.host import Host, parse_cpu_list, run_tool


def test_this_machine_gives_valid_facts(tmp_path):
    facts = collect(tmp_path)
    assert facts["host"] == platform.node()
    assert sorted(facts["limits"]["cpus_allowed"]) == sorted(os.sched_getaffinity(0))
    assert 1 <= facts["limits"]["physical_cores_allowed"] <= facts["cpu"]["cores"]
    assert facts["limits"]["memory_bytes"] <= facts["memory"]["total"]
    assert facts["storage"]["filesystem"]
    assert "cpu.clock_hz.observed" in facts["unknown"]
    json.dumps(facts, allow_nan=False)


def test_kept_facts_get_the_scratch_of_today_and_edited_ones_are_collected_again(tmp_path):
    folder = tmp_path / "machine"
    facts = cached(folder, tmp_path)
    path = folder / f"{platform.node()}.json"
    assert cached(folder, Path("/dev/shm"))["storage"]["scratch"] == "/dev/shm"
    change(path, cpu={"sockets": -1})
    assert cached(folder, tmp_path)["cpu"] == facts["cpu"], "collected again"
    assert "-1" in (tmp_path / "set-aside" / "machine" / f"{path.stem}.0.json").read_text()


def test_no_tool_and_an_empty_system_still_give_facts(tmp_path):
    facts = collect(tmp_path, host=host(tmp_path))
    assert facts["cpu"]["microarchitecture"] is None
    assert facts["storage"]["device"] is None
    assert facts["network"]["interface"] is None
    names = {"memory.channels", "memory.speed_mts", "storage.filesystem", "network.interface"}
    assert names <= set(facts["unknown"])


def test_only_the_first_cell_on_a_node_starts_programs(tmp_path, monkeypatch):
    script(tmp_path / "sinfo", "echo slurm 22.05.8")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert cached(tmp_path / "machine", tmp_path)["slurm"]["version"] == "22.05.8"
    monkeypatch.setenv("SLURM_JOB_PARTITION", "long")
    with monkeypatch.context() as nothing:
        nothing.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("a program was started"))
        facts = cached(tmp_path / "machine", tmp_path)
    assert (facts["slurm"]["version"], facts["slurm"]["partition"]) == ("22.05.8", "long")


@pytest.mark.parametrize(("argv", "printed"), [
    ("echo x", "x\n"), ("false", None), ("no-such-tool", None), ("env", "LC_ALL=C"),
])  # fmt: skip
def test_what_a_tool_prints(argv, printed, monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    text = run_tool(argv.split())
    assert text is None if printed is None else printed in str(text)
    assert Host(run=lambda _: "{").run_json(argv.split()) is None


@pytest.mark.parametrize(("text", "numbers"), [
    ("0-3,8", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), (None, []), ("x-3", []), ("0-1,?", [0, 1]),
])  # fmt: skip
def test_cpu_lists(text, numbers):
    assert parse_cpu_list(text) == numbers
