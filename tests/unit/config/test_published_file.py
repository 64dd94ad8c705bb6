"""A file of published results: what a spreadsheet writes is read, what is wrong is told with its
line.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from peakmark.config import published
from peakmark.errors import ConfigError


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("s,h,gpu,RS,1,4096,X,throughput,1,B/s,,", ["table", "gpu", "disk_throughput"]),
        ("s,h,disk_throughput,RS,one,4096,X,throughput,1,B/s,,", ["concurrency"]),
        ("s,h,disk_throughput,RS,1,4KB,X,throughput,1,B/s,,", ["column block", "4KB", "64KiB"]),
        (
            "s,h,disk_throughput,RS,1,4096,X,throughput,1,mph,,",
            ["column unit", "mph", "B/s", "GB/s"],
        ),
        ("s,h,disk_throughput,RS,1,4096,X,throughput,nan,B/s,,", ["column value", "NaN"]),
        ("s,h,disk_throughput,RS,1,4096,X,throughput,,B/s,,", ["column value", '""']),
        ("s,h,disk_throughput,RS,1,4096,X", ["fields"]),
    ],
)
def test_a_wrong_file_is_told_with_its_line(tmp_path: Path, line: str, words: list[str]) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(",".join(published.COLUMNS) + "\n" + line + "\n")
    with pytest.raises(ConfigError) as error:
        published.load(str(path))
    assert "line 2" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_a_set_that_does_not_exist_is_refused_before_anything_is_measured() -> None:
    from peakmark.plan import plan

    values: dict[str, Any] = {
        "cpu": [{"workloads": ["DP"], "concurrency": [1]}],
        "report": {"published": ["nobody"]},
    }
    with pytest.raises(ConfigError, match=r"nobody.*disk-patterns-2020"):
        plan.make(values)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_a_spreadsheet_writes_is_read(tmp_path: Path, separator: str) -> None:
    """A byte order mark, its own separator, decimal commas with it, lines that end in CR LF, units
    with prefixes.
    """
    path = tmp_path / "mine.csv"
    mark = "," if separator == ";" else "."
    rows = [
        (
            "s",
            "h",
            "disk_throughput",
            "RS",
            "1",
            "64KiB",
            "X",
            "throughput",
            f"3{mark}2",
            "GB/s",
            "",
            "Straße",
        ),
        ("s", "h", "disk_latency", "RR", "1", "4096", "X", "latency", "85", "us", "", ""),
    ]
    columns = published.COLUMNS[::-1]
    lines = [separator.join(columns), *(separator.join(row[::-1]) for row in rows)]
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    first, second = published.load(str(path)).entries
    assert (first.value, first.unit, first.block, first.note) == (3.2e9, "B/s", 65536, "Straße")
    assert (second.value, second.unit) == (pytest.approx(85e-6), "s")


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("source,table,value\n")
    with pytest.raises(ConfigError, match=r"line 1.*missing are hardware, workload"):
        published.load(str(path))


def test_a_column_that_stands_twice_is_named(tmp_path: Path) -> None:
    """The first of the two would be lost in silence."""
    path = tmp_path / "mine.csv"
    path.write_text(",".join((*published.COLUMNS, "value")) + "\n")
    with pytest.raises(
        ConfigError, match=r"line 1: the columns must be .*; there twice are value$"
    ):
        published.load(str(path))


HEADER = ",".join((*published.COLUMNS, published.DEFINITION))


def test_a_definition_is_read_and_an_unknown_one_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    line = "s,h,disk_throughput,WS,1,4096,X,throughput,1,B/s,,,"
    path.write_text(f"{HEADER}\n{line}sync=each; fill = new\n")
    (entry,) = published.load(str(path)).entries
    assert entry.definition == {"sync": "each", "fill": "new"}
    other = tmp_path / "other.csv"
    for wrong in ("sync=often", "stores=libc", "sync"):
        other.write_text(f"{HEADER}\n{line}{wrong}\n")
        published._load.cache_clear()
        with pytest.raises(
            ConfigError, match=rf"line 2, column definition has '{wrong}': allowed are isa=scalar"
        ):
            published.load(str(other))
