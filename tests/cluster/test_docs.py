"""The commands of the pages on clusters, as a reader types them, but shortened."""

from pathlib import Path

import pytest
from testcluster import Cluster
from tests import pages

from workflow import PRESET_LIMIT_S, Workflow

pytestmark = pytest.mark.trouble
PAGES = [page for page in pages.pages(*pages.FOLDERS) if page.stem in pages.CLUSTER]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(equal: Cluster, tmp_path: Path, page: Path) -> None:
    workflow = Workflow.make(equal, tmp_path / "checkout")
    commands = pages.script(page, workflow.directory)
    done = workflow.call(["bash", "-c", commands], PRESET_LIMIT_S)
    text = done.stdout + done.stderr
    assert done.returncode == 0 and "Traceback" not in text, text
    assert list((workflow.directory / "results").glob("*/report.pdf"))
