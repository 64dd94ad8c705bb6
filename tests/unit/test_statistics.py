"""Statistics on literal values, on degenerate ones, and their properties on generated ones."""

import math
import random
import statistics as reference

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.unit.cases import cases

from peakmark import statistics

FUNCTIONS = ["mean", "stdev", "median", "median_interval", "drift", "summarise"]
numbers = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False, allow_infinity=False)
samples = st.lists(numbers, min_size=1, max_size=40)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("values", [[], [1.0, math.nan, 2.0], [math.inf, 1.0], [2.0, -math.inf]])
def test_what_is_no_measurement_is_rejected(function, values):
    with pytest.raises(ValueError):
        getattr(statistics, function)(values)


@cases("numbers")
def test_a_summary(values, expected):
    summary = statistics.summarise(values)
    assert {name: getattr(summary, name) for name in expected} == pytest.approx(expected)


def test_equal_values_show_nothing_and_one_value_has_no_spread():
    same = [0.1] * 9
    assert statistics.drift(same) == statistics.Drift(0, 1)
    with pytest.raises(ValueError, match="at least two"):
        statistics.stdev([5.0])


@cases("numbers")
def test_interval_of_the_median(n, rank, level):
    values = list(range(1, n + 1))
    random.Random(n).shuffle(values)  # noqa: S311
    interval = statistics.median_interval(values)
    assert (interval.low, interval.high) == (rank, n + 1 - rank)
    assert interval.level == pytest.approx(level)


def test_drift_of_a_machine_that_warms_up():
    found = statistics.drift([100.0, 99.0, 98.2, 97.0, 96.1, 95.0])
    assert found is not None and found.p == pytest.approx(2 / math.factorial(6))
    assert found.relative == pytest.approx(-0.05, abs=0.01)
    assert statistics.drift([1.0, 2.0, 3.0]) is None


@given(samples, st.randoms())
def test_order_of_what_is_reported_and_none_of_repetitions(values, shuffler):
    summary = statistics.summarise(values)
    assert summary.minimum <= summary.low <= summary.median <= summary.high <= summary.maximum
    tolerance = 1e-9 * max(1.0, abs(summary.minimum), abs(summary.maximum))
    assert summary.minimum - tolerance <= summary.mean <= summary.maximum + tolerance
    assert 0 <= summary.level < 1
    other = statistics.summarise(shuffler.sample(values, len(values)))
    for name in ("median", "low", "high"):
        assert getattr(other, name) == getattr(summary, name)
    assert other.mean == pytest.approx(summary.mean, rel=1e-12, abs=1e-9)


@given(st.lists(numbers, min_size=2, max_size=40))
def test_agrees_with_the_standard_library(values):
    scale = max(map(abs, values)) or 1.0
    least = 5e-324  # between the smallest numbers there is none to round to
    for name, near in (("mean", 1e-9), ("stdev", 1e-7), ("median", 1e-12)):
        theirs = getattr(reference, name)(values)
        expected = pytest.approx(theirs, rel=near, abs=near * scale + least)
        assert getattr(statistics, name)(values) == expected


wholes = st.lists(st.integers(-(10**6), 10**6), min_size=4, max_size=30)


@given(wholes, st.integers(1, 1000), st.integers(-1000, 1000))
def test_units_change_nothing_and_backwards_the_drift_turns_round(values, factor, shift):
    changed = [value * factor + shift for value in values]
    drift, scaled, backward = map(statistics.drift, (values, changed, values[::-1]))
    assert drift is not None and scaled is not None and backward is not None
    assert drift.p == scaled.p == pytest.approx(backward.p) and 0 <= drift.p <= 1
    assert drift.relative == pytest.approx(-backward.relative, rel=1e-6)


def test_rows_that_do_not_vary_have_changed_by_nothing():
    (change,) = statistics.changes(np.ones((1, 6)), np.ones((1, 6)))
    assert change == (0.0, 0.0, 1.0)


def test_discoveries_are_those_of_benjamini_and_hochberg():
    assert statistics.discoveries([0.01, 0.04, 0.03, 0.5], 0.05) == [True, False, False, False]
    assert statistics.discoveries([], 0.05) == []


def test_the_change_of_a_single_row_is_students():
    first, second = np.random.default_rng(3).normal(size=(2, 1, 6))
    (change,) = statistics.changes(first, second[:, :5])
    expected = stats.ttest_ind(second[0, :5], first[0])
    assert change.mean == pytest.approx(second[0, :5].mean() - first[0].mean())
    assert change.p == pytest.approx(expected.pvalue)
    low, high = expected.confidence_interval()
    assert change.half == pytest.approx((high - low) / 2)
    (pairs,) = statistics.changes(first, first[:, :0])
    assert pairs.p == pytest.approx(stats.ttest_1samp(first[0], 0).pvalue)


def test_a_row_takes_the_variance_of_like_rows_and_keeps_its_own_beside_others():
    noise = np.random.default_rng(4).normal(size=(2, 30, 3))
    lucky = noise.copy()
    lucky[:, 0] = 1e-6 * noise[:, 0]
    alike, spoiled = (statistics.changes(*values) for values in (noise, lucky))
    halves = [change.half for change in alike]
    assert max(halves) < 1.3 * min(halves)
    assert spoiled[0].half > 0.3 * alike[0].half  # three values may be equal by chance
    spreads = np.logspace(-3, 0, 30)[:, None]
    unlike = [change.half for change in statistics.changes(*(noise * spreads))]
    assert max(unlike) > 20 * min(unlike)
    few = statistics.changes(noise[0][:, :2], noise[1][:, :2])
    assert np.isnan([change.p for change in few]).all()
