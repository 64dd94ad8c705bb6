"""Comparing: the verdict says what the values carry, and no more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark import cli
from peakmark.analysis import compare, datasets
from peakmark.analysis.datasets import Dataset
from peakmark.errors import ConfigError

STEADY = [1.00, 1.01, 0.99, 1.02, 0.98, 1.005]
CALM = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)
SAME = "no difference shown"


def disk(folder: Path, factor: float = 1.0, *, node: str = "any", limited: bool = False) -> Dataset:
    """A disk, its throughput and latency, ``factor`` times as fast; ``limited`` by a cgroup at what
    it reads.
    """
    context = {"io_limits": {"read_bps": int(4e8 * factor)}} if limited else {}
    rates = [4e8 * factor * value for value in STEADY]
    records = make.runs("diskbench", "RS", *rates, node=node, context=context)
    for each in make.runs("diskbench", "RR", *STEADY, metric="iops", block=4096, node=node):
        (iops,) = each["measurements"]
        value = iops["value"]
        iops["value"] = 1e4 * factor * value
        time = {"metric": "latency", "unit": "s", "value": 1e-4 / factor * value}
        records.append(each | {"measurements": [iops, iops | time]})
    return datasets.read(str(make.write(folder, records)))


def two(by: float, **more: Any) -> list[Dataset]:
    """Two sides of one row, the second ``by`` times the first."""
    point = datasets.ComparedPoint("cpu", "cpubench", "DP", "", 0, 1, "node1")
    rows = [datasets.DatasetRow(tuple(side * value for value in CALM)) for side in (1.0, by)]
    return [Dataset("s", {point: row}, False, **more) for row in rows]


@pytest.mark.parametrize(
    ("before", "after", "lower_is_better", "tolerance", "verdict"),
    [
        (STEADY, [1.2 * value for value in STEADY], False, 0.0, "better"),
        (STEADY, [0.8 * value for value in STEADY], False, 0.0, "worse"),
        (STEADY, [1.2 * value for value in STEADY], True, 0.0, "worse"),
        (STEADY, [0.8 * value for value in STEADY], True, 0.0, "better"),
        (STEADY, STEADY, False, 0.0, SAME),
        (STEADY, [1.002 * value for value in STEADY], True, 0.0, SAME),
        # Too few values cannot tell, however far apart.
        ([1.0] * 3, [9.0] * 3, False, 0.0, "cannot tell"),
        ([1.0] * 4, [9.0] * 4, False, 0.0, "better"),
        (CALM, [0.96 * value for value in CALM], False, 0.0, "worse"),
        (CALM, [0.96 * value for value in CALM], False, 0.05, SAME),
        (CALM, [1.04 * value for value in CALM], False, 0.05, SAME),
    ],
)
def test_the_verdict_follows_the_interval_and_the_direction(
    before: list[float], after: list[float], lower_is_better: bool, tolerance: float, verdict: str
) -> None:
    found = compare.judge(before, after, lower_is_better, tolerance=tolerance)
    assert found.ratio == pytest.approx(after[0] / before[0], rel=0.003)
    assert found.low <= found.ratio <= found.high
    assert found.verdict == verdict


MOVES = {"cpu": 0.05, "memory_throughput": -0.05, "disk_throughput": 0.05}
STANDS = {table: drift / 50 for table, drift in MOVES.items()}


@pytest.mark.parametrize(
    ("factor", "drift", "tolerance", "verdict"),
    [
        (0.98, {}, None, SAME),  # less than three per cent gets no verdict unless it is asked for
        (0.96, {}, None, "worse"),
        (1.04, {}, None, "better"),
        (0.98, {}, 0.0, "worse"),
        (1.02, {}, 0.0, "better"),
        (0.9, STANDS, None, "worse"),
        (0.9, MOVES, None, SAME),  # the machine moves by itself
    ],
)
def test_small_differences_get_no_verdict(
    factor: float, drift: dict[str, float], tolerance: float | None, verdict: str
) -> None:
    (found,), _, _ = compare.compare(*two(factor, drift=drift), tolerance=tolerance)
    assert found.verdict == verdict


def test_a_machine_that_moves_while_it_is_measured_gets_a_wider_tolerance() -> None:
    still, moving, bare = (
        Dataset("x", {}, False, drift=drift)
        for drift in ({"cpu": 0.001, "disk": -0.001}, {"cpu": 0.05, "disk": -0.04}, {})
    )
    assert compare.drifts(still, still, 0.05) < 0.01
    assert 0.1 < compare.drifts(moving, still, 0.05) < 0.3
    assert compare.drifts(bare, bare, 0.05) == 0


def test_two_campaigns_row_by_row(tmp_path: Path) -> None:
    before, after = disk(tmp_path / "a"), disk(tmp_path / "b", 0.5)
    found, *only = compare.compare(before, after)
    assert [one.point.table for one in found] == ["disk_throughput", "disk_latency", "disk_iops"]
    assert {one.verdict for one in found} == {"worse"}
    assert found[1].judged.ratio == pytest.approx(2.0)
    assert only == [0, 0]
    text, counts = compare.report(before, after)
    assert counts == {"worse": 3}
    assert "0 better; 3 worse" in text
    assert "chance alone" in text
    assert "unsure" not in text


def test_a_verdict_on_a_doubtful_row_says_so(tmp_path: Path) -> None:
    before, after = disk(tmp_path / "a"), disk(tmp_path / "b", 0.5, limited=True)
    found, _, _ = compare.compare(before, after)
    assert [one.warnings for one in found] == [("", "wrong"), ("", ""), ("", "")]
    assert "worse (wrong: B)" in compare.report(before, after)[0]


def test_nodes_of_other_names_are_compared_where_each_side_has_one(tmp_path: Path) -> None:
    before, after = disk(tmp_path / "a", node="n1"), disk(tmp_path / "b", 0.5, node="other")
    text, counts = compare.report(before, after)
    assert counts == {"worse": 3}
    assert "A has n1, B has other" in text.splitlines()[0]


def test_a_repeat_shows_how_far_rows_drift(tmp_path: Path) -> None:
    before, after = disk(tmp_path / "a"), disk(tmp_path / "b", 0.9)
    repeat = disk(tmp_path / "a2", 0.85)
    assert compare.report(before, after)[1] == {"worse": 3}
    assert compare.report(before, after, repeat=repeat)[1] == {SAME: 3}


def test_a_published_set_may_be_either_side(tmp_path: Path) -> None:
    mine, theirs = disk(tmp_path / "mine"), datasets.read("disk-patterns-2020")
    (throughput, iops), _, _ = compare.compare(theirs, mine)
    assert throughput.before == (393e6, 403e6, 398e6)
    assert throughput.verdict == SAME  # three runs against six, at nearly the same speed
    assert (iops.before, iops.verdict) == ((6408.0,), "cannot tell")
    assert iops.judged.ratio == pytest.approx(1e4 * 1.0025 / 6408)
    (back, _), _, _ = compare.compare(mine, theirs)
    assert back.judged.ratio == pytest.approx(1 / throughput.judged.ratio)


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    side = datasets.read(str(make.write(tmp_path / "c", make.runs("cpubench", "DP", 1e9))))
    with pytest.raises(ConfigError, match="no row in common"):
        compare.report(side, datasets.read("disk-patterns-2020"))


def test_exit_codes_are_fit_for_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, slower, nothing = (str(tmp_path / name) for name in ("a", "b", "nothing"))
    disk(tmp_path / "a"), disk(tmp_path / "b", 0.9)
    fail = ["--fail-on", "worse"]
    assert cli.main(["compare", a, a, *fail]) == 0
    assert cli.main(["compare", a, slower]) == 0
    assert cli.main(["compare", a, slower, *fail]) == 1
    assert cli.main(["compare", slower, a, *fail]) == 0
    assert cli.main(["compare", a, slower, *fail, "--tolerance", "0.2"]) == 0
    capsys.readouterr()
    assert cli.main(["compare", a, nothing]) == 2
    assert nothing in capsys.readouterr().err


def test_what_a_published_set_notes_on_its_values_is_told(tmp_path: Path) -> None:
    records = make.runs("netbench", "TCP", *make.near(1e9))
    name = "four-subsystems-2018-prometheus"
    mine, theirs = datasets.read(str(make.write(tmp_path / "c", records))), datasets.read(name)
    for both, side in (((theirs, mine), "A"), ((mine, theirs), "B")):
        text = compare.report(*both)[0]
        assert f"[1] {side} notes on 1 row:" in text and "loopback" in text
        assert next(line for line in text.splitlines() if "netbench TCP" in line).endswith(" [1]")
    row = make.only_row(tmp_path / "d", records, config={"report": {"published": [name]}})
    (note,) = [note for note in row.warnings if note.code == "published"]
    assert dict(note.values)["source"] == name and row.level is None


def many(folder: Path, seed: int, slow: int = -1) -> datasets.Dataset:
    """Forty rows of six noisy values of one machine; one at four fifths of the rate."""
    random = np.random.default_rng(seed)
    records = []
    for row in range(40):
        values = 4e8 * (0.8 if row == slow else 1.0) * random.lognormal(0, 0.02, 6)
        records += make.runs("diskbench", "RS", *values.tolist(), block=4096 * (row + 1))
    return datasets.read(str(make.write(folder, records)))


def test_of_many_unchanged_rows_none_is_called_worse_and_one_changed_row_is(tmp_path: Path) -> None:
    before = many(tmp_path / "a", 1)
    for seed in (2, 3, 4):
        found, _, _ = compare.compare(before, many(tmp_path / f"b{seed}", seed), tolerance=0.0)
        assert not [one for one in found if one.verdict in compare.CLAIMS]
    found, _, _ = compare.compare(before, many(tmp_path / "c", 5, slow=7))
    assert [one.point.block for one in found if one.verdict == "worse"] == [8 * 4096]


@pytest.mark.parametrize(("beside", "verdict"), [(0, "better"), (109, "no difference shown")])
def test_a_claim_that_chance_brings_among_many_rows_does_not_stand(
    beside: int, verdict: str
) -> None:
    """By itself one row of two samples that lie apart is a claim; among 110 rows chance brings it."""
    before, after = (1.0, 1.1, 1.2, 1.05, 1.15, 1.12), (1.14, 1.22, 1.3, 1.16, 1.25, 1.21)
    rows = {1: (before, after), **dict.fromkeys(range(2, beside + 2), (before, before))}
    old, new = (
        datasets.Dataset(
            "s",
            {
                datasets.ComparedPoint("cpu", "cpubench", "DP", "", 0, threads, ""):
                datasets.DatasetRow(values[side])
                for threads, values in rows.items()
            },
            bare=False,
        )
        for side in (0, 1)
    )  # fmt: skip
    (claim, *others), _, _ = compare.compare(old, new, tolerance=0.0)
    assert claim.verdict == verdict
    assert {one.verdict for one in others} <= {"no difference shown"}
