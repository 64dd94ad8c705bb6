"""Marks on clean rows: at most as many as are promised, at any number of repetitions."""

from __future__ import annotations

import numpy as np
import pytest

from peakmark.analysis import checks

ROWS = 2000
# Of so many rows, a count this far above the expectation comes by chance in fewer than one of ten
# thousand runs.
SLACK = 4.0


def _at_most(count: int, share: float) -> bool:
    return count <= ROWS * share + SLACK * (ROWS * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("n", [3, 4, 5, 6, 8, 12, 20, 30])
def test_a_quiet_machine_has_few_doubts_at_any_n(n: int) -> None:
    random = np.random.default_rng(n)
    marked = odd = 0
    for values in random.normal(100.0, 100.0 * checks.QUIET, size=(ROWS, n)):
        marked += bool(
            checks.is_wide(values) or checks.first_differs(values) or checks.drifts(values)
        )
        odd += bool(checks.outliers(values).places)
    assert _at_most(marked, 0.05)
    assert _at_most(odd, 0.05)


@pytest.mark.parametrize("n", [3, 6, 12])
def test_a_restless_machine_is_seen(n: int) -> None:
    random = np.random.default_rng(n)
    wide = sum(checks.is_wide(values) for values in random.normal(100.0, 20.0, size=(ROWS, n)))
    assert wide > ROWS * 0.6


def test_the_threshold_falls_to_the_true_spread_as_repetitions_come() -> None:
    widths = [checks.widest(n) for n in (2, 3, 6, 30, 1000)]
    assert widths == sorted(widths, reverse=True)
    # 98 % of the chi-square distribution with 2 degrees of freedom lie below 7.824, with 29 below
    # 46.693.
    assert checks.widest(3) == pytest.approx(0.05 * (7.824 / 2) ** 0.5, rel=0.01)
    assert checks.widest(30) == pytest.approx(0.05 * (46.693 / 29) ** 0.5, rel=0.002)
    assert checks.QUIET < widths[-1] < 1.1 * checks.QUIET


def test_thresholds_between_the_simulated_numbers_are_the_stricter_ones() -> None:
    assert checks._threshold(checks._OUTLIER, 7) == checks._threshold(checks._OUTLIER, 6)
    assert checks._threshold(checks._OUTLIER, 1000) == checks._OUTLIER[-1][1]
    assert checks._threshold(checks._FIRST, 2) == checks._FIRST[0][1]
