"""One campaign, read once and judged once, whatever is made of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit import campaign_data as make

from peakmark import cli
from peakmark.cell import Cell
from peakmark.judging import rows
from peakmark.storage import records
from peakmark.storage.results import Results


@pytest.mark.parametrize(
    ("words", "readings"),
    [
        (("report", "--html"), 1),
        (("report", "--html", "--partial"), 2),  # the long table is made in parts, never of all records at once
        (("tables",), 2),
        (("summary",), 1),
    ],
)
def test_each_record_is_read_and_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], readings: int
) -> None:
    folder = make.write(tmp_path / "c", make.sweep(2))
    stored = Results.read(folder).records
    done: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            done[name] += 1
            return function(*arguments, **named)

        return call

    monkeypatch.setattr(records, "read", counted("read", records.read))
    monkeypatch.setattr(rows, "build", counted("judged", rows.build))
    monkeypatch.setattr(Cell, "from_json", counted("parsed", Cell.from_json))
    assert cli.main([words[0], str(folder), *words[1:]]) == 0
    assert len(stored) > 50
    assert done["read"] == readings * len(stored)
    assert done["judged"] == 1
    # Of each reading: the plan's cells, and of every record once to see whether it counts and once for its rows.
    assert done["parsed"] <= readings * 3 * len(stored)
