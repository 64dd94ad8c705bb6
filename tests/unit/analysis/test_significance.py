"""What chance does to many comparisons at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark import statistics
from peakmark.analysis import compare, datasets


def many(folder: Path, seed: int, rows: int = 40, slow: tuple[int, ...] = ()) -> Path:
    """``rows`` rows of six noisy values of one machine; those in ``slow`` at four fifths of the
    rate.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    records = []
    for row in range(rows):
        rate = 4e8 * (0.8 if row in slow else 1.0)
        values = rate * random.lognormal(0, 0.02, 6)
        records += make.runs("diskbench", "RS", *values.tolist(), block=4096 * (row + 1))
    return make.write(folder, records)


def test_of_many_unchanged_rows_none_is_called_worse_and_one_changed_row_is(tmp_path: Path) -> None:
    before = datasets.read(str(many(tmp_path / "a", 1)))
    for seed in (2, 3, 4):
        found, _, _ = compare.compare(
            before, datasets.read(str(many(tmp_path / f"b{seed}", seed))), tolerance=0.0
        )
        assert not [one for one in found if one.verdict in compare.CLAIMS]
    found, _, _ = compare.compare(before, datasets.read(str(many(tmp_path / "c", 5, slow=(7,)))))
    assert [one.point.block for one in found if one.verdict == "worse"] == [8 * 4096]


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    [
        (0.0, 5, 1.0),
        (2.228, 10, 0.05),
        (12.706, 1, 0.05),
        (3.169, 10, 0.01),
        (1.96, 1e6, 0.05),
        (2.0, 4.5, 0.1082),
    ],
)
def test_students_p_is_that_of_the_tables(t: float, freedom: float, p: float) -> None:
    assert statistics.student(t, freedom) == pytest.approx(p, rel=0.01)


def test_the_quantile_is_where_the_p_is() -> None:
    assert statistics.student_quantile(0.05, 2) == pytest.approx(4.303, rel=1e-3)
    assert statistics.student_quantile(0.01, 10) == pytest.approx(3.169, rel=1e-3)


def test_discoveries_are_those_of_benjamini_and_hochberg() -> None:
    # The example of their paper: fifteen p values, of which four stand at 5 %.
    chances = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528,
               0.7590, 1.0]  # fmt: skip
    assert sum(statistics.discoveries(chances, 0.05)) == 4
    assert statistics.discoveries([], 0.05) == []
    assert statistics.discoveries([0.06], 0.05) == [False]


def test_a_claim_that_chance_brings_among_many_rows_does_not_stand() -> None:
    """One row of two samples that lie apart: by itself a claim, among 110 rows what chance brings."""
    before, after = (1.0, 1.1, 1.2, 1.05, 1.15, 1.12), (1.14, 1.22, 1.3, 1.16, 1.25, 1.21)
    same = (1.0, 1.1, 0.9, 1.05, 0.95, 1.0)

    def one(place: int, *values: tuple[float, ...], verdict: compare.Verdict) -> compare.Comparison:
        point = datasets.ComparedPoint("cpu", "cpubench", "DP", "", 0, place, "")
        return compare.Comparison(point, *values, compare.Judgement(1.1, 1.05, 1.2, verdict))

    claim = one(1, before, after, verdict="better")
    others = [one(place, same, same, verdict="no difference shown") for place in range(2, 111)]
    assert [found.verdict for found in compare._standing([claim], 0.95)] == ["better"]
    among = compare._standing([claim, *others], 0.95)
    assert {found.verdict for found in among} == {"no difference shown"}
