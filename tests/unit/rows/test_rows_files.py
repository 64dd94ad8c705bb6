"""Rows files come from other people too: a value that no peakmark writes is named with its place."""

import json
import re
import shutil

import pandas as pd
import pytest
from tests.unit import campaign_data as make
from tests.unit import published

from peakmark.errors import RecordError
from peakmark.rows import build, schema
from peakmark.tools.tables import BY_NAME
from peakmark.views.table import empty_columns
from peakmark.workflow.status import collect_report


@pytest.fixture
def rows(tmp_path):
    """The rows of a published report, in a folder without records."""
    folder = tmp_path / "lab" / schema.FOLDER
    shutil.copytree(published.FOLDER / "file-io-lab" / "rows", folder)
    return folder


def test_a_program_of_which_the_file_says_nothing_was_not_planned(rows):
    content = json.loads((rows / "campaign.json").read_text())
    del content["empty"]["fio"]
    (rows / "campaign.json").write_text(json.dumps(content))
    frames = build.load(rows.parent)
    table = BY_NAME["disk_throughput"]
    assert empty_columns(frames, table, frames.rows[:0], {"fio"}) == []


def test_a_row_that_is_there_twice_is_named(rows):
    path = rows / "rows.csv"
    first = path.read_text().splitlines(keepends=True)[1]
    with path.open("a") as stream:
        stream.write(first)
    with pytest.raises(
        RecordError, match=r"line \d+: an earlier line has its point and instrument"
    ):
        build.load(rows.parent)


@pytest.mark.parametrize(("name", "column", "value"), [
    *(("rows", column, "unheard-of") for column in (
        "table", "subsystem", "unit", "workload", "instrument", "trust", "limit_kind", "is_own", "n",
    )),
    ("rows", "n", 10**19), ("rows", "n", -1), ("rows", "value", 0), ("rows", "limit", 0),
    ("rows", "value", "inf"), ("rows", "value", "nan"), ("rows", "block_bytes", -1),
    ("rows", "hosts", "[1"), ("rows", "hosts", "{}"), ("rows", "settings", "[]"),
    ("warnings", "code", "unheard-of"), ("warnings", "amount", "x"),
    ("runs", "status", "x"), ("findings", "points", "{}"), ("facts", "value", "{"),
])  # fmt: skip
def test_a_value_that_no_peakmark_writes_is_named_with_its_place(rows, name, column, value):
    path = rows / f"{name}.csv"
    frame = pd.read_csv(path, dtype=str, keep_default_na=False)
    frame.loc[1, column] = str(value)
    frame.to_csv(path, index=False)
    with pytest.raises(RecordError) as error:
        build.load(rows.parent)
    text = str(error.value)
    assert str(path) in text and "no records" in text
    assert f"line 3, column {column}" in text or column == "is_own"


def _changed(content, key, value):
    *parts, last = key.split(".")
    place = content
    for part in parts:
        place = place[part]
    place[last] = value


@pytest.mark.parametrize(("key", "value"), [
    ("times", {}), ("times.newest", "x"), ("cells", "x"), ("config.report", 3), ("rule", {}),
    ("checksums", {}), ("programs", [{}]), ("failures", [3]), ("commands", {"hpl": 3}),
])  # fmt: skip
def test_campaign_json_of_another_shape_is_named_with_its_key(rows, key, value):
    path = rows / schema.CAMPAIGN
    content = json.loads(path.read_text())
    _changed(content, key, value)
    path.write_text(json.dumps(content))
    with pytest.raises(RecordError) as error:
        build.load(rows.parent)
    assert str(path) in str(error.value) and key in str(error.value)


def test_a_missing_key_is_named(rows):
    path = rows / schema.CAMPAIGN
    content = json.loads(path.read_text())
    for key in content:
        path.write_text(json.dumps({name: content[name] for name in content if name != key}))
        with pytest.raises(RecordError) as error:
            build.load(rows.parent)
        assert f"`{key}`" in str(error.value)


@pytest.mark.parametrize(("name", "text", "other"), [
    ("runs", r"\n(.|\n)*", "\n"), ("facts", "(?m)^node1,", "other,"),
])  # fmt: skip
def test_rows_without_their_runs_or_with_facts_of_another_host_make_a_report(
    tmp_path, name, text, other
):
    records = make.runs("cpubench", "DP", *make.near(4e10))
    build.load(make.write(tmp_path / "c", records, facts=make.ZEN3))
    folder = shutil.copytree(tmp_path / "c" / schema.FOLDER, tmp_path / "lab" / schema.FOLDER)
    path = folder / f"{name}.csv"
    path.write_text(re.sub(text, other, path.read_text()))
    assert collect_report(folder.parent, keep=False)
