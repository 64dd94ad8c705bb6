"""Tables as LaTeX: what stands in them, and that a LaTeX sets them within their column."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.unit import campaign_data as make
from tests.unit.tables.test_presets import small_campaign

from peakmark.analysis import analysis
from peakmark.config import layouts
from peakmark.storage.results import Results
from peakmark.tables import latex, presentation, tables
from peakmark.tools.tables import BY_NAME

HOSTILE = r"a_b & 50 % #1 $x$ {y} ~ ^ \end{tabular} <tag>"
COLUMN, PAGE = 240, 500  # points: columns and pages of two-column papers
OVERFULL = re.compile(r"Overfull .hbox \(([0-9.]+)pt too wide\)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of a full sweep."""
    campaign = make.write(tmp_path_factory.mktemp("results") / "sweep", make.sweep())
    tables.build(campaign)
    return campaign / "tables"


@pytest.fixture(scope="module")
def built(folder: Path) -> dict[str, str]:
    """LaTeX of all tables of the sweep, by name."""
    return {name: (folder / f"{name}.tex").read_text() for name in BY_NAME}


def _compiled(files: list[Path], width: int, folder: Path) -> list[float]:
    """By how many points the boxes of these tables are too wide, each set alone in a column of this
    width.
    """
    if shutil.which("pdflatex") is None:
        pytest.skip(
            "no pdflatex on PATH (Debian packages texlive-latex-recommended and texlive-science)"
        )
    for package in ("booktabs", "siunitx", "longtable"):
        if subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).returncode:
            pytest.skip(f"LaTeX is here without {package}")
    set_ = "".join(f"\\input{{{path}}}\\clearpage\n" for path in files)
    text = (
        "\\documentclass{article}\\usepackage[T1]{fontenc}\\usepackage[utf8]{inputenc}\\usepackage{textcomp}"
        "\\usepackage{booktabs,longtable,siunitx}"
        f"\\textwidth={width}pt\\columnwidth={width}pt\\hsize={width}pt\\parindent=0pt\\begin{{document}}\n{set_}\\end{{document}}\n"
    )
    (folder / "all.tex").write_text(text, encoding="utf-8")
    argv = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, timeout=120)
    log = (folder / "all.log").read_text(errors="replace")
    assert done.returncode == 0, log[-2000:]
    return [float(found) for found in OVERFULL.findall(log)]


def test_every_table_fits_a_column_of_a_paper(folder: Path, tmp_path: Path) -> None:
    files = [folder / f"{name}.tex" for name in BY_NAME]
    assert all("siunitx" in path.read_text().splitlines()[0] for path in files)
    assert _compiled(files, COLUMN, tmp_path) == []


@pytest.mark.parametrize("preset", ["four-subsystems-2018-hyperion", "disk-patterns-2020"])
def test_tables_of_a_layout_fit_a_page(preset: str, tmp_path: Path) -> None:
    campaign = small_campaign(tmp_path, preset)
    tables.build(campaign)
    files = sorted((campaign / "tables" / preset).glob("*.tex"))
    assert len(files) > 3
    assert [width for width in _compiled(files, PAGE, tmp_path) if width > 1] == []


def test_the_layout_of_a_paper_fits_its_column(tmp_path: Path) -> None:
    campaign = make.write(tmp_path / "c", make.sweep(), config={"report": {"tables": "paper"}})
    tables.build(campaign)
    files = sorted((campaign / "tables" / "paper").glob("*.tex"))
    assert len(files) == len(layouts.load("paper").layout_tables)
    for path in files:
        assert path.read_text().splitlines()[0].endswith("8.4 cm"), path.name
    assert _compiled(files, COLUMN, tmp_path) == []


def test_the_layout_of_a_paper_has_six_or_seven_columns_and_stars_for_doubt(tmp_path: Path) -> None:
    assert {len(layout_table.columns) for layout_table in layouts.load("paper").layout_tables} == {
        6,
        7,
    }
    records = make.runs("cpubench", "DP", 6e10, 1e11, 1.4e11)
    records += make.runs("cpubench", "DP", 1e11, 1e11, 1e11, concurrency=2)
    campaign = make.write(tmp_path / "c", records, config={"report": {"tables": "paper"}})
    tables.build(campaign)
    text = (campaign / "tables" / "paper" / "cpu.tex").read_text()
    assert [line.split(" & ")[0] for line in text.splitlines() if line.startswith("DP")] == [
        "DP*",
        "DP",
    ]
    assert "* unsure" in text
    assert "textsuperscript" not in text.replace("\\textsuperscript{9}", ""), "no notes below"


@pytest.mark.parametrize("name", BY_NAME)
def test_a_brief_table_has_at_most_seven_columns_and_whole_lines(
    built: dict[str, str], name: str
) -> None:
    text = built[name]
    specification = text.split("@{}")[1]
    columns = len(re.findall(r"[lr]|S\[table-format=\d+\.\d+\]", specification))
    assert columns <= 7
    body = [line for line in text.splitlines() if line.endswith(" \\\\")]
    assert len(body) > 1
    for line in body:
        assert 1 + len(re.findall(r"(?<!\\)&", line)) == columns, line


def test_what_a_column_has_no_room_for_is_left_out(tmp_path: Path) -> None:
    records = []
    for node in ("node1", "node2"):
        for tool in ("diskbench", "iozone", "fio"):
            records += make.runs(tool, "RS", 1e9, concurrency=4, node=node, host=node)
    config = {"site_facts": {"disk": {"throughput": {"RS": 2e9}}}}
    found = make.judge(tmp_path / "c", records, config=config).rows["disk_throughput"]
    labels = [column.label for column in latex.brief(found).columns]
    assert len(labels) == 7 and labels[0] == "Node" and labels[-2:] == ["Limit", "%"], labels


def test_every_number_fits_the_format_of_its_column(built: dict[str, str]) -> None:
    text = built["memory_throughput"]
    formats = re.findall(r"[lr]|S\[table-format=(\d+)\.(\d+)\]", text.split("@{}")[1])
    lines = text.split("\\midrule\n")[1].split("\\bottomrule")[0].strip().splitlines()
    assert len(lines) > 10
    for line in lines:
        for (whole, decimals), cell in zip(
            formats, line.removesuffix(" \\\\").split(" & "), strict=True
        ):
            if whole and cell.strip() and not cell.startswith("{"):
                integer, _, fraction = cell.strip().partition(".")
                assert len(integer) <= int(whole)
                assert len(fraction) <= int(decimals)


def test_escaped_text_holds_no_live_command() -> None:
    escaped = latex.escape(HOSTILE)
    assert "\\end{tabular}" not in escaped
    for special in "&%#_$":
        assert re.search(rf"(?<!\\){re.escape(special)}", escaped) is None
    assert latex.escape("a\x00b\nc") == "a b c"


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    of = make.cell("cpubench", "DP", subsystem="cpu")
    folder = make.write(
        tmp_path / "c", [make.record(of, [make.measurement(of, "rate", 1e9)], warnings=[HOSTILE])]
    )
    results = Results.read(folder)
    text = latex.render(
        presentation.grid(results, BY_NAME["cpu"], analysis.build_rows(results)["cpu"])
    )
    assert text.count("\\end{tabular}") == 1
    assert latex.escape(HOSTILE) in text
