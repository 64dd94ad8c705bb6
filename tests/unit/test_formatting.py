"""Numbers, sizes and dates: as people read them, and as they write them."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.cases import cases

from peakmark import formatting
from peakmark.errors import ConfigError
from peakmark.formatting import (
    date,
    duration,
    format_size,
    parse_size,
    percent,
    plural,
    quantity,
    significant,
    size,
)


@cases("numbers")
def test_significant_digits(value, step, text):
    assert significant(value, step=step) == text


def test_a_number_has_as_many_digits_as_wanted():
    assert significant(1234.5678, 6) == "1234.57"


@given(st.floats(min_value=1e-4, max_value=1e15))
def test_significant_is_close_and_never_in_exponent_form(value):
    text = significant(value)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(("function", "texts"), [
    (percent, {0.915: "91.5", 0.00531: "0.53", 2.471: "247"}),
    (percent, {0.9996: "100", 0.09999: "10.0"}),
    (size, {1 << 20: "1 MiB", 1500: "1500 B", None: "", 10**6: "1 MB", 10**7: "10 MB"}),
    (size, {1000: "1 kB", 1024000: "1000 KiB"}),
    (duration, {0.2: "1 s", 48: "48 s", 700: "12 min"}),
    (duration, {7190: "2 h 0 min", 12_000: "3 h 20 min"}),
    (lambda count: plural(count, "cell"), {0: "0 cells", 1: "1 cell", 2.5: "2.5 cells"}),
    (lambda n: plural(n, "entry", "entries"), {1: "1 entry", 2 * 10**7: "20000000 entries"}),
])  # fmt: skip
def test_quantities_in_words(function, texts):
    assert callable(function)
    assert {value: function(value) for value in texts} == texts


@cases("numbers")
def test_quantities_have_the_unit_that_people_read(value, unit, text):
    assert quantity(value, unit) == text


def test_days_are_in_english():
    names = [date(datetime(2026, month, 21, tzinfo=UTC)) for month in range(1, 13)]
    assert names[::5] == ["21 January 2026", "21 June 2026", "21 November 2026"]
    assert len(set(names)) == 12


@cases("numbers")
def test_signs_of_print(text, printed):
    assert formatting.typeset(text) == printed


SIZES = {
    "1KiB": 1024, "16 MiB": 16 << 20, "4096": 4096, "1B": 1, "1.5GiB": 3 << 29, "1TiB": 1 << 40,
}  # fmt: skip


@pytest.mark.parametrize(("text", "size"), [*SIZES.items(), (4096, 4096)])
def test_sizes_are_iec(text, size):
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["1KB", "1M", "", "MiB", "-1KiB", "0", 0, "1.5B", "1 KiB x", "\uff11KiB"]
)
def test_ambiguous_or_wrong_sizes_are_refused(text):
    with pytest.raises(ConfigError, match="size"):
        parse_size(text)


@given(st.integers(min_value=1, max_value=1 << 50))
def test_every_size_survives_its_own_text(size):
    assert parse_size(format_size(size)) == size


@cases("numbers")
def test_a_bound_is_rounded_away_from_what_it_bounds(value, is_upper, shown):
    assert formatting.round_bound(value, 3, is_upper=is_upper) == shown


@cases("numbers")
def test_names_have_no_capital_letter_at_the_begin_of_a_sentence(text, printed):
    assert formatting.capitalised(text) == printed


def test_a_moment_is_in_utc_to_the_second():
    first = "2026-11-21T10:05:30.123+01:00"
    assert formatting.moment(first) == "21 November 2026, 09:05:30 UTC"
