"""Each check finds what it is for, names the remedy, and is silent about a calm row: the limit, and
all of them together.
"""

import pytest
from tests.unit.analysis.checked import VM, codes, limit, row

from peakmark import limits
from peakmark.analysis.checks import check_row


def test_a_calm_row_has_no_notes() -> None:
    details = {"clock_hz_before": 3.2e9, "clock_hz_after": 3.21e9}
    assert check_row(row(details=details, limit=limit(101.0))) == []


@pytest.mark.parametrize(
    ("value", "marked"), [(100.0, False), (96.0, False), (95.0, True), (10.0, True)]
)
def test_more_than_the_limit_allows(value: float, marked: bool) -> None:
    assert codes(row(limit=limit(value))) == (["above-limit"] if marked else [])


def test_a_time_below_its_limit_is_above_it() -> None:
    assert codes(row([1e-9] * 6, limit=limit(1.2e-9, "s"), unit="s")) == ["above-limit"]
    assert codes(row([1e-9] * 6, limit=limit(0.9e-9, "s"), unit="s")) == []


def test_the_remedy_knows_the_clock_and_the_cache() -> None:
    nominal = check_row(row(limit=limit(80.0, clock="nominal")))[0]
    assert "125%" in nominal.text and "observed" in nominal.text
    disk = check_row(row(limit=limit(50.0, "B/s"), subsystem="disk", workload="RS"))[0]
    assert "cache" in disk.text and "size:" in disk.text
    pool = check_row(
        row(limit=limit(50.0, "B/s"), subsystem="memory", workload="RWS", variant="pool")
    )[0]
    assert "pool:" in pool.text


@pytest.mark.parametrize(("residual", "marked"), [(0.0027, False), (16.0, True), (1e5, True)])
def test_hpl_residual(residual: float, marked: bool) -> None:
    found = codes(row(details={"residual": residual}, instrument="hpl"))
    assert found == (["residual"] if marked else [])


def test_doubts_come_first() -> None:
    notes = check_row(row([100.0, 130.0], concurrency=9))
    assert [note.is_warning for note in notes] == sorted(
        (note.is_warning for note in notes), reverse=True
    )


def test_with_a_real_limit_of_this_project() -> None:
    limit = limits.for_row("cpu", "DP", "", None, 1, "rate", VM, {}, 3.2e9)
    assert codes(row([48.4e9] * 6, limit=limit)) == []
    assert codes(row([64e9] * 6, limit=limit)) == ["above-limit"]


def test_advice_fits_the_row() -> None:
    details = {"sent": 1000, "received": 900, "lost": 100}
    udp = {"subsystem": "network", "workload": "UDP", "unit": "bit/s"}
    for streams, fewer in ((1, False), (4, True)):
        (note,) = check_row(row(details=details, concurrency=streams, **udp))
        assert ("fewer streams" in note.text) == fewer
