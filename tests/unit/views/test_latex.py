"""Tables as LaTeX: what stands in them, and that a LaTeX sets them within their column."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from tests.unit import campaign_data as make

from peakmark.tools.tables import BY_NAME
from peakmark.views import layout_tables, table_files

HOSTILE = r"a_b & 50 % #1 $x$ {y} ~ ^ \end{tabular} <tag>"
COLUMN = 240  # points: the columns of two-column papers
OVERFULL = re.compile(r"Overfull .hbox \(([0-9.]+)pt too wide\)")
FORMATS = re.compile(r"[lr]|S\[table-format=(\d+)\.(\d+)\]")
DOCUMENT = r"""\documentclass{article}\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}
\usepackage{textcomp,booktabs,siunitx}
\textwidth=WIDTH\columnwidth=WIDTH\hsize=WIDTH\parindent=0pt\begin{document}
TABLES
\end{document}
"""


def overfull(files, width, folder):
    """By how many points the boxes of these tables are too wide, each set alone in a column of this
    width.
    """
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex (Debian: texlive-latex-recommended, texlive-science)")
    for package in ("booktabs", "siunitx"):
        if subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).returncode:
            pytest.skip(f"LaTeX is here without {package}")
    inputs = "\n".join(f"\\input{{{path}}}\\clearpage" for path in files)
    text = DOCUMENT.replace("WIDTH", f"{width}pt").replace("TABLES", inputs)
    (folder / "all.tex").write_text(text, encoding="utf-8")
    argv = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(argv, cwd=folder, capture_output=True, timeout=120)
    log = (folder / "all.log").read_text(errors="replace")
    assert done.returncode == 0, log[-2000:]
    return [float(points) for points in OVERFULL.findall(log)]


def test_every_table_fits_a_column_of_a_paper(swept, tmp_path):
    files = sorted((swept / "tables" / "paper").glob("*.tex"))
    assert all("siunitx" in path.read_text().splitlines()[0] for path in files)
    assert all(path.read_text().splitlines()[0].endswith("8.4 cm") for path in files)
    assert overfull(files, COLUMN, tmp_path) == []


def test_the_layout_of_a_paper_has_stars_for_doubt(tmp_path):
    records = make.runs("cpubench", "DP", 6e10, 1e11, 1.4e11)
    records += make.runs("cpubench", "DP", 1e11, 1e11, 1e11, concurrency=2)
    campaign = make.write(tmp_path / "c", records)
    make.tables(campaign)
    text = (campaign / "tables" / "paper" / "cpu.tex").read_text()
    firsts = [line.split(" & ")[0] for line in text.splitlines() if line.startswith("FP64")]
    assert firsts == ["FP64*", "FP64"]
    ends = [line.split(" & ")[3] for line in text.splitlines() if line.startswith("FP64")]
    assert ends == [r"40 \\", r"0 \\"]
    assert "* care: another run" in text
    assert "textsuperscript" not in text.replace("\\textsuperscript{9}", ""), "no notes below"


def test_a_table_of_a_paper_has_at_most_eight_columns_and_fitting_numbers(swept):
    paths = sorted((swept / "tables" / "paper").glob("*.tex"))
    measured = [path for path in paths if path.read_text().count(" \\\\\n") > 1]
    assert len(measured) > 8
    for path in measured:
        text = path.read_text()
        formats = FORMATS.findall(text.split("@{}")[1])
        assert len(formats) <= 8
        lines = [line for line in text.splitlines() if line.endswith(" \\\\")]
        assert {1 + len(re.findall(r"(?<!\\)&", line)) for line in lines} == {len(formats)}
        body = text.split("\\midrule\n")[1].split("\\bottomrule")[0].strip().splitlines()
        for line in body:
            cells = line.removesuffix(" \\\\").split(" & ")
            for (whole, decimals), cell in zip(formats, cells, strict=True):
                if whole and cell.strip() and not cell.startswith("{"):
                    integer, _, fraction = cell.strip().partition(".")
                    assert len(integer) <= int(whole) and len(fraction) <= int(decimals), line


def test_hostile_names_stay_text(tmp_path):
    escaped = table_files.escape(HOSTILE)
    assert "\\end{tabular}" not in escaped
    assert re.search(r"(?<!\\)[&%#_$]", escaped) is None
    assert table_files.escape("a\x00b\nc") == "a b c"
    frames = make.frames(tmp_path / "c", make.runs("cpubench", "DP", 1e9))
    (shown,) = layout_tables.shown_tables(layout_tables.arrange(frames, None), BY_NAME["cpu"], None)
    text = table_files.render(replace(shown, below=(HOSTILE,)))
    assert text.count("\\end{tabular}") == 1
    assert escaped in text
