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
    "words",
    [("report", "--html"), ("report", "--html", "--partial"), ("tables",), ("summary",)],
    ids=" ".join,
)
def test_each_record_is_read_and_judged_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
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
    assert done["read"] == len(stored)
    assert done["judged"] == 1
    # The plan's cells, and of every record once to see whether it counts and once for its rows.
    assert done["parsed"] <= 3 * len(stored)
