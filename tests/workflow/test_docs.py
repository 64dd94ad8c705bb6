"""The commands of the tutorial and the how-to pages, shortened, as a reader types them."""

from dataclasses import replace

import pages
import pytest
from tests.checkout import ROOT
from tests.unit import pdf
from tests.wheel import Installation

pytestmark = pytest.mark.trouble
LOCAL = [page for page in pages.pages(*pages.FOLDERS) if page.stem not in pages.CLUSTER]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installation.make(tmp_path_factory.mktemp("a reader"))


@pytest.mark.parametrize("page", LOCAL, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(installed, tmp_path, page):
    reader = replace(installed, directory=tmp_path)
    commands = pages.script(page, tmp_path)
    kernels = {"PEAKMARK_KERNELS": str(ROOT / "build/kernels")}
    done = reader.run("bash", "-c", commands, env=kernels, limit_s=1800)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    if "peakmark run" in commands:
        reports = list((tmp_path / "results").glob("*/report.pdf"))
        assert reports
    if page.stem == "hand-in-an-assignment":
        handed_in = pdf.text(tmp_path / "results" / "assignment" / "report.pdf")
        for words in ("Jane Doe, A20412345", "CS 553, Team 7", "Larger records need fewer calls"):
            assert words in handed_in
        assert "To be written" not in handed_in
