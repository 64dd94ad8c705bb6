"""What `peakmark doctor` finds about GPUs: on this machine, and on the nodes of a cluster."""

import pytest
from tests.unit.machine import hosts

from peakmark.machine import gpu
from peakmark.workflow import doctor


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Set the GPUs on the bus of this machine, and those that a program finds."""

    def have(on_bus, found, reason=""):
        facts = hosts.gpu_facts(tmp_path, found)["gpu"] if found else None
        monkeypatch.setattr(gpu, "on_bus", lambda _: on_bus)
        monkeypatch.setattr(gpu, "survey", lambda: (found, reason))
        monkeypatch.setattr(gpu, "collect", lambda *_: facts)
        return [finding for finding in doctor._gpus(tmp_path) if finding[1] == "GPUs"]

    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return have


def test_a_machine_without_gpus_has_no_finding(machine):
    assert machine(0, 0, "NVIDIA's driver is not installed") == []


def test_a_gpu_that_no_program_finds_is_broken(machine):
    assert machine(8, 8) == [("ok", "GPUs", f"8 x {hosts.NAME}")]
    text = f"7 of 8 {hosts.NAME} can be used; see dmesg and nvidia-smi"
    assert machine(8, 7) == [("broken", "GPUs", text)]
    ((mark, _, text),) = machine(8, 0, "NVIDIA's driver shows no GPU (error 802)")
    assert mark == "broken" and "none of 8 can be used" in text and "error 802" in text


def test_a_job_that_asked_for_fewer_gpus_is_told_how_to_ask_for_all(machine, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    ((mark, _, text),) = machine(8, 4)
    assert mark == "note" and "gpus: {gres: gpu}" in text
