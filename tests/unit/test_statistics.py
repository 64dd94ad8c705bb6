"""Statistics on literal values, on degenerate ones, and their properties on generated ones."""

import itertools
import math
import random
import statistics as reference

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmark import statistics
from peakmark.analysis import compare

FUNCTIONS = [
    statistics.mean,
    statistics.stdev,
    statistics.median,
    statistics.mad,
    statistics.median_interval,
    statistics.modified_z,
    statistics.outliers,
    statistics.first_difference,
    statistics.drift,
    statistics.summarise,
]

numbers = st.floats(min_value=-1e12, max_value=1e12, allow_nan=False, allow_infinity=False)
rates = st.floats(min_value=1e-3, max_value=1e12)
samples = st.lists(numbers, min_size=1, max_size=40)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], "no values"),
        ([1.0, math.nan, 2.0], "value 1 of 3 is nan"),
        ([math.inf, 1.0], "value 0 of 2 is inf"),
        ([1.0, 2.0, -math.inf], "value 2 of 3 is -inf"),
    ],
)
def test_what_is_no_measurement_is_rejected(function, values: list[float], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=message):
        function(values)


def test_three_repetitions() -> None:
    summary = statistics.summarise([100.0, 103.0, 97.0])
    assert (summary.n, summary.mean, summary.median) == (3, 100, 100)
    assert (summary.minimum, summary.maximum) == (97, 103)
    assert summary.stdev == pytest.approx(3.0)
    assert summary.cv == pytest.approx(0.03)
    assert (summary.low, summary.high, summary.level, summary.enough) == (97, 103, 0.75, False)


def test_one_value_has_no_spread() -> None:
    summary = statistics.summarise([5.0])
    assert (summary.mean, summary.median) == (5, 5)
    assert (summary.stdev, summary.cv) == (None, None)
    assert (summary.low, summary.high, summary.level, summary.enough) == (5, 5, 0, False)
    with pytest.raises(ValueError, match="at least two"):
        statistics.stdev([5.0])


def test_equal_values() -> None:
    same = [0.1] * 9
    summary = statistics.summarise(same)
    assert (summary.stdev, summary.cv) == (0, 0)
    assert (summary.low, summary.high) == (0.1, 0.1)
    assert statistics.outliers(same) == []
    assert list(statistics.modified_z(same)) == [0.0] * 9
    trend = statistics.drift(same)
    assert trend is not None and (trend.relative, trend.p) == (0, 1)
    first = statistics.first_difference(same)
    assert first is not None and (first.relative, first.z) == (0, 0)


@pytest.mark.parametrize(
    ("n", "rank", "level"),
    # Ranks of the 95 % interval of the median as tabled in the literature (David and Nagaraja;
    # Conover).
    [(5, 1, 0.9375), (6, 1, 0.96875), (8, 1, 0.9921875), (9, 2, 0.9609375), (10, 2, 0.978515625), (15, 4, 0.96484375),
     (20, 6, 0.958610535), (30, 10, 0.957226053)],
)  # fmt: skip
def test_interval_of_the_median(n: int, rank: int, level: float) -> None:
    values = list(range(1, n + 1))
    random.Random(n).shuffle(values)  # noqa: S311
    interval = statistics.median_interval(values)
    assert (interval.low, interval.high) == (rank, n + 1 - rank)
    assert interval.level == pytest.approx(level)
    assert interval.enough == (n >= statistics.ENOUGH)


def test_the_interval_covers_the_median_as_often_as_it_says() -> None:
    generator = np.random.default_rng(1)
    for n in (3, 6, 10, 21):
        draws = generator.lognormal(size=(4000, n))
        intervals = [statistics.median_interval(row) for row in draws]
        covered = sum(one.low <= 1.0 <= one.high for one in intervals) / len(intervals)
        assert covered == pytest.approx(intervals[0].level, abs=0.02)


