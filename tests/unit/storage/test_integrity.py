"""A record that was damaged, edited, copied or measured with other options never counts, and is
never deleted.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.unit import campaign_data as make

from peakmark import files
from peakmark.cell import Cell
from peakmark.errors import RecordError
from peakmark.storage import integrity, records

CELL = make.cell("fio", "RR", subsystem="disk", variant="psync", block=4096)


def stored(folder: Path, of: Cell = CELL, value: float = 2e8) -> Path:
    """A record with a raw output beside it, as measure leaves them."""
    path = folder / "cells" / f"{of.id}.json"
    raw = path.with_suffix(".raw") / "0.stdout"
    files.write_text(raw, "what fio said")
    record = make.record(of, [make.measurement(of, "throughput", value)])
    record["raw"] = {f"{raw.parent.name}/{raw.name}": hashlib.sha256(raw.read_bytes()).hexdigest()}
    records.write(path, record)
    return path


def test_a_record_of_the_cell_counts(tmp_path: Path) -> None:
    path = stored(tmp_path)
    assert integrity.look(path, CELL).state == integrity.GOOD
    assert integrity.look(path.with_name("1.json"), CELL).state == integrity.ABSENT
    assert integrity.set_aside(tmp_path, CELL) is None
    assert path.exists()


@pytest.mark.parametrize(
    "change", [("200000000.0", "300000000.0"), ('"ok"', '"unavailable"'), ("node1", "node2")]
)
def test_an_edited_number_or_word_is_seen(tmp_path: Path, change: tuple[str, str]) -> None:
    path = stored(tmp_path)
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change))
    finding = integrity.look(path, CELL)
    assert finding.state == integrity.DAMAGED
    assert str(path) in finding.reason


def test_taking_the_checksum_out_does_not_help(tmp_path: Path) -> None:
    path = stored(tmp_path)
    data = json.loads(path.read_text())
    del data["sha256"]
    path.write_text(json.dumps(data))
    assert integrity.look(path, CELL).state == integrity.DAMAGED


def test_another_layout_of_the_same_content_is_the_same_record(tmp_path: Path) -> None:
    path = stored(tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()), indent=None))
    assert integrity.look(path, CELL).state == integrity.GOOD


def test_a_record_copied_to_another_repetition_is_seen(tmp_path: Path) -> None:
    path = stored(tmp_path)
    copy = path.with_name("1.json")
    copy.write_text(path.read_text())
    finding = integrity.look(copy, dataclasses.replace(CELL, repetition=1))
    assert finding.state == integrity.DAMAGED
    assert "another cell" in finding.reason


def test_other_options_are_told_with_both_values(tmp_path: Path) -> None:
    finding = integrity.look(
        stored(tmp_path), dataclasses.replace(CELL, options={"seconds": 2.0, "seed": 1})
    )
    assert finding.state == integrity.OTHER
    assert "seconds 1.0, now 2.0" in finding.reason


@pytest.mark.parametrize("before, now", [(1, True), (0, False), (1, 1.0)])
def test_options_that_only_python_calls_equal_are_others(
    before: object, now: object, tmp_path: Path
) -> None:
    measured, asked = (
        dataclasses.replace(CELL, options={**CELL.options, "odd": value}) for value in (before, now)
    )
    path = stored(tmp_path, measured)
    assert integrity.look(path, measured).state == integrity.GOOD
    assert integrity.look(path, asked).state == integrity.OTHER


def test_a_folder_that_is_called_as_a_record_is_listed(tmp_path: Path) -> None:
    path = stored(tmp_path)
    (path.parent / "7.json").mkdir()
    (path.parent / "7.raw").mkdir()
    (path.parent / "7.raw" / "8.json").touch()
    (path.parent / ".9.json").touch()
    names = [Path(name).name for name in integrity.record_names(tmp_path, "cells")]
    assert names == sorted([path.name, "7.json"])


def test_a_changed_output_behind_a_record_is_seen_and_a_lost_one_is_no_contradiction(
    tmp_path: Path,
) -> None:
    path = stored(tmp_path)
    raw = path.with_suffix(".raw") / "0.stdout"
    raw.write_text("what fio did not say")
    assert str(raw) in integrity.look(path, CELL).reason
    raw.unlink()
    assert integrity.look(path, CELL).state == integrity.GOOD


def test_a_record_names_no_file_outside_its_folder(tmp_path: Path) -> None:
    for name in ("/etc/hostname", "../../secret"):
        with pytest.raises(RecordError, match="outside its folder"):
            integrity.check_raw(tmp_path / "0.json", {name: "0" * 64})


def test_set_aside_keeps_every_one_with_its_output(tmp_path: Path) -> None:
    kept = []
    for value in (1e8, 2e8):
        path = stored(tmp_path, value=value)
        text = path.read_text().replace('"ok"', '"unavailable"')
        path.write_text(text)
        kept.append((integrity.set_aside(tmp_path, CELL), text))
        assert not path.exists()
        assert not path.with_suffix(".raw").exists()
    assert [target.name for target, _ in kept if target] == ["0.json", "1.json"]
    for target, text in kept:
        assert target is not None
        assert target.read_text() == text
        assert (target.with_suffix(".raw") / "0.stdout").read_text() == "what fio said"


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=1371806)  # a line break inside a key
def test_no_damaged_text_gives_another_number(tmp_path: Path, seed: int) -> None:
    """Bytes changed, taken out or put in: the record is refused in one sentence, or says exactly
    what it said before.
    """
    chance = random.Random(seed)  # noqa: S311
    path = stored(tmp_path)
    before = records.read(path)
    text = bytearray(path.read_bytes())
    for _ in range(chance.randint(1, 4)):
        if not text:
            break  # nothing is left to be damaged further
        at = chance.randrange(len(text))
        match chance.randrange(4):
            case 0:
                text[at] = chance.randrange(256)
            case 1:
                del text[at : at + chance.randint(1, 40)]
            case 2:
                text[at:at] = bytes(
                    chance.choice(b'0123456789.eE-+"{}[],: \n') for _ in range(chance.randint(1, 4))
                )
            case 3:
                text = text[:at] or bytearray(b" ")
    path.write_bytes(text)
    finding = integrity.look(path, CELL)
    if finding.state == integrity.GOOD:
        assert finding.data == before
    else:
        assert finding.state == integrity.DAMAGED
        assert "\n" not in finding.reason
