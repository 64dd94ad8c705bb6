"""Tables as LaTeX."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit import campaign_data as make

from peakmark.catalogue.tables import BY_NAME, TABLES
from peakmark.judging import rows
from peakmark.storage.results import Results
from peakmark.tables import latex, presentation

HOSTILE = r"a_b & 50 % #1 $x$ {y} ~ ^ \end{longtable} <tag>"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """LaTeX of all tables of a full sweep, by name."""
    results = Results.read(make.write(tmp_path_factory.mktemp("results") / "sweep", make.sweep()))
    all_rows = rows.build(results)
    return {table.name: latex.table(presentation.grid(results, table, all_rows[table.name])) for table in TABLES}


@pytest.mark.parametrize("name", BY_NAME)
def test_every_line_has_as_many_cells_as_columns(built: dict[str, str], name: str) -> None:
    text = built[name]
    specification = text.split("@{}")[1]
    columns = len(re.findall(r"[lr]|S\[table-format=\d+\.\d+\]", specification))
    body = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len(body) > 3
    for line in body:
        cells = 1 + len(re.findall(r"(?<!\\)&", line))
        spanned = sum(int(count) - 1 for count in re.findall(r"\\multicolumn\{(\d+)\}", line))
        assert cells + spanned == columns, line


def test_every_number_fits_the_format_of_its_column(built: dict[str, str]) -> None:
    text = built["memory_throughput"]
    formats = re.findall(r"[lr]|S\[table-format=(\d+)\.(\d+)\]", text.split("@{}")[1])
    rows_ = text.split("\\endlastfoot")[1].split("\\end{longtable}")[0].strip().splitlines()
    for line in rows_:
        for (whole, decimals), cell in zip(formats, line.removesuffix(" \\\\").split(" & "), strict=True):
            if whole and cell.strip() and not cell.startswith("{"):
                integer, _, fraction = cell.strip().partition(".")
                assert len(integer) <= int(whole)
                assert len(fraction) <= int(decimals)


def test_escaped_text_holds_no_live_command() -> None:
    escaped = latex.escape(HOSTILE)
    assert "\\end{longtable}" not in escaped
    for special in "&%#_$":
        assert re.search(rf"(?<!\\){re.escape(special)}", escaped) is None
    assert latex.escape("a\x00b\nc") == "a b c"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 1e9)], warnings=[HOSTILE])])
    results = Results.read(folder)
    text = latex.table(presentation.grid(results, BY_NAME["cpu"], rows.build(results)["cpu"]))
    assert text.count("\\end{longtable}") == 1
    assert latex.escape(HOSTILE) in text
