"""Published results: transcribed whole, fed through the tables, set beside a machine; and files of
users, of which what is wrong is told with its line.
"""

import csv
import math
from collections import Counter

import pytest
from tests.unit import campaign_data as make
from tests.unit.hostile import refuses

from peakmark.config import published
from peakmark.tools.tables import BY_NAME

DATA = make.DATA / "published"


def _lines(name):
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("path", sorted(published.FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_every_set_is_whole_and_in_the_tables_units(path):
    entries = published.load(path.stem).entries
    keys = Counter((*place_of(entry), entry.metric) for entry in entries)
    assert [key for key, count in keys.items() if count > 1] == []
    for entry in entries:
        table = BY_NAME[entry.table]
        assert entry.source and entry.hardware
        assert (entry.block is None) == (table.block is None)
        assert entry.metric in (table.metric, "efficiency", "standard_deviation")
        assert entry.unit == ("1" if entry.metric == "efficiency" else table.unit)


def place_of(entry):
    """Table, workload, concurrency, block, program and run, as the lists of tests have them."""
    block = "" if entry.block is None else str(entry.block)
    place = (entry.table, entry.workload, str(entry.concurrency), block)
    return (*place, entry.program, entry.run)


def check_sums(line, entries, scale):
    """Compare sums of a table (own program, reference) with the list's; how many own ones."""
    own = BY_NAME[line["table"]].own.instrument
    sums = {True: [], False: []}
    for entry in entries:
        if entry.table == line["table"]:
            sums[entry.instrument == own].append(entry.value * scale)
    assert math.fsum(sums[True]) == pytest.approx(float(line["own"]), rel=1e-8)
    assert math.fsum(sums[False]) == pytest.approx(float(line["reference"]), rel=1e-6)
    return len(sums[True])


@pytest.mark.parametrize("line", _lines("sums.csv"), ids=str)
def test_the_sums_are_those_of_the_report(line):
    """Rows, and the sums of printed columns in the report's units, added up by a second reading of
    the reports with another program; factor: printed value x factor = SI value.
    """
    measured = published.load(line["set"]).measured()
    entries = [entry for entry in measured if line["run"] in ("", entry.run)]
    assert check_sums(line, entries, 1 / float(line["factor"])) == int(line["rows"])


@pytest.mark.parametrize("line", _lines("efficiencies.csv"), ids=str)
def test_the_printed_efficiencies_are_kept_as_they_are(line):
    """In percent, summed up as printed."""
    entries = [
        entry for entry in published.load(line["set"]).entries if entry.metric == "efficiency"
    ]
    check_sums(line, entries, 100)


@pytest.mark.parametrize("line", _lines("spots.csv"), ids=str)
def test_single_values_are_as_printed(line):
    """Values in SI units, read by eye."""
    keys = ("table", "workload", "concurrency", "block", "program", "run")
    place = tuple(line[key] for key in keys)
    measured = published.load(line["set"]).measured()
    values = [entry.value for entry in measured if place_of(entry) == place]
    assert values == [pytest.approx(float(line["value"]), rel=1e-6)]


def test_what_the_printed_numbers_contradict_is_noted():
    notes = {
        (entry.workload, entry.concurrency, entry.metric): entry.note
        for entry in published.load("four-subsystems-2018-prometheus").entries
        if entry.table == "cpu" and entry.program == "MyCPUBench"
    }
    assert "changed places" in notes["DP", 1, "rate"]
    assert "give 6.327 %" in notes["DP", 1, "efficiency"]
    for name in ("four-subsystems-2018-hyperion", "four-subsystems-2018-prometheus"):
        for entry in published.load(name).entries:
            if entry.table == "disk_iops" and entry.program == published.THEORETICAL:
                assert entry.note


def test_copies_that_were_counted_once_are_doubled_and_say_so():
    found = published.load("four-subsystems-2018-hyperion")
    own, reference = (
        published.beside("memory_throughput", "RWS", 1 << 20, 1, name)
        for name in ("rambench", "pmbw")
    )
    assert found.value(own) == pytest.approx(2 * 3.973819e9)
    assert found.value(reference) == pytest.approx(27.8342e9)
    assert any("doubled here" in remark for remark in found.remarks(own))
    assert found.remarks(reference) == []


HEADER = ",".join((*published.COLUMNS, published.DEFINITION)) + "\n"
LINE = HEADER + "s,h,disk_throughput,WS,1,4096,X,throughput,1,B/s,,,"


@pytest.mark.parametrize(("text", "words"), [
    (LINE.replace("disk_throughput", "gpu"), ["line 2", "table", "gpu", "disk_throughput"]),
    (LINE.replace(",1,4096", ",one,4096"), ["line 2", "concurrency"]),
    (LINE.replace("4096", "4KB"), ["line 2", "column block", "4KB", "64KiB"]),
    (LINE.replace("B/s", "mph"), ["line 2", "column unit", "mph", "B/s", "GB/s"]),
    (LINE.replace(",1,B/s", ",nan,B/s"), ["line 2", "column value", "NaN"]),
    (LINE.replace(",1,B/s", ",,B/s"), ["line 2", "column value", '""']),
    (LINE.partition(",throughput,")[0], ["line 2", "fields"]),
    (f"{LINE}sync=often", ["line 2, column definition.sync", "often"]),
    (f"{LINE}stores=libc", ["line 2, column definition has the unknown key stores"]),
    (f"{LINE}sync", ["line 2, column definition.sync"]),
    ("source,table,value\n", ["line 1: the columns must be", "each once"]),
    # The first of the two would be lost in silence.
    (HEADER.replace("\n", ",value\n"), ["line 1: the columns must be", "each once"]),
])  # fmt: skip
def test_a_wrong_file_is_told_with_its_line(tmp_path, text, words):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    refuses(lambda: published.load(str(path)), "mine.csv", *words)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_what_a_spreadsheet_writes_is_read(tmp_path, separator):
    """A byte order mark, its own separator, decimal commas with it, lines that end in CR LF, units
    with prefixes.
    """
    path = tmp_path / "mine.csv"
    value = "3,2" if separator == ";" else "3.2"
    rows = [
        published.COLUMNS,
        f"s h disk_throughput RS 1 64KiB X throughput {value} GB/s - Straße".split(),
        ["s", "h", "disk_latency", "RR", "1", "4096", "X", "latency", "85", "us", "-", "-"],
    ]
    lines = [separator.join(reversed(row)).replace("-", "") for row in rows]
    path.write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    first, second = published.load(str(path)).entries
    assert (first.value, first.unit, first.block, first.note) == (3.2e9, "B/s", 65536, "Straße")
    assert (second.value, second.unit) == (pytest.approx(85e-6), "s")


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("change", [
    lambda rows: [[], [""] * 15, *rows],
    lambda rows: [rows[0], ["", " "], *rows[1:], [""] * 13, []],
    lambda rows: [["", *row, "", ""] for row in rows],
    lambda rows: [[*row[:5], "", *row[5:]] for row in rows],
    lambda rows: [rows[0], *(row[:-2] for row in rows[1:])],  # run and note
    lambda rows: [rows[0], *([*row, "", ""] for row in rows[1:])],
], ids=("above", "between", "around", "inside", "short", "long"))  # fmt: skip
def test_empty_rows_and_columns_of_a_spreadsheet_are_passed_over(tmp_path, separator, change):
    path = tmp_path / "mine.csv"
    row = ["s", "h", "disk_throughput", "RS", "1", "64KiB", "X", "throughput", "3", "GB/s", "", ""]
    rows = change([list(published.COLUMNS), row])
    lines = [separator.join(fields) for fields in rows]
    path.write_text("\r\n".join(lines) + "\r\n")
    (entry,) = published.load(str(path)).entries
    assert (entry.value, entry.block, entry.run, entry.note) == (3e9, 65536, "", "")


def test_the_hint_of_a_spreadsheet_on_its_separator_is_read(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("sep=;\r\n" + LINE.replace(",", ";"))
    assert len(published.load(str(path)).entries) == 1


@pytest.mark.parametrize(("text", "words"), [
    (HEADER.replace("\n", ",\n") + LINE.partition("\n")[2] + ",lost", ["line 2", "13 fields"]),
    (f"\n,,\n{LINE}".replace("4096", "4KB"), ["line 4", "column block"]),
    (",,\n,,\n", ["line 1: the columns must be"]),
])  # fmt: skip
def test_what_is_beside_an_empty_column_is_not_lost(tmp_path, text, words):
    path = tmp_path / "mine.csv"
    path.write_text(text)
    refuses(lambda: published.load(str(path)), "mine.csv", *words)


def test_a_definition_is_read(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(f"{LINE}sync=each; fill = new\n")
    (entry,) = published.load(str(path)).entries
    assert entry.definition == {"sync": "each", "fill": "new"}
