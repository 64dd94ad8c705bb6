"""Matrices of a node, from made-up records: what their rows are, and which places are named."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit import campaign_data as make

from peakmark.analysis import Analysis, findings, shapes
from peakmark.cell import Cell
from peakmark.figures import curves

NODE = (2, 4, 2, 8, 2)  # 256 CPUs

PLACES = ("local", "same-socket", "other-socket")


def rows_of(folder, *sizes, slow=()):
    folder = make.write(folder, make.core_to_core(*sizes, slow=slow))
    return list(Analysis.of(folder).rows["memory_core_to_core"])


def named(rows):
    return [each.values for each in shapes.outliers(rows)]


def test_a_matrix_has_a_row_for_each_distance(tmp_path):
    rows = rows_of(tmp_path / "c", *NODE)
    assert {row.key.variant: row.measured.centre for row in rows} == pytest.approx(
        {name: 1.01 * value for name, value in make.DISTANCES.items()}
    )
    assert all(row.measured.summary.n == 3 and not row.missing for row in rows)


def test_a_repetition_that_failed_is_missing_in_each_row(tmp_path):
    records = make.core_to_core(1, 1, 2, 2, 1)
    failed = Cell.from_json(records[2]["cell"])
    folder = make.write(tmp_path / "c", records[:2], planned=[failed])
    rows = Analysis.of(folder).rows["memory_core_to_core"]
    assert {row.key.variant: row.missing for row in rows} == {"same-cache": 1, "same-node": 1}


def test_a_matrix_that_nobody_measured_is_one_hole(tmp_path):
    planned = [Cell.from_json(one["cell"]) for one in make.core_to_core(1, 1, 1, 2, 1)]
    row = make.only_row(tmp_path / "c", [], planned=planned)
    assert row.own is None and row.missing == 3


def test_pairs_that_take_longer_than_their_like_are_named(tmp_path):
    assert not list(shapes.outliers(rows_of(tmp_path / "quiet", *NODE)))
    rows = rows_of(tmp_path / "slow", 1, 1, 2, 8, 1, slow=(5,))
    found = {values["distance"]: values for values in map(dict, named(rows))}
    assert found["same-cache"]["count"] == 7 and found["same-node"]["count"] == 8
    assert found["same-cache"]["factor"] == pytest.approx(3)
    assert any(each.message.code == "slow-pairs" for each in findings.conclusions(rows))


@pytest.mark.parametrize(("metric", "workloads"), [("latency", 1), ("throughput", 2)])
def test_a_matrix_of_nodes_has_a_row_for_each_place(metric, workloads, tmp_path):
    slow = (1, 6)
    folder = make.write(tmp_path / "c", make.numa(2, 4, slow=slow))
    rows = list(Analysis.of(folder).rows[f"memory_numa_{metric}"])
    assert [row.key.variant for row in rows] == [name for name in PLACES for _ in range(workloads)]
    assert all(row.measured.summary.n == 3 and not row.missing for row in rows)
    found = [dict(each.message.values) for each in findings.conclusions(rows)
             if each.message.code == "slow-pairs"]  # fmt: skip
    assert len(found) == workloads
    for values in found:
        assert (values["distance"], values["worst"]) == ("other-socket", ("1 and 6",))
        assert (values["count"], values["pairs"]) == (1, 32)
        assert values["factor"] == pytest.approx(3)
    figure = curves.plot_matrices(rows[0].table, rows)
    assert figure is not None
    panels = [axis.collections[0].get_array() for axis in figure.axes[:workloads]]
    assert len(panels) == workloads
    worst = (np.argmax if metric == "latency" else np.argmin)(panels[0])
    assert divmod(int(worst), 8) == slow


@pytest.mark.parametrize("sizes", [NODE, (1, 1, 2, 2, 1)])
def test_a_heat_map_has_a_field_for_each_pair(tmp_path, sizes):
    rows = rows_of(tmp_path / "c", *sizes)
    figure = curves.plot_matrices(rows[0].table, rows)
    assert figure is not None
    cpus = len(shapes.places_of(rows))
    field = figure.axes[0].collections[0].get_array()
    assert field is not None and field.shape == (cpus, cpus)
    assert field.mask.sum() == cpus  # nothing from a CPU to itself


def test_two_places_are_no_matrix(tmp_path):
    rows = rows_of(tmp_path / "c", 1, 1, 1, 2, 1)
    assert curves.plot_matrices(rows[0].table, rows) is None
