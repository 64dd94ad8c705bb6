"""The numbers of published reports are transcribed whole."""

import csv
import math
import os
import shutil
from collections import Counter

import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit import published

from peakmark import cli
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
    is_written = os.environ.get("PEAKMARK_GOLDEN") == "write"
    frames = published.frames(name, tmp_path / "measured")
    schema.write(folder if is_written else tmp_path, frames)
    for path in (tmp_path / schema.FOLDER).glob("*"):
        assert path.read_text() == (folder / schema.FOLDER / path.name).read_text()
    # iperf measures no round trips, whatever a report says.
    kept = [
        key for key in published.runs(name) if (key[0], key[4]) != ("network_latency", "iperf3")
    ]
    judged = schema.read(folder).rows
    assert judged["n"].gt(0).sum() == len(kept)


@pytest.mark.parametrize("name", SETS)
def test_rows_alone_suffice(name, tmp_path):
    """Every command that reads a campaign reads a folder with nothing but the rows of a set."""
    folder = tmp_path / name
    shutil.copytree(published.FOLDER / name, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*.csv")}
    for command in ("tables", "fleet", "export --json-lines"):
        assert cli.main([*command.split(), str(folder)]) in (0, 3), command
    tables = (folder / "tables" / name).glob("*.csv")
    assert sum(len(pd.read_csv(path, dtype=str)) for path in tables)
    assert {path: path.read_bytes() for path in before} == before
