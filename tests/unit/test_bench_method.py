"""The test of the method: false differences, and real faults, put in and taken out again."""

import csv
import io
import os
import shutil
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.guest import common
from benchmarks.method import certificates, equal, faults, promises, same, table, verdicts
from benchmarks.method.faults import FAULTS
from benchmarks.method.same import Count
from benchmarks.method.sides import Bench
from benchmarks.method.verdicts import Outcome

from peakmark import machine
from peakmark.analysis.datasets import ComparedPoint
from peakmark.machine import job_limits
from peakmark.machine.host import Host
from peakmark.messages import Unavailable

KERNELS = Path(__file__).parents[2] / "build" / "kernels"
ROW = ComparedPoint("cpu", "cpubench", "DP", "", 0, 1, "any")
CHEAP = {"cpu": [{"workloads": ["DP"], "concurrency": [1], "seconds": 0.02}]}


@pytest.fixture
def bench(tmp_path):
    return Bench(KERNELS, tmp_path, machine.collect(tmp_path))


def test_samples_of_one_row_are_alike():
    assert Count(0, 0).share != Count(0, 0).share  # NaN
    assert Count(0, 10).interval == pytest.approx((0.0, 0.2775), abs=1e-3)
    assert Count(5, 100).interval == pytest.approx((0.0215, 0.1118), abs=1e-3)
    calm = {ROW: [100 + 0.1 * ((7 * number) % 11) for number in range(40)]}
    found = same.resampled(calm, 6, 200)
    assert found.judged == 200 and found.share <= 0.08
    assert same.resampled(calm, 6, 200) == found  # seeded
    assert same.resampled(calm, 21, 200).judged == 0  # too few values for two samples
    # Were the values of the two sides not mixed, every comparison would claim a difference.
    assert same.resampled({ROW: [1.0] * 20 + [2.0] * 20}, 6, 200).share <= 0.08


def test_two_real_campaigns_of_the_same_cells_are_compared(bench):
    (pair,) = same.measure(bench, CHEAP, blocks=1, repetitions=6)
    count, calm, values = same.really([pair])
    assert calm.judged <= 1 == count.judged == same.failed([pair]).judged
    (found,) = values.values()
    assert 8 <= len(found) <= 12  # on a busy machine disturbed repetitions leave the values


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
    outcome = verdicts.judge(bench, fault, 0, 4)
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
    good = Outcome("CPU", "row", 2.0, 1.0, 0.5, "worse", found=True, named=True, note="words")
    impossible = Outcome("link", note="needs root", possible=False)
    counts = {"real": Count(1, 100), f"real, {table.APART}": Count(50, 100)}
    assert table.missed(counts, [good, impossible]) == []
    bad = [replace(good, named=False), replace(good, found=False)]
    wrong = table.missed({"real": Count(12, 100)}, bad)
    assert [one.partition(":")[0] for one in wrong] == ["CPU", "CPU", "real"]
    assert "needs root" in table.faults([good, impossible])
    text = table.to_csv({"real": Count(1, 100)}, [good], {"host": "vm"})
    lines = [
        (line["kind"], line["name"], line["host"]) for line in csv.DictReader(io.StringIO(text))
    ]
    assert lines == [("same", "real", "vm"), ("fault", "CPU", "vm")]


def test_a_fault_that_no_kernel_can_have_gives_the_reason(bench, monkeypatch):
    """The pair in a real guest: tests/faults/test_guest.py."""

    @contextmanager
    def refused(*_):
        raise Unavailable("no such qdisc")
        yield faults.Surroundings()

    monkeypatch.setattr(common, "SYSTEM_PATH", "/nowhere")
    other = faults.Fault("link", CHEAP, "words", refused, modules=("sch_netem",))
    outcome = verdicts.judge_here_or_in_a_guest(bench, other, 0, 1)
    assert not outcome.possible and not outcome.guest
    assert "qdisc" in outcome.note and "user-mode-linux" in outcome.note
    here = verdicts.judge_here_or_in_a_guest(bench, replace(other, modules=()), 1, 1)
    assert "user-mode" not in here.note


def test_promises_are_held_against_what_was_counted():
    kinds = [promises.Pairs(change=0.2, turned=turned) for turned in (False, True)]
    pairs = [promises.campaigns(2, of) for of in kinds]
    assert all(one.missed == Count(0, 20) for one in pairs)
    kept = [*promises.warnings(50), *promises.coverage(50)]
    kept += [*equal.claimed(2), *certificates.missed(1, 2)]
    assert promises.table(kept).count("at most 5%") == len(kept)
    name = "quiet rows called unsure, n = 3"
    (wrong,) = promises.broken([(name, Count(40, 100))])
    assert name in wrong and "40.00%" in wrong
    assert promises.broken([(name, Count(6, 100))]) == []
