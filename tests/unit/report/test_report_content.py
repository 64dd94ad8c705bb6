"""Tables and report are made anew only when the campaign or what makes them has changed."""

import shutil

import pytest
from tests.unit import campaign_data as make

from peakmark.report import ReportContent, digest, rendering, write_analysis
from peakmark.resources import ROOT

SECTION = {"logo": None, "tables": "file-io-lab"}
MAKERS = (
    "src/peakmark/views/tables.py", "src/peakmark/data/memory.csv",
    "reports/layouts/file-io-lab.yaml",
    "reports/template/main.typ", "reports/method.yaml", "reports/html/report.css",
)  # fmt: skip


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("src/peakmark", "reports"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    return root


def test_the_digest_changes_with_what_makes_them_and_with_files_of_the_user(checkout, tmp_path):
    logo = tmp_path / "logo.svg"
    logo.write_text("<svg/>")
    section = {**SECTION, "logo": str(logo)}
    digests = {digest(SECTION, checkout), digest(section, checkout)}
    for file in (logo, *(checkout / name for name in MAKERS)):
        file.write_text(file.read_text() + "\n")
        digests.add(digest(section, checkout))
    assert len(digests) == 3 + len(MAKERS)


def test_the_digest_of_a_moved_checkout_is_the_same(checkout, tmp_path):
    moved = shutil.copytree(checkout, tmp_path / "moved")
    assert digest(SECTION, moved) == digest(SECTION, checkout)


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