def test_modified_z_of_a_textbook_outlier() -> None:
    values = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]
    scores = statistics.modified_z(values)
    # Median 2.45, MAD 0.15 (median of .35 .15 .05 .05 .15 .35 .15 .15 5.75 5.85 is .15).
    assert scores[8] == pytest.approx(0.6745 * (8.2 - 2.45) / 0.15)
    assert statistics.outliers(values) == [8, 9]
    assert statistics.outliers([10.0] * 8 + [11.0]) == [8]


def test_more_than_half_equal_uses_the_mean_deviation() -> None:
    scores = statistics.modified_z([1.0, 1.0, 1.0, 1.0, 6.0])
    assert scores[4] == pytest.approx(5 / (1.253314 * 1.0))
    apart = statistics.modified_z([2.0, 0.0, 1.0], [1.0, 1.0, 1.0])
    assert list(apart) == [math.inf, -math.inf, 0.0]


def test_first_repetition() -> None:
    found = statistics.first_difference([80.0, 100.0, 101.0, 99.0, 100.5])
    assert found is not None
    assert found.relative == pytest.approx((80 - 100.25) / 100.25)
    assert found.z < -statistics.OUTLIER_Z
    calm = statistics.first_difference([100.2, 100.0, 101.0, 99.0, 100.5])
    assert calm is not None and abs(calm.z) < statistics.OUTLIER_Z
    assert statistics.first_difference([1.0, 2.0, 3.0]) is None


def test_drift_of_a_machine_that_warms_up() -> None:
    found = statistics.drift([100.0, 99.0, 98.2, 97.0, 96.1, 95.0])
    assert found is not None
    assert found.relative == pytest.approx(-0.05, abs=0.01)
    assert found.p == pytest.approx(2 / math.factorial(6))
    assert statistics.drift([1.0, 2.0, 3.0]) is None


def test_kendall_p_is_the_share_of_all_orders() -> None:
    values = [3.0, 1.0, 4.0, 2.0, 5.0]
    found = statistics.drift(values)
    assert found is not None

    def concordance(order: tuple[float, ...]) -> int:
        return sum(int(np.sign(b - a)) for a, b in itertools.combinations(order, 2))

    orders = list(itertools.permutations(values))
    extreme = sum(abs(concordance(order)) >= abs(concordance(tuple(values))) for order in orders)
    assert found.p == pytest.approx(extreme / len(orders))


def test_noise_without_drift_is_called_drift_no_more_often_than_its_p_says() -> None:
    generator = np.random.default_rng(2)
    trends = [statistics.drift(row) for row in generator.normal(100, 1, size=(1500, 10))]
    ps = [trend.p for trend in trends if trend is not None]
    assert len(ps) == 1500
    assert sum(p <= 0.05 for p in ps) / len(ps) <= 0.065


def test_repeating_may_stop_when_the_interval_is_narrow() -> None:
    narrow = statistics.summarise([100.0, 100.5, 99.5, 100.2, 99.9, 100.1])
    assert statistics.is_narrow(narrow, 0.02)
    assert not statistics.is_narrow(narrow, 0.001)
    assert not statistics.is_narrow(statistics.summarise([100.0] * 5), 0.02)


@given(samples)
def test_order_of_what_is_reported(values: list[float]) -> None:
    summary = statistics.summarise(values)
    assert summary.minimum <= summary.low <= summary.median <= summary.high <= summary.maximum
    tolerance = 1e-9 * max(1.0, abs(summary.minimum), abs(summary.maximum))
    assert summary.minimum - tolerance <= summary.mean <= summary.maximum + tolerance
    assert 0 <= summary.level < 1
    assert summary.enough == (len(values) >= statistics.ENOUGH)


@given(st.lists(numbers, min_size=2, max_size=40))
def test_agrees_with_the_standard_library(values: list[float]) -> None:
    scale = max(map(abs, values)) or 1.0
    least = 5e-324  # between the smallest numbers there is none to round to
    for name, near in (("mean", 1e-9), ("stdev", 1e-7), ("median", 1e-12)):
        expected = pytest.approx(
            getattr(reference, name)(values), rel=near, abs=near * scale + least
        )
        assert getattr(statistics, name)(values) == expected


