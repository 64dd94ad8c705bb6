"""The files in ``results/C/rows/`` hold all that was judged, and nothing else reads or writes them."""

import json
import shutil

import pandas as pd
import pytest
from tests.unit import campaign_data as make

from peakmark.errors import RecordError
from peakmark.rows import build, schema
from peakmark.storage.results import Results

CAMPAIGNS = ("node", "cluster")


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_what_is_written_is_read_again(name, golden):
    judged = build.judge(Results.read(golden(name)))
    read = schema.read(golden(name))
    for file in schema.FILES:
        pd.testing.assert_frame_equal(getattr(judged, file), getattr(read, file))
    assert json.loads(json.dumps(judged.campaign)) == read.campaign


def test_files_that_are_up_to_date_are_not_written_again(golden):
    path = golden("node") / "rows" / "rows.csv"
    before = path.stat().st_mtime_ns
    build.load(golden("node"))
    assert path.stat().st_mtime_ns == before


def test_the_files_are_enough(golden, tmp_path):
    shutil.copytree(golden("node") / "rows", tmp_path / "rows")
    rows = schema.read(golden("node")).rows
    pd.testing.assert_frame_equal(build.load(tmp_path).rows, rows)


def test_a_changed_record_is_judged_again(tmp_path):
    campaign = make.write(tmp_path, make.runs("cpubench", "DP", 4e10, 5e10))
    assert build.load(campaign).rows["n"].tolist() == [2]
    next((campaign / "cells").rglob("1.json")).unlink()
    rows = build.load(campaign).rows
    assert rows[["n", "missing"]].to_numpy().tolist() == [[1, 1]]


@pytest.mark.parametrize(("n", "seconds", "is_known"), [(1920, 0.035, False), (30_000, 90.0, True)])
def test_a_small_matrix_of_hpl_has_no_efficiency(tmp_path, n, seconds, is_known):
    records = make.runs("hpl", "DP", 3e10, details={"N": n, "seconds": seconds})
    facts = make.ZEN3 | {"cpu": make.ZEN3["cpu"] | {"clock_hz": {"nominal": 2.5e9, "maximum": 3e9}}}
    campaign = make.write(tmp_path, make.runs("cpubench", "DP", 4e10) + records, facts=facts)
    rows = build.load(campaign).rows.set_index("instrument")
    assert pd.notna(rows.loc["hpl", "efficiency"]) == is_known


def test_names_that_look_like_a_missing_value_stay_names(tmp_path):
    records = make.runs("cpubench", "DP", 4e10, host="NA")
    campaign = make.write(tmp_path, records, machines={"NA": make.ZEN3 | {"host": "NA"}})
    build.load(campaign)
    assert schema.read(campaign).runs["host"].tolist() == ["NA"]


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (
            lambda text: text.replace("point,", "place,", 1),
            "its columns are not those of this version",
        ),
        (lambda text: text + "one,two\n", "cannot be used"),
        (lambda _: "", "cannot be used"),
    ],
)
def test_a_damaged_file_is_named_with_what_writes_it_anew(tmp_path, edit, says):
    campaign = make.write(tmp_path, make.runs("cpubench", "DP", 4e10))
    build.load(campaign)
    path = campaign / "rows" / "rows.csv"
    path.write_text(edit(path.read_text()))
    with pytest.raises(RecordError, match=says) as error:
        schema.read(campaign)
    assert f"peakmark tables {campaign}" in str(error.value)
    assert build.load(campaign).rows["n"].tolist() == [1]


def test_every_column_has_a_kind_and_a_name_of_its_own():
    for columns in schema.FILES.values():
        assert {column.kind for column in columns} <= set(schema.DTYPES)
        names = [column.name for column in columns]
        assert len(names) == len(set(names))


def test_a_campaign_without_a_record_has_all_files(tmp_path):
    campaign = make.write(tmp_path, [])
    frames = build.judge(Results.read(campaign))
    assert frames.rows.empty
    assert list(frames.rows) == [column.name for column in schema.ROWS]
