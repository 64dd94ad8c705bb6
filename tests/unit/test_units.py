import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakmark.errors import ConfigError
from peakmark.units import format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1KiB", 1024),
        ("16 MiB", 16 << 20),
        (4096, 4096),
        ("1B", 1),
        ("1.5GiB", 3 << 29),
        ("4096", 4096),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes_are_iec(text: str | int, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["1KB", "1M", "", "MiB", "-1KiB", "0", 0, "1.5B", True, "1 KiB x", "\uff11KiB"]
)
def test_ambiguous_or_wrong_sizes_are_refused(text: str | int) -> None:
    with pytest.raises(ConfigError, match="size"):
        parse_size(text)


@given(st.integers(min_value=1, max_value=1 << 50))
def test_every_size_survives_its_own_text(size: int) -> None:
    assert parse_size(format_size(size)) == size