@given(samples, st.randoms())
def test_order_of_repetitions_does_not_matter_to_a_summary(
    values: list[float], shuffler: random.Random
) -> None:
    other = list(values)
    shuffler.shuffle(other)
    one, two = statistics.summarise(values), statistics.summarise(other)
    assert (one.median, one.low, one.high) == (two.median, two.low, two.high)
    assert one.mean == pytest.approx(two.mean, rel=1e-12, abs=1e-9)


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=4, max_size=30),
    st.integers(1, 1000),
    st.integers(-1000, 1000),
)
def test_units_do_not_change_what_is_odd(values: list[int], factor: int, shift: int) -> None:
    changed = [value * factor + shift for value in values]
    assert statistics.outliers(values) == statistics.outliers(changed)
    before, after = statistics.drift(values), statistics.drift(changed)
    assert before is not None and after is not None
    assert before.p == after.p


@given(st.lists(numbers, min_size=4, max_size=30))
def test_backwards_the_drift_turns_round(values: list[float]) -> None:
    forward, backward = statistics.drift(values), statistics.drift(values[::-1])
    assert forward is not None and backward is not None
    assert forward.relative == pytest.approx(-backward.relative, rel=1e-6)
    assert forward.p == pytest.approx(backward.p)
    assert 0 <= forward.p <= 1


def test_rank_test_counts_every_division_of_the_values() -> None:
    assert statistics.rank_test([([1, 2, 3, 4], [5, 6, 7, 8])]) == pytest.approx(2 / 70)
    assert statistics.rank_test([([5, 6, 7, 8], [1, 2, 3, 4])]) == pytest.approx(2 / 70)
    assert statistics.rank_test([([1, 1, 1], [1, 1])]) == 1.0
    chance = np.random.default_rng(3)
    for _ in range(60):
        n, m = chance.integers(1, 6, 2)
        values = chance.integers(0, 5, n + m).astype(float)
        ranks = np.array([(values < one).sum() + ((values == one).sum() + 1) / 2 for one in values])
        centre = n * (n + m + 1) / 2
        observed = abs(ranks[:n].sum() - centre)
        divisions = itertools.combinations(range(n + m), n)
        extreme = [abs(ranks[list(one)].sum() - centre) >= observed - 1e-9 for one in divisions]
        share = float(np.mean(extreme))
        assert statistics.rank_test([(values[:n], values[n:])]) == pytest.approx(share, abs=1e-12)


def test_rank_test_of_many_values_goes_on_where_counting_ends() -> None:
    chance = np.random.default_rng(5)
    one, other = chance.normal(0, 1, 31), chance.normal(0.6, 1, 30)
    assert statistics.rank_test([(one, other)]) == pytest.approx(
        statistics.rank_test([(one[:30], other)]), rel=0.5
    )
    assert statistics.rank_test([(one, one)]) > 0.9
    assert statistics.rank_test([([1.0] * 40, [1.0] * 40)]) == 1.0


@pytest.mark.parametrize("kind", ["normal", "two modes", "long tail"])
def test_like_and_like_are_rarely_called_different(kind: str) -> None:
    """The verdict that users see, on what measurements look like; 500 comparisons at 6 against 6."""
    chance = np.random.default_rng(11)
    draw = {
        "normal": lambda: chance.normal(100, 1, 12),
        "two modes": lambda: chance.choice([100.0, 80.0], 12) + chance.normal(0, 0.1, 12),
        "long tail": lambda: 100 - chance.exponential(5, 12),
    }[kind]
    wrong = 0
    for _ in range(500):
        values = draw()
        wrong += compare.judge(values[:6], values[6:], False).verdict in ("better", "worse")
    # The exact test errs in 4.1 % of comparisons at most; 500 of them scatter by 0.9 %.
    assert wrong <= 0.07 * 500
