"""Matrices, ladders and latency under load: what their rows are, and what is said of them.

The ladder is of a machine whose neighbours share its last-level cache: twelve recorded runs.
"""

from itertools import pairwise

import pytest
from tests.unit import campaign_data as make

from peakmark.catalogue import PAGES, SUBSYSTEMS
from peakmark.cell import Cell
from peakmark.messages import Message
from peakmark.rows import curves, schema, shapes
from peakmark.rows.curves import LoadedPoint
from peakmark.tools.tables import BY_NAME

NODE = (2, 4, 2, 8, 2)
"""256 CPUs, see ``core_to_core``."""
PLACES = ("local", "same-socket", "other-socket")
LINEAR = [(1e9, 100e-9), (2e9, 110e-9), (4e9, 190e-9), (6e9, 390e-9), (5.5e9, 450e-9)]
"""Doubled at 4.1e9: a twentieth of the way from the third to the fourth point."""


def rows_of(frames, table):
    """The lines of peakmark's kernel in a table."""
    rows = frames.rows[frames.rows["table"].eq(table) & frames.rows["is_own"]]
    return list(schema.lines(rows.assign(disturbances="")))


def runs_of(frames):
    """Point -> its runs."""
    kept = frames.runs[frames.runs["kept"]]
    return {point: list(schema.lines(runs)) for point, runs in kept.groupby("point")}


def slow_pairs(frames, table="memory_core_to_core"):
    """The values of what is said of slow pairs."""
    found = shapes.slow_pairs(BY_NAME[table], rows_of(frames, table), runs_of(frames))
    return [dict(each.values) for each in found]


# -- matrices


def test_a_matrix_has_a_row_for_each_distance(tmp_path):
    rows = rows_of(make.frames(tmp_path / "c", make.core_to_core(*NODE)), "memory_core_to_core")
    assert {row.variant: row.value for row in rows} == pytest.approx(
        {name: 1.01 * value for name, value in make.DISTANCES.items()}
    )
    assert all(row.n == 3 and not row.missing for row in rows)


def test_a_repetition_that_failed_is_missing_in_each_row(tmp_path):
    records = make.core_to_core(1, 1, 2, 2, 1)
    failed = Cell.from_json(records[2]["cell"])
    frames = make.frames(tmp_path / "c", records[:2], planned=[failed])
    rows = rows_of(frames, "memory_core_to_core")
    assert {row.variant: row.missing for row in rows} == {"same-cache": 1, "same-node": 1}


def test_a_matrix_that_nobody_measured_is_one_hole(tmp_path):
    planned = [Cell.from_json(one["cell"]) for one in make.core_to_core(1, 1, 1, 2, 1)]
    (row,) = make.frames(tmp_path / "c", [], planned=planned).rows.itertuples()
    assert (row.n, row.missing) == (0, 3)


def test_pairs_that_take_longer_than_their_like_are_named(tmp_path):
    assert slow_pairs(make.frames(tmp_path / "quiet", make.core_to_core(*NODE))) == []
    frames = make.frames(tmp_path / "slow", make.core_to_core(1, 1, 2, 8, 1, slow=(5,)))
    found = {values["distance"]: values for values in slow_pairs(frames)}
    assert found["same-cache"]["count"] == 7 and found["same-node"]["count"] == 8
    assert found["same-cache"]["factor"] == pytest.approx(3)
    assert frames.findings["text"].str.contains("7 of 56 pairs of CPUs").any()


@pytest.mark.parametrize(("metric", "workloads"), [("latency", 1), ("throughput", 2)])
def test_a_matrix_of_nodes_has_a_row_for_each_place(metric, workloads, tmp_path):
    frames = make.frames(tmp_path / "c", make.numa(2, 4, slow=(1, 6)))
    rows = rows_of(frames, f"memory_numa_{metric}")
    assert [row.variant for row in rows] == [name for name in PLACES for _ in range(workloads)]
    assert all(row.n == 3 and not row.missing for row in rows)
    found = slow_pairs(frames, f"memory_numa_{metric}")
    assert len(found) == workloads
    for values in found:
        assert (values["distance"], values["worst"]) == ("other-socket", ("1 and 6",))
        assert (values["count"], values["pairs"]) == (1, 32)
        assert values["factor"] == pytest.approx(3)


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
    curve = curves.curve_of([runs[row.point] for row in rows])
    assert [points[0][0] for points in curve] == [(1 << 14) << step for step in range(14)]
    slower = BY_NAME[name].lower_is_better
    for before, after in pairwise(sorted(value for _, value in points) for points in curve):
        assert before[0] <= after[-1] if slower else before[-1] >= after[0]


