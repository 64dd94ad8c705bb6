"""The last words of a run: files that are there, numbers with their doubts, commands that can be
pasted.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import campaign_data as make
import pytest
from tests.unit.hostile import CELL

from peakmark import resources
from peakmark.analysis import analysis
from peakmark.messages import Severity, message
from peakmark.workflow import summary


def test_they_name_the_files_five_numbers_with_their_unit_and_the_reference(swept: Path) -> None:
    text = summary.describe(swept)
    assert str(swept / "report.pdf") in text
    assert "report.html" not in text  # no page was made
    numbers = [line for line in text.splitlines() if line.startswith("  ")]
    assert [line.split()[0] for line in numbers] == ["CPU", "Memory", "Disk", "Disk", "Network"]
    assert "GigaOPS" in numbers[0]
    assert "HPL" in numbers[0]
    empty = make.write(swept.parent / "empty", [], planned=[CELL])
    assert "\n  " not in summary.describe(empty)


def test_a_row_in_doubt_is_not_told_without_it(
    swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = analysis.build_rows(summary.Results.read(swept))
    warning = message("clock-differs", Severity.UNSURE, more=0.2)
    found["cpu"] = [replace(row, warnings=(warning,)) for row in found["cpu"]]
    monkeypatch.setattr(analysis, "build", lambda _: found)
    lines = summary.describe(swept).splitlines()
    (place,) = (number for number, line in enumerate(lines) if line.startswith("  CPU"))
    assert "unsure: the clock" in lines[place + 1] and "20%" in lines[place + 1]
    assert sum("unsure: the clock" in line for line in lines) == 1


def test_commands_have_their_folder_unless_the_environment_is_active(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        resources, "sys", SimpleNamespace(prefix=str(tmp_path / ".venv"), base_prefix="/usr")
    )
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    assert resources.program("peakmark") == ".venv/bin/peakmark"
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path / ".venv"))
    assert resources.program("peakmark") == "peakmark"
    monkeypatch.setenv("VIRTUAL_ENV", "/another/one")
    assert resources.program("peakmark") == ".venv/bin/peakmark"
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert resources.program("peakmark") == f"{tmp_path}/.venv/bin/peakmark"


def test_the_commands_that_they_name_are_there(
    swept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    if sys.prefix == sys.base_prefix:
        pytest.skip("not in a virtual environment")
    named = [
        next(word for word in line.split() if "bin/" in word)
        for line in summary.describe(swept).splitlines()[-2:]
    ]
    assert [Path(name).name for name in named] == ["snakemake", "peakmark"]
    assert all(shutil.which(name) for name in named)
