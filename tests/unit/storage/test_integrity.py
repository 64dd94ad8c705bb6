"""Records: whole or not at all; damaged, edited or copied ones never count and are never deleted."""

import dataclasses
import hashlib
import json

import msgspec
import pytest
from tests.unit import campaign_data as make

from peakmark import files
from peakmark.errors import RecordError
from peakmark.storage import records
from peakmark.storage.records import ABSENT, DAMAGED, GOOD, OTHER_OPTIONS
from peakmark.tools.base import Measurement

CELL = make.cell("fio", "RR", subsystem="disk", variant="psync", block=4096)
OPTIONS = CELL.options


def record(of=CELL, value=2e8, **changes):
    made = make.struct(of, [make.measurement(of, "throughput", value)])
    return msgspec.structs.replace(made, **changes)


def stored(folder, of=CELL, value=2e8):
    """A record with a raw output beside it, as measure leaves them."""
    path = folder / "cells" / f"{of.id}.json"
    raw = path.with_suffix(".raw") / "0.stdout"
    files.write_text(raw, "what fio said")
    digest = hashlib.sha256(raw.read_bytes()).hexdigest()
    records.write(path, record(of, value, raw={f"{raw.parent.name}/{raw.name}": digest}))
    return path


@pytest.mark.parametrize(("change", "field"), [
    ({"status": "done"}, "status"),
    ({"measurements": [Measurement.of(CELL, "throughput", 0.0, {})]}, "value"),
    ({"measurements": [Measurement.of(CELL, "throughput", float("nan"), {})]}, "value"),
    ({"measurements": [Measurement("RR", "", 4096, 1, "throughput", 1.0, "MB/s")]}, "unit"),
    ({"schema": 2}, "schema"),
])  # fmt: skip
def test_what_does_not_fit_is_not_written(tmp_path, change, field):
    with pytest.raises(RecordError, match=field):
        records.write(tmp_path / "0.json", record(**change))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("now", "state"), [
    (CELL, GOOD),
    (dataclasses.replace(CELL, repetition=1), ABSENT),
    (dataclasses.replace(CELL, options={**OPTIONS, "seconds": 2.0}), OTHER_OPTIONS),
    # Values that only Python calls equal.
    (dataclasses.replace(CELL, options={**OPTIONS, "seed": True}), OTHER_OPTIONS),
    (dataclasses.replace(CELL, options={**OPTIONS, "seconds": 1}), OTHER_OPTIONS),
])  # fmt: skip
def test_a_record_counts_for_its_cell_alone(tmp_path, now, state):
    path = stored(tmp_path)
    assert [one.name for one in path.parent.iterdir() if one.is_file()] == ["0.json"]
    finding = records.survey(tmp_path, [now])[now.id]
    assert finding.state == state
    assert (records.set_aside(tmp_path, now) is None) == (state != OTHER_OPTIONS) == path.exists()


def edit(old, new):
    return lambda text: text.replace(old, new)


def without_checksum(text):
    return json.dumps({key: part for key, part in json.loads(text).items() if key != "sha256"})


@pytest.mark.parametrize(("change", "state"), [
    (edit("200000000.0", "300000000.0"), DAMAGED),
    (edit('"ok"', '"unavailable"'), DAMAGED),
    (edit('"ok"', '"fine"'), DAMAGED),
    (edit("node1", "node2"), DAMAGED),
    (edit('"status"', '"sta\ntus"'), DAMAGED),
    (without_checksum, DAMAGED),
    (lambda text: text[:0], DAMAGED),
    (lambda text: text[:500], DAMAGED),
    (lambda text: text.rstrip()[:-1], DAMAGED),
    (edit("\n  ", "\n   "), DAMAGED),
])  # fmt: skip
def test_an_edited_or_cut_record_is_seen(tmp_path, change, state):
    path = stored(tmp_path)
    text = path.read_text()
    path.write_text(change(text))
    assert path.read_text() != text
    finding = records.look(path, CELL)
    assert finding.state == state and (str(path) in finding.reason) == (state == DAMAGED)
    assert "\n" not in finding.reason


def test_set_aside_keeps_every_one_with_its_output(tmp_path):
    for number, value in enumerate((1e8, 2e8)):
        path = stored(tmp_path, value=value)
        text = path.read_text().replace('"ok"', '"unavailable"')
        path.write_text(text)
        target = records.set_aside(tmp_path, CELL)
        assert target is not None and target.name == f"0.{number}.json"
        assert target.read_text() == text
        assert (target.with_suffix(".raw") / "0.stdout").read_text() == "what fio said"
        assert not path.exists() and not path.with_suffix(".raw").exists()
