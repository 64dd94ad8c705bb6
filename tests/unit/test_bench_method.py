"""The test of the method: false differences, and real faults, put in and taken out again."""

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.method import faults, fleets, promises, rows, same, states
from benchmarks.method.campaigns import Pairs
from benchmarks.method.faults import FAULTS, Outcome
from benchmarks.method.promises import Count
from benchmarks.method.sides import Bench
from tests.unit.hostile import KERNELS

from peakmark.machine import job_limits
from peakmark.machine.facts import collect
from peakmark.machine.host import Host


@pytest.fixture
def bench(tmp_path):
    return Bench(KERNELS, tmp_path, collect(tmp_path))


def test_two_real_campaigns_of_the_same_cells_are_compared(bench):
    cheap = {"cpu": [{"workloads": ["DP"], "seconds": 0.02}]}
    campaigns, found = same.claims(same.measure(bench, cheap, blocks=1, repetitions=6))
    assert campaigns.judged == 1 and found.judged <= 1


def left_over():
    """Of this process: other tests, and other checkouts, may be at the same on this machine."""
    mine = f"peakmark-{os.getpid()}"
    groups = [Path(folder) / mine for _, folder in job_limits.folders(Host(), "blkio")]
    listed = ""
    if shutil.which("ip"):
        listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
    names = [line for line in listed.splitlines() if line.startswith(f"{mine}-")]
    return [*(str(path) for path in groups if path.exists()), *names]


@pytest.mark.parametrize("name", ["disk: page cache", "disk: limited by a control group", "link: 100 Mbit/s"])  # fmt: skip
def test_a_real_fault_is_named_and_taken_out(bench, name):
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here")
    fault = next(one for one in FAULTS if one.name.startswith(name))
    outcome = faults.judge(bench, fault, 0, 4)
    assert left_over() == []
    if not outcome.possible:
        pytest.skip(outcome.note)
    if bench.facts["storage"]["interface"] == "ram" and name.startswith("disk"):
        pytest.skip("the scratch directory is in memory")
    assert outcome.ratio is not None and outcome.named and not outcome.alarm, outcome


def test_a_competitor_ends_with_its_block(bench):
    def children():
        return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())

    before = children()
    put = next(one for one in FAULTS if one.name.startswith("CPU")).put
    with put(bench, faults.Surroundings(), 0.0):
        assert len(children() - before) == 1
    assert children() == before


def test_what_the_method_missed_is_listed():
    good = Outcome("CPU", "row", 0.5, "worse", found=True, named=True, note="words")
    impossible = Outcome("link", note="needs root", possible=False)
    assert faults.missed([good, impossible]) == []
    bad = faults.missed([replace(good, named=False), replace(good, found=False)])
    assert bad == ["CPU: found but not named", "CPU: not found"]
    assert "needs root" in faults.table([good, impossible])


def test_promises_are_held_against_what_was_counted():
    assert Count(0, 0).share != Count(0, 0).share  # NaN
    assert Count(5, 100).interval == pytest.approx((0.0215, 0.1118), abs=1e-3)
    pairs = [Pairs(change=0.2, turned=turned).compared(2) for turned in (False, True)]
    assert all(missed == Count(0, 20) for _, _, missed in pairs)
    assert promises.broken(list(fleets.suspected_nodes(20))) == []
    kept = [*rows.warnings(50), *rows.coverage(50), *rows.equal(2), *states.two_states(2)]
    assert promises.table(kept).count("at most 5%") == len(kept)
    name = "quiet rows called unsure, n = 3"
    (wrong,) = promises.broken([(name, Count(40, 100))])
    assert name in wrong and "40.00%" in wrong
    assert promises.broken([(name, Count(6, 100))]) == []
