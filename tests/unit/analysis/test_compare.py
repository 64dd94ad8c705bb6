"""Comparing: the verdict says what the values carry, and no more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark import cli, statistics
from peakmark.analysis import compare, datasets
from peakmark.config import published
from peakmark.errors import ConfigError

STEADY = [1.00, 1.01, 0.99, 1.02, 0.98, 1.005]
CALM = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)


def sides(by: float, **more: Any) -> list[datasets.Dataset]:
    """Two sides of one row, the second ``by`` times the first."""
    point = datasets.ComparedPoint("cpu", "cpubench", "DP", "", 0, 1, "node1")
    made = []
    for factor in (1.0, by):
        row = datasets.DatasetRow(tuple(factor * value for value in CALM))
        made.append(datasets.Dataset("s", {point: row}, False, **more))
    return made


def campaign(
    folder: Path,
    factor: float = 1.0,
    repetitions: int = 6,
    node: str = "any",
    limited: bool = False,
) -> Path:
    """A disk, its throughput and latency, ``factor`` times as fast; ``limited`` by a cgroup at what
    it reads.
    """
    context = {"io_limits": {"read_bps": int(4e8 * factor)}} if limited else {}
    steady = STEADY[:repetitions]
    rates = [4e8 * factor * value for value in steady]
    records = make.runs("diskbench", "RS", *rates, node=node, context=context)
    for number, value in enumerate(steady):
        of = make.cell(
            "diskbench", "RR", subsystem="disk", variant="psync", block=4096, repetition=number,
            node=node,
        )  # fmt: skip
        values = {"iops": 1e4 * factor * value, "latency": 1e-4 / factor * value}
        records.append(make.record(of, [make.measurement(of, *pair) for pair in values.items()]))
    return make.write(folder, records)


@pytest.mark.parametrize(
    ("after", "lower_is_better", "verdict"),
    [
        (1.2, False, "better"),
        (0.8, False, "worse"),
        (1.2, True, "worse"),
        (0.8, True, "better"),
        (1.0, False, "no difference shown"),
        (1.002, True, "no difference shown"),
    ],
)
def test_the_verdict_follows_the_interval_and_the_direction(
    after: float, lower_is_better: bool, verdict: str
) -> None:
    found = compare.judge(STEADY, [after * value for value in STEADY], lower_is_better)
    assert found.ratio == pytest.approx(after)
    assert found.low <= found.ratio <= found.high
    assert found.verdict == verdict


def test_too_few_values_cannot_tell_however_far_apart() -> None:
    judged = compare.judge([1.0, 1.0, 1.0], [9.0, 9.0, 9.0], False)
    assert (judged.ratio, judged.verdict) == (9.0, "cannot tell")
    assert compare.judge([1.0, 1.0, 1.0, 1.0], [9.0, 9.0, 9.0, 9.0], False).verdict == "better"


def test_what_can_differ_is_counted_not_assumed() -> None:
    assert not statistics.can_differ(3, 3)  # 2 / 20
    assert statistics.can_differ(4, 4)  # 2 / 70
    assert statistics.can_differ(3, 6)  # 2 / 84
    assert not statistics.can_differ(1, 30)  # 2 / 31
    assert not statistics.can_differ(4, 4, 0.99)
    assert not statistics.can_differ(0, 5)


def test_a_tolerance_keeps_small_differences_from_a_verdict() -> None:
    slower = [0.96 * value for value in CALM]
    assert compare.judge(CALM, slower, False).verdict == "worse"
    assert compare.judge(CALM, slower, False, tolerance=0.05).verdict == "no difference shown"


@pytest.mark.parametrize(
    ("factor", "verdict"), [(0.98, "no difference shown"), (0.96, "worse"), (1.04, "better")]
)
def test_less_than_three_per_cent_gets_no_verdict_unless_it_is_asked_for(
    factor: float, verdict: str
) -> None:
    before, after = sides(factor)
    (found,), _, _ = compare.compare(before, after)
    assert found.verdict == verdict
    (found,), _, _ = compare.compare(before, after, tolerance=0.0)
    assert found.verdict == ("better" if factor > 1 else "worse")


def test_the_interval_is_the_same_each_time_and_widens_with_the_spread() -> None:
    wide = [1.0, 1.5, 0.6, 1.2, 0.8, 1.1]
    assert statistics.ratio_interval(STEADY, wide) == statistics.ratio_interval(STEADY, wide)
    narrow = statistics.ratio_interval(STEADY, STEADY)
    _, low, high = statistics.ratio_interval(STEADY, wide)
    assert high - low > 2 * (narrow[2] - narrow[1])


def test_the_interval_of_equal_machines_mostly_holds_one() -> None:
    import numpy as np

    random = np.random.default_rng(7)
    inside = 0
    for _ in range(200):
        _, low, high = statistics.ratio_interval(
            random.normal(1, 0.05, 8), random.normal(1, 0.05, 8), rounds=400
        )
        inside += low <= 1 <= high
    assert inside >= 180


def test_two_campaigns_row_by_row(tmp_path: Path) -> None:
    before = datasets.read(str(campaign(tmp_path / "a")))
    after = datasets.read(str(campaign(tmp_path / "b", 0.5)))
    found, only_before, only_after = compare.compare(before, after)
    assert [one.point.table for one in found] == ["disk_throughput", "disk_latency", "disk_iops"]
    assert {one.verdict for one in found} == {"worse"}
    assert found[1].judged.ratio == pytest.approx(2.0)
    assert (only_before, only_after) == (0, 0)
    text, counts = compare.report(before, after)
    assert counts["worse"] == 3
    assert "0 better; 3 worse" in text
    assert "chance alone" in text


def test_a_verdict_on_a_doubtful_row_says_so(tmp_path: Path) -> None:
    before = datasets.read(str(campaign(tmp_path / "a")))
    after = datasets.read(str(campaign(tmp_path / "b", 0.5, limited=True)))
    found, _, _ = compare.compare(before, after)
    assert [one.warnings for one in found] == [("", "wrong"), ("", ""), ("", "")]
    text, _ = compare.report(before, after)
    assert "worse (wrong: B)" in text
    assert "unsure" not in compare.report(before, before)[0]


def test_a_published_set_may_be_either_side(tmp_path: Path) -> None:
    mine = datasets.read(str(campaign(tmp_path / "mine")))
    theirs = datasets.read("disk-patterns-2020")
    (throughput, iops), _, _ = compare.compare(theirs, mine)
    assert throughput.before == (393e6, 403e6, 398e6)
    assert (
        throughput.verdict == "no difference shown"
    )  # three runs against six, at nearly the same speed
    assert iops.before == (6408.0,)
    assert iops.verdict == "cannot tell"
    assert iops.judged.ratio == pytest.approx(1e4 * statistics.median(STEADY) / 6408)
    (back, _), _, _ = compare.compare(mine, theirs)
    assert back.judged.ratio == pytest.approx(1 / throughput.judged.ratio)


def test_a_copied_file_is_a_published_set_too(tmp_path: Path) -> None:
    copy = tmp_path / "copy.csv"
    shutil.copyfile(published.FOLDER / "file-io-lab.csv", copy)
    found, only_before, only_after = compare.compare(
        datasets.read(str(copy)), datasets.read("file-io-lab")
    )
    assert {one.judged.ratio for one in found} == {1.0}
    assert (only_before, only_after) == (0, 0)


def test_a_campaign_of_two_nodes_is_not_laid_on_a_published_row(tmp_path: Path) -> None:
    first, second = (
        make.runs("diskbench", "RS", 4e8, node=node, host=node) for node in ("n1", "n2")
    )
    side = datasets.read(str(make.write(tmp_path / "c", [*first, *second])))
    with pytest.raises(ConfigError, match="several nodes"):
        compare.compare(datasets.read("disk-patterns-2020"), side)


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    side = datasets.read(str(make.write(tmp_path / "c", make.runs("cpubench", "DP", 1e9))))
    with pytest.raises(ConfigError, match="no row in common"):
        compare.report(side, datasets.read("disk-patterns-2020"))


def test_exit_codes_are_fit_for_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, slower = str(campaign(tmp_path / "a")), str(campaign(tmp_path / "b", 0.9))
    assert cli.main(["compare", a, a, "--fail-on", "worse"]) == 0
    assert cli.main(["compare", a, slower]) == 0
    assert cli.main(["compare", a, slower, "--fail-on", "worse"]) == 1
    assert cli.main(["compare", slower, a, "--fail-on", "worse"]) == 0
    assert cli.main(["compare", a, slower, "--fail-on", "worse", "--tolerance", "0.2"]) == 0
    capsys.readouterr()
    assert cli.main(["compare", a, str(tmp_path / "nothing")]) == 2
    assert str(tmp_path / "nothing") in capsys.readouterr().err


def test_nodes_of_other_names_are_compared_where_each_side_has_one(tmp_path: Path) -> None:
    before = datasets.read(str(campaign(tmp_path / "a", node="n1")))
    after = datasets.read(str(campaign(tmp_path / "b", 0.5, node="other")))
    text, counts = compare.report(before, after)
    assert counts["worse"] == 3
    assert "A has n1, B has other" in text.splitlines()[0]


def test_a_repeat_shows_how_far_rows_drift(tmp_path: Path) -> None:
    before = datasets.read(str(campaign(tmp_path / "a")))
    after = datasets.read(str(campaign(tmp_path / "b", 0.9)))
    repeat = datasets.read(str(campaign(tmp_path / "a2", 0.85)))
    assert compare.report(before, after)[1]["worse"] == 3
    assert compare.report(before, after, repeat=repeat)[1]["worse"] == 0


def test_a_machine_that_moves_while_it_is_measured_gets_a_wider_tolerance() -> None:
    still = datasets.Dataset("still", {}, False, drift={"cpu": 0.001, "disk_throughput": -0.001})
    moving = datasets.Dataset("moving", {}, False, drift={"cpu": 0.05, "disk_throughput": -0.04})
    assert compare.drifts(still, still, 0.05) < 0.01
    assert 0.1 < compare.drifts(moving, still, 0.05) < 0.3
    assert (
        compare.drifts(datasets.Dataset("a", {}, True), datasets.Dataset("b", {}, True), 0.05) == 0
    )


@pytest.mark.parametrize(("moved", "verdict"), [(0.001, "worse"), (0.05, "no difference shown")])
def test_what_a_machine_moves_by_itself_gets_no_verdict(moved: float, verdict: str) -> None:
    drift = {"cpu": moved, "memory_throughput": -moved, "disk_throughput": moved}
    before, after = sides(0.9, drift=drift)
    (found,), _, _ = compare.compare(before, after)
    assert found.verdict == verdict


def test_two_sizes_of_one_published_row_are_one_row(tmp_path: Path) -> None:
    binary, decimal = (
        make.runs("diskbench", "RS", value, block=block)
        for block, value in ((1 << 20, 4e8), (10**6, 3e8))
    )
    side = datasets.read(str(make.write(tmp_path / "c", [*binary, *decimal])))
    (found, *_), _, _ = compare.compare(datasets.read("disk-patterns-2020"), side)
    assert found.after == (4e8,)


def test_what_a_published_set_notes_on_its_values_is_told(tmp_path: Path) -> None:
    records = make.runs("netbench", "TCP", *(1e9 * value for value in STEADY))
    mine = datasets.read(str(make.write(tmp_path / "c", records)))
    name = "four-subsystems-2018-prometheus"
    for both, side in (((datasets.read(name), mine), "A"), ((mine, datasets.read(name)), "B")):
        text = compare.report(*both)[0]
        assert f"[1] {side} notes on 1 row:" in text and "loopback" in text
        assert next(line for line in text.splitlines() if "netbench TCP" in line).endswith(" [1]")
    config = {"report": {"published": [name]}}
    (row,) = make.judge(tmp_path / "d", records, config=config).rows["network_throughput"]
    (note,) = [note for note in row.warnings if note.code == "published"]
    assert dict(note.values)["source"] == name and "loopback" in note.text
    assert row.level is None
