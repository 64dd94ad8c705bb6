"""The test of the method: what counts as a claim, what is drawn, and real faults, put in and taken
out again.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.guest import common
from benchmarks.method import __main__ as command
from benchmarks.method import drawn, faults, promises, same, table, verdicts
from benchmarks.method.faults import FAULTS
from benchmarks.method.same import Count
from benchmarks.method.sides import Bench
from benchmarks.method.verdicts import Outcome
from tests.unit import campaign_data as make

from peakmark import machine
from peakmark.judging.datasets import ComparedPoint
from peakmark.machine import allowed
from peakmark.machine.host import Host
from peakmark.reasons import Unavailable

KERNELS = Path(__file__).parents[2] / "build" / "kernels"
ROW = ComparedPoint("cpu", "cpubench", "DP", "", 0, 1, "any")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    # On the disk that /tmp/pytest is on: a scratch directory in memory would have no device to look
    # at.
    return Bench(KERNELS, tmp_path, machine.collect(tmp_path))


def fault(name: str) -> faults.Fault:
    return next(one for one in FAULTS if one.name.startswith(name))


def test_a_share_of_nothing_is_none_and_few_comparisons_are_unsure() -> None:
    assert Count(0, 0).share != Count(0, 0).share
    assert Count(0, 10).interval == pytest.approx((0.0, 0.2775), abs=1e-3)
    assert Count(5, 100).interval == pytest.approx((0.0215, 0.1118), abs=1e-3)


def test_what_is_drawn_from_one_row_is_like_and_like() -> None:
    calm = {ROW: [100 + 0.1 * ((7 * number) % 11) for number in range(40)]}
    found = same.resampled(calm, 6, 200)
    assert found.judged == 200
    assert found.share <= 0.08
    assert same.resampled(calm, 6, 200) == found, "seeded"
    # Too few values for two samples without repeats.
    assert same.resampled(calm, 21, 200).judged == 0
    # Were the values of the two sides not mixed, every comparison would claim a difference.
    assert same.resampled({ROW: [1.0] * 20 + [2.0] * 20}, 6, 200).share <= 0.08


def test_two_real_campaigns_of_the_same_cells_are_compared_as_users_do(bench: Bench) -> None:
    grids = {"cpu": [{"workloads": ["DP"], "concurrency": [1], "seconds": 0.02}]}
    (pair,) = same.measure(bench, grids, blocks=1, repetitions=4)
    count, calm, values = same.really([pair])
    assert calm.judged <= 1
    assert count.judged == 1
    assert same.failed([pair]).judged == 1
    assert [len(found) for found in values.values()] == [8]
    records = [path for side in pair for path in side.glob("cells/**/*.json")]
    assert len(records) == 8


def test_of_real_rows_the_quiet_ones_are_judged_and_all_make_a_campaign() -> None:
    calm = [100 + 0.1 * ((7 * number) % 11) for number in range(40)]
    wild = [value * (1 + number % 2) for number, value in enumerate(calm)]
    values = {ROW: calm, replace(ROW, workload="SP"): wild}
    assert list(drawn.quiet(values)) == [ROW]
    marks = dict(drawn.marks(values, 50))
    assert {one.judged for one in marks.values()} == {50} and not any(
        one.claimed for one in marks.values()
    )
    # A row that is marked is counted.
    assert sum(one.claimed for _, one in drawn.marks({ROW: [1.0] * 39 + [1.2]}, 50)) > 0
    campaigns = dict(drawn.campaigns(values, 20))
    assert [one.judged for one in campaigns.values()] == [20, 20]
    assert max(one.claimed for one in campaigns.values()) <= 4
    assert dict(drawn.campaigns({ROW: calm[:5]}, 20)).popitem()[1].judged == 0


def test_repetitions_beside_which_something_else_went_on_are_no_values_of_a_quiet_row(
    tmp_path: Path,
) -> None:
    """By the record, not by the value: the last one is far off, and stays."""
    during = {
        "seconds": 1.0,
        "others": 0.0,
        "steal": 0.0,
        "busy": 0,
        "users": 0,
        "throttled_s": 0.0,
        "hot": 0,
    }
    moment = {
        "load": 0.1,
        "clock_hz": 2e9,
        "clock_limit_hz": 3e9,
        "celsius": 50.0,
        "running": 0,
        "users": 0,
    }
    noises = ({}, {"steal": 0.3}, {"others": 0.9, "busy": 1}, {"throttled_s": 0.5}, {"hot": 2})
    details = ({"clock_hz_before": 3e9, "clock_hz_after": 2e9}, {"cpu_share": 0.5}, {})
    records = []
    for number, (noise, more) in enumerate(
        [*((one, {}) for one in noises), *(({}, one) for one in details)]
    ):
        of = make.cell("cpubench", "DP", subsystem="cpu", repetition=number)
        values = [make.measurement(of, "rate", 1e10 * (1 + number), details=more)]
        context = {"noise": {"before": moment, "during": {**during, **noise}, "after": moment}}
        records.append(make.record(of, values, context=context))
    folder = make.write(tmp_path / "c", records)
    assert drawn.undisturbed([folder, folder]) == {ROW: [1e10, 8e10, 1e10, 8e10]}
    assert list(drawn.quiet({ROW: [1e10] * 9})) == []  # too few to call it quiet
    assert list(drawn.quiet({ROW: [1e10] * 10})) == [ROW]


def left_over() -> list[str]:
    """Of this process: other tests, and other checkouts, may be at the same on this machine."""
    folders = [
        Path(folder) / f"peakmark-{os.getpid()}" for _, folder in allowed.folders(Host(), "blkio")
    ]
    groups = [str(path) for path in folders if path.exists()]
    names = (
        subprocess.run(["ip", "netns", "list"], capture_output=True, text=True).stdout
        if shutil.which("ip")
        else ""
    )
    return [
        *groups,
        *(line for line in names.splitlines() if line.startswith(f"peakmark-{os.getpid()}-")),
    ]


@pytest.fixture
def nothing_left() -> Iterator[None]:
    yield
    assert left_over() == []


@pytest.mark.parametrize(
    "name", ["disk: page cache", "disk: limited by a control group", "link: 100 Mbit/s"]
)
def test_a_real_fault_is_named_and_taken_out(bench: Bench, name: str, nothing_left: None) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("gcc is not here")
    outcome = verdicts.judge(bench, fault(name), 0, 4)
    if not outcome.possible:
        pytest.skip(outcome.note)
    if bench.facts["storage"]["interface"] == "ram" and name.startswith("disk"):
        pytest.skip("the scratch directory is in memory")
    assert outcome.ratio is not None, outcome.note
    assert outcome.named, outcome
    assert not outcome.alarm  # the same words without the fault would mean nothing


def test_a_competitor_ends_with_its_block(bench: Bench) -> None:
    put = fault("CPU").put
    before = set(children())
    with put(bench, faults.Surroundings(), 0.0):
        (mine,) = set(children()) - before
        assert Path(f"/proc/{mine}").exists()
    assert not Path(f"/proc/{mine}").exists()


def children() -> list[int]:
    """Children of this process."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(word) for word in path.read_text().split()]