def sizes(rows, runs):
    """Case and values of what is said of each cache."""
    (said,) = shapes.measured_caches(rows, runs)
    levels = dict(said.values)["levels"]
    return [(one.case, dict(one.values)) for one in levels if isinstance(one, Message)]


def test_a_disturbed_repetition_of_one_level_changes_no_other(ladders):
    rows, runs = levels_of(ladders, "memory_ladder_latency", "huge"), runs_of(ladders)
    fewer = {**runs, rows[1].point: runs[rows[1].point][1:]}
    assert sizes(rows, fewer)[0] == sizes(rows, runs)[0]


def test_a_finding_tells_how_far_each_cache_reaches(ladders):
    rows = levels_of(ladders, "memory_ladder_latency", "huge")
    (first, one), (second, two), (third, three) = sizes(rows, runs_of(ladders))
    assert (first, second, third) == ("level",) * 3
    assert (one["measured"], one["stated"]) == ("32 KiB", "32 KiB")
    assert (two["measured"], two["stated"]) == ("512 KiB", "1 MiB")
    assert three["stated"] == "32 MiB"
    # The rows of L3 were disturbed: nothing is said of the border between L2 and L3.
    texts = ladders.findings["text"]
    assert texts.str.contains("32 KiB in L1 (system: 32 KiB)", regex=False).all()
    assert not texts.str.contains("L2").any()


def test_levels_alike_are_not_told_apart(ladders):
    first, _, third, *_ = levels_of(ladders, "memory_ladder_latency", "huge")
    assert len(sizes([first, third, third], runs_of(ladders))) == 1


# -- latency under load


@pytest.mark.parametrize(("curve", "knee"), [
    (LINEAR, 4.1e9),
    (LINEAR[:3], None),
    ([(1e9, 100e-9), (3e9, 200e-9)], 3e9),
    ([(1e9, 100e-9), (2e9, 250e-9), (3e9, 120e-9), (4e9, 300e-9)], 1e9 + 2e9 / 3),
    (LINEAR[:1], None),
])  # fmt: skip
def test_the_knee_is_where_the_latency_doubles(curve, knee):
    found = curves.knee_of([LoadedPoint(*point) for point in curve])
    assert found == (knee if knee is None else pytest.approx(knee))


def records(factors, overlap=1.0, mix="r75"):
    """A repetition of ``LINEAR`` for each of the factors of its latencies."""
    made = []
    for repetition, factor in enumerate(factors):
        points = [[rate, factor * latency, overlap, 0.0] for rate, latency in LINEAR]
        made += make.runs(
            "rambench", "LOADED", points[-1][1], metric="loaded_latency", variant=mix, block=None,
            concurrency=2, repetition=repetition, details={"points": points, "cpu_share": 1.0},
        )  # fmt: skip
    return made


@pytest.mark.parametrize(("site", "share"), [({"memory": {"bandwidth": 12e9}}, 0.5), ({}, None)])
def test_a_row_tells_of_idle_knee_and_saturation(tmp_path, site, share):
    frames = make.frames(tmp_path, records([1.0, 0.9, 1.1]), config={"site_facts": site})
    (row,) = rows_of(frames, "memory_loaded_latency")
    said = shapes.latency_under_load(row, runs_of(frames)[row.point])
    values = dict(said.values)
    assert row.limit is None
    assert row.value == pytest.approx(450e-9)
    assert values["reads"] == 75
    assert (values["idle"], values["latency"]) == pytest.approx((100e-9, 390e-9))
    assert (values["saturation"], values["knee"]) == pytest.approx((6e9, 4.1e9))
    told = values["share"] and dict(values["share"].values)["share"]
    assert (told or None) == (share and pytest.approx(share))
    assert said.full_sentence in set(frames.findings["text"])


@pytest.mark.parametrize(("overlap", "warned"), [(0.96, False), (0.94, True)])
def test_threads_apart_are_a_warning(tmp_path, overlap, warned):
    frames = make.frames(tmp_path, records([1.0] * 3, overlap))
    assert ("overlap" in set(frames.warnings["code"])) == warned
