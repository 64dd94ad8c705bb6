"""When a difference is stated of two choices."""

import json
import statistics
from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.cell import Cell
from peakmark.messages import Trust, message
from peakmark.rows import comparisons, findings, row_warnings, schema
from peakmark.rows.labels import parallel_efficiency
from peakmark.views import score_card

FAST = [200.0, 210.0, 205.0]
SLOW = [100.0, 101.0, 102.0]
FACTORS = {"Workloads": "workload", "Block size": "block_bytes", "Threads": "concurrency"}
"""Topic -> the column in which the compared rows differ."""


def row(speeds):
    """The speeds of one choice at one point."""
    known = {"n": len(speeds), "slowest": min(speeds), "fastest": max(speeds)}
    return pd.DataFrame([known | {"middle": statistics.median(speeds), "point": "p", "band": 2e-8}])


def pair(first, second):
    """The two choices at one point, compared."""
    return comparisons.paired(row(first), row(second), ["point"]).iloc[0].to_dict()


def gaps(first, second):
    """Both gaps between the ranges of two choices."""
    line = pair(first, second)
    return line["gap"], line["gap_back"]


def shown(*points, tested=1):
    """Direction and certainty of a group of such points, where ``tested`` groups are tested."""
    others = [pair(SLOW, [*SLOW, 120.0])] * (tested - 1)
    pairs = pd.DataFrame([*points, *others]).assign(
        group=[0] * len(points) + list(range(1, tested)),
        **dict.fromkeys(["table", *comparisons.CHOICES, "part"], ""),
    )
    found = comparisons.judged(pairs).iloc[0]
    if pd.isna(found["direction"]):
        return None
    return found["direction"], found["certainty"]


# -- the gap between two ranges


def test_a_gap_is_told_in_larger_ranges():
    assert gaps([30.0, 32.0], [10.0, 14.0])[0] == 4.0
    assert gaps([10.0, 14.0], [30.0, 32.0])[1] == 4.0


def test_ranges_that_overlap_have_a_negative_gap():
    assert gaps([10.0, 20.0], [15.0, 25.0])[0] == -1.5


@pytest.mark.parametrize(("first", "second", "gap"), [
    (2.0, 1.0, float("inf")), (1.0, 2.0, -float("inf")), (1.0, 1.0, 0.0),
])  # fmt: skip
def test_ranges_of_equal_values_are_apart_without_end_or_not_at_all(first, second, gap):
    assert gaps([first] * 3, [second] * 3)[0] == gap


# -- the rule


def test_a_clear_difference_is_in_every_repetition_whichever_side_is_faster():
    assert shown(pair(FAST, SLOW)) == (1, "in every repetition")
    assert shown(pair(SLOW, FAST)) == (-1, "in every repetition")


def test_one_point_that_overlaps_ends_it_for_the_group():
    assert shown(pair(FAST, SLOW), pair([100.0, 150.0, 160.0], [90.0, 101.0, 100.0])) is None


def test_two_points_that_differ_in_opposite_ways_show_nothing():
    assert shown(pair(FAST, SLOW), pair(SLOW, FAST)) is None


def test_a_difference_of_five_percent_is_none():
    assert shown(pair([105.0] * 3, [100.0] * 3)) == (0, "in every repetition")
    assert shown(pair([105.1] * 3, [100.0] * 3)) == (1, "in every repetition")


@pytest.mark.parametrize(("tested", "stated"), [(1, True), (100, False)])
def test_a_small_gap_is_stated_only_where_chance_is_ruled_out(tested, stated):
    near = pair([120.0, 140.0, 130.0, 125.0], [100.0, 119.0, 110.0, 105.0])
    assert (shown(near, tested=tested) is not None) is stated


@pytest.mark.parametrize(("gap", "stated"), [(2.9, False), (3.1, True)])
def test_a_gap_of_three_ranges_makes_up_for_few_repetitions(gap, stated):
    apart = pair([110.0 + 10 * gap, 120.0 + 10 * gap, 115.0 + 10 * gap], [100.0, 105.0, 110.0])
    assert (shown(apart, tested=100) is not None) is stated


@pytest.mark.parametrize(
    ("n", "certainty"), [(1, "from as few as 1 run"), (2, "from as few as 2 runs")]
)
def test_fewer_than_three_repetitions_say_so(n, certainty):
    assert shown(pair(FAST[:n], SLOW[:n])) == (1, certainty)
    assert shown(pair(FAST[:n], SLOW), pair(FAST, SLOW)) == (1, certainty)