def test_what_went_wrong_is_said_in_a_sentence_and_ends_with_one() -> None:
    good = Outcome("CPU", "row", 2.0, 1.0, 0.5, "worse", found=True, named=True, note="words")
    unnamed = replace(good, named=False)
    unseen = replace(good, found=False, verdict="no difference shown")
    impossible = Outcome("link", note="needs root", possible=False)
    assert table.missed({"real": Count(1, 100)}, [good, impossible]) == []
    assert table.missed({"real": Count(12, 100)}, [unnamed, unseen]) == [
        "CPU: found but not named", "CPU: not found", "real: 12.0% false differences, more than 5% and more than chance explains"
    ]  # fmt: skip
    assert table.missed({"real": Count(7, 100), f"real, {table.APART}": Count(50, 100)}, []) == []
    text = table.faults([good, unnamed, impossible, replace(good, guest="user-mode kernel 6.1")])
    assert "| CPU, in a user-mode kernel 6.1 | row |" in text
    assert "| CPU | row | 0.500 | worse | yes | NO |" in text
    assert "not possible here: needs root" in text
    lines = list(
        csv.DictReader(io.StringIO(table.to_csv({"real": Count(1, 100)}, [good], {"host": "vm"})))
    )
    assert [(line["kind"], line["name"], line["host"]) for line in lines] == [
        ("same", "real", "vm"),
        ("fault", "CPU", "vm"),
    ]
    assert "| real | 100 | 1 | 1.0% |" in table.same({"real": Count(1, 100)})


def test_what_neither_this_kernel_nor_a_guest_can_do_says_why(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pair in a real guest: tests/faults/test_guest.py."""

    @contextmanager
    def refused(*_: object) -> Iterator[faults.Surroundings]:
        raise Unavailable("no such qdisc")
        yield faults.Surroundings()

    monkeypatch.setattr(common, "SYSTEM_PATH", "/nowhere")
    cheap = {"cpu": [{"workloads": ["DP"], "concurrency": [1], "seconds": 0.02}]}
    other = faults.Fault("link", cheap, "words", refused, modules=("sch_netem",))
    outcome = verdicts.judge_here_or_in_a_guest(bench, other, 0, 1)
    assert not outcome.possible and not outcome.guest
    assert outcome.note.startswith("no such qdisc; ") and "install user-mode-linux" in outcome.note
    here = verdicts.judge_here_or_in_a_guest(bench, replace(other, modules=()), 1, 1)
    assert here.note == "no such qdisc"  # not every fault is one of the kernel


def test_the_command_line_names_its_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.arguments(["--quick", "--only", "same"]).quick
    with pytest.raises(SystemExit):
        command.arguments(["--only", "luck"])
    assert "same" in capsys.readouterr().err


def test_promises_stand_beside_what_was_counted() -> None:
    pairs = [promises.campaigns(2, change=0.2, turned=turned) for turned in (False, True)]
    unchanged = ("unchanged campaigns of 110 rows", pairs[0].different)
    kept = [*promises.marks(50), unchanged, *promises.coverage(50)]
    text = promises.table(
        [*kept, ("changed rows not found where a tenth is faster", pairs[0].missed)]
    )
    assert "| unchanged campaigns of 110 rows | 2 |" in text
    assert all(one.missed == Count(0, 20) for one in pairs)
    assert text.count("| at most 5% |") == len(kept)
    assert "none: told in the report" in text
    assert promises.broken([("quiet rows called unsure, n = 3", Count(40, 100))]) == [
        "quiet rows called unsure, n = 3: 40.0%, promised is at most 5%"
    ]
    assert promises.broken([("quiet rows called unsure, n = 3", Count(6, 100))]) == []
