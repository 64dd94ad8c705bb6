"""Checks that are compiled from the schemas and kept between processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from peakmark import checkers

make = checkers.checker.__wrapped__
"""Without the cache, as another process has it."""


def is_refused(folder: Path) -> bool:
    try:
        make("record", folder)({"schema": 1})
    except checkers.Unfit:
        return True
    return False


@pytest.mark.parametrize("part", [0.0, 0.001, 0.5, 0.9999])
def test_a_kept_file_that_was_cut_is_made_anew(tmp_path: Path, part: float) -> None:
    assert is_refused(tmp_path)
    (file,) = tmp_path.glob("record_*.py")
    whole = file.read_text()
    cut = whole[: int(len(whole) * part)]
    file.write_text(cut[: cut.rfind("\n") + 1])
    assert is_refused(tmp_path)
    assert file.read_text() == whole


def test_records_are_checked_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert is_refused(tmp_path / "file" / "checkers")


def test_a_schema_that_changed_is_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_refused(tmp_path)
    other = tmp_path / "other.schema.json"
    other.write_text('{"type": "object"}')
    monkeypatch.setattr(checkers, "schema_path", lambda _: other)
    assert not is_refused(tmp_path)


def test_a_check_fills_nothing_in(tmp_path: Path) -> None:
    config: dict[str, Any] = {"report": {}}
    checkers.checker("config", tmp_path, partial=True)(config)
    assert config == {"report": {}}


def test_what_may_be_one_of_several_is_checked_against_each(tmp_path: Path) -> None:
    check = checkers.checker("config", tmp_path, partial=True)
    check({"fan_out": {"batch": 2}})
    with pytest.raises(checkers.Unfit):
        check({"fan_out": "nobody"})
