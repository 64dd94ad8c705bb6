"""The commands of the tutorial and the how-to pages, as a reader types them, but shortened."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests import pages
from tests.checkout import Checkout

pytestmark = pytest.mark.trouble
LOCAL = [page for page in pages.pages(*pages.FOLDERS) if page.stem not in pages.CLUSTER]


@pytest.mark.parametrize("page", LOCAL, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(checkout: Checkout, page: Path) -> None:
    commands = pages.script(page, checkout.directory)
    done = checkout.run("bash", "-c", commands, limit_s=1800)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
    if "snakemake" in commands:
        assert list((checkout.directory / "results").glob("*/report.pdf"))