def test_a_point_measured_twice_is_said_whichever_point_comes_first(tmp_path):
    """A run above the limit was left out of the second point: the sentence spoke as if of three."""
    records = [
        *make.runs("cpubench", "QP", 6e9, 6.01e9, 6.02e9),
        *make.runs("cpubench", "HP", 2e9, 2.01e9, 2.02e9),
        *make.runs("cpubench", "QP", 12e9, 12.01e9, concurrency=2),
        *make.runs("cpubench", "HP", 4e9, 4.01e9, concurrency=2),
    ]
    frames = make.frames(tmp_path / "c", records)
    (text,) = frames.findings.loc[frames.findings["topic"].eq("Workloads"), "text"]
    assert text == "INT8 is 3 times as fast as INT16 with 1 and 2 threads, from as few as 2 runs."


def test_level_sides_need_all_values_within_five_percent():
    assert shown(pair([100.0, 101.0, 104.0], [99.5, 100.0, 103.0])) == (0, "in every repetition")
    assert shown(pair([100.0, 101.0, 108.0], [99.5, 100.0, 103.0])) is None


# -- disturbed rows


@pytest.mark.parametrize(("disturbed", "left_out"), [((), 0), (("DP",), 2), (("DP", "SP"), 4)])
def test_comparisons_rest_on_undisturbed_rows(tmp_path, disturbed, left_out):
    records = []
    for number, (name, threads) in enumerate(product(("DP", "SP"), (1, 2))):
        rates = [1e10 * 2**number * factor for factor in (1.0, 1.01, 1.02)]
        records += make.runs("cpubench", name, *rates, concurrency=threads)
    frames = make.frames(tmp_path / "c", records)
    load = message("other-load", Trust.CARE, about="cpubench", share=1.0, often="", busy="")
    points = frames.rows.loc[frames.rows["workload"].isin(disturbed), "point"]
    lines = [row_warnings.line_of(load, point) for point in points]
    assert len(lines) == left_out
    warnings = pd.concat([frames.warnings, schema.typed("warnings", pd.DataFrame(lines))])
    found = findings.find(replace(frames, warnings=warnings))
    compared = set()
    for text in found.loc[found["topic"].isin(FACTORS), "points"]:
        compared |= set(json.loads(text))
    assert compared.isdisjoint(points)
    assert bool(compared) == (left_out < 4)
    assert ("Workloads" in set(found["topic"])) == (left_out == 0)


# -- the layout


def test_a_layout_of_means_has_them_in_rows_shares_and_sentences(tmp_path):
    """The median of both rows is 2e9."""
    records = []
    for threads, rates in ((1, (1e9, 2e9, 6e9)), (2, (1.5e9, 2e9, 4e9))):
        records += make.runs("cpubench", "DP", *rates, concurrency=threads)
        records += make.runs("hpl", "DP", 6e9, concurrency=threads)
    config = make.planned("four-subsystems-2018-hyperion").to_json()["config"]
    frames = make.frames(tmp_path / "c", records, config=config)
    rows = frames.rows.set_index(["instrument", "concurrency"])
    assert rows.loc["cpubench", "value"].tolist() == [3e9, 2.5e9]
    assert rows.loc["hpl", "ratio"].tolist() == [0.5, pytest.approx(2.5 / 6)]
    (text,) = frames.findings.loc[frames.findings["topic"].eq("Best and worst"), "text"]
    assert text.startswith("DP: best 3.000 GOP/s (1 thread") and "worst 2.500" in text


# -- HPL over nodes


def test_the_parallel_efficiency_is_the_share_of_one_node_times_the_nodes(tmp_path):
    known = []
    for nodes, rates in ((1, (1e12, 1.02e12)), (2, (1.8e12, 1.84e12)), (16, (12e12, 12.2e12))):
        for repetition, rate in enumerate(rates):
            of = Cell(
                "mpi", "hpl", "HPL", f"{nodes}-nodes", None, 8, "any", repetition, {}, "cores"
            )
            details = {"N": 50_000, "seconds": 90.0, "residual": 0.004}
            value = make.measurement(of, "rate", rate, details=details)
            known.append(make.record(of, [value]))
    campaign = make.frames(tmp_path / "c", known)
    shares = parallel_efficiency(campaign.rows).dropna()
    assert shares.tolist() == pytest.approx([0.901, 0.749], abs=1e-3)
    (line,) = score_card.card_lines(campaign)
    assert (line.title, line.place, line.text) == ("HPL, 16 nodes", "8 cores", "12.1 TFLOP/s")
