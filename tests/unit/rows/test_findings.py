"""When a difference is stated of two choices."""

import math
import statistics

import numpy as np
import pandas as pd
import pytest
from benchmarks.method import rows as method
from tests.unit import campaign_data as make

from peakmark.cell import Cell
from peakmark.rows import comparisons
from peakmark.rows.labels import parallel_efficiency
from peakmark.views import score_card

FAST = [200.0, 210.0, 205.0]
SLOW = [100.0, 101.0, 102.0]
SPREAD = (1.0, 1.01, 1.02)


def row(speeds):
    """The speeds of one choice at one point."""
    known = {"n": len(speeds), "slowest": min(speeds), "fastest": max(speeds)}
    known |= {"middle": statistics.median(speeds), "point": "p", "band": 2e-8, "is_calm": True}
    return pd.DataFrame([known])


def pair(first, second):
    """The two choices at one point, compared."""
    return comparisons.paired(row(first), row(second), ["point"]).iloc[0].to_dict()


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


def test_rows_of_two_placements_are_no_pair():
    others = row(SLOW).assign(band=1e-7)
    assert not comparisons.paired(row(FAST), others, ["point"])["is_calm"].item()


# -- the gap between two ranges


@pytest.mark.parametrize(("first", "second", "found"), [
    # In larger ranges.
    ([30.0, 32.0], [10.0, 14.0], (4.0, -5.5)), ([10.0, 14.0], [30.0, 32.0], (-5.5, 4.0)),
    ([10.0, 20.0], [15.0, 25.0], (-1.5, -0.5)),
    ([2.0] * 3, [1.0] * 3, (math.inf, -math.inf)), ([1.0] * 3, [1.0] * 3, (0.0, 0.0)),
])  # fmt: skip
def test_gaps_between_two_ranges(first, second, found):
    line = pair(first, second)
    assert (line["gap"], line["gap_back"]) == found


# -- the rule


EVERY = "in every repetition"


@pytest.mark.parametrize(("points", "stated"), [
    ([(FAST, SLOW)], (1, EVERY)), ([(SLOW, FAST)], (-1, EVERY)),
    # A point that overlaps ends it for the group, as one in the opposite direction does.
    ([(FAST, SLOW), ([100.0, 150.0, 160.0], [90.0, 101.0, 100.0])], None),
    ([(FAST, SLOW), (SLOW, FAST)], None),
    # Five per cent are no difference; level sides need all values within them.
    ([([105.0] * 3, [100.0] * 3)], (0, EVERY)), ([([105.1] * 3, [100.0] * 3)], (1, EVERY)),
    ([([100.0, 101.0, 104.0], [99.5, 100.0, 103.0])], (0, EVERY)),
    ([([100.0, 101.0, 108.0], [99.5, 100.0, 103.0])], None),
])  # fmt: skip
def test_a_difference_is_stated_of_all_points_or_of_none(points, stated):
    assert shown(*[pair(*each) for each in points]) == stated


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
    assert (
        text
        == "INT8 is 2.99 to 3 times as fast as INT16 with 1 thread and 2 threads, from as few as 2 runs."
    )


def test_a_sentence_names_the_points_that_disturbances_leave(tmp_path):
    records = []
    for name, threads, rate in (("DP", 1, 1e10), ("DP", 2, 2e10), ("SP", 1, 4e10), ("SP", 2, 8e10)):
        details = {"cpu_share": 0.5 if rate > 4e10 else 1.0}
        place = {"concurrency": threads, "details": details}
        records += make.runs("cpubench", name, *[rate * factor for factor in SPREAD], **place)
    found = make.frames(tmp_path / "c", records).findings
    (text,) = found.loc[found["topic"].eq("Workloads"), "text"]
    assert text == "INT32 is 4 times as fast as FP64 with 1 thread."


@pytest.mark.parametrize(("share", "count"), [(1.0, 1), (0.5, 0)])
def test_no_workload_depends_most_on_the_block_size_if_a_row_was_disturbed(tmp_path, share, count):
    records = []
    for name, rates in (("RWS", {1024: 1e9, 1 << 20: 9e9}), ("RWR", {1024: 1e9, 1 << 20: 2e9})):
        for block, rate in rates.items():
            values = [rate * factor for factor in SPREAD]
            details = {"cpu_share": share if rate == 2e9 else 1.0}
            place = {"variant": "pool", "block": block, "details": details}
            records += make.runs("rambench", name, *values, **place)
    found = make.frames(tmp_path / "c", records).findings
    assert found["text"].str.contains("depends most").sum() == count


# -- sentences


def test_a_factor_just_below_a_thousand_has_no_exponent():
    assert comparisons.times(pd.Series([999.4, 999.6])) == "999 to 1000 times"


def test_a_share_just_above_the_limit_is_stated_for_the_points_it_is_of(tmp_path):
    details = {"clock_hz_before": 2e9, "clock_hz_after": 2e9}
    config = {"site_facts": {"cpu": {"cores": 2, "operations_per_cycle": {"DP": 32}}}}
    context = make.placed(1, 2)
    records = make.runs("cpubench", "DP", *[6.3e10] * 3, details=details, context=context)
    records += make.runs("likwid-bench", "DP", *[6.45e10] * 3, context=context)
    wrong = {"details": details, "context": context, "concurrency": 2}
    records += make.runs("cpubench", "DP", *[6.3e11] * 3, **wrong)
    records += make.runs("likwid-bench", "DP", *[6.45e11] * 3, **wrong)
    found = make.frames(tmp_path / "c", records, config=config).findings
    assert "likwid-bench reaches 101 % of the limit for FP64 with 1 thread." in set(found["text"])


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


def test_a_campaign_of_values_that_are_all_alike_has_no_difference():
    """The simulation of docs/method.md (``make bench-method``) once ended with a KeyError."""
    tables = method.planned_rows(method.PRESETS[0])
    assert not method.names_difference(tables, method.NOISES[0], np.random.default_rng(1))
