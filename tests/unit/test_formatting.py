"""Numbers, sizes and dates as people read them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmark.errors import ConfigError
from peakmark.formatting import (
    DATE_LANGUAGES,
    date,
    decimal_mark,
    percent,
    plural,
    significant,
    size,
    typeset,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (38.4321, "38.43"),
        (9.99961, "10.00"),
        (99.9951, "100.0"),
        (26336.4, "26336"),
        (0.0000204, "0.00002040"),
        (1e-12, "0.00000000"),
        (0.0, "0"),
        (-3.14159, "-3.142"),
    ],
)
def test_significant_digits(value: float, text: str) -> None:
    assert significant(value) == text


def test_a_number_has_as_many_digits_as_wanted() -> None:
    assert significant(1234.5678, 6) == "1234.57"


@pytest.mark.parametrize(
    ("value", "step", "text"),
    [
        (0.023, 1e-3, "0.023"),
        (0.0235, 1e-3, "0.024"),
        (0.0115, 5e-4, "0.0115"),
        (12.3456, 1e-3, "12.35"),
        (7.4, 1, "7"),
    ],
)
def test_no_decimals_that_the_instrument_does_not_give(
    value: float, step: float, text: str
) -> None:
    assert significant(value, step=step) == text


@given(st.floats(min_value=1e-4, max_value=1e15))
def test_significant_is_close_and_never_in_exponent_form(value: float) -> None:
    text = significant(value)
    assert "e" not in text
    assert float(text) == pytest.approx(value, rel=5.1e-4)


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.915, "91.5"), (0.00531, "0.53"), (2.471, "247"), (0.9996, "100.0"), (0.09999, "10.00")],
)
def test_percent_keeps_three_digits(fraction: float, text: str) -> None:
    assert percent(fraction) == text


def test_size_in_words() -> None:
    assert (size(1 << 20), size(1500), size(None)) == ("1 MiB", "1500 B", "")
    assert (size(10**6), size(10**7), size(1000), size(1024000)) == (
        "1 MB",
        "10 MB",
        "1 kB",
        "1000 KiB",
    )


@pytest.mark.parametrize("language", DATE_LANGUAGES)
def test_every_language_names_every_month(language: str) -> None:
    names = {date(datetime(2026, month, 21, tzinfo=UTC), language) for month in range(1, 13)}
    assert len(names) == 12
    assert all("2026" in name for name in names)


def test_unknown_language_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="'tlh' is not known: allowed are en"):
        date(datetime(2026, 1, 1, tzinfo=UTC), "tlh")


IPERF = "iperf version 3.12 serves all streams with one thread: version 3.16 is the first"
TYPESET = {
    "2 cores x 2.445 GHz x 0.5 = 2.445; spread by 7.5 – 31%: Linux 6.1.0, lib/x-1.2.so": (
        "2 cores × 2,445 GHz × 0,5 = 2,445; spread by 7,5 – 31\u00a0%: Linux 6.1.0, lib/x-1.2.so"
    ),
    # A version has no decimal mark.
    "gcc 12.2 and 13.1, clang 14.0, Open MPI 4.1 on Debian 12.4 in 1.5 s": (
        "gcc 12.2 and 13.1, clang 14.0, Open MPI 4.1 on Debian 12.4 in 1,5 s"
    ),
    "gcc 12.2 and 2.5 GB/s; HPL 47.34 GigaOPS": "gcc 12.2 and 2,5 GB/s; HPL 47,34 GigaOPS",
    "is 2.5. Then 10.0.0.1 and disk.iops.RR": "is 2,5. Then 10.0.0.1 and disk.iops.RR",
    "MyCPUBench says 89.01 GigaOPS, 7.5 us": "MyCPUBench says 89,01 GigaOPS, 7,5 µs",
    IPERF: IPERF,
}


@pytest.mark.parametrize("text", TYPESET)
def test_the_decimal_mark_and_signs_of_print(text: str) -> None:
    assert decimal_mark(typeset(text), ",") == TYPESET[text]
    assert typeset("p = 0.03, 5%") == "p = 0.03, 5\u00a0%"


def test_one_is_no_plural() -> None:
    counts = [plural(count, "cell") for count in (0, 1, 2)]
    assert counts == ["0 cells", "1 cell", "2 cells"]
    assert plural(1, "entry", "entries") == "1 entry"
    assert plural(20_000_000, "entry", "entries") == "20000000 entries"
    assert plural(2.5, "core") == "2.5 cores"
