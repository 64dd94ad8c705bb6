"""The commands of the pages on clusters, shortened, as a reader of an installed peakmark types them."""

import pages
import pytest
from tests.wheel import Installation

from workflow import PRESET_LIMIT_S

pytestmark = pytest.mark.trouble
PAGES = [page for page in pages.pages(*pages.FOLDERS) if page.stem in pages.CLUSTER]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installation.make(tmp_path_factory.mktemp("a shared home"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_run(equal, installed, tmp_path, page):
    argv = ["bash", "-c", pages.script(page, tmp_path)]
    variables = {**equal.environment(), **installed.variables}
    done = equal.run(argv, check=False, timeout=PRESET_LIMIT_S, cwd=tmp_path, env=variables)
    text = done.stdout + done.stderr
    assert done.returncode == 0 and "Traceback" not in text, text
    assert list((tmp_path / "results").glob("*/report.pdf"))
