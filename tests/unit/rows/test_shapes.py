"""Matrices, ladders and latency under load: what their rows are.

The ladder is of a machine whose neighbours share its last-level cache: twelve recorded runs.
"""

from itertools import pairwise

import pytest
from tests.unit import campaign_data as make

from peakmark.catalogue import PAGES, SUBSYSTEMS
from peakmark.rows import schema
from peakmark.tools.tables import BY_NAME

NODE = (2, 4, 2, 8, 2)
"""256 CPUs, see ``core_to_core``."""


def rows_of(frames, table):
    """The lines of peakmark's kernel in a table."""
    rows = frames.rows[frames.rows["table"].eq(table) & frames.rows["is_own"]]
    return list(schema.lines(rows.assign(is_disturbed=False)))


def runs_of(frames):
    """Point -> its runs."""
    kept = frames.runs[frames.runs["kept"]]
    return {point: list(schema.lines(runs)) for point, runs in kept.groupby("point")}


# -- matrices


def test_a_matrix_has_a_row_for_each_distance(tmp_path):
    rows = rows_of(make.frames(tmp_path / "c", make.core_to_core(*NODE)), "memory_core_to_core")
    assert {row.variant: row.value for row in rows} == pytest.approx(
        {name: 1.01 * value for name, value in make.DISTANCES.items()}
    )
    assert all(row.n == 3 and not row.missing for row in rows)


def test_a_repetition_that_failed_is_missing_in_each_row(tmp_path):
    records = make.core_to_core(1, 1, 2, 2, 1)
    failed = make.cell_of(records[2]["cell"])
    frames = make.frames(tmp_path / "c", records[:2], planned=[failed])
    rows = rows_of(frames, "memory_core_to_core")
    assert {row.variant: row.missing for row in rows} == {"same-cache": 1, "same-node": 1}


def test_a_matrix_that_nobody_measured_is_one_hole(tmp_path):
    planned = [make.cell_of(one["cell"]) for one in make.core_to_core(1, 1, 1, 2, 1)]
    (row,) = make.frames(tmp_path / "c", [], planned=planned).rows.itertuples()
    assert (row.n, row.missing) == (0, 3)


# -- ladders


@pytest.fixture(scope="module")
def ladders(tmp_path_factory):
    return make.frames(tmp_path_factory.mktemp("results") / "c", make.ladders())


def levels_of(frames, table, pages):
    return [row for row in rows_of(frames, table) if row.variant.endswith(pages)]


@pytest.mark.parametrize("pages", PAGES)
@pytest.mark.parametrize("name", ["memory_ladder_latency", "memory_ladder_throughput"])
def test_each_level_is_a_row_and_the_curve_is_monotone(ladders, name, pages):
    rows = levels_of(ladders, name, pages)
    assert [row.variant for row in rows] == [
        one for one in SUBSYSTEMS["memory"].variants if f"-{pages}" in one and "l4" not in one
    ]
    assert all(row.n == 3 and row.missing == 0 for row in rows)
    runs = runs_of(ladders)
    curve = schema.curve_of([runs[row.point] for row in rows])
    assert [points[0][0] for points in curve] == [(1 << 14) << step for step in range(14)]
    slower = BY_NAME[name].lower_is_better
    for before, after in pairwise(sorted(value for _, value in points) for points in curve):
        assert before[0] <= after[-1] if slower else before[-1] >= after[0]
