"""The numbers of published reports are transcribed whole."""

import csv
import math
import os
from collections import Counter

import pytest
from tests.unit import campaign_data as make
from tests.unit import published

from peakmark.rows import schema
from peakmark.tools.tables import BY_NAME

DATA = make.DATA / "published"


def _lines(name):
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("path", sorted(published.FOLDER.glob("*.csv")), ids=lambda path: path.stem)
def test_every_set_is_whole_and_in_the_tables_units(path):
    entries = published.load(path.stem)
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
    """Added up by a second reading with another program; factor: printed value x factor = SI value."""
    measured = published.measured(line["set"])
    entries = [entry for entry in measured if line["run"] in ("", entry.run)]
    assert check_sums(line, entries, 1 / float(line["factor"])) == int(line["rows"])


SETS = sorted(path.stem for path in published.FOLDER.glob("*.csv"))


@pytest.mark.parametrize("name", SETS)
def test_the_rows_files_of_a_set_are_its_numbers(name, tmp_path):
    folder = published.FOLDER / name
    schema.write(
        folder if os.environ.get("PEAKMARK_GOLDEN") == "write" else tmp_path, published.frames(name)
    )
    for path in (tmp_path / schema.FOLDER).glob("*"):
        assert path.read_text() == (folder / schema.FOLDER / path.name).read_text()
    assert len(schema.read(folder).rows) == len(published.runs(name))
