"""Tables and report are made anew only when the campaign or what makes them has changed."""

import shutil

import pytest
from tests.unit import campaign_data as make

from peakmark.report import ReportContent, digest, rendering, write_analysis
from peakmark.resources import ROOT

SECTION = {"logo": None, "tables": "file-io-lab", "published": ["file-io-lab"]}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("src/peakmark", "reports"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    return root


@pytest.mark.parametrize("name", [
    "src/peakmark/tables/tables.py", "src/peakmark/data/memory.csv",
    "reports/layouts/file-io-lab.yaml", "reports/published/file-io-lab.csv",
    "reports/template/main.typ", "reports/method.yaml", "reports/html/report.css",
])  # fmt: skip
def test_what_makes_them_is_in_the_digest(checkout, name):
    before = digest(SECTION, checkout)
    content = (checkout / name).read_text()
    (checkout / name).write_text(content + "\n")
    after = digest(SECTION, checkout)
    (checkout / name).write_text(content)
    assert before != after


def test_files_of_the_user_count_and_a_moved_checkout_does_not(checkout, tmp_path):
    logo = tmp_path / "logo.svg"
    digests = set()
    for text in ("<svg/>", "<svg></svg>"):
        logo.write_text(text)
        digests.add(digest({**SECTION, "logo": str(logo)}, checkout))
    assert len(digests) == 2
    before = digest(SECTION, checkout)
    moved = shutil.copytree(checkout, tmp_path / "moved")
    assert digest(SECTION, moved) == before


def test_what_is_stored_is_used_until_the_campaign_changes(tmp_path):
    folder = make.write(tmp_path / "c", make.runs("cpubench", "DP", 4e10))
    first = write_analysis(folder) | {"chapters": None}
    path, figure = folder / "analysis.json", folder / "figures" / "cpu.svg"

    def current():
        return {**ReportContent.read(folder).data, "chapters": None}

    before = path.stat().st_mtime_ns
    rendering.write_pdf(ReportContent.read(folder))
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
