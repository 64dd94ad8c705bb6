"""Tables and report are made anew only when the campaign or what makes them has changed."""

import shutil

import pytest
from tests.unit import campaign_data as make

from peakmark.report import document, makers, pdf_report
from peakmark.report.document import ReportContent
from peakmark.resources import ROOT

SECTION = {"logo": None, "tables": "file-io-lab", "published": ["file-io-lab"]}
OTHER = "disk-patterns-2020"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("src/peakmark", "reports"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    return root


@pytest.mark.parametrize(("name", "counts"), [
    ("src/peakmark/tables/__init__.py", True), ("src/peakmark/analysis/checks.py", True),
    ("src/peakmark/data/memory.csv", True), ("reports/layouts/file-io-lab.yaml", True),
    ("reports/published/file-io-lab.csv", True), ("src/peakmark/figures/style.py", True),
    ("src/peakmark/report/html_report.py", True), ("reports/template/main.typ", True),
    ("reports/method.yaml", True), ("reports/html/report.css", True),
    (f"reports/layouts/{OTHER}.yaml", False),
    (f"reports/published/{OTHER}.csv", False),
])  # fmt: skip
def test_what_makes_them_is_in_the_digest(checkout, name, counts):
    before = makers.digest(SECTION, checkout)
    content = (checkout / name).read_text()
    (checkout / name).write_text(content + "\n")
    after = makers.digest(SECTION, checkout)
    (checkout / name).write_text(content)
    assert (before != after) == counts


def test_files_of_the_user_count_and_a_moved_checkout_does_not(checkout, tmp_path):
    logo = tmp_path / "logo.svg"
    digests = set()
    for text in ("<svg/>", "<svg></svg>"):
        logo.write_text(text)
        digests.add(makers.digest({**SECTION, "logo": str(logo)}, checkout))
    assert len(digests) == 2
    before = makers.digest(SECTION, checkout)
    moved = shutil.copytree(checkout, tmp_path / "moved")
    assert makers.digest(SECTION, moved) == before


def test_what_is_stored_is_used_until_the_campaign_changes(tmp_path):
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10))
    first = document.write(folder) | {"chapters": None}
    path, figure = folder / "analysis.json", folder / "figures" / "cpu.svg"

    def current():
        return {**ReportContent.read(folder).data, "chapters": None}

    before = path.stat().st_mtime_ns
    pdf_report.build(ReportContent.read(folder))
    assert path.stat().st_mtime_ns == before
    for spoil in (
        lambda: path.write_text(path.read_text().replace("DP", "QP")),
        lambda: path.write_text("[]"),
        figure.unlink,
    ):
        spoil()
        assert current() == first
        assert figure.exists()
    make.write(folder, make.runs("cpubench", "DP", 5e10))
    assert current() != first
